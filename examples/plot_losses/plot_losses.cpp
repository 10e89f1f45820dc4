// Draws the losses of several runs into one picture.
//
//   plot_losses runs/000 runs/001 --out losses.svg

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/pages/picture.hpp>

#include "command_line/command_line.hpp"
#include "command_line/output.hpp"
#include "runs/curves.hpp"
#include "runs/run.hpp"

namespace {

int run(int argc, char** argv) {
  command_line::CommandLine line("plot_losses", "Draws the losses of runs into one picture.");
  command_line::Flags flags = line.flags();
  std::vector<std::string> paths;
  std::string out = "losses.svg", title;
  bool log = false;
  double weight = 0;
  flags.paths("runs", paths, "the folder of each run, or its metrics.jsonl");
  flags.path("--out", out, "FILE", "the picture, an SVG [losses.svg]");
  flags.text("--title", title, "TEXT", "what stands above it");
  flags.boolean("--log", log, "a logarithmic axis");
  flags.number("--smooth", weight, {0, 1, false, true},
               "weight of an exponential moving average, such as 0.9; losses as they are stand "
               "faintly beside it [0: none]");
  if (const auto help = line.parse(argc, argv)) {
    command_line::print(*help);
    return 0;
  }
  const std::vector<runs::Run> all = runs::read_runs(paths);
  runs::Curves curves = runs::loss_curves(all, weight, runs::Raw::faint);
  curves.options.title = title;
  curves.options.log_y = log;
  xgrad::pages::save_svg(out, xgrad::pages::line_chart(curves.lines, curves.options));
  command_line::print(xgrad::printable(fmt::format(
                          "{}: {} run{}{}", out, all.size(), all.size() == 1 ? "" : "s",
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
    fmt::print(stderr, "plot_losses: {}\n", xgrad::printable(error.what()));
    return 1;
  }
}
