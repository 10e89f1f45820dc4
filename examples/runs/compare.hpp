#pragma once
// Runs beside each other: a table and a chart, for a terminal and as a page.

#include <cstddef>
#include <string>
#include <vector>
#include <xgrad/pages/page.hpp>

#include "run.hpp"

namespace runs {

/// A line of the table: a value for each run.
struct Row {
  std::string name;
  std::vector<std::string> values;
};
/// What the runs came to, and below it where their configurations differ.  The lowest validation
/// loss has a star.
std::vector<Row> comparison(const std::vector<Run>& runs);

/// The names of runs with a letter each, the table, as many columns at a time as fit into `width`
/// characters, and a chart of the smoothed training losses.
std::string compare_text(const std::vector<Run>& runs, std::size_t width = 80);
xgrad::pages::Page compare_page(const std::vector<Run>& runs);

}  // namespace runs
