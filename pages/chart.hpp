#pragma once
// Line charts on a page: io::line_chart's pictures, in the page's colours, that say their values
// where the pointer is.

#include <string>
#include <vector>
#include <xgrad/io/picture.hpp>
#include <xgrad/pages/page.hpp>

namespace xgrad::pages {

/// The chart as HTML, of which a page may have several, `<div class="charts">` around them; the
/// page goes through with_charts().  It is as large as its column is wide.  Without scripts it is a
/// picture.  ValueError as of io::line_chart.
std::string line_chart(const std::vector<io::Series>& series,
                       const io::LineChartOptions& options = {});

/// The page with what charts need.
Page with_charts(Page page);

}  // namespace xgrad::pages
