#pragma once
// Pictures of results: heat maps and line charts, as SVG and as plain text.
//
//     save_svg("map.svg", heat_map(weights, {.title = "head 0"}));

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/pages/series.hpp>

namespace xgrad::pages {

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

struct LineChartOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::optional<double> y_low = {}, y_high = {};  ///< ends of the axis; what is outside is cut off
  bool log_y = false;  ///< the vertical axis is logarithmic; values must be positive
  std::size_t width = 720, height = 360;  ///< of the plot, in pixels
  std::size_t left = 0;                   ///< pixels, at least, left of it: so charts line up
};

/// A line per series, axes and a legend, in which series without a name are left out.  Of many
/// points thinned() keeps those that show.  A y that is not finite interrupts its line; a cross at
/// the top shows where, and the legend how many.  ValueError if there is no finite point, xs and ys
/// of a series are not equally many, or a value has no logarithm.
std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options = {});
/// The same for a terminal, in so many characters without the labels of the axes: a line is the
/// letter of its series, a, b, c and so on, and where several meet, the last.  `width`, `height`
/// and `x_label` of the options do not count.
std::string line_chart_text(const std::vector<Series>& series, const LineChartOptions& options = {},
                            std::size_t columns = 60, std::size_t rows = 12);
/// The letter of a series there: a to z, A to Z, and # for all others.
char letter(std::size_t series);

}  // namespace xgrad::pages
