#include "checkpoint_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/lm/adapters.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/nn/init.hpp>

#include "output.hpp"
#include "run_dir.hpp"

namespace program {
namespace {

using xgrad::io::Json;
using xgrad::io::JsonArray;
using xgrad::io::JsonObject;

std::uint64_t count_in(const Json& json, const char* key) {
  const auto* const count = json.find<std::uint64_t>(key);
  return count == nullptr ? 0 : *count;
}

void need_adapters(bool has, const std::string& path) {
  if (!has)
    fail<FileError>("{}: has no adapters, so it has no other model that --base could name", path);
}

}  // namespace

std::string format_batches(std::size_t n) {
  return fmt::format("{} random batch{}", format_count(n), n == 1 ? "" : "es");
}

bool evaluation_due(const Recipe& recipe, std::uint64_t steps) {
  return steps > 0 && (steps == recipe.max_iters || steps % recipe.eval_interval == 0);
}

bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations) {
  const bool pending = evaluation_due(recipe, steps) && evaluations.last != steps;
  return steps >= recipe.max_iters && !pending;
}

Json to_json(const CheckpointInfo& info) {
  const Evaluations& e = info.evaluations;
  JsonObject evaluations{{"last", e.last}};
  if (e.best) {
    evaluations.emplace_back("best_step", e.best->step);
    evaluations.emplace_back("best_loss", e.best->loss);
    evaluations.emplace_back("best_loss_over", format_batches(count_in(info.config, "eval_iters")));
  }
  JsonObject json{{"config", info.config},
                  info.vocabulary.stored(),
                  {"text", info.text},
                  {"val_text", info.val_text},
                  {"evaluations", std::move(evaluations)}};
  if (info.model) {
    json.emplace_back("model",
                      xgrad::io::parse_json(xgrad::lm::format_pretrained_config(*info.model)));
    json.emplace_back("metadata", info.metadata);
  }
  if (const auto& lora = info.lora) {
    const xgrad::nn::LoraOptions& o = lora->options;
    json.emplace_back("lora", JsonObject{{"rank", static_cast<std::uint64_t>(o.rank)},
                                         {"alpha", *o.alpha},
                                         {"targets", JsonArray(o.targets.begin(), o.targets.end())},
                                         {"base", lora->base},
                                         {"base_checksum", lora->base_checksum}});
  }
  return json;
}

JsonObject metadata_of(const CheckpointInfo& info) {
  if (!info.metadata.empty())
    return info.metadata;
  const auto* const pairs = info.vocabulary.pairs();
  const auto end = pairs == nullptr ? std::nullopt : pairs->find("<|endoftext|>");
  const Json id = end ? Json(static_cast<std::uint64_t>(*end)) : Json(nullptr);
  // Without it transformers takes GPT-2's class, and adds its special token after the last id.
  JsonObject tokenizer{{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"clean_up_tokenization_spaces", false}};
  if (end)
    tokenizer.emplace_back("eos_token", "<|endoftext|>");
  return {{"config.json", JsonObject{{"bos_token_id", nullptr}, {"eos_token_id", id}}},
          {"tokenizer_config.json", xgrad::io::format_json(tokenizer) + "\n"}};
}

std::vector<std::int64_t> end_of_text(const CheckpointInfo& info) {
  return xgrad::lm::end_of_text_ids(metadata_of(info), "the model's metadata");
}

CheckpointInfo read_checkpoint_info(const xgrad::io::Checkpoint& checkpoint) {
  const Json& user = checkpoint.user;
  const auto* const config = user.find<JsonObject>("config");
  Vocabulary vocabulary(user, checkpoint.path);
  if (config == nullptr)
    throw FileError(checkpoint.path + ": a checkpoint of another program: it has no configuration");
  CheckpointInfo info{.config = *config,
                      .vocabulary = std::move(vocabulary),
                      .text = text_in(user, "text"),
                      .val_text = text_in(user, "val_text")};
  if (const auto* const metadata = user.find<JsonObject>("metadata"))
    info.metadata = *metadata;
  if (const Json* const model = user.find("model"))
    info.model =
        xgrad::lm::pretrained_config_of(*model, checkpoint.path + ": the metadata's 'model'");
  if (const Json* const lora = user.find("lora")) {
    info.lora = {{.rank = static_cast<xgrad::Size>(count_in(*lora, "rank")),
                  .alpha = lora->number("alpha").value_or(0),
                  .targets = {}},
                 text_in(*lora, "base"),
                 text_in(*lora, "base_checksum")};
    if (const auto* const targets = lora->find<JsonArray>("targets"))
      for (const Json& target : *targets)
        if (const auto* const name = target.as<std::string>())
          info.lora->options.targets.push_back(*name);
    if (info.lora->base.empty())
      throw FileError(checkpoint.path + ": the metadata's 'lora' names no 'base'");
  }
  if (const Json* const found = user.find("evaluations")) {
    Evaluations& e = info.evaluations;
    e.last = count_in(*found, "last");
    if (const auto loss = found->number("best_loss"))
      e.best = {count_in(*found, "best_step"), *loss};
  }
  return info;
}

std::string format_config(const TrainOptions& options, std::size_t vocab_size) {
  JsonObject config = to_json(options, vocab_size);
  for (const auto& [key, path] : {std::pair("data", options.data),
                                  {"val_data", options.val_data},
                                  {"init_from", options.init_from}})
    config.emplace_back(
        key, path.empty() ? Json(nullptr) : Json(std::filesystem::absolute(path).string()));
  for (const Count& count : counts) {
    const auto& n = options.*count.member;
    config.emplace_back(key_of(count.flag), n ? Json(std::uint64_t{*n}) : Json(nullptr));
  }
  if (!options.base.empty())
    config.emplace_back("base", std::filesystem::absolute(options.base).string());
  config.emplace_back("tokens", options.tokens);
  config.emplace_back("sample_prompt", options.sample_prompt);
  // A path may be any bytes.
  return xgrad::io::format_json(config, xgrad::io::InvalidUtf8::replaced, 2);
}

xgrad::lm::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size) {
  const auto size = [](std::size_t n) { return static_cast<xgrad::Size>(n); };
  return {.block_size = size(recipe.block_size),
          .vocab_size = size(vocab_size),
          .n_layer = size(recipe.n_layer),
          .n_head = size(recipe.n_head),
          .n_embd = size(recipe.n_embd),
          .dropout = recipe.dropout,
          .bias = recipe.bias};
}

void check_size(const xgrad::lm::GPTConfig& config, const Vocabulary& vocabulary, double weights,
                const std::string& path) {
  const auto width = static_cast<double>(config.n_embd);
  const double asked = width * (static_cast<double>(config.vocab_size + config.block_size) +
                                12 * width * static_cast<double>(config.n_layer));
  if (asked > weights)
    fail<FileError>(
        "{}: its configuration (block_size {}, n_layer {}, n_embd {}, {}) asks for {} weights, and "
        "it has {}",
        path, config.block_size, config.n_layer, config.n_embd, vocabulary.count(config.vocab_size),
        asked, weights);
}

xgrad::lm::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint,
                                       const CheckpointInfo& info) {
  double weights = 0;
  for (const auto& [name, x] : checkpoint.model)
    weights += static_cast<double>(x.numel());
  if (info.model) {
    const std::size_t known = info.vocabulary.size();
    if (std::cmp_greater(known, info.model->vocab_size) ||
        std::cmp_greater(7 * info.model->n_layer, checkpoint.model.size()))
      weights = -1;
    else
      for (const auto& tensor : xgrad::lm::pretrained_tensors(*info.model))
        weights -= std::accumulate(tensor.shape.begin(), tensor.shape.end(), 1.0,
                                   std::multiplies<>());  // double, because integers may overflow
    if (weights < 0)
      fail<FileError>(
          "{}: its 'model' asks for more weights than it has, or for fewer ids than its {}",
          checkpoint.path, info.vocabulary.count(known));
    if (const auto size = info.config.number("block_size");
        size && *size > static_cast<double>(info.model->block_size))
      fail<FileError>("{}: its block_size, {}, is above that of its 'model', {}", checkpoint.path,
                      *size, info.model->block_size);
    return *info.model;
  }
  const xgrad::lm::GPTConfig config =
      model_config(read_recipe(info.config, checkpoint.path, true), info.vocabulary.size());
  check_size(config, info.vocabulary, weights, checkpoint.path);
  return config;
}

std::string not_finite(const xgrad::nn::StateDict& tensors) {
  for (const auto& [name, x] : tensors) {
    if (const auto bad = (~isfinite(x)).sum().item(); bad > 0)
      return fmt::format("{} of the {} values of {} are not finite", bad, x.numel(), name);
  }
  return "";
}

void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path) {
  if (const std::string wrong = not_finite(tensors); !wrong.empty())
    fail<FileError>("{}: {}", path, wrong);
}

void add_adapters(xgrad::lm::GPT& model, const Lora& lora, bool values_follow) {
  if (lora.options.targets.empty())
    xgrad::nn::add_lora(model, {.rank = lora.options.rank, .alpha = lora.options.alpha});
  else if (values_follow)
    xgrad::lm::add_empty_adapters(model, lora.options);
  else
    xgrad::lm::add_adapters(model, lora.options);
}

void add_base(xgrad::io::Checkpoint& checkpoint, CheckpointInfo& info, const std::string& given) {
  if (!given.empty())
    need_adapters(info.lora.has_value(), checkpoint.path);
  if (!info.lora)
    return;
  std::string& base = info.lora->base;
  if (!given.empty())
    base = std::filesystem::absolute(given).lexically_normal().string();
  xgrad::nn::StateDict weights;
  std::string why;
  try {
    weights = xgrad::nn::state_dict(read_trained_model(base, "", true).model);
    if (xgrad::lm::base_checksum(weights) != info.lora->base_checksum)
      why = "The model there has other weights.";
  } catch (const FileError& error) {
    why = error.what();
  }
  check<FileError>(why.empty(),
                   "{}: holds adapters alone; their model must be in {}: put it there "
                   "again, or a link to it\n{}\n--base PATH names another place.",
                   checkpoint.path, base, why);
  std::ranges::copy(weights, std::back_inserter(checkpoint.model));
}

/// The model of a folder of PEFT's adapters.
static TrainedModel read_adapters(const std::string& folder, const std::string& given) {
  xgrad::lm::check_weights_kind(folder);
  const std::string base = base_of_adapters(folder, given);
  TrainedModel trained = read_trained_model(base, "", true);
  const std::string sum = xgrad::lm::base_checksum(xgrad::nn::state_dict(trained.model));
  try {
    trained.info.lora = {xgrad::lm::load_adapters(folder, trained.model).lora,
                         std::filesystem::absolute(trained.path).lexically_normal().string(), sum};
  } catch (const ValueError& error) {
    fail<FileError>("{}: {}", folder, reason(error));
  }
  check_finite(xgrad::nn::state_dict(trained.model), folder);
  trained.path = folder;
  trained.about = fmt::format("{}, adapters to {}", folder, base);
  return trained;
}

TrainedModel read_trained_model(const std::string& given, const std::string& base, bool as_base) {
  constexpr const char* refused =
      "{}: has adapters already, and these can have no others; export merges them, to a file or a "
      "folder";
  const std::string adapters = adapters_folder(given);
  check<FileError>(!as_base || adapters.empty(), refused, given);
  if (!adapters.empty())
    return read_adapters(adapters, base);
  const std::string folder = pretrained_folder(given);
  if (!folder.empty() || holds_weights_alone(given)) {
    need_adapters(base.empty(), given);
    return folder.empty() ? read_weights(given) : read_pretrained(folder);
  }
  const std::string path = find_checkpoint(given);
  xgrad::io::Checkpoint checkpoint = read_checkpoint(path);
  CheckpointInfo info = read_checkpoint_info(checkpoint);
  check<FileError>(!as_base || !info.lora, refused, path);
  add_base(checkpoint, info, base);
  const xgrad::lm::GPTConfig config = read_model_config(checkpoint, info);
  try {
    const xgrad::nn::init::SkipInit values_follow;
    TrainedModel trained{path, xgrad::lm::GPT(config), std::move(info),
                         fmt::format("{}, after {}", path, format_count(checkpoint.step, "step"))};
    if (const auto& lora = trained.info.lora)
      add_adapters(trained.model, *lora, true);
    xgrad::io::load_state(trained.model, checkpoint.model, path);
    check_finite(checkpoint.model, path);
    return trained;
  } catch (const ValueError& error) {
    fail<FileError>("{}: {}", path, reason(error));
  }
}

TrainedModel load_trained_model(const std::string& given, const std::string& base, bool raw) {
  TrainedModel trained = read_trained_model(given, base);
  xgrad::nn::eval(trained.model);
  if (raw)
    trained.info.vocabulary.drop_template();
  warn(trained.about);
  return trained;
}

}  // namespace program
