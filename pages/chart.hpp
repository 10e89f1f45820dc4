#pragma once
// Line charts on a page: line_chart's pictures, in the page's colours, that say their values
// where the pointer is.

#include <string>
#include <vector>
#include <xgrad/pages/picture.hpp>
#include <xgrad/pages/page.hpp>

namespace xgrad::pages {

/// The chart as HTML, of which a page may have several, `<div class="charts">` around them; the
/// page goes through with_charts().  It is as large as its column is wide.  Without scripts it is a
/// picture.  ValueError as of line_chart.
std::string chart_figure(const std::vector<Series>& series,
                       const LineChartOptions& options = {});

/// The page with what charts need.
Page with_charts(Page page);

}  // namespace xgrad::pages
