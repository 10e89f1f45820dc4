#include "report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/pages/chart.hpp>
#include <xgrad/pages/page.hpp>

#include "build.hpp"
#include "command.hpp"
#include "output.hpp"
#include "run_dir.hpp"
#include "runs/runs.hpp"
#include "start.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using runs::Run;

struct RunsOptions {
  std::vector<std::string> runs;
  std::string out, title;
  bool log = false, overwrite = false;
  double weight = 0;
};

/// How to go on with what is in the folder.
std::vector<runs::Hint> hints(const std::string& folder, const TrainOptions& options) {
  std::error_code none;
  const auto in_folder = [&](const char* name) { return folder + "/" + name; };
  const bool saved = fs::exists(in_folder(checkpoint_name), none);
  const bool best = fs::exists(in_folder(best_name), none);
  std::vector<runs::Hint> all;
  if (saved)
    all.push_back({"Go on training (--max-iters N makes a finished run longer):",
                   resume_command(options, folder)});
  if (saved || best)
    all.push_back(
        {best ? "Let the model of the lowest validation loss write:" : "Let the model write:",
         fmt::format("{} sample --checkpoint {}", quoted(options.program),
                     quoted(in_folder(best ? best_name : checkpoint_name)))});
  all.push_back({"Lay it over other runs:", fmt::format("{} compare {} OTHER --out compare.html",
                                                        quoted(options.program), quoted(folder))});
  return all;
}

void warn_of_lines(const Run& run) {
  if (!run.metrics.left_out.empty())
    warn(fmt::format("{}: {}", run.path, run.metrics.left_out));
}

/// The page's place.  It is the folder's own: a link may lead anywhere, and nothing there is
/// replaced.
std::string page_of(const Run& run) {
  const std::string page = (fs::path(run.folder) / "report.html").string();
  if (std::error_code none; fs::is_symlink(page, none))
    throw xgrad::FileError(fmt::format(
        "{}: is a symbolic link, and a report is written into its folder: remove the link", page));
  return page;
}

void write_page(Run run, const TrainOptions& options) {
  warn_of_lines(run);
  const std::string page = page_of(run);
  const auto how_on = hints(run.folder, options);
  xgrad::pages::save(page, runs::report_page(std::move(run), how_on));
}

void report(const RunsOptions& options) {
  std::vector<Run> all;
  for (const std::string& path : options.runs)
    all.push_back(runs::read_run(path));
  for (const Run& run : all)
    check_output(page_of(run), options.overwrite, runs::files_of(all));
  for (const Run& run : all) {
    write_page(run, {});
    say(page_of(run) + "\n");
  }
}

void compare(const RunsOptions& options) {
  const std::vector<Run> all = runs::read_runs(options.runs);
  std::ranges::for_each(all, warn_of_lines);
  if (!options.out.empty()) {
    check_output(options.out, options.overwrite, runs::files_of(all));
    xgrad::pages::save(options.out, runs::compare_page(all));
  }
  say(runs::compare_text(all, std::max<std::size_t>(terminal_width(STDOUT_FILENO), 40)));
  if (!options.out.empty())
    say(fmt::format("\nThe page is {}.\n", options.out));
}

/// Takes out what has no logarithm; how many it was.
std::size_t keep_positive(xgrad::pages::Series& series) {
  xgrad::pages::Series kept = series;
  kept.xs.clear();
  kept.ys.clear();
  for (std::size_t i = 0; i < series.ys.size(); ++i)
    if (!(series.ys[i] <= 0)) {
      kept.xs.push_back(series.xs[i]);
      kept.ys.push_back(series.ys[i]);
    }
  std::swap(kept, series);
  return kept.ys.size() - series.ys.size();
}

void plot(const RunsOptions& options) {
  std::vector<Run> all = runs::read_runs(options.runs);
  for (Run& run : all) {
    warn_of_lines(run);
    const std::size_t missing =
        options.log ? keep_positive(run.metrics.loss) + keep_positive(run.metrics.validation) : 0;
    if (missing > 0)
      warn(fmt::format("{}: --log leaves out {} that {} not above 0", run.path,
                       xgrad::counted(missing, "loss", "losses"), missing == 1 ? "is" : "are"));
  }
  check_output(options.out, options.overwrite, runs::files_of(all));
  runs::Curves curves = runs::loss_curves(all, options.weight, runs::Raw::faint);
  if (curves.empty())
    throw xgrad::Error(options.log ? "--log: there is no loss above 0"
                                   : "there is no loss that is finite");
  curves.options.title = options.title;
  curves.options.log_y = options.log;
  std::string picture;
  try {
    picture = xgrad::pages::line_chart(curves.lines, curves.options);
  } catch (const xgrad::ValueError&) {
    throw xgrad::Error("no axis has room for these losses or these steps");
  }
  xgrad::pages::save_svg(options.out, picture);
  say(fmt::format("{}: {}{}\n", xgrad::printable_name(options.out),
                  xgrad::counted(all.size(), "run", "runs"),
                  curves.cut.empty() ? "" : "; beyond the picture: " + curves.cut));
}

/// A command that reads runs.
Command add_runs(CLI::App& app, const std::shared_ptr<RunsOptions>& options, const char* runs,
                 void (*run)(const RunsOptions&)) {
  app.add_option("runs", options->runs, runs)->required()->type_name("RUN");
  add_overwrite(app, options->overwrite);
  return {&app, [options, run] {
            run(*options);
            return 0;
          }};
}

constexpr const char* folder_or_metrics = "the folder of each run, or its metrics.jsonl";

}  // namespace

std::string report_of(const std::string& folder, const TrainOptions& options) {
  try {
    write_page(runs::read_run(folder), options);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string format_environment(std::size_t ranks) {
  utsname system{};
  ::uname(&system);
  const xgrad::io::JsonObject environment{
      {"build", describe_build()},
      {"instructions", xgrad::simd_name()},
      {"threads", std::uint64_t{xgrad::num_threads()}},
      {"ranks", std::uint64_t{ranks}},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
  return xgrad::io::format_json(environment, xgrad::io::InvalidUtf8::replaced, 2);
}

Command add_report(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("report", "write DIR/report.html: what a run has left");
  return add_runs(app, std::make_shared<RunsOptions>(), "the folder of each run", report);
}

Command add_compare(CLI::App& program) {
  CLI::App& app =
      *program.add_subcommand("compare", "lay runs over each other: a table and a chart");
  const auto options = std::make_shared<RunsOptions>();
  add_path(app, "--out", options->out, "also write a page, FILE.html, with all curves");
  return add_runs(app, options, folder_or_metrics, compare);
}

Command add_plot(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("plot", "draw the losses of runs into one picture");
  const auto options = std::make_shared<RunsOptions>();
  options->out = "losses.svg";
  add_path(app, "--out", options->out, "the picture, an SVG [losses.svg]");
  app.add_option("--title", options->title, "what stands above it");
  add_bool(app, "--log", options->log, "a logarithmic axis");
  add_number(app, "--smooth", options->weight, {0, 1, false, true},
             "weight of an exponential moving average, such as 0.9; losses as they are stand "
             "faintly beside it [0: none]");
  return add_runs(app, options, folder_or_metrics, plot);
}

}  // namespace char_transformer
