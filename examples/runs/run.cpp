#include "run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/safetensors.hpp>

#include "json_lines.hpp"

namespace runs {
namespace {

namespace fs = std::filesystem;
using xgrad::io::Json;

constexpr std::size_t longest_sample = 1 << 20;

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

/// A checkpoint's tensors are the model's, but for those of the optimizer.
double count_parameters(const xgrad::io::SafetensorsFile& file) {
  double count = 0;
  for (const auto& [name, stored] : file.tensors())
    if (!name.starts_with("optimizer.")) {
      double numbers = 1;
      for (const std::size_t size : stored.shape)
        numbers *= static_cast<double>(size);
      count += numbers;
    }
  return count;
}

/// The checksum of the ids of a text, and what they stand for; empty if a checkpoint does not say.
std::string text_of(const xgrad::io::SafetensorsFile& file) {
  const auto user = file.metadata().find("user");
  if (user == file.metadata().end())
    return "";
  const Json notes = xgrad::io::parse_json(user->second);
  const auto* const checksum = notes.find<std::string>("text");
  const auto* const characters = notes.find<std::string>("characters");
  return checksum == nullptr || checksum->empty() || characters == nullptr
             ? ""
             : *checksum + " " + *characters;
}

/// What the header of a checkpoint says, if there is one.
void read_checkpoint(const std::string& path, Run& run) {
  try {
    const xgrad::io::SafetensorsFile file(path);
    if (!run.parameters)
      run.parameters = count_parameters(file);
    if (run.text.empty())
      run.text = text_of(file);
  } catch (const xgrad::Error&) {
  }
}

}  // namespace

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
    for (const char* const name : {"metrics.jsonl", "config.json", "environment.json",
                                   "samples.jsonl", "checkpoint.safetensors", "best.safetensors"})
      files.push_back((fs::path(run.folder) / name).string());
  }
  return files;
}

std::optional<double> tokens_per_step(const Run& run) {
  double tokens = 1;
  for (const char* const key : {"batch_size", "block_size", "gradient_accumulation_steps"}) {
    const auto count = run.config.number(key);
    if (count)
      tokens *= *count;
    else if (key != std::string_view("gradient_accumulation_steps"))
      return std::nullopt;
  }
  return tokens;
}

Summary summarise(const Run& run) {
  const Metrics& m = run.metrics;
  Summary s{.steps = m.loss.xs.back() + 1, .planned = run.config.number("max_iters")};
  const std::size_t wanted = std::clamp<std::size_t>(m.loss.ys.size() / 20, 1, 100);
  double total = 0;
  for (std::size_t i = m.loss.ys.size(); i-- > 0;) {
    const double loss = m.loss.ys[i];
    if (!std::isfinite(loss)) {
      ++s.not_finite;
    } else if (s.loss_of < wanted) {
      total += loss;
      ++s.loss_of;
    }
  }
  s.loss = s.loss_of > 0 ? total / static_cast<double>(s.loss_of)
                         : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < m.validation.ys.size(); ++i) {
    s.validation = m.validation.ys[i];
    if (std::isfinite(*s.validation) && !(s.best && *s.best <= *s.validation)) {
      s.best = s.validation;
      s.best_after = m.validation.xs[i] + 1;
    }
  }
  if (!m.final_validation.ys.empty())
    s.final_validation = m.final_validation.ys.back();
  std::vector<double> times = m.ms.ys;
  std::erase_if(times, [](double ms) { return !std::isfinite(ms) || ms <= 0; });
  if (!times.empty()) {
    double sum = 0;
    for (const double ms : times)
      sum += ms;
    s.seconds = sum / 1000;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    s.ms = *middle;
    if (const auto tokens = tokens_per_step(run))
      s.tokens_per_second = 1000 * *tokens / *s.ms;
  }
  return s;
}

}  // namespace runs
