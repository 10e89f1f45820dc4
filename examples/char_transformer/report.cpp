// The commands that show finished runs to people: report, compare.

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>
#include <xgrad/pages/chart.hpp>
#include <xgrad/pages/page.hpp>

#include "output.hpp"
#include "runs/runs.hpp"
#include "start.hpp"

namespace char_transformer {
namespace {

using runs::Run;

struct RunsOptions {
  std::vector<std::string> runs;
  std::string out;
  bool overwrite = false;
};

std::vector<Run> read_all_runs(const std::vector<std::string>& paths) {
  std::vector<Run> all = runs::read_runs(paths);
  for (const Run& run : all)
    if (!run.metrics.left_out.empty())
      warn(fmt::format("{}: {}", run.path, run.metrics.left_out));
  return all;
}

/// The page is the folder's own: a link may lead anywhere, and nothing there is replaced.
std::string page_of(const Run& run) {
  const std::string page = (std::filesystem::path(run.folder) / "report.html").string();
  if (std::error_code none; std::filesystem::is_symlink(page, none))
    fail<FileError>(
        "{}: is a symbolic link, and a report is written into its folder: remove the link", page);
  return page;
}

void report(const RunsOptions& options) {
  const std::vector<Run> all = read_all_runs(options.runs);
  for (const Run& run : all)
    check_output(page_of(run), options.overwrite, runs::files_of(all));
  for (const Run& run : all) {
    xgrad::pages::save(page_of(run), runs::page({run}));
    say(page_of(run) + "\n");
  }
}

/// The losses as one picture.
void draw(const std::vector<Run>& all, const std::string& out) {
  const runs::Curves curves = runs::loss_curves(all);
  check<xgrad::Error>(!curves.empty(), "there is no loss that is finite");
  std::string picture;
  try {
    picture = xgrad::pages::line_chart(curves.lines, curves.options);
  } catch (const ValueError&) {
    throw xgrad::Error("no axis has room for these losses or these steps");
  }
  xgrad::pages::save_svg(out, picture);
  if (!curves.cut.empty())
    say(fmt::format("beyond the picture: {}\n", curves.cut));
}

void compare(const RunsOptions& options) {
  const std::vector<Run> all = read_all_runs(options.runs);
  if (!options.out.empty()) {
    check_output(options.out, options.overwrite, runs::files_of(all));
    if (options.out.ends_with(".svg"))
      draw(all, options.out);
    else
      xgrad::pages::save(options.out, runs::page(all));
  }
  say(runs::table_text(all));
}

void add_runs(CLI::App& app, RunsOptions& options, const char* which) {
  app.add_option("runs", options.runs, which)->required()->type_name("RUN");
}

constexpr const char* folder_or_metrics = "the folder of each run, or its metrics.jsonl";

}  // namespace

std::string write_report(const std::string& folder) {
  try {
    const std::vector<Run> one = read_all_runs({folder});
    xgrad::pages::save(page_of(one[0]), runs::page(one));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

Command add_report(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("report", "write DIR/report.html: what a run has left");
  const auto options = std::make_shared<RunsOptions>();
  add_bool(app, "--overwrite", options->overwrite, "replace the file if it is there");
  add_runs(app, *options, "the folder of each run");
  return command_of(app, options, report);
}

Command add_compare(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("compare", "lay runs beside each other: a table");
  const auto options = std::make_shared<RunsOptions>();
  add_out(app, options->out, options->overwrite,
          "no page; FILE.html: all curves; FILE.svg: the losses");
  add_runs(app, *options, folder_or_metrics);
  return command_of(app, options, compare);
}

}  // namespace char_transformer
