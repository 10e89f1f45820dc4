#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "runs.hpp"

namespace runs {
namespace {

namespace fs = std::filesystem;
using xgrad::io::Json;

// Many times what is needed.  A file that is no metrics file may be one line of gigabytes.
constexpr std::size_t longest_row = 65536, longest_sample = 1 << 20;
constexpr const char* file_names[] = {"metrics.jsonl",          "config.json",
                                      "environment.json",       "samples.jsonl",
                                      "checkpoint.safetensors", "best.safetensors"};

Json parse(std::string_view text) {
  try {
    Json json = xgrad::io::parse_json(text);
    return json.as<xgrad::io::JsonObject>() != nullptr ? json : Json();
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

/// With null in the place of numbers that are not finite, in texts as well.
std::string without_infinities(std::string text) {
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;)
      text.replace(at, word.size(), "null");
  return text;
}

Json parse_line(const std::string& line, std::size_t longest) {
  if (line.size() > longest)
    return {};
  Json row = parse(line);
  return row.as<std::nullptr_t>() == nullptr ? row : parse(without_infinities(line));
}

/// Gives f each line that is an object, or null for one that is not, or is longer than `longest`
/// bytes.  A last line without its newline that is not JSON is passed over unless it is longer: a
/// run may be writing it.  NaN and Infinity, which JSON does not have and Python writes, are read
/// as null.  Blank lines are counted and passed over.  FileError for what is no file that can be
/// read.
void for_each_line(const std::string& path, std::size_t longest,
                   const std::function<void(std::size_t number, const Json& row)>& f) {
  const xgrad::io::ReadFile file(path);
  std::string part(1 << 20, ' '), rest;  // what was read last; the line that it ended in
  std::size_t number = 0;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(part.size(), file.size() - at));
    file.read(part.data(), part.size(), at);
    std::string_view left = part;
    const auto take = [&](std::size_t end) {  // no more than shows that a line is too long
      rest += left.substr(0, std::min(end, longest + 1 - rest.size()));
    };
    for (std::size_t end = 0; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
      take(end);
      ++number;
      if (rest.find_first_not_of(" \t\r") != rest.npos)
        f(number, parse_line(rest, longest));
      rest.clear();
    }
    take(left.size());
  }
  if (rest.size() > longest)
    f(++number, Json());
  if (rest.empty())
    return;
  if (const Json row = parse_line(rest, longest); row.as<std::nullptr_t>() == nullptr)
    f(++number, row);
}

/// The object in a small file, such as config.json; null if there is none that can be read.
Json read_object(const std::string& path) {
  constexpr std::uint64_t largest = 1 << 20;
  try {
    const xgrad::io::ReadFile file(path);
    if (file.size() > largest)
      return {};
    std::string text(file.size(), '\0');
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
  std::error_code none;
  if (!fs::exists(path, none))
    return;
  try {
    for_each_line(path, longest_sample, [&](std::size_t, const Json& row) {
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
    if (user == file.metadata().end())
      return;
    const Json notes = xgrad::io::parse_json(user->second);
    const auto note = [&](const char* key) {
      const auto* const text = notes.find<std::string>(key);
      return text == nullptr ? std::string() : *text;
    };
    if (run.text.empty() && !note("text").empty() && !note("characters").empty())
      run.text = note("text") + " " + note("characters");
    if (run.val_text.empty())
      run.val_text = note("val_text");
  } catch (const xgrad::Error&) {
  }
}

}  // namespace

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::size_t bad = 0, first_bad = 0;
  for_each_line(path, longest_row, [&](std::size_t number, const Json& row) {
    const auto step = row.number("step");
    const auto add = [&](xgrad::pages::Series& series, const char* key) {
      const Json* const value = row.find(key);
      if (!step || value == nullptr)
        return false;
      const bool null = value->as<std::nullptr_t>() != nullptr;
      const auto y =
          null ? std::optional(std::numeric_limits<double>::quiet_NaN()) : value->number();
      if (!y)
        return false;
      series.xs.push_back(*step);
      series.ys.push_back(*y);
      return true;
    };
    if (!add(metrics.loss, "loss")) {
      if (bad++ == 0)
        first_bad = number;
      return;
    }
    const auto note = [&](std::string& text, const char* key) {
      if (const auto* const found = row.find<std::string>(key))
        text = xgrad::printable_name(*found);
    };
    add(metrics.validation, "val_loss");
    add(metrics.final_validation, "final_val_loss");
    note(metrics.validation_over, "val_loss_over");
    if (const auto* const changes = row.find<std::string>("changes"))
      metrics.changes.push_back(
          fmt::format("from step {:.0f} on: {}", *step, xgrad::printable_name(*changes)));
    note(metrics.final_validation_over, "final_val_loss_over");
    add(metrics.lr, "lr");
    add(metrics.grad_norm, "grad_norm");
    add(metrics.ms, "ms");
  });
  constexpr std::string_view row = "a JSON object with the numbers \"step\" and \"loss\"";
  if (metrics.loss.xs.empty())
    throw xgrad::FileError(bad == 0 ? fmt::format("{}: it has no lines", path)
                                    : fmt::format("{}: line {} is not {}", path, first_bad, row));
  if (bad == 1)
    metrics.left_out = fmt::format("line {} is not {}, and is left out", first_bad, row);
  else if (bad > 1)
    metrics.left_out = fmt::format(
        "{} lines, the first of them line {}, are not {}, and are left out", bad, first_bad, row);
  return metrics;
}

Run read_run(const std::string& given) {
  fs::path metrics = given;
  std::error_code none;
  if (fs::is_directory(metrics, none))
    metrics /= "metrics.jsonl";
  const fs::path folder = metrics.has_parent_path() ? metrics.parent_path() : fs::path(".");
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  Run run{.path = metrics.string(),
          .folder = folder.string(),
          .name = tail_of(absolute(folder.string()), 1)};
  run.metrics = read_metrics(metrics.string());
  run.config = read_object(in_folder("config.json"));
  run.environment = read_object(in_folder("environment.json"));
  if (const auto* const checksum = run.config.find<std::string>("val_text"))
    run.val_text = *checksum;
  read_samples(in_folder("samples.jsonl"), run);
  for (const char* const name : {"checkpoint.safetensors", "best.safetensors"})
    read_checkpoint(in_folder(name), run);
  return run;
}

std::vector<Run> read_runs(const std::vector<std::string>& paths) {
  std::vector<Run> runs;
  std::vector<fs::path> places;
  std::size_t deepest = 0;
  for (const std::string& path : paths) {
    runs.push_back(read_run(path));
    places.push_back(absolute(runs.back().folder));
    deepest = std::max(deepest, static_cast<std::size_t>(
                                    std::distance(places.back().begin(), places.back().end())));
  }
  const auto shared = [&](std::size_t i) {  // with another folder
    for (std::size_t k = 0; k < runs.size(); ++k)
      if (runs[k].name == runs[i].name && places[k] != places[i])
        return true;
    return false;
  };
  for (std::size_t parts = 2; parts <= deepest; ++parts) {
    std::vector<std::size_t> clashing;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (shared(i))
        clashing.push_back(i);
    for (const std::size_t i : clashing)
      runs[i].name = tail_of(places[i], parts);
  }
  // One that was given twice; or names that are too long to differ.
  std::set<std::string> taken;
  for (Run& run : runs) {
    std::string name = run.name;
    for (std::size_t n = 2; !taken.insert(name).second; ++n)
      name = fmt::format("{} ({})", run.name, n);
    run.name = name;
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

}  // namespace runs
