#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "runs.hpp"

namespace runs {
namespace {

namespace fs = std::filesystem;
using xgrad::io::Json;

constexpr const char* file_names[] = {"metrics.jsonl",          "config.json",
                                      "environment.json",       "samples.jsonl",
                                      "checkpoint.safetensors", "best.safetensors"};

bool is_null(const Json& json) { return json.as<std::nullptr_t>() != nullptr; }

std::string text_in(const Json& json, const char* key) {
  const auto* const text = json.find<std::string>(key);
  return text == nullptr ? "" : *text;
}

/// The object, or null for what is none.
Json parse(std::string_view text) {
  try {
    Json json = xgrad::io::parse_json(text);
    return json.as<xgrad::io::JsonObject>() != nullptr ? json : Json();
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

/// NaN and Infinity, which JSON does not have and Python writes, are null.
Json parse_row(std::string text) {
  Json row = parse(text);
  if (!is_null(row))
    return row;
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;)
      text.replace(at, word.size(), "null");
  return parse(text);
}

/// Gives f each line that is not blank: an object, or null for one that is none or has more than a
/// megabyte.  A last line without its newline that is no object is passed over: a run may be
/// writing it.  FileError for what is no file that can be read.
void for_each_line(const std::string& path,
                   const std::function<void(std::size_t number, const Json& row)>& f) {
  constexpr std::size_t longest = 1 << 20;
  const xgrad::io::ReadFile checked(path);
  std::ifstream file(path, std::ios::binary);
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos)
      continue;
    const bool too_long = line.size() > longest;
    const Json row = too_long ? Json() : parse_row(line);
    if (too_long || !is_null(row) || !file.eof())
      f(number, row);
  }
}

/// The object in a small file, such as config.json; null if there is none that can be read.
Json read_object(const std::string& path) {
  try {
    const xgrad::io::ReadFile file(path);
    std::string text(std::min<std::uint64_t>(file.size(), 1 << 20), '\0');
    file.read(text.data(), text.size(), 0);
    return parse(text);
  } catch (const xgrad::FileError&) {
    return {};
  }
}

fs::path absolute(const std::string& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // not "runs/000/"
}

/// The last so many parts of a path.
std::string tail_of(const fs::path& path, std::size_t parts) {
  fs::path tail, rest = path;
  for (std::size_t i = 0; i < parts && rest.has_relative_path(); ++i) {
    tail = tail.empty() ? rest.filename() : rest.filename() / tail;
    rest = rest.parent_path();
  }
  return xgrad::printable_name(tail.empty() ? path.string() : tail.string());
}

void read_samples(const std::string& path, Run& run) {
  if (std::error_code none; !fs::exists(path, none))
    return;
  try {
    for_each_line(path, [&](std::size_t, const Json& row) {
      const auto step = row.number("step");
      const auto* const text = row.find<std::string>("text");
      if (step && text != nullptr)
        run.samples.push_back({*step, *text});
      else
        ++run.unread_samples;
    });
  } catch (const xgrad::FileError&) {
    ++run.unread_samples;
  }
}

/// What the header of a checkpoint says, if there is one.  Its tensors are the model's, but for
/// those of the optimizer; of the texts it has checksums of the ids, and what these stand for.
void read_checkpoint(const std::string& path, Run& run) {
  try {
    const xgrad::io::SafetensorsFile file(path);
    double count = 0;
    for (const auto& [name, stored] : file.tensors())
      if (!name.starts_with("optimizer."))
        count += static_cast<double>(xgrad::numel(stored.shape));
    run.parameters = run.parameters.value_or(count);
    const auto user = file.metadata().find("user");
    const Json notes = user == file.metadata().end() ? Json() : parse(user->second);
    const std::string text = text_in(notes, "text"), characters = text_in(notes, "characters");
    if (run.text.empty() && !text.empty() && !characters.empty())
      run.text = text + " " + characters;
    if (run.val_text.empty())
      run.val_text = text_in(notes, "val_text");
  } catch (const xgrad::Error&) {
  }
}

}  // namespace

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::size_t bad = 0, first_bad = 0;
  for_each_line(path, [&](std::size_t number, const Json& row) {
    const auto step = row.number("step");
    const auto add = [&](xgrad::pages::Series& series, const char* key) {
      const Json* const value = row.find(key);
      if (!step || value == nullptr || !(is_null(*value) || value->number()))
        return false;
      series.xs.push_back(*step);
      series.ys.push_back(value->number().value_or(std::numeric_limits<double>::quiet_NaN()));
      return true;
    };
    if (!add(metrics.loss, "loss")) {
      first_bad = bad++ == 0 ? number : first_bad;
      return;
    }
    add(metrics.validation, "val_loss");
    add(metrics.final_validation, "final_val_loss");
    add(metrics.lr, "lr");
    add(metrics.grad_norm, "grad_norm");
    add(metrics.ms, "ms");
    for (const auto& [over, key] : {std::pair(&metrics.validation_over, "val_loss_over"),
                                    {&metrics.final_validation_over, "final_val_loss_over"}})
      if (const std::string text = text_in(row, key); !text.empty())
        *over = xgrad::printable_name(text);
    if (const std::string changes = text_in(row, "changes"); !changes.empty())
      metrics.changes.push_back(
          fmt::format("from step {:.0f} on: {}", *step, xgrad::printable_name(changes)));
  });
  constexpr std::string_view row = "a JSON object with the numbers \"step\" and \"loss\"";
  if (metrics.loss.xs.empty())
    throw xgrad::FileError(bad == 0 ? fmt::format("{}: it has no lines", path)
                                    : fmt::format("{}: line {} is not {}", path, first_bad, row));
  if (bad > 0)
    metrics.left_out = bad == 1 ? fmt::format("line {} is not {}, and is left out", first_bad, row)
                                : fmt::format(
                                      "{} lines, the first of them line {}, are not {}, and are "
                                      "left out",
                                      bad, first_bad, row);
  return metrics;
}

Run read_run(const std::string& given) {
  std::error_code none;
  fs::path metrics = given;
  if (fs::is_directory(metrics, none))
    metrics /= file_names[0];
  const fs::path folder = metrics.has_parent_path() ? metrics.parent_path() : fs::path(".");
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  Run run{.path = metrics.string(),
          .folder = folder.string(),
          .name = tail_of(absolute(folder.string()), 1),
          .metrics = read_metrics(metrics.string()),
          .config = read_object(in_folder("config.json")),
          .environment = read_object(in_folder("environment.json"))};
  run.val_text = text_in(run.config, "val_text");
  read_samples(in_folder("samples.jsonl"), run);
  for (const char* const name : {"checkpoint.safetensors", "best.safetensors"})
    read_checkpoint(in_folder(name), run);
  return run;
}

std::vector<Run> read_runs(const std::vector<std::string>& paths) {
  std::vector<Run> runs;
  std::vector<fs::path> places;
  for (const std::string& path : paths) {
    runs.push_back(read_run(path));
    places.push_back(absolute(runs.back().folder));
  }
  std::set<std::string> taken;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto shared = [&](const fs::path& other, std::size_t parts) {
      return other != places[i] && tail_of(other, parts) == tail_of(places[i], parts);
    };
    const auto most = static_cast<std::size_t>(std::distance(places[i].begin(), places[i].end()));
    std::size_t parts = 1;
    while (parts < most &&
           std::ranges::any_of(places, [&](const fs::path& other) { return shared(other, parts); }))
      ++parts;
    const std::string name = runs[i].name = tail_of(places[i], parts);
    // One that was given twice; or names that are too long to differ.
    for (std::size_t n = 2; !taken.insert(runs[i].name).second; ++n)
      runs[i].name = fmt::format("{} ({})", name, n);
  }
  return runs;
}

std::vector<std::string> files_of(const std::vector<Run>& runs) {
  std::vector<std::string> files;
  for (const Run& run : runs) {
    files.push_back(run.path);
    for (const char* const name : file_names)
      files.push_back((fs::path(run.folder) / name).string());
  }
  return files;
}

std::optional<double> tokens_per_step(const Run& run) {
  const auto batch = run.config.number("batch_size"), block = run.config.number("block_size");
  if (!batch || !block)
    return std::nullopt;
  return *batch * *block * run.config.number("gradient_accumulation_steps").value_or(1);
}

}  // namespace runs
