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
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/pages/page.hpp>

#include "build.hpp"
#include "command.hpp"
#include "output.hpp"
#include "resume.hpp"
#include "run_dir.hpp"
#include "runs/runs.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;

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

void warn_of_lines(const runs::Run& run) {
  if (!run.metrics.left_out.empty())
    warn(fmt::format("{}: {}", run.path, run.metrics.left_out));
}

std::string page_of(const runs::Run& run) {
  return (fs::path(run.folder) / "report.html").string();
}

/// The page is the folder's own: a link may lead anywhere, and nothing there is replaced.
void refuse_link(const std::string& page) {
  std::error_code none;
  if (fs::is_symlink(page, none))
    throw xgrad::FileError(fmt::format(
        "{}: is a symbolic link, and a report is written into its folder: remove the link", page));
}

void write_page(const runs::Run& run, const TrainOptions& options) {
  warn_of_lines(run);
  refuse_link(page_of(run));
  xgrad::pages::save(page_of(run), runs::report_page(run, hints(run.folder, options)));
}

}  // namespace

void report(const ReportOptions& options) {
  std::vector<runs::Run> all;
  for (const std::string& path : options.runs)
    all.push_back(runs::read_run(path));
  for (const runs::Run& run : all) {
    check_output(page_of(run), options.overwrite, runs::files_of(all));
    refuse_link(page_of(run));
  }
  for (const runs::Run& run : all) {
    write_page(run, {});
    say(page_of(run) + "\n");
  }
}

void compare(const CompareOptions& options) {
  const std::vector<runs::Run> all = runs::read_runs(options.runs);
  std::ranges::for_each(all, warn_of_lines);
  if (!options.out.empty())
    check_output(options.out, options.overwrite, runs::files_of(all));
  if (!options.out.empty())
    xgrad::pages::save(options.out, runs::compare_page(all));
  say(runs::compare_text(all, std::max<std::size_t>(terminal_width(STDOUT_FILENO), 40)));
  if (!options.out.empty())
    say(fmt::format("\nThe page is {}.\n", options.out));
}

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
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("runs", options->runs, "the folder of each run")->required()->type_name("DIR");
  add_overwrite(app, options->overwrite);
  return {&app, [options] {
            report(*options);
            return 0;
          }};
}

Command add_compare(CLI::App& program) {
  CLI::App& app =
      *program.add_subcommand("compare", "lay runs over each other: a table and a chart");
  const auto options = std::make_shared<CompareOptions>();
  app.add_option("runs", options->runs, "the folder of each run, or its metrics.jsonl")
      ->required()
      ->type_name("FILE");
  add_path(app, "--out", options->out, "also write a page, FILE.html, with all curves");
  add_overwrite(app, options->overwrite);
  return {&app, [options] {
            compare(*options);
            return 0;
          }};
}

}  // namespace char_transformer
