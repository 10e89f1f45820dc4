#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

namespace fs = std::filesystem;
using xgrad::io::Json;

constexpr const char* file_names[] = {"metrics.jsonl",          "config.json",
                                      "environment.json",       "samples.jsonl",
                                      "checkpoint.safetensors", "best.safetensors"};

bool is_null(const Json& json) { return json.as<std::nullptr_t>() != nullptr; }

/// Python's NaN and Infinity, which JSON lacks, become null.
Json parse_row(std::string text) {
  Json row = parse_object(text);
  if (!is_null(row))
    return row;
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
    std::string replaced;
    std::size_t begin = 0;
    for (std::size_t at; (at = text.find(word, begin)) != text.npos; begin = at + word.size())
      replaced.append(text, begin, at - begin).append("null");
    text = replaced.append(text, begin);
  }
  return parse_object(text);
}

/// Calls f with each line that is not blank: an object, or null if it is none.  Skips a last line
/// without its newline that is no object, because a run may be writing it.  FileError if the file
/// cannot be read.
void for_each_line(const std::string& path,
                   const std::function<void(std::size_t number, const Json& row)>& f) {
  std::size_t number = 0;
  xgrad::io::for_each_line(path, [&](const std::string& line, bool whole) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos)
      return;
    const Json row = parse_row(line);
    if (!is_null(row) || whole)
      f(number, row);
  });
}

/// Reads the entries about texts in a checkpoint's header, if there is one: checksums of the ids,
/// and the vocabulary.
void read_checkpoint(const std::string& path, Run& run) {
  try {
    const xgrad::io::SafetensorsFile file(path);
    const auto user = file.metadata().find("user");
    const Json notes = user == file.metadata().end() ? Json() : parse_object(user->second);
    const std::string text = text_in(notes, "text"), characters = text_in(notes, "characters");
    if (run.text.empty() && !text.empty() && !characters.empty())
      run.text = text + " " + characters;
    if (run.val_text.empty())
      run.val_text = text_in(notes, "val_text");
  } catch (const xgrad::Error&) {
  }
}

/// The last `parts` parts of a folder's path.
std::string name_of(const std::string& folder, int parts) {
  fs::path path = fs::absolute(folder).lexically_normal(), name;
  if (!path.has_filename())  // "runs/000/"
    path = path.parent_path();
  for (; parts > 0; --parts, path = path.parent_path())
    name = name.empty() ? path.filename() : path.filename() / name;
  return xgrad::printable_name(name.string());
}

}  // namespace

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::size_t bad = 0, first_bad = 0;
  for_each_line(path, [&](std::size_t number, const Json& json) {
    const std::optional<MetricsRow> row = read_row(json);
    if (!row) {
      first_bad = bad++ == 0 ? number : first_bad;
      return;
    }
    const auto add = [](xgrad::viz::Series& series, double x, const std::optional<double>& y) {
      if (y) {
        series.xs.push_back(x);
        series.ys.push_back(*y);
      }
    };
    const double step = row->step, after = step + 1;  // the training loss is from before the update
    add(metrics.loss, step, row->loss);
    add(metrics.lr, step, row->lr);
    add(metrics.grad_norm, step, row->grad_norm);
    add(metrics.ms, step, row->ms);
    add(metrics.validation, after, row->val_loss);
    add(metrics.final_validation, after, row->final_val_loss);
    add(metrics.bits_per_byte, after, row->bits_per_byte);
    if (!row->val_loss_over.empty())
      metrics.validation_over = xgrad::printable_name(row->val_loss_over);
    if (!row->final_val_loss_over.empty())
      metrics.final_validation_over = xgrad::printable_name(row->final_val_loss_over);
    if (!row->changes.empty())
      metrics.changes.push_back(
          fmt::format("from step {:.0f} on: {}", step, xgrad::printable_name(row->changes)));
  });
  constexpr std::string_view row = "a JSON object with the numbers \"step\" and \"loss\"";
  if (metrics.loss.xs.empty())
    throw xgrad::FileError(bad == 0 ? fmt::format("{}: it has no lines", path)
                                    : fmt::format("{}: line {} is not {}", path, first_bad, row));
  if (bad > 0)
    metrics.skipped = fmt::format("line {} is not {}, and is skipped{}", first_bad, row,
                                  bad > 1 ? fmt::format("; so are others, {} in all", bad) : "");
  return metrics;
}

std::string runs_in(const std::string& folder, const std::string& file) {
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; at != end; at.increment(none))
    if (std::error_code no; fs::exists(at->path() / file, no))
      return fmt::format("; name a run in it, or all: {}/*", at->path().parent_path().string());
  return "";
}

Run read_run(const std::string& given) {
  fs::path metrics = given;
  if (std::error_code none; fs::is_directory(metrics, none))
    metrics /= file_names[0];
  std::error_code none;
  const std::string runs = fs::exists(metrics, none) ? "" : runs_in(given, file_names[0]);
  if (!runs.empty())
    throw xgrad::FileError(fmt::format("{}: the folder holds no metrics.jsonl{}", given, runs));
  const fs::path folder = metrics.has_parent_path() ? metrics.parent_path() : fs::path(".");
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  Run run{.path = metrics.string(),
          .folder = folder.string(),
          .name = name_of(folder.string(), 1),
          .metrics = read_metrics(metrics.string()),
          .config = read_object(in_folder("config.json")),
          .environment = read_object(in_folder("environment.json"))};
  const std::string samples = in_folder("samples.jsonl");
  if (std::error_code unknown; fs::exists(samples, unknown) || unknown)
    for_each_line(samples, [&](std::size_t, const Json& row) {
      const auto step = row.number("step");
      if (const auto* const text = row.find<std::string>("text"); step && text != nullptr)
        run.samples.push_back({*step, *text});
    });
  for (const char* const name : {"checkpoint.safetensors", "best.safetensors"})
    read_checkpoint(in_folder(name), run);
  return run;
}

std::vector<Run> read_runs(const std::vector<std::string>& paths) {
  std::vector<Run> runs;
  std::map<std::string, int> named, taken;
  for (const std::string& path : paths)
    ++named[runs.emplace_back(read_run(path)).name];
  for (Run& run : runs) {
    if (named[run.name] > 1)
      run.name = name_of(run.folder, 2);
    if (const int n = ++taken[run.name]; n > 1)  // or it was given twice
      run.name += fmt::format(" ({})", n);
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
