// Draws the losses of several runs into one picture.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/pages/chart.hpp>

#include "command.hpp"
#include "output.hpp"
#include "runs/runs.hpp"

namespace char_transformer {
namespace {

struct PlotOptions {
  std::vector<std::string> runs;
  std::string out = "losses.svg", title;
  bool log = false, overwrite = false;
  double weight = 0;
};

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

void plot(const PlotOptions& o) {
  std::vector<runs::Run> all = runs::read_runs(o.runs);
  for (runs::Run& run : all) {
    if (!run.metrics.left_out.empty())
      warn(fmt::format("{}: {}", run.path, run.metrics.left_out));
    const std::size_t missing =
        o.log ? keep_positive(run.metrics.loss) + keep_positive(run.metrics.validation) : 0;
    if (missing > 0)
      warn(fmt::format("{}: --log leaves out {} that {} not above 0", run.path,
                       xgrad::counted(missing, "loss", "losses"), missing == 1 ? "is" : "are"));
  }
  check_output(o.out, o.overwrite, runs::files_of(all));
  runs::Curves curves = runs::loss_curves(all, o.weight, runs::Raw::faint);
  if (curves.empty())
    throw xgrad::Error(o.log ? "--log: there is no loss above 0"
                             : "there is no loss that is finite");
  curves.options.title = o.title;
  curves.options.log_y = o.log;
  std::string picture;
  try {
    picture = xgrad::pages::line_chart(curves.lines, curves.options);
  } catch (const xgrad::ValueError&) {
    throw xgrad::Error("no axis has room for these losses or these steps");
  }
  xgrad::pages::save_svg(o.out, picture);
  say(fmt::format("{}: {}{}\n", xgrad::printable_name(o.out),
                  xgrad::counted(all.size(), "run", "runs"),
                  curves.cut.empty() ? "" : "; beyond the picture: " + curves.cut));
}

}  // namespace

Command add_plot(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("plot", "draw the losses of runs into one picture");
  const auto options = std::make_shared<PlotOptions>();
  app.add_option("runs", options->runs, "the folder of each run, or its metrics.jsonl")
      ->required()
      ->type_name("FILE");
  add_path(app, "--out", options->out, "the picture, an SVG [losses.svg]");
  add_overwrite(app, options->overwrite);
  app.add_option("--title", options->title, "what stands above it");
  add_bool(app, "--log", options->log, "a logarithmic axis");
  add_number(app, "--smooth", options->weight, {0, 1, false, true},
             "weight of an exponential moving average, such as 0.9; losses as they are stand "
             "faintly beside it [0: none]");
  return {&app, [options] {
            plot(*options);
            return 0;
          }};
}

}  // namespace char_transformer
