// The folder of a pretrained model, where a checkpoint may be given.

#include <fmt/format.h>

#include <filesystem>
#include <xgrad/io/pretrained.hpp>
#include <xgrad/io/pretrained_config.hpp>
#include <xgrad/io/tokenizer.hpp>

#include "notes.hpp"
#include "output.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

Vocabulary read_vocabulary(const fs::path& folder) {
  const fs::path json = folder / "tokenizer.json", vocab = folder / "vocab.json",
                 merges = folder / "merges.txt";
  if (is_there(json))
    return Vocabulary::of_tokenizer(xgrad::io::read_json_file(json.string()), json.string());
  // These two do not say how a text is cut into pieces: GPT-2's are known.
  const bool gpt2 = text_in(read_object((folder / "config.json").string()), "model_type") == "gpt2";
  if (gpt2 && is_there(vocab) && is_there(merges))
    return Vocabulary(xgrad::io::read_tokenizer(vocab.string(), merges.string()));
  fail<FileError>(
      "{}: it has no tokenizer.json{}, which says what text its ids are: put there what was "
      "published with the weights",
      folder.string(), gpt2 ? ", nor vocab.json with merges.txt" : "");
}

}  // namespace

bool has_model_type(const std::string& folder) {
  return read_object((fs::path(folder) / "config.json").string()).find("model_type") != nullptr;
}

bool is_pretrained(const std::string& path) {
  std::error_code none;
  const fs::path folder = path;
  if (!fs::is_directory(folder, none))
    return false;
  return has_model_type(path) ||
         (!checkpoint_in(path) && (is_there(folder / "model.safetensors") ||
                                   is_there(folder / "model.safetensors.index.json")));
}

TrainedModel read_pretrained(const std::string& folder) {
  xgrad::io::check_weights_kind(folder);
  const auto config =
      xgrad::io::read_pretrained_config((fs::path(folder) / "config.json").string());
  Vocabulary vocabulary = read_vocabulary(folder);
  if (std::cmp_greater(vocabulary.size(), config.vocab_size))
    fail<FileError>("{}: the tokenizer has {}, and config.json a vocab_size of {}", folder,
                    vocabulary.count(vocabulary.size()), config.vocab_size);
  xgrad::io::JsonObject metadata = xgrad::io::read_pretrained_metadata(folder);
  xgrad::nn::GPT model = xgrad::io::load_pretrained(folder);
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
          .notes = {.config = std::move(sizes),
                    .vocabulary = std::move(vocabulary),
                    .model = config,
                    .metadata = std::move(metadata)},
          .about = folder + ", a pretrained model"};
}

std::vector<std::string> files_of(const std::string& given) {
  std::vector<std::string> files;
  const auto add = [&files](const std::string& path) {
    if (!is_pretrained(path))
      files.push_back(find_checkpoint(path));
    else
      for (const auto& entry : fs::directory_iterator(path))
        files.push_back(entry.path().string());
  };
  add(given);
  try {  // what adapters belong to, if it is there
    const xgrad::io::SafetensorsFile file(find_checkpoint(given));
    const auto user = xgrad::io::parse_json(file.metadata().at("user"), 0, 64);
    if (const auto* const lora = user.find("lora"))
      add(text_in(*lora, "base"));
  } catch (const std::exception&) {
  }
  return files;
}

}  // namespace char_transformer
