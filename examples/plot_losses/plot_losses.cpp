// Draws the losses of several runs into one picture.
//
//   plot_losses runs/000 runs/001 --out losses.svg

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/pages/chart.hpp>

#include "command_line/command_line.hpp"
#include "command_line/output.hpp"
#include "runs/runs.hpp"

namespace {

/// Takes out what has no logarithm; how many it was.
std::size_t keep_positive(xgrad::pages::Series& series) {
  xgrad::pages::Series kept;
  for (std::size_t i = 0; i < series.ys.size(); ++i)
    if (!(series.ys[i] <= 0)) {
      kept.xs.push_back(series.xs[i]);
      kept.ys.push_back(series.ys[i]);
    }
  const std::size_t out = series.ys.size() - kept.ys.size();
  series.xs = std::move(kept.xs);
  series.ys = std::move(kept.ys);
  return out;
}

void warn(const std::string& what) {
  fmt::print(stderr, "plot_losses: {}\n", xgrad::printable(what));
}

int run(int argc, char** argv) {
  command_line::CommandLine line("plot_losses", "Draws the losses of runs into one picture.");
  command_line::Flags flags = line.flags();
  std::vector<std::string> paths;
  std::string out = "losses.svg", title;
  bool log = false, overwrite = false;
  double weight = 0;
  flags.paths("runs", paths, "the folder of each run, or its metrics.jsonl");
  flags.path("--out", out, "FILE", "the picture, an SVG [losses.svg]");
  flags.boolean("--overwrite", overwrite, "replace the picture if it is there");
  flags.text("--title", title, "TEXT", "what stands above it");
  flags.boolean("--log", log, "a logarithmic axis");
  flags.number("--smooth", weight, {0, 1, false, true},
               "weight of an exponential moving average, such as 0.9; losses as they are stand "
               "faintly beside it [0: none]");
  if (const auto help = line.parse(argc, argv)) {
    command_line::print(*help);
    return 0;
  }
  std::vector<runs::Run> all = runs::read_runs(paths);
  for (runs::Run& run : all) {
    if (!run.metrics.left_out.empty())
      warn(fmt::format("{}: {}", run.path, run.metrics.left_out));
    const std::size_t missing =
        log ? keep_positive(run.metrics.loss) + keep_positive(run.metrics.validation) : 0;
    if (missing > 0)
      warn(fmt::format("{}: --log leaves out {} that {} not above 0", run.path,
                       xgrad::counted(missing, "loss", "losses"), missing == 1 ? "is" : "are"));
  }
  xgrad::io::check_output(out, overwrite, runs::files_of(all));
  runs::Curves curves = runs::loss_curves(all, weight, runs::Raw::faint);
  if (curves.empty())
    throw xgrad::Error(log ? "--log: there is no loss above 0" : "there is no loss that is finite");
  curves.options.title = title;
  curves.options.log_y = log;
  std::string picture;
  try {
    picture = xgrad::pages::line_chart(curves.lines, curves.options);
  } catch (const xgrad::ValueError&) {
    throw xgrad::Error("no axis has room for these losses or these steps");
  }
  xgrad::pages::save_svg(out, picture);
  command_line::print(xgrad::printable(fmt::format(
                          "{}: {}{}", out, xgrad::counted(all.size(), "run", "runs"),
                          curves.cut.empty() ? "" : "; beyond the picture: " + curves.cut)) +
                      "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command_line::exit_code("plot_losses", run(argc, argv));
  } catch (const command_line::UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    warn(error.what());
    return 1;
  }
}
