#pragma once
// The folders of runs: read, summed up, drawn, and compared.

#include <string>
#include <vector>
#include <xgrad/io/json.hpp>
#include <xgrad/pages/chart.hpp>

namespace runs {

/// metrics.jsonl: a JSON object for each step, with "step", "loss" and maybe others, which count
/// from 0.  Any program may have written it.  Values that rows lack are left out; null is NaN.
struct Metrics {
  xgrad::pages::Series loss, validation, lr, grad_norm, ms;
  xgrad::pages::Series bits_per_byte;     ///< of the final validation
  xgrad::pages::Series final_validation;  ///< over whole blocks, where validation has estimates
  /// The batches that the last of them are means of, as "20 random batches"; empty if the file does
  /// not say.
  std::string validation_over, final_validation_over;
  std::vector<std::string> changes;  ///< of flags: "from step 20 on: --learning-rate 0.1 -> 0.2"
  std::string left_out;              ///< which lines are no rows, in a sentence; empty: none
};

/// Throws FileError for what is not a metrics file: no line of it is a row.
Metrics read_metrics(const std::string& path);

/// A text that the model wrote after so many steps.
struct Sample {
  double steps;
  std::string text;
};

struct Run {
  std::string path;    ///< of its metrics file
  std::string folder;  ///< that holds it
  std::string name;    ///< for people, printable: the folder's name
  Metrics metrics = {};
  xgrad::io::Json config = {};       ///< config.json: an object, or null
  xgrad::io::Json environment = {};  ///< environment.json: an object, or null
  std::vector<Sample> samples = {};  ///< of samples.jsonl
  /// Checksums of its texts, of --data with the characters; empty if nobody knows.
  std::string text = {}, val_text = {};
};

/// A run by its folder, or by its metrics.jsonl alone.  FileError if its metrics cannot be read;
/// all else may be missing.
Run read_run(const std::string& path);
/// Several, under names that differ: with the folder around it where two have one name.
std::vector<Run> read_runs(const std::vector<std::string>& paths);
/// The files that were read of runs, there or not.
std::vector<std::string> files_of(const std::vector<Run>& runs);

/// A line of the table: a value for each run, "-" where it has none.
struct Row {
  std::string name;  ///< indented where it says more of the row above
  std::vector<std::string> values;
};
/// The results of the runs, and below them the differences of their configurations.  The lowest
/// validation loss has a star.
std::vector<Row> table(const std::vector<Run>& runs);

/// Lines, and where their chart is cut off.
struct Curves {
  std::vector<xgrad::pages::Series> lines;
  xgrad::pages::LineChartOptions options;
  std::string cut = {};  ///< "b up to 1e+09", if something is beyond the chart; printable
  /// Whether there is nothing to draw.
  bool empty() const;
};

/// Training losses, and validation losses, with dots.  A run's lines have one colour.  A run that
/// diverged does not flatten the others: the chart ends at 1.5 times the highest loss that a run
/// began with, of those within ten times the lowest of these.
Curves loss_curves(const std::vector<Run>& runs);
/// Charts for a page (pages/chart.hpp): losses, learning rate, gradient norm.  A sentence for what
/// cannot be drawn, nothing where there is nothing to draw.
std::string charts_html(const std::vector<Run>& runs);

/// Runs beside each other: table and curves; of a single one its samples, configuration and
/// environment, too.  At most 40 samples are shown.
xgrad::pages::Page page(const std::vector<Run>& runs);
/// The table, and remarks below it.
std::string table_text(const std::vector<Run>& runs);

}  // namespace runs
