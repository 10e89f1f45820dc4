#pragma once
// Pages of runs.

#include <string>
#include <vector>
#include <xgrad/pages/page.hpp>

#include "curves.hpp"
#include "run.hpp"

namespace runs {

/// A command line for a shell, and what it is for.
struct Hint {
  std::string purpose, line;
};

/// What a run has left: its losses in numbers, curves, samples, configuration, environment, and how
/// to go on.  Its size depends on neither the number of steps (pages::thinned) nor that of samples, of
/// which at most 40 are shown.
xgrad::pages::Page report_page(const Run& run, const std::vector<Hint>& hints);

/// A chart on a page (pages/chart.hpp), and what is cut off; a sentence where it cannot be drawn,
/// nothing where there is nothing to draw.
std::string chart_html(const std::string& title, Curves curves);

}  // namespace runs
