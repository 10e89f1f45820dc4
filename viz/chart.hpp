#pragma once
// Charts: lines and heat maps, as SVG (viz/svg.hpp) and on a page.
//
//     save_svg("map.svg", heat_map(weights, {.title = "head 0"}));

#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include "../autograd/tensor.hpp"
#include "page.hpp"
#include "svg.hpp"

namespace xgrad::viz {

/// A line of a chart.
struct Series {
  std::string name;
  std::vector<double> xs, ys;             ///< equally many
  double thickness = 2;                   ///< in pixels
  bool dots = false;                      ///< a dot at each point
  std::optional<std::size_t> color = {};  ///< in the palette; by default the series' index
};

/// A round number along an axis.
struct Tick {
  double value;
  std::string text;
};
/// About `about` (1000 at most) multiples of 1, 2 or 5 times a power of ten within [low, high]; one
/// for equal ends, and for ends over 1e307 apart only those.
std::vector<Tick> ticks(double low, double high, std::size_t about);

struct LineChartOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::optional<double> y_low = {}, y_high = {};  ///< ends of the axis; points beyond are cut off
  bool y_log =
      false;  ///< a logarithmic axis, with a tick at powers of ten; 0 and less are below it
  std::size_t width = 720, height = 360;  ///< of the plot, in pixels
  std::size_t left = 0;                   ///< the least width left of it, in pixels: aligns charts
};

/// A line per series, axes and a legend, which omits series without a name.  A y that is not finite
/// interrupts its line; a cross at the top marks its place, and the legend has their number.
/// ValueError if there is no finite point, or xs and ys of a series differ in number.
std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options = {});
/// The same as HTML, which shows the values at the pointer; without scripts it is a picture.  Wrap
/// several in `<div class="charts">`; the page must go through with_charts().
std::string chart_figure(const std::vector<Series>& series, const LineChartOptions& options = {});
/// The page with the scripts and styles of charts.
Page with_charts(Page page);

/// From dark violet (0) over green to yellow (1), with steps of brightness proportional to steps of
/// t, as "#440154"; t is limited to [0, 1].  The colours are known as viridis, van der Walt and
/// Smith, 2015.
std::string viridis(double t);

struct HeatMapOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> rows = {}, columns = {};  ///< labels; positions from 0 if empty
  std::optional<double> low = {}, high = {};         ///< ends of the scale; by default the extremes
  std::size_t cell = 0;  ///< a cell's side in pixels; 0: chosen by the size
  bool numbers = true;   ///< written in the cells if these are large enough
};

/// Values (rows, columns) as colours, with a scale.  NaN and infinities are grey, crossed and
/// counted next to the map.  ShapeError for another rank or no elements, ValueError for a wrong
/// number of labels or too many cells.
std::string heat_map(const Tensor& values, const HeatMapOptions& options = {});
/// The same for a terminal: two characters a cell, one of " .:-=+*#%@" doubled, or "??" if not
/// finite; the last line explains the scale.
std::string heat_map_text(const Tensor& values, const HeatMapOptions& options = {});

}  // namespace xgrad::viz
