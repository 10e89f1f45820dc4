#include "notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/io/file.hpp>

#include "output.hpp"
#include "resume.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;
using xgrad::io::Json;
using xgrad::io::JsonObject;

std::uint64_t count_in(const Json& json, const char* key) {
  const auto* const count = json.find<std::uint64_t>(key);
  return count == nullptr ? 0 : *count;
}

std::string read_file(const std::string& path) {
  constexpr std::uint64_t largest = 1 << 20;
  const xgrad::io::ReadFile file(path);
  if (file.size() > largest)
    throw FileError(fmt::format("{}: too large for a configuration", path));
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

}  // namespace

bool Evaluations::add(std::uint64_t step, double loss) {
  last = step;
  if (best && best->loss <= loss) {
    ++without_improvement;
    return false;
  }
  best = {step, loss};
  without_improvement = 0;
  return true;
}

std::string format_batches(std::size_t n) {
  return xgrad::counted(n, "random batch", "random batches");
}

Json to_json(const Notes& notes) {
  const Evaluations& e = notes.evaluations;
  JsonObject evaluations{{"last", e.last}, {"without_improvement", e.without_improvement}};
  if (e.best) {
    evaluations.emplace_back("best_step", e.best->step);
    evaluations.emplace_back("best_loss", e.best->loss);
    evaluations.emplace_back("best_loss_over",
                             format_batches(count_in(notes.config, "eval_iters")));
  }
  return JsonObject{{"config", notes.config},
                    {"characters", xgrad::text::encode_utf8(notes.characters.list())},
                    {"text", notes.text},
                    {"val_text", notes.val_text},
                    {"evaluations", std::move(evaluations)}};
}

Notes read_notes(const xgrad::io::Checkpoint& checkpoint) {
  const auto* const config = checkpoint.user.find<JsonObject>("config");
  if (config == nullptr)
    throw FileError(fmt::format("{}: its configuration is not a JSON object", checkpoint.path));
  const auto* const list = checkpoint.user.find<std::string>("characters");
  if (list == nullptr)
    throw FileError(
        fmt::format("{}: a checkpoint of another program: it has no characters", checkpoint.path));
  Notes notes{.config = *config, .characters = {}};
  try {
    notes.characters =
        xgrad::text::Characters::from_list(xgrad::text::decode_utf8(*list, "characters"));
  } catch (const xgrad::ValueError& error) {
    throw FileError(
        fmt::format("{}: the metadata's 'characters': {}", checkpoint.path, reason(error)));
  }
  if (const auto* const text = checkpoint.user.find<std::string>("text"))
    notes.text = *text;
  if (const auto* const text = checkpoint.user.find<std::string>("val_text"))
    notes.val_text = *text;
  if (const Json* const found = checkpoint.user.find("evaluations")) {
    Evaluations& e = notes.evaluations;
    e.last = count_in(*found, "last");
    e.without_improvement = count_in(*found, "without_improvement");
    if (const auto loss = found->number("best_loss"))
      e.best = {count_in(*found, "best_step"), *loss};
  }
  return notes;
}

JsonObject to_json(const TrainOptions& options, std::size_t vocab_size) {
  JsonObject config{{"preset", options.preset}};
  if (vocab_size > 0)
    config.emplace_back("vocab_size", vocab_size);
  for (auto& entry : to_json(options.recipe))
    config.push_back(std::move(entry));
  config.emplace_back("seed", options.seed);
  return config;
}

JsonObject to_json(const xgrad::nn::GPTConfig& config) {
  return {{"vocab_size", config.vocab_size},
          {"block_size", config.block_size},
          {"n_layer", config.n_layer},
          {"n_head", config.n_head},
          {"n_embd", config.n_embd},
          {"dropout", config.dropout},
          {"bias", config.bias}};
}

std::string checksum(const xgrad::text::Ids& first, const xgrad::text::Ids& more) {
  xgrad::io::Checksum sum;
  std::array<std::uint32_t, 4096> some;  // 32 bits each, whatever ids are held as
  for (const xgrad::text::Ids* const ids : {&first, &more})
    for (std::size_t begin = 0; begin < ids->size(); begin += some.size()) {
      const std::size_t n = std::min(some.size(), ids->size() - begin);
      for (std::size_t i = 0; i < n; ++i)
        some[i] = static_cast<std::uint32_t>((*ids)[begin + i]);
      sum.add(some.data(), n * sizeof(some[0]));
    }
  return sum.digits();
}

std::string other_text(const Source& source, const Notes& notes) {
  // Without a checksum of its own, the text of --val-data is part of the other's.
  const bool both = notes.val_text.empty() && source.ids.train.size() == source.all.size();
  if (!notes.text.empty() && checksum(source.all) != notes.text &&
      !(both && checksum(source.all, source.ids.validation) == notes.text))
    return "--data";
  const bool apart = !notes.val_text.empty();
  return apart && checksum(source.ids.validation) != notes.val_text ? "--val-data" : "";
}

FolderNotes read_folder_notes(const std::string& checkpoint) {
  FolderNotes notes;
  Json& config = notes.config;
  const auto path = std::filesystem::path(checkpoint).parent_path() / "config.json";
  try {
    if (!std::filesystem::exists(path))
      return notes;
    config = xgrad::io::parse_json(read_file(path.string()));
    if (config.as<JsonObject>() == nullptr)
      throw xgrad::ValueError("is not a JSON object");
  } catch (const std::exception& error) {
    const std::string what = error.what();
    notes.broken =
        what.starts_with(path.string()) ? what : fmt::format("{}: {}", path.string(), what);
    config = nullptr;
    return notes;
  }
  if (const auto* const data = config.find<std::string>("data"))
    notes.data = *data;
  else if (config.find<std::nullptr_t>("data") != nullptr)
    notes.data = "";
  return notes;
}

std::string FolderNotes::text(const char* key) const {
  const auto* const found = config.find<std::string>(key);
  return found == nullptr ? "" : *found;
}

std::optional<std::size_t> FolderNotes::count(const char* key, std::size_t least) const {
  const auto* const n = config.find<std::uint64_t>(key);
  return n == nullptr || *n < least || *n > many ? std::nullopt : std::optional<std::size_t>(*n);
}

namespace {

JsonObject folder_notes(const TrainOptions& options, std::size_t vocab_size) {
  const auto path = [](const std::string& given) {  // absolute, so that it is true in any folder
    return given.empty() ? Json(nullptr) : Json(std::filesystem::absolute(given).string());
  };
  const auto count = [](const std::optional<std::size_t>& given) {
    return given ? Json(std::uint64_t{*given}) : Json(nullptr);
  };
  JsonObject config = to_json(options, vocab_size);
  for (const auto& [key, given] : {std::pair("data", options.data),
                                   {"val_data", options.val_data},
                                   {"init_from", options.init_from}})
    config.emplace_back(key, path(given));
  for (const auto& [key, given] : {std::pair("save_interval", options.save_interval),
                                   {"keep", options.keep},
                                   {"val_blocks", options.val_blocks},
                                   {"sample_interval", options.sample_interval}})
    config.emplace_back(key, count(given));
  config.emplace_back("sample_prompt", options.sample_prompt);
  return config;
}

// The path of a text may be any bytes.
std::string format(const JsonObject& config) {
  return xgrad::io::format_json(config, xgrad::io::InvalidUtf8::replaced, 2);
}

}  // namespace

std::string format_folder_notes(const TrainOptions& options, std::size_t vocab_size) {
  return format(folder_notes(options, vocab_size));
}

std::string format_folder_notes(const TrainOptions& options, std::size_t vocab_size,
                                const Json& before, std::uint64_t steps,
                                const std::string& changes) {
  JsonObject config = folder_notes(options, vocab_size);
  for (auto& [key, value] : config)
    if (const Json* const first = before.find(key);
        first != nullptr && std::ranges::count(changeable, flag_of(key)) > 0)
      value = *first;
  xgrad::io::JsonArray all;
  if (const auto* const earlier = before.find<xgrad::io::JsonArray>("changes"))
    all = *earlier;
  if (!changes.empty())
    all.emplace_back(fmt::format("after {}: {}", xgrad::counted(steps, "step", "steps"), changes));
  if (!all.empty())
    config.emplace_back("changes", std::move(all));
  return format(config);
}

}  // namespace char_transformer
