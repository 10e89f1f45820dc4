#pragma once
// What is left after a run, for people: a page for each, and several beside each other (runs/).

#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"

namespace char_transformer {

struct ReportOptions {
  std::vector<std::string> runs;
  bool overwrite = false;
};

struct CompareOptions {
  std::vector<std::string> runs;
  std::string out;  ///< a page; empty: none
  bool overwrite = false;
};

/// The command `report`: writes report.html into the folder of each run.
void report(const ReportOptions& options);
/// The command `compare`.
void compare(const CompareOptions& options);

/// Writes report.html of a run that has ended or was interrupted.  Why that failed; empty if it did
/// not.  Nothing that a run needs depends on it, so it throws nothing.
std::string report_of(const std::string& folder, const TrainOptions& options);
/// For environment.json: what the run is trained with, which changes none of its numbers.
std::string format_environment(std::size_t ranks);

}  // namespace char_transformer
