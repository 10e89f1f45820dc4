#include "trained_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

#include "command.hpp"
#include "output.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;

/// FileError unless a text that config.json names is there.  It may have been moved, or have a name
/// that is not UTF-8; a stranger may have written config.json, and a pipe would be waited for.
std::string noted_text(const std::string& path, const char* flag) {
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
  return path;
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
  const auto missing = [&](const char* key) {
    return FileError(fmt::format("{}: its configuration has no '{}'", checkpoint.path, key));
  };
  xgrad::nn::GPTConfig config;
  for (const auto& [key, size] : {std::pair("block_size", &config.block_size),
                                  {"vocab_size", &config.vocab_size},
                                  {"n_layer", &config.n_layer},
                                  {"n_head", &config.n_head},
                                  {"n_embd", &config.n_embd}}) {
    const auto* const found = notes.config.find<std::uint64_t>(key);
    // Products of two do not overflow.
    if (found == nullptr || *found == 0 || *found > std::numeric_limits<std::int32_t>::max())
      throw missing(key);
    *size = *found;
  }
  const auto dropout = notes.config.number("dropout");
  const auto* const bias = notes.config.find<bool>("bias");
  if (!dropout || bias == nullptr)
    throw missing(dropout ? "bias" : "dropout");
  config.dropout = *dropout;
  config.bias = *bias;
  double weights = 0;
  for (const auto& [name, x] : checkpoint.model)
    weights += static_cast<double>(x.numel());
  check_size(config, weights, notes.characters.size(), checkpoint.path);
  return config;
}

void check_size(const xgrad::nn::GPTConfig& config, double weights, std::size_t characters,
                const std::string& path) {
  const auto width = static_cast<double>(config.n_embd);
  const double asked = width * (static_cast<double>(config.vocab_size + config.block_size) +
                                12 * width * static_cast<double>(config.n_layer));
  if (asked > weights)
    throw FileError(fmt::format(
        "{}: its configuration (block_size {}, vocab_size {}, n_layer {}, n_embd {}) asks for {} "
        "weights, and it has {}",
        path, config.block_size, config.vocab_size, config.n_layer, config.n_embd, asked, weights));
  if (characters != config.vocab_size)
    throw FileError(fmt::format("{}: its model has {}, but there are {}", path,
                                xgrad::counted(config.vocab_size, "character", "characters"),
                                characters));
}

Source open_text(const std::string& data, const std::string& val_data,
                 const std::string& checkpoint, const Notes& notes) {
  const auto* const preset = notes.config.find<std::string>("preset");
  const FolderNotes known = read_folder_notes(checkpoint);
  const std::string validation =
      val_data.empty() ? noted_text(known.text("val_data"), "--val-data") : val_data;
  const auto open = [&](const std::string& path) {
    return open_source(path, validation, preset == nullptr ? "" : *preset, notes.characters);
  };
  if (!data.empty())
    return open(data);
  if (known.data)
    return open(noted_text(*known.data, "--data"));
  try {
    if (Source source = open(""); other_text(source, notes).empty())
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
    const bool *const begin = finite.data(), *const end = begin + finite.numel();
    if (const auto bad = std::count(begin, end, false); bad > 0)
      return fmt::format(
          "{} of the {} values of {} {} {} not finite, the first at {} in row-major order", bad,
          finite.numel(), name, xgrad::to_string(x.shape()), bad == 1 ? "is" : "are",
          std::find(begin, end, false) - begin);
  }
  return "";
}

void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path) {
  if (const std::string wrong = not_finite(tensors); !wrong.empty())
    throw FileError(fmt::format("{}: {}", path, wrong));
}

TrainedModel load_trained_model(const std::string& given) {
  const std::string path = find_checkpoint(given);
  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
  Notes notes = read_notes(checkpoint);
  const xgrad::nn::GPTConfig config = read_model_config(checkpoint, notes);
  try {
    TrainedModel trained{path, xgrad::nn::GPT(config), std::move(notes)};
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
