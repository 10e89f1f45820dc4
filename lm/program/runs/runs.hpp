#pragma once
// The folders of runs: reads, summarises, draws and compares them.

#include <string>
#include <vector>
#include <xgrad/io/json.hpp>
#include <xgrad/viz/chart.hpp>

namespace runs {

/// The rows of metrics.jsonl (format.hpp) by column.  Missing values are skipped.
struct Metrics {
  xgrad::viz::Series loss, validation, lr, grad_norm, ms;
  xgrad::viz::Series bits_per_byte;     ///< of the final validation
  xgrad::viz::Series final_validation;  ///< over whole blocks; `validation` has estimates
  /// The batches over which the last of them are means, as "20 random batches"; empty if the file
  /// does not name them.
  std::string validation_over, final_validation_over;
  std::vector<std::string> changes;  ///< of flags: "from step 20 on: --learning-rate 0.1 -> 0.2"
  std::string skipped;               ///< a sentence about lines that are no rows; empty: none
};

/// Throws FileError if no line of the file is a row.
Metrics read_metrics(const std::string& path);

/// A text that the model wrote after this number of steps.
struct Sample {
  double steps;
  std::string text;
};

struct Run {
  std::string path;    ///< of its metrics file
  std::string folder;  ///< of the metrics file
  std::string name;    ///< for people, printable: the folder's name
  Metrics metrics = {};
  xgrad::io::Json config = {};       ///< config.json: an object, or null
  xgrad::io::Json environment = {};  ///< environment.json: an object, or null
  std::vector<Sample> samples = {};  ///< of samples.jsonl
  /// Checksums of its texts, for --data with the characters; empty if unknown.
  std::string text = {}, val_text = {};
};

/// "; name a run in it, or all: runs/*", if folders in a folder have this file; else empty.
std::string runs_in(const std::string& folder, const std::string& file);
/// A run by its folder, or by its metrics.jsonl alone.  FileError if its metrics cannot be read;
/// all other files may be missing.
Run read_run(const std::string& path);
/// Several runs, with distinct names: equal names get the parent folder's name as well.
std::vector<Run> read_runs(const std::vector<std::string>& paths);
/// The files that were read of runs, existing or not.
std::vector<std::string> files_of(const std::vector<Run>& runs);

/// A line of the table: a value for each run, "-" for a missing one.
struct Row {
  std::string name;  ///< indented if it details the row above
  std::vector<std::string> values;
};
/// The results of the runs, then the differences of their configurations.  The lowest validation
/// loss has a star.
std::vector<Row> table(const std::vector<Run>& runs);

/// Lines, and the limit of their chart.
struct Curves {
  std::vector<xgrad::viz::Series> lines;
  xgrad::viz::LineChartOptions options;
  std::string cut = {};  ///< "b up to 1e+09", if something exceeds the chart; printable
  /// Whether there is nothing to draw.
  bool empty() const;
};

/// Training losses, and validation losses, with dots.  Each run has one colour.  A run that
/// diverged does not flatten the others: the chart ends at 1.5 times the highest first loss of a
/// run, of those within ten times the lowest first loss.
Curves loss_curves(const std::vector<Run>& runs);
/// Charts for a page (viz/chart.hpp): losses, learning rate, gradient norm.  A sentence in place
/// of a chart that cannot be drawn; empty if there is no data.
std::string charts_html(const std::vector<Run>& runs);

/// A comparison of runs: table and curves; for a single run also its samples, at most 40,
/// configuration and environment.
xgrad::viz::Page page(const std::vector<Run>& runs);
/// The table, and remarks below it.
std::string table_text(const std::vector<Run>& runs);

}  // namespace runs
