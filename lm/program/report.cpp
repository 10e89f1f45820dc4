// The commands that show finished runs, report and compare, and the playground.

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>
#include <xgrad/io/file.hpp>
#include <xgrad/viz/chart.hpp>
#include <xgrad/viz/page.hpp>

#include "commands.hpp"
#include "output.hpp"
#include "run.hpp"
#include "runs/runs.hpp"

namespace program {
namespace {

std::vector<runs::Run> read_all_runs(const std::vector<std::string>& paths) {
  std::vector<runs::Run> all = runs::read_runs(paths);
  for (const runs::Run& run : all)
    if (!run.metrics.skipped.empty())
      warn(fmt::format("{}: {}", run.path, run.metrics.skipped));
  return all;
}

/// The path of a run's report.  FileError for a symbolic link, because its target may be anywhere.
std::string page_of(const runs::Run& run) {
  const std::string page = (std::filesystem::path(run.folder) / "report.html").string();
  if (std::error_code none; std::filesystem::is_symlink(page, none))
    fail<FileError>(
        "{}: is a symbolic link, and a report is written into its folder: remove the link", page);
  return page;
}

}  // namespace

void report(const RunsOptions& options) {
  const std::vector<runs::Run> all = read_all_runs(options.runs);
  for (const runs::Run& run : all)
    check_output(page_of(run), options.overwrite, runs::files_of(all));
  for (const runs::Run& run : all) {
    xgrad::viz::save(page_of(run), runs::page({run}));
    say(page_of(run) + "\n");
  }
}

void compare(const RunsOptions& options) {
  const std::vector<runs::Run> all = read_all_runs(options.runs);
  if (!options.out.empty()) {
    check_output(options.out, options.overwrite, runs::files_of(all));
    if (options.out.ends_with(".svg")) {
      const runs::Curves curves = runs::loss_curves(all);
      check<xgrad::Error>(!curves.empty(), "there is no loss that is finite");
      try {
        xgrad::viz::save_svg(options.out, xgrad::viz::line_chart(curves.lines, curves.options));
      } catch (const ValueError&) {
        throw xgrad::Error("no axis has room for these losses or these steps");
      }
      if (!curves.cut.empty())
        say(fmt::format("beyond the picture: {}\n", curves.cut));
    } else {
      xgrad::viz::save(options.out, runs::page(all));
    }
  }
  say(runs::table_text(all) + (options.out.empty() ? "" : options.out + "\n"));
}

void playground(const RunsOptions& options) {
  if (playground_page.empty())
    throw xgrad::Error("xgrad was built without this page: run scripts/web, and build it again");
  check_output(options.out, options.overwrite, {});
  xgrad::io::write_file(options.out, playground_page);
  say(options.out + "\n");
}

std::string write_report(const std::string& folder) {
  try {
    const std::vector<runs::Run> one = read_all_runs({folder});
    xgrad::viz::save(page_of(one[0]), runs::page(one));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace program
