#include "trained_model.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <utility>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/json.hpp>

namespace char_transformer {
namespace {

using xgrad::FileError;
using xgrad::Shape;
using xgrad::Tensor;
using xgrad::io::Json;
using xgrad::io::JsonObject;

/// A number below 2^31 that a configuration gives, so that products of two do not overflow.
std::size_t size_in(const Json& config, const char* key, const std::string& path) {
  const auto* const size = config.find<std::uint64_t>(key);
  if (size == nullptr || *size > std::numeric_limits<std::int32_t>::max())
    throw FileError(fmt::format("{}: its configuration has no number '{}'", path, key));
  return *size;
}

xgrad::nn::GPTConfig read_model_config(const Json& config, const std::string& path) {
  const std::optional<double> dropout = config.number("dropout");
  const auto* const bias = config.find<bool>("bias");
  if (!dropout || bias == nullptr)
    throw FileError(fmt::format("{}: its configuration has no 'dropout' or no 'bias'", path));
  return {.block_size = size_in(config, "block_size", path),
          .vocab_size = size_in(config, "vocab_size", path),
          .n_layer = size_in(config, "n_layer", path),
          .n_head = size_in(config, "n_head", path),
          .n_embd = size_in(config, "n_embd", path),
          .dropout = *dropout,
          .bias = *bias};
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
    throw FileError(fmt::format(
        "{}: its configuration asks for {} layers with {} weights, but it has {} tensors with {}",
        checkpoint.path, config.n_layer, layers, checkpoint.model.size(), stored));
  if (characters != config.vocab_size)
    throw FileError(fmt::format("{}: its configuration has vocab_size {}, but {} characters",
                                checkpoint.path, config.vocab_size, characters));
}

/// Absolute, so that the model can be evaluated from any folder; null is the embedded corpus.
Json data_entry(const std::string& path) {
  return path.empty() ? Json(nullptr) : Json(std::filesystem::absolute(path).string());
}

std::string dump(const JsonObject& config) {  // the path of a text may be any bytes
  return xgrad::io::format_json(config, xgrad::io::InvalidUtf8::replaced, 2);
}

/// Null for what is not JSON.
Json parse(const std::string& text) {
  try {
    return xgrad::io::parse_json(text);
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

}  // namespace

std::string format_config(const TrainOptions& options, std::size_t vocab_size) {
  const Recipe& r = options.recipe;
  return dump({{"preset", options.preset},
               {"data", data_entry(options.data)},
               {"vocab_size", vocab_size},
               {"block_size", r.block_size},
               {"n_layer", r.n_layer},
               {"n_head", r.n_head},
               {"n_embd", r.n_embd},
               {"dropout", r.dropout},
               {"bias", r.bias},
               {"batch_size", r.batch_size},
               {"max_iters", r.max_iters},
               {"learning_rate", r.learning_rate},
               {"min_lr", r.min_lr},
               {"warmup_iters", r.warmup_iters},
               {"lr_decay_iters", r.lr_decay_iters},
               {"gradient_accumulation_steps", r.gradient_accumulation_steps},
               {"weight_decay", r.weight_decay},
               {"beta1", r.beta1},
               {"beta2", r.beta2},
               {"grad_clip", r.grad_clip},
               {"eval_interval", r.eval_interval},
               {"eval_iters", r.eval_iters},
               {"seed", options.seed}});
}

std::string format_config(const xgrad::nn::GPTConfig& config, const std::string& data) {
  return dump({{"data", data_entry(data)},
               {"vocab_size", config.vocab_size},
               {"block_size", config.block_size},
               {"n_layer", config.n_layer},
               {"n_head", config.n_head},
               {"n_embd", config.n_embd},
               {"dropout", config.dropout},
               {"bias", config.bias}});
}

Json user_json(const std::string& config, const xgrad::data::Characters& characters) {
  return JsonObject{{"config", parse(config)},
                    {"characters", xgrad::data::encode_utf8(characters.list())}};
}

std::string config_in(const xgrad::io::Checkpoint& checkpoint) {
  const auto* const config = checkpoint.user.find<JsonObject>("config");
  if (config == nullptr)
    throw FileError(fmt::format("{}: its configuration is not a JSON object", checkpoint.path));
  return dump(*config);
}

xgrad::data::Characters characters_in(const xgrad::io::Checkpoint& checkpoint) {
  const auto* const list = checkpoint.user.find<std::string>("characters");
  if (list == nullptr)
    throw FileError(
        fmt::format("{}: a checkpoint of another program: it has no characters", checkpoint.path));
  try {
    return xgrad::data::Characters::from_list(xgrad::data::decode_utf8(*list, "characters"));
  } catch (const xgrad::ValueError& error) {
    throw FileError(
        fmt::format("{}: the metadata's 'characters': {}", checkpoint.path, error.what()));
  }
}

ModelNotes read_notes(const std::string& text) {
  ModelNotes notes;
  const Json config = parse(text);
  if (const auto* const n_head = config.find<std::uint64_t>("n_head"))
    notes.n_head = *n_head;
  notes.dropout = config.number("dropout").value_or(0);
  if (const auto* const data = config.find<std::string>("data"))
    notes.data = *data;
  return notes;
}

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size) {
  return {.block_size = recipe.block_size,
          .vocab_size = vocab_size,
          .n_layer = recipe.n_layer,
          .n_head = recipe.n_head,
          .n_embd = recipe.n_embd,
          .dropout = recipe.dropout,
          .bias = recipe.bias};
}

TrainedModel load_trained_model(const std::string& path) {
  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
  const Json config = parse(config_in(checkpoint));
  const xgrad::nn::GPTConfig sizes = read_model_config(config, path);
  xgrad::data::Characters characters = characters_in(checkpoint);
  check_sizes(sizes, checkpoint, characters.size());
  try {
    TrainedModel trained{xgrad::nn::GPT(sizes), std::move(characters), {}};
    xgrad::io::load_state(trained.model, checkpoint.model, path);
    xgrad::nn::eval(trained.model);
    if (const auto* const data = config.find<std::string>("data"))
      trained.data = *data;
    return trained;
  } catch (const xgrad::ValueError& error) {
    throw FileError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace char_transformer
