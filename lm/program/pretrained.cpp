// Models of other programs, accepted in place of a checkpoint: the folder of a pretrained model,
// and a file of weights alone.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <xgrad/lm/adapters.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>
#include <xgrad/nn/init.hpp>

#include "checkpoint_info.hpp"
#include "output.hpp"
#include "run_dir.hpp"

namespace program {
namespace {

namespace fs = std::filesystem;
using xgrad::io::SafetensorsFile;

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

Vocabulary read_vocabulary(const fs::path& folder) {
  const fs::path json = folder / "tokenizer.json", vocab = folder / "vocab.json",
                 merges = folder / "merges.txt";
  if (is_there(json))
    return Vocabulary::of_tokenizer(xgrad::lm::read_json_file(json.string()), json.string());
  // These two do not define the pre-tokenization, but GPT-2's is known.
  const bool gpt2 = text_in(read_object((folder / "config.json").string()), "model_type") == "gpt2";
  if (gpt2 && is_there(vocab) && is_there(merges))
    return Vocabulary(xgrad::lm::read_tokenizer(vocab.string(), merges.string()));
  fail<FileError>(
      "{}: it has no tokenizer.json{}, which defines its ids: put there the files that were "
      "published with the weights",
      folder.string(), gpt2 ? ", nor vocab.json with merges.txt" : "");
}

/// The sizes that the shapes give.  `masks` gets the names of nanoGPT's causal masks, buffers of
/// each block under a PyTorch without fused attention.
Recipe sizes_of(const SafetensorsFile& file, std::set<std::string>& masks) {
  constexpr std::string_view layer_prefix = "transformer.h.";
  std::set<std::string> layers;
  for (const auto& [name, stored] : file.tensors()) {
    const xgrad::Shape& s = stored.shape;
    if (!name.starts_with(layer_prefix))
      continue;
    layers.insert(name.substr(0, name.find('.', layer_prefix.size())));
    if (name.ends_with(".attn.bias") && s.size() == 4 && s[0] == 1 && s[1] == 1 && s[2] == s[3])
      masks.insert(name);
  }
  const auto found = file.tensors().find("transformer.wpe.weight");
  if (found == file.tensors().end() || found->second.shape.size() != 2)
    fail<FileError>("{}: a state dict of another model: it has no transformer.wpe.weight of rank 2",
                    file.path());
  const xgrad::Shape& positions = found->second.shape;
  return {.block_size = static_cast<std::size_t>(positions[0]),
          .n_layer = layers.size(),
          .n_embd = static_cast<std::size_t>(positions[1]),
          .bias = file.contains("transformer.ln_f.bias")};
}

std::string metadata_in(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

/// The vocabulary in the file's metadata, or the characters of a text.
Vocabulary vocabulary_of(const SafetensorsFile& file, const std::string& data) {
  const std::string tokenizer = metadata_in(file, "tokenizer"),
                    list = metadata_in(file, "characters");
  if (!tokenizer.empty())
    try {
      return Vocabulary(
          xgrad::io::JsonObject{{"tokenizer", xgrad::io::parse_json(tokenizer, 0, 16)}},
          file.path());
    } catch (const ValueError& error) {
      fail<FileError>("{}: the metadata's 'tokenizer': {}", file.path(), reason(error));
    }
  if (!list.empty())
    return Vocabulary(xgrad::io::JsonObject{{"characters", list}}, file.path());
  if (data.empty() || data == standard_input)  // standard input is read once, as the run's text
    fail<FileError>(
        "{}: its metadata has no 'characters'; train --init-from takes those of --data FILE",
        file.path());
  return Vocabulary(xgrad::lm::read_text(data).characters);
}

/// The number of heads in the file's metadata, or else `given`, that of --n-head.
std::size_t heads_of(const SafetensorsFile& file, std::size_t given) {
  try {
    const auto config = xgrad::io::parse_json(metadata_in(file, "config"));
    if (const auto* const heads = config.find<std::uint64_t>("n_head"))
      return *heads;
  } catch (const ValueError&) {
  }
  if (given == 0)
    fail<FileError>(
        "{}: no shape shows the number of heads, and its metadata has no 'config' with 'n_head'; "
        "train --init-from takes --n-head N",
        file.path());
  return given;
}

}  // namespace

bool has_model_type(const std::string& folder) {
  return read_object((fs::path(folder) / "config.json").string()).find("model_type") != nullptr;
}

std::string pretrained_folder(const std::string& path) {
  std::error_code none;
  const fs::path folder = path;
  if (!fs::is_directory(folder, none)) {
    const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
    return folder.filename() == "model.safetensors" && has_model_type(parent) ? parent : "";
  }
  const bool is = has_model_type(path) ||
                  (!checkpoint_in(path) && (is_there(folder / "model.safetensors") ||
                                            is_there(folder / "model.safetensors.index.json")));
  return is ? path : "";
}

bool holds_weights_alone(const std::string& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none) || !pretrained_folder(path).empty())
    return false;
  try {
    const SafetensorsFile file(path);
    return !file.metadata().contains("xgrad_checkpoint") &&
           std::ranges::any_of(file.tensors(), [](const auto& entry) {
             return entry.first.ends_with("transformer.wpe.weight");
           });
  } catch (const FileError&) {
    return false;  // reading a checkpoint reports it
  }
}

TrainedModel read_weights(const std::string& path, const std::string& data, std::size_t n_head) {
  SafetensorsFile file(path);
  file.take_off({"_orig_mod.", "module."});  // of torch.compile and DataParallel
  std::set<std::string> masks;
  Recipe recipe = sizes_of(file, masks);
  recipe.n_head = heads_of(file, n_head);
  if (recipe.n_head == 0 || recipe.n_embd % recipe.n_head != 0)
    fail<FileError>("{}: its width {} is not a multiple of n_head {}", path, recipe.n_embd,
                    recipe.n_head);
  Vocabulary vocabulary = vocabulary_of(file, data);
  const xgrad::lm::GPTConfig config = model_config(recipe, vocabulary.size());
  double weights = 0;
  for (const auto& [name, tensor] : file.tensors())
    weights += static_cast<double>(xgrad::numel(tensor.shape));
  check_size(config, vocabulary, weights, path);
  try {
    const xgrad::nn::init::SkipInit values_follow;
    xgrad::lm::GPT model(config);
    const std::string converted = xgrad::io::load(model, file, masks);
    check_finite(xgrad::nn::state_dict(model), path);
    // Its training is unknown, so no run can continue it.
    xgrad::io::JsonObject sizes{{"vocab_size", std::uint64_t{vocabulary.size()}}};
    for_each_field([&](const Field& field, auto member) {
      if (field.on_resume == OnResume::size)
        sizes.emplace_back(key_of(field.flag), recipe.*member);
    });
    return {.path = path,
            .model = std::move(model),
            .info = {.config = std::move(sizes), .vocabulary = std::move(vocabulary)},
            .about = fmt::format("{}, weights alone{}{}", path,
                                 converted.empty() ? "" : "; converted: ", converted)};
  } catch (const ValueError& error) {  // the sizes are wrong
    fail<FileError>("{}: {}", path, reason(error));
  }
}

TrainedModel read_pretrained(const std::string& folder) {
  xgrad::lm::check_weights_kind(folder);
  const auto config =
      xgrad::lm::read_pretrained_config((fs::path(folder) / "config.json").string());
  Vocabulary vocabulary = read_vocabulary(folder);
  if (std::cmp_greater(vocabulary.size(), config.vocab_size))
    fail<FileError>("{}: the tokenizer has {}, and config.json a vocab_size of {}", folder,
                    vocabulary.count(vocabulary.size()), config.vocab_size);
  xgrad::io::JsonObject metadata = xgrad::lm::read_pretrained_metadata(folder);
  xgrad::lm::GPT model = xgrad::lm::load_pretrained(folder);
  check_finite(xgrad::nn::state_dict(model), folder);
  // All sizes but --block-size: it may be trained on shorter blocks.
  xgrad::io::JsonObject sizes{{"bias", config.bias}};
  for (const auto& [name, size] : {std::pair("vocab_size", config.vocab_size),
                                   {"n_layer", config.n_layer},
                                   {"n_head", config.n_head},
                                   {"n_embd", config.n_embd}})
    sizes.emplace_back(name, static_cast<std::uint64_t>(size));
  return {.path = folder,
          .model = std::move(model),
          .info = {.config = std::move(sizes),
                   .vocabulary = std::move(vocabulary),
                   .model = config,
                   .metadata = std::move(metadata)},
          .about = folder + ", a pretrained model"};
}

std::string adapters_folder(const std::string& path) {
  const fs::path given = path;
  const std::string name = given.filename().string();
  if (name == "adapter_model.safetensors" || name == "adapter_config.json")
    return given.has_parent_path() ? given.parent_path().string() : ".";
  return is_there(given / "adapter_config.json") && !checkpoint_in(path) ? path : "";
}

std::string base_of_adapters(const std::string& folder, const std::string& given) {
  if (!given.empty())
    return given;
  const std::string base = xgrad::lm::read_adapter_config(folder).base;
  const fs::path here = fs::weakly_canonical(folder);
  for (const fs::path& path : {here / base, here.parent_path() / base, fs::path(base)})
    if (!base.empty() && is_there(path))
      return path.lexically_normal().string();
  fail<FileError>("{}: the model that its adapters are for, {}, is not there: --base DIR names it",
                  folder, base.empty() ? "unnamed" : xgrad::printable_name(base));
}

std::vector<std::string> files_of(const std::string& given, const std::string& base) {
  std::vector<std::string> files;
  const auto add = [&files](const std::string& path) {
    std::string folder = adapters_folder(path);
    if (folder.empty())
      folder = pretrained_folder(path);
    if (folder.empty())
      files.push_back(find_checkpoint(path));
    else
      for (const auto& entry : fs::directory_iterator(folder))
        files.push_back(entry.path().string());
  };
  add(given);
  try {  // the adapters' model, if it exists
    if (!base.empty())
      add(base);
    if (const std::string folder = adapters_folder(given); !folder.empty() && base.empty())
      add(base_of_adapters(folder, ""));
    const xgrad::io::SafetensorsFile file(find_checkpoint(given));
    const auto user = xgrad::io::parse_json(file.metadata().at("user"), 0, 64);
    if (const auto* const lora = user.find("lora"))
      add(text_in(*lora, "base"));
  } catch (const std::exception&) {
  }
  return files;
}

}  // namespace program
