// Draws the losses of several runs into one picture.
//
//   plot_losses runs/000 runs/001 --out losses.svg

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/picture.hpp>

#include "command_line/command_line.hpp"
#include "plot_losses/metrics.hpp"

namespace {

namespace fs = std::filesystem;
using xgrad::io::Series;

struct Run {
  std::string path, name;
  Series loss = {}, validation = {};
};

/// A run by its metrics.jsonl, or by its folder.
Run read_run(const std::string& given) {
  fs::path path = given;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    path /= "metrics.jsonl";
  plot_losses::Metrics metrics = plot_losses::read_metrics(path.string());
  return {given, fs::absolute(path).parent_path().filename().string(), std::move(metrics.loss),
          std::move(metrics.validation)};
}

/// All lines, under the names of the runs' folders; where two have one name, under their paths.
std::vector<Series> lines_of(const std::vector<Run>& runs) {
  std::vector<Series> lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const bool unique = std::ranges::count(runs, run.name, &Run::name) == 1;
    lines.push_back(run.loss);
    lines.back().name = unique ? run.name : run.path;
    lines.back().color = i;
    // Curves that agree cover each other: the first is thick, so that it shows under the others.
    lines.back().thickness = runs.size() > 1 && i == 0 ? 5 : 1.2;
    if (run.validation.xs.empty())
      continue;
    lines.push_back(run.validation);
    lines.back().name = lines[lines.size() - 2].name + ", validation";
    lines.back().color = i;
    lines.back().dots = true;
  }
  return lines;
}

/// Losses far above those that runs begin with are of runs that diverged.
double highest_sane(const std::vector<Run>& runs) {
  double highest = 0;
  for (const Run& run : runs)
    highest = std::max(highest, 1.5 * run.loss.ys.front());
  return highest;
}

int run(int argc, char** argv) {
  command_line::CommandLine line("plot_losses", "Draws the losses of runs into one picture.");
  command_line::Flags flags = line.flags();
  std::vector<std::string> paths;
  std::string out = "losses.svg", title;
  bool log = false;
  flags.paths("runs", paths, "the folder of each run, or its metrics.jsonl");
  flags.path("--out", out, "FILE", "the picture, an SVG [losses.svg]");
  flags.text("--title", title, "TEXT", "what stands above it");
  flags.boolean("--log", log, "a logarithmic axis");
  if (const auto help = line.parse(argc, argv)) {
    fmt::print("{}", *help);
    return 0;
  }
  std::vector<Run> runs;
  for (const std::string& path : paths)
    runs.push_back(read_run(path));
  xgrad::io::LineChartOptions options{
      .title = title, .x_label = "step", .y_label = "loss", .log_y = log};
  const double limit = highest_sane(runs);
  std::string cut;
  for (const Run& run : runs)
    if (const double most = std::ranges::max(run.loss.ys); most > limit) {
      options.y_high = limit;
      cut += fmt::format("; {} goes up to {:.3g}, beyond the picture", run.name, most);
    }
  xgrad::io::save_svg(out, xgrad::io::line_chart(lines_of(runs), options));
  fmt::print("{}\n", xgrad::printable(fmt::format("{}: {} run{}{}", out, runs.size(),
                                                  runs.size() == 1 ? "" : "s", cut)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const command_line::UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plot_losses: {}\n", xgrad::printable(error.what()));
    return 1;
  }
}
