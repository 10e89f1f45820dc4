#include "notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/io/file.hpp>

#include "output.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;
using xgrad::io::Json;
using xgrad::io::JsonObject;

std::uint64_t count_in(const Json& json, const char* key) {
  const auto* const count = json.find<std::uint64_t>(key);
  return count == nullptr ? 0 : *count;
}

std::string text_in(const Json& json, const char* key) {
  const auto* const text = json.find<std::string>(key);
  return text == nullptr ? "" : *text;
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

bool evaluation_due(const Recipe& recipe, std::uint64_t steps) {
  return steps > 0 && (steps == recipe.max_iters || steps % recipe.eval_interval == 0);
}

bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations) {
  if (recipe.patience > 0 && evaluations.without_improvement >= recipe.patience)
    return true;
  const bool pending = evaluation_due(recipe, steps) && evaluations.last != steps;
  return steps >= recipe.max_iters && !pending;
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
  const Json& user = checkpoint.user;
  const auto* const config = user.find<JsonObject>("config");
  if (config == nullptr)
    throw FileError(fmt::format("{}: its configuration is not a JSON object", checkpoint.path));
  const auto* const list = user.find<std::string>("characters");
  if (list == nullptr)
    throw FileError(
        fmt::format("{}: a checkpoint of another program: it has no characters", checkpoint.path));
  Notes notes{.config = *config,
              .characters = {},
              .text = text_in(user, "text"),
              .val_text = text_in(user, "val_text")};
  try {
    notes.characters =
        xgrad::text::Characters::from_list(xgrad::text::decode_utf8(*list, "characters"));
  } catch (const xgrad::ValueError& error) {
    throw FileError(
        fmt::format("{}: the metadata's 'characters': {}", checkpoint.path, reason(error)));
  }
  if (const Json* const found = user.find("evaluations")) {
    Evaluations& e = notes.evaluations;
    e.last = count_in(*found, "last");
    e.without_improvement = count_in(*found, "without_improvement");
    if (const auto loss = found->number("best_loss"))
      e.best = {count_in(*found, "best_step"), *loss};
  }
  return notes;
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

std::string checksum(const xgrad::text::Ids& ids) {
  xgrad::io::Checksum sum;
  std::array<std::uint32_t, 4096> some;  // 32 bits each, whatever ids are held as
  for (std::size_t begin = 0; begin < ids.size(); begin += some.size()) {
    const std::size_t n = std::min(some.size(), ids.size() - begin);
    for (std::size_t i = 0; i < n; ++i)
      some[i] = static_cast<std::uint32_t>(ids[begin + i]);
    sum.add(some.data(), n * sizeof(some[0]));
  }
  return sum.digits();
}

std::string other_text(const Source& source, const Notes& notes) {
  const auto is_other = [](const xgrad::text::Ids& ids, const std::string& noted) {
    return !noted.empty() && checksum(ids) != noted;
  };
  return is_other(source.all, notes.text)                  ? "--data"
         : is_other(source.ids.validation, notes.val_text) ? "--val-data"
                                                           : "";
}

FolderNotes read_folder_notes(const std::string& checkpoint) {
  FolderNotes notes;
  const std::string path =
      (std::filesystem::path(checkpoint).parent_path() / "config.json").string();
  std::error_code none;
  if (!std::filesystem::exists(path, none))
    return notes;
  try {
    const xgrad::io::ReadFile file(path);
    std::string text(std::min<std::uint64_t>(file.size(), 1 << 20), '\0');  // a stranger's is large
    file.read(text.data(), text.size(), 0);
    notes.config = xgrad::io::parse_json(text);
  } catch (const xgrad::Error& error) {
    const std::string what = error.what();
    notes.broken = what.starts_with(path) ? what : fmt::format("{}: {}", path, what);
  }
  if (notes.config.find<std::string>("data") != nullptr ||
      notes.config.find<std::nullptr_t>("data") != nullptr)
    notes.data = notes.text("data");
  return notes;
}

std::string FolderNotes::text(const char* key) const { return text_in(config, key); }

std::string format_folder_notes(const TrainOptions& options, std::size_t vocab_size,
                                const Json& before, std::uint64_t steps,
                                const std::string& changes) {
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
  config.emplace_back("sample_prompt", options.sample_prompt);
  for (auto& [key, value] : config) {
    const auto* const field = std::ranges::find(fields, flag_of(key), &Field::flag);
    const Json* const first = before.find(key);
    if (first != nullptr && field != fields.end() && field->keeps == Keeps::unless_allowed)
      value = *first;
  }
  const auto* const earlier = before.find<xgrad::io::JsonArray>("changes");
  xgrad::io::JsonArray all = earlier == nullptr ? xgrad::io::JsonArray{} : *earlier;
  if (!changes.empty())
    all.emplace_back(fmt::format("after {}: {}", xgrad::counted(steps, "step", "steps"), changes));
  if (!all.empty())
    config.emplace_back("changes", std::move(all));
  // The path of a text may be any bytes.
  return xgrad::io::format_json(config, xgrad::io::InvalidUtf8::replaced, 2);
}

}  // namespace char_transformer
