// Models from and for other programs: safetensors files with nanoGPT's names.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/optim/adam.hpp>

#include "command.hpp"
#include "output.hpp"
#include "run_dir.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

struct ExportOptions {
  std::string checkpoint;
  std::string out = "model.safetensors";
  bool overwrite = false;
};

struct ImportOptions {
  std::string state;
  std::string out = "checkpoint.safetensors";
  bool overwrite = false;
  std::string data;                   ///< empty: the characters are the file's
  std::optional<std::size_t> n_head;  ///< none: what the file says
};

using xgrad::FileError;
using xgrad::Shape;
using xgrad::io::Json;
using xgrad::io::SafetensorsFile;
using xgrad::text::Characters;

constexpr std::string_view layer_prefix = "transformer.h.";

const Shape& shape_of(const SafetensorsFile& file, const std::string& name, std::size_t rank) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end() || found->second.shape.size() != rank)
    throw FileError(fmt::format("{}: a state dict of another model: it has no {} of rank {}",
                                file.path(), name, rank));
  return found->second.shape;
}

/// nanoGPT keeps the causal mask as a buffer of every block where PyTorch has no fused attention.
std::set<std::string> causal_masks(const SafetensorsFile& file) {
  std::set<std::string> masks;
  for (const auto& [name, stored] : file.tensors()) {
    const Shape& s = stored.shape;
    if (name.starts_with(layer_prefix) && name.ends_with(".attn.bias") && s.size() == 4 &&
        s[0] == 1 && s[1] == 1 && s[2] == s[3])
      masks.insert(name);
  }
  return masks;
}

/// What the shapes say.  A model is made of it, so it must not be larger than the file.
xgrad::nn::GPTConfig sizes_of(const SafetensorsFile& file, std::size_t n_head, double dropout) {
  const char* const tied = "lm_head.weight";
  const Shape wte = shape_of(file, file.contains(tied) ? tied : "transformer.wte.weight", 2);
  const Shape wpe = shape_of(file, "transformer.wpe.weight", 2);
  std::set<std::string> layers;
  for (const auto& [name, stored] : file.tensors()) {
    if (name.starts_with(layer_prefix))
      layers.insert(name.substr(0, name.find('.', layer_prefix.size())));
  }
  const std::size_t width = wte[1];
  for (const std::string& layer : layers) {
    const std::string name = layer + ".attn.c_attn.weight";
    if (const Shape& found = shape_of(file, name, 2); found != Shape{3 * width, width})
      throw FileError(fmt::format(
          "{}: the embeddings have width {}, so {} should be {}, but it is {}", file.path(), width,
          name, xgrad::to_string(Shape{3 * width, width}), xgrad::to_string(found)));
  }
  return {.block_size = static_cast<std::size_t>(wpe[0]),
          .vocab_size = static_cast<std::size_t>(wte[0]),
          .n_layer = layers.size(),
          .n_head = n_head,
          .n_embd = width,
          .dropout = dropout,
          .bias = file.contains("transformer.ln_f.bias")};
}

/// The configuration in the file's metadata; null if there is none that is JSON.
Json config_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("config");
  try {
    return found == file.metadata().end() ? Json() : xgrad::io::parse_json(found->second);
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

/// The characters of a text, or those that the file's metadata lists.
Characters characters_of(const SafetensorsFile& file, const std::string& data) {
  if (!data.empty())
    return xgrad::text::read_text(data).characters;
  const auto found = file.metadata().find("characters");
  if (found == file.metadata().end())
    throw FileError(
        fmt::format("{}: its metadata has no 'characters'; --data FILE says which text's they are",
                    file.path()));
  try {
    return Characters::from_list(xgrad::text::decode_utf8(found->second, "characters"));
  } catch (const xgrad::ValueError& error) {
    throw FileError(fmt::format("{}: the metadata's 'characters': {}", file.path(), reason(error)));
  }
}

void export_model(const ExportOptions& options) {
  if (is_checkpoint_name(std::filesystem::path(options.out).filename().string()))
    throw FileError(fmt::format(
        "--out {}: that is what runs call their checkpoints, and weights alone cannot be gone on "
        "with; another name is needed",
        xgrad::printable_name(options.out)));
  const std::string path = find_checkpoint(options.checkpoint);
  check_output(options.out, options.overwrite, {path});
  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
  const Notes notes = read_notes(checkpoint);
  check_finite(checkpoint.model, checkpoint.path);
  xgrad::io::TensorFile file;
  for (const auto& [name, x] : checkpoint.model)
    file.tensors.emplace(name, x);
  file.metadata = {{"format", "pt"},
                   {"config", xgrad::io::format_json(notes.config)},
                   {"characters", xgrad::text::encode_utf8(notes.characters.list())}};
  xgrad::io::save_safetensors(options.out, file);
  say(fmt::format(
      "{} in {}.\n",
      file.tensors.size() == 1 ? "1 tensor is" : fmt::format("{} tensors are", file.tensors.size()),
      options.out));
}

void import_model(const ImportOptions& options) {
  check_output(options.out, options.overwrite, {options.state, options.data});
  SafetensorsFile file(options.state);
  file.take_off({"_orig_mod.", "module."});  // of torch.compile and DataParallel
  const Json stored = config_of(file);
  std::optional<std::size_t> n_head = options.n_head;
  if (const auto* const found = stored.find<std::uint64_t>("n_head"); found != nullptr && !n_head)
    n_head = *found;
  if (!n_head)
    throw FileError(
        fmt::format("{}: no shape shows the number of heads, and its metadata has no 'config' with "
                    "'n_head'; --n-head N says it",
                    file.path()));
  const xgrad::nn::GPTConfig config = sizes_of(file, *n_head, stored.number("dropout").value_or(0));
  if (*n_head == 0 || config.n_embd % *n_head != 0)
    throw FileError(fmt::format("{}: its width {} is not a multiple of {} {}", file.path(),
                                config.n_embd, options.n_head ? "--n-head" : "its n_head",
                                *n_head));
  const Characters characters = characters_of(file, options.data);
  if (characters.size() != config.vocab_size)
    throw FileError(fmt::format("{}: its model has {}, but {} has {}", file.path(),
                                xgrad::counted(config.vocab_size, "character", "characters"),
                                options.data.empty() ? "its metadata" : options.data,
                                characters.size()));
  try {
    xgrad::nn::GPT model(config);
    const std::string converted = xgrad::io::load(model, file, causal_masks(file));
    const xgrad::optim::AdamW optimizer(
        xgrad::optim::decay_matrices(xgrad::nn::parameters(model), {}));
    check_finite(xgrad::nn::state_dict(model), options.state);
    xgrad::io::save_checkpoint(
        options.out, model, optimizer,
        {.user = to_json(Notes{.config = to_json(config), .characters = characters})});
    if (!converted.empty())
      say(fmt::format("Converted: {}.\n", converted));
  } catch (const xgrad::ValueError& error) {  // the sizes
    throw FileError(fmt::format("{}: {}", file.path(), reason(error)));
  }
  say(fmt::format("n_layer {}, n_head {}, n_embd {}: the checkpoint is {}.\n", config.n_layer,
                  config.n_head, config.n_embd, options.out));
}

}  // namespace

Command add_export(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "export", "write a model's weights to a file that PyTorch users open");
  const auto options = std::make_shared<ExportOptions>();
  add_checkpoint(app, options->checkpoint);
  add_path(app, "--out", options->out, fmt::format("where to [{}]", options->out));
  add_overwrite(app, options->overwrite);
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            export_model(*options);
            return 0;
          }};
}

Command add_import(CLI::App& program) {
  CLI::App& app = *program.add_subcommand(
      "import", "make a checkpoint of a state dict that PyTorch users saved");
  const auto options = std::make_shared<ImportOptions>();
  add_path(app, "--state", options->state, "a safetensors file with nanoGPT's names (needed)");
  add_path(app, "--out", options->out, fmt::format("where to [{}]", options->out));
  add_overwrite(app, options->overwrite);
  add_data(app, "--data", options->data,
           "the text that it was trained on, for its characters [the file's metadata]");
  add_number(app, "--n-head", options->n_head, {1, 1024},
             "attention heads of a block [the file's metadata]");
  return {&app, [options] {
            need("--state", options->state);
            import_model(*options);
            return 0;
          }};
}

}  // namespace char_transformer
