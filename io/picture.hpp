#pragma once
// Pictures of results, as SVG text: heat maps and line charts; and heat maps as plain text.
//
//     io::save_svg("map.svg", io::heat_map(weights, {.title = "head 0"}));

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::io {

/// Writes a picture; the file appears complete or not at all.  ValueError unless the path ends in
/// .svg, FileError if it cannot be written.
void save_svg(const std::string& path, std::string_view svg);

/// From dark violet (0) over green to yellow (1), equally bright steps for equal steps of t, as
/// "#440154"; t is limited to [0, 1].  The colours are those known as viridis, van der Walt and
/// Smith, 2015.
std::string viridis(double t);

struct HeatMapOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> rows = {}, columns = {};  ///< labels; positions from 0 if empty
  std::optional<double> low = {}, high = {};  ///< ends of the scale; the extremes unless given
  std::size_t cell = 0;                       ///< a cell's side in pixels; 0: what suits the size
  bool numbers = true;  ///< written in the cells, where these are large enough
};

/// Values (rows, columns) as colours, with a scale.  What is not finite is grey, crossed and
/// counted beside the map.  ShapeError for another rank or no elements, ValueError for labels of
/// another number or too many cells.
std::string heat_map(const Tensor& values, const HeatMapOptions& options = {});
/// The same for a terminal: two characters a cell, one of " .:-=+*#%@" doubled, or "??" for what is
/// not finite; the last line explains the scale.
std::string heat_map_text(const Tensor& values, const HeatMapOptions& options = {});

/// A line of a chart.
struct Series {
  std::string name;
  std::vector<double> xs, ys;             ///< equally many
  double thickness = 2;                   ///< in pixels
  bool dots = false;                      ///< a dot at each point
  std::optional<std::size_t> color = {};  ///< in the palette; the series' own place unless given
};

struct LineChartOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::optional<double> y_low = {}, y_high = {};  ///< ends of the axis; what is outside is cut off
  bool log_y = false;  ///< the vertical axis is logarithmic; values must be positive
  std::size_t width = 720, height = 360;  ///< of the plot, in pixels
};

/// A line per series, axes and a legend.  A y that is not finite interrupts its line; a cross at
/// the top shows where, and the legend how many.  ValueError if there is no finite point, xs and ys
/// of a series are not equally many, or a value has no logarithm.
std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options = {});

}  // namespace xgrad::io
