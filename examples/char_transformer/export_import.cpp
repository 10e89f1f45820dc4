// Models from and for other programs: safetensors files with nanoGPT's names.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/data/text.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/pretrained.hpp>
#include <xgrad/nn/lora.hpp>
#include <xgrad/optim/adam.hpp>

#include "notes.hpp"
#include "output.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

struct ExchangeOptions {
  std::string in, out;  ///< a checkpoint and a state dict, or the other way round
  bool overwrite = false;
  std::string data;                   ///< empty: the characters are the file's
  std::optional<std::size_t> n_head;  ///< none: what the file says
};

namespace fs = std::filesystem;
using xgrad::io::Json;
using xgrad::io::SafetensorsFile;

/// What the shapes say; and nanoGPT's causal masks, which every block has as a buffer where PyTorch
/// has no fused attention.
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

std::string metadata(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

/// The characters of a text, or the vocabulary in the file's metadata.
Vocabulary vocabulary_of(const SafetensorsFile& file, const std::string& data) {
  const std::string tokenizer = metadata(file, "tokenizer");
  if (!tokenizer.empty() && !data.empty())
    fail<FileError>("{}: its metadata has a tokenizer: leave out --data", file.path());
  if (!tokenizer.empty())
    try {
      return Vocabulary(
          xgrad::io::JsonObject{{"tokenizer", xgrad::io::parse_json(tokenizer, 0, 16)}},
          file.path());
    } catch (const ValueError& error) {
      fail<FileError>("{}: the metadata's 'tokenizer': {}", file.path(), reason(error));
    }
  if (!data.empty())
    return Vocabulary(xgrad::text::read_text(data).characters);
  const std::string list = metadata(file, "characters");
  if (list.empty())
    fail<FileError>("{}: its metadata has no 'characters'; --data FILE says which text's they are",
                    file.path());
  return Vocabulary(xgrad::io::JsonObject{{"characters", list}}, file.path());
}

/// --n-head, or what the configuration in the file's metadata says.
std::size_t heads_of(const SafetensorsFile& file, const std::optional<std::size_t>& given) {
  if (given)
    return *given;
  try {
    const Json config = xgrad::io::parse_json(metadata(file, "config"));
    if (const auto* const heads = config.find<std::uint64_t>("n_head"))
      return *heads;
  } catch (const ValueError&) {
  }
  fail<FileError>(
      "{}: no shape shows the number of heads, and its metadata has no 'config' with 'n_head'; "
      "--n-head N says it",
      file.path());
}

/// As transformers does it.
void export_folder(const ExchangeOptions& options) {
  const fs::path folder = options.out;
  std::vector<std::string> names = {"config.json", "model.safetensors", "tokenizer.json"};
  std::ranges::copy(xgrad::io::pretrained_files, std::back_inserter(names));
  if (std::error_code none; fs::exists(folder, none))
    for (const std::string& name : names)
      check_output((folder / name).string(), options.overwrite, files_of(options.in));
  TrainedModel trained = load_trained_model(options.in);  // says which
  xgrad::nn::merge_lora(trained.model);
  const Json metadata = metadata_of(trained.notes);
  const auto [kind, vocabulary] = trained.notes.vocabulary.stored();
  const bool pairs = kind == "tokenizer";
  std::string written = "config.json, model.safetensors";
  const auto written_or_absent = [&](const char* name, bool is_written) {
    std::error_code none;
    if (is_written)
      written += fmt::format(", {}", name);
    else if (fs::exists(folder / name, none))
      fail<FileError>("{}: of another model, and this one has none: name another folder",
                      (folder / name).string());
  };
  written_or_absent("tokenizer.json", pairs);
  if (!pairs)
    written_or_absent("vocab.json", false);
  for (const char* const name : xgrad::io::pretrained_files)
    written_or_absent(name, metadata.find(name) != nullptr);
  xgrad::io::save_pretrained(folder.string(), trained.model, options.overwrite, metadata);
  if (pairs) {
    xgrad::io::AtomicFile file((folder / "tokenizer.json").string());
    file.write(xgrad::io::format_json(vocabulary, xgrad::io::InvalidUtf8::refused, 2));
    file.commit();
  }
  say(fmt::format("{}: {}{}\n", options.out, written,
                  pairs ? "" : "; no tokenizer.json, because its ids are characters"));
  const auto tensors = xgrad::io::pretrained_tensors(trained.model.config);
  if (std::ranges::any_of(tensors, &xgrad::io::PretrainedTensor::zero))
    say("Biases that the model lacks, and transformers' has, are zeros.\n");
}

void export_model(const ExchangeOptions& options) {
  need("--checkpoint", options.in);
  if (options.out.ends_with('/'))
    return export_folder(options);
  check_output(options.out, options.overwrite, files_of(options.in));
  TrainedModel trained = load_trained_model(options.in);  // says which
  xgrad::nn::merge_lora(trained.model);
  const Notes& notes = trained.notes;
  const xgrad::nn::StateDict state = state_dict(trained.model);
  const auto [key, vocabulary] = notes.vocabulary.stored();
  const auto* const text = vocabulary.as<std::string>();
  const xgrad::io::TensorFile file{
      .tensors = {state.begin(), state.end()},
      .metadata = {{"format", "pt"},
                   {"config", xgrad::io::format_json(notes.config)},
                   {key, text != nullptr ? *text : xgrad::io::format_json(vocabulary)}}};
  xgrad::io::save_safetensors(options.out, file);
  say(fmt::format("{}: {}\n", options.out, format_count(file.tensors.size(), "tensor")));
}

void import_model(const ExchangeOptions& options) {
  need("--state", options.in);
  check_output(options.out, options.overwrite, {options.in, options.data});
  SafetensorsFile file(options.in);
  file.take_off({"_orig_mod.", "module."});  // of torch.compile and DataParallel
  std::set<std::string> masks;
  Recipe recipe = sizes_of(file, masks);
  recipe.n_head = heads_of(file, options.n_head);
  if (recipe.n_head == 0 || recipe.n_embd % recipe.n_head != 0)
    fail<FileError>("{}: its width {} is not a multiple of {} {}", file.path(), recipe.n_embd,
                    options.n_head ? "--n-head" : "its n_head", recipe.n_head);
  const Vocabulary vocabulary = vocabulary_of(file, options.data);
  const xgrad::nn::GPTConfig config = model_config(recipe, vocabulary.size());
  double weights = 0;
  for (const auto& [name, tensor] : file.tensors())
    weights += static_cast<double>(xgrad::numel(tensor.shape));
  check_size(config, vocabulary, weights, file.path());
  try {
    xgrad::nn::GPT model(config);
    const std::string converted = xgrad::io::load(model, file, masks);
    const xgrad::optim::AdamW optimizer(
        xgrad::optim::decay_matrices(xgrad::nn::parameters(model), {}));
    check_finite(xgrad::nn::state_dict(model), options.in);
    // Of its training nothing is known, so no run can go on with it.
    xgrad::io::JsonObject sizes{{"vocab_size", std::uint64_t{vocabulary.size()}}};
    for_each_field([&](const Field& field, auto member) {
      if (field.keeps == Keeps::size)
        sizes.emplace_back(key_of(field.flag), recipe.*member);
    });
    xgrad::io::save_checkpoint(options.out, model, optimizer,
                               {.user = to_json(Notes{.config = sizes, .vocabulary = vocabulary})});
    if (!converted.empty())
      say(fmt::format("Converted: {}.\n", converted));
  } catch (const ValueError& error) {  // the sizes
    fail<FileError>("{}: {}", file.path(), reason(error));
  }
  say(fmt::format("{}: n_layer {}, n_head {}, n_embd {}\n", options.out, config.n_layer,
                  config.n_head, config.n_embd));
}

}  // namespace

Command add_export(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "export", "write a model's weights to a file that PyTorch users open");
  const auto options = std::make_shared<ExchangeOptions>();
  options->out = "model.safetensors";
  add_checkpoint(app, options->in);
  add_out(app, options->out, options->overwrite,
          options->out + "; DIR/: a folder as transformers reads it");
  return command_of(app, options, export_model);
}

Command add_import(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "import", "make a checkpoint of a state dict that PyTorch users saved");
  const auto options = std::make_shared<ExchangeOptions>();
  options->out = "checkpoint.safetensors";
  add_path(app, "--state", options->in, "a safetensors file with nanoGPT's names (needed)");
  add_out(app, options->out, options->overwrite, options->out);
  add_path(app, "--data", options->data,
           "the text that it was trained on, for its characters [the file's metadata]");
  add_number(app, "--n-head", options->n_head, {1, 1024},
             "attention heads of a block [the file's metadata]");
  return command_of(app, options, import_model);
}

}  // namespace char_transformer
