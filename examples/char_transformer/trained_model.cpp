#include "trained_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

#include "output.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;
using xgrad::Shape;
using xgrad::io::Json;

/// A number below 2^31 that a configuration gives, so that products of two do not overflow.
std::size_t size_in(const Json& config, const char* key, const std::string& path) {
  const auto* const size = config.find<std::uint64_t>(key);
  if (size == nullptr || *size == 0 || *size > std::numeric_limits<std::int32_t>::max())
    throw FileError(fmt::format("{}: its configuration has no number '{}'", path, key));
  return *size;
}

/// Compares with the tensors that are there before a model is made, which may be larger than
/// memory if the configuration is wrong.
void check_sizes(const xgrad::nn::GPTConfig& config, const xgrad::io::Checkpoint& checkpoint,
                 std::size_t characters) {
  const auto check_shape = [&](const std::string& name, const Shape& expected) {
    for (const auto& [stored, x] : checkpoint.model) {
      if (stored == name && x.shape() == expected)
        return;
      if (stored == name)
        throw FileError(fmt::format(
            "{}: its configuration (block_size {}, vocab_size {}, n_embd {}) asks for {} {}, but "
            "its shape is {}",
            checkpoint.path, config.block_size, config.vocab_size, config.n_embd, name,
            xgrad::to_string(expected), xgrad::to_string(x.shape())));
    }
    throw FileError(
        fmt::format("{}: a checkpoint of another model: it has no {}", checkpoint.path, name));
  };
  check_shape("transformer.wte.weight", {config.vocab_size, config.n_embd});
  check_shape("transformer.wpe.weight", {config.block_size, config.n_embd});
  check_shape("transformer.h.0.attn.c_attn.weight", {3 * config.n_embd, config.n_embd});
  double stored = 0;
  for (const auto& [name, x] : checkpoint.model)
    stored += static_cast<double>(x.numel());
  const auto width = static_cast<double>(config.n_embd);
  const double layers = 12 * static_cast<double>(config.n_layer) * width * width;
  if (config.n_layer > checkpoint.model.size() || layers > 4 * stored)
    throw FileError(
        fmt::format("{}: its configuration asks for {} with {} weights, but it has {} with {}",
                    checkpoint.path, xgrad::counted(config.n_layer, "layer", "layers"), layers,
                    xgrad::counted(checkpoint.model.size(), "tensor", "tensors"), stored));
  if (characters != config.vocab_size)
    throw FileError(fmt::format("{}: its configuration has vocab_size {}, but {}", checkpoint.path,
                                config.vocab_size,
                                xgrad::counted(characters, "character", "characters")));
}

}  // namespace

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size) {
  return {.block_size = recipe.block_size,
          .vocab_size = vocab_size,
          .n_layer = recipe.n_layer,
          .n_head = recipe.n_head,
          .n_embd = recipe.n_embd,
          .dropout = recipe.dropout,
          .bias = recipe.bias};
}

xgrad::nn::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint,
                                       const Notes& notes) {
  const std::string& path = checkpoint.path;
  const Json& config = notes.config;
  const std::optional<double> dropout = config.number("dropout");
  const auto* const bias = config.find<bool>("bias");
  if (!dropout || bias == nullptr)
    throw FileError(fmt::format("{}: its configuration has no 'dropout' or no 'bias'", path));
  const xgrad::nn::GPTConfig sizes{.block_size = size_in(config, "block_size", path),
                                   .vocab_size = size_in(config, "vocab_size", path),
                                   .n_layer = size_in(config, "n_layer", path),
                                   .n_head = size_in(config, "n_head", path),
                                   .n_embd = size_in(config, "n_embd", path),
                                   .dropout = *dropout,
                                   .bias = *bias};
  check_sizes(sizes, checkpoint, notes.characters.size());
  return sizes;
}

namespace {

/// FileError unless a text that config.json names is there.  It may have been moved, or have a name
/// that is not UTF-8; a stranger may have written config.json, and a pipe would be waited for.
void check_text(const std::string& path, const char* flag) {
  std::error_code none;
  if (path == standard_input)
    throw FileError(
        fmt::format("the text was read from standard input; {} FILE names it, or "
                    "{} - reads it again",
                    flag, flag));
  if (!path.empty() && !std::filesystem::is_regular_file(path, none))
    throw FileError(
        fmt::format("{}: {}; {} FILE names a text", path,
                    std::filesystem::exists(path, none) ? "is not a file" : "no such file", flag));
}

}  // namespace

Source open_text(const std::string& data, const std::string& val_data,
                 const std::string& checkpoint, const Notes& notes) {
  const auto* const known_preset = notes.config.find<std::string>("preset");
  const std::string preset = known_preset == nullptr ? "" : *known_preset;
  const FolderNotes known = read_folder_notes(checkpoint);
  if (val_data.empty())
    check_text(known.text("val_data"), "--val-data");
  const std::string validation = val_data.empty() ? known.text("val_data") : val_data;
  if (!data.empty())
    return open_source(data, validation, preset, notes.characters);
  if (known.data) {
    check_text(*known.data, "--data");
    return open_source(*known.data, validation, preset, notes.characters);
  }
  try {
    if (Source source = open_source("", validation, preset, notes.characters);
        other_text(source, notes).empty())
      return source;
  } catch (const FileError&) {  // it has other characters
  }
  throw FileError(fmt::format(
      "{}; --data FILE names a text",
      known.broken.empty()
          ? checkpoint + ": there is no config.json beside it that says what it was trained on"
          : known.broken));
}

std::string not_finite(const xgrad::nn::StateDict& tensors) {
  for (const auto& [name, x] : tensors) {
    const xgrad::Mask finite = xgrad::isfinite(x);
    const bool* const begin = finite.data();
    const bool* const end = begin + finite.numel();
    const bool* const first = std::find(begin, end, false);
    if (first != end)
      return fmt::format(
          "{} of the {} values of {} {} {} not finite, the first at {} in row-major order",
          std::count(first, end, false), finite.numel(), name, xgrad::to_string(x.shape()),
          std::count(first, end, false) == 1 ? "is" : "are", first - begin);
  }
  return "";
}

void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path) {
  if (const std::string wrong = not_finite(tensors); !wrong.empty())
    throw FileError(fmt::format("{}: {}", path, wrong));
}

void check_loss(const xgrad::nn::GPT& model, const xgrad::Indices& x, const xgrad::Indices& y,
                const std::string& path) {
  const xgrad::NoGrad guard;
  if (const double loss = model.loss(x, y).item(); !std::isfinite(loss))
    throw FileError(fmt::format("{}: the model's loss on this text is {}", path, loss));
}

TrainedModel load_trained_model(const std::string& given) {
  const std::string path = find_checkpoint(given);
  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
  Notes notes = read_notes(checkpoint);
  const xgrad::nn::GPTConfig sizes = read_model_config(checkpoint, notes);
  try {
    TrainedModel trained{path, xgrad::nn::GPT(sizes), std::move(notes)};
    xgrad::io::load_state(trained.model, checkpoint.model, path);
    xgrad::nn::eval(trained.model);
    check_finite(checkpoint.model, path);
    warn(fmt::format("{}, after {}", path, xgrad::counted(checkpoint.step, "step", "steps")));
    return trained;
  } catch (const xgrad::ValueError& error) {
    throw FileError(fmt::format("{}: {}", path, reason(error)));
  }
}

}  // namespace char_transformer
