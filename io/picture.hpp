#pragma once
// Pictures of results: heat maps, as a PNG or as text, and line charts.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/io/canvas.hpp>

namespace xgrad::io {

/// From dark violet (0) over green to yellow (1), equally bright steps for equal steps of t; t is
/// limited to [0, 1].  The colours are those known as viridis, van der Walt and Smith, 2015.
Color viridis(double t);

struct HeatMapOptions {
  std::string title = {};
  std::vector<std::string> rows = {}, columns = {};  ///< labels; positions from 0 if empty
  std::optional<double> low = {}, high = {};  ///< ends of the scale; the extremes unless given
  std::size_t cell = 0;                       ///< a cell's side in pixels; 0: what suits the size
  bool numbers = true;  ///< written in the cells, where these are large enough
};

/// Writes a PNG that shows values (rows, columns) as colours, with a scale.  What is not finite is
/// grey.  ShapeError for another rank or no elements, ValueError for labels of another number or a
/// picture too large, FileError if the file cannot be written.
void heat_map(const Tensor& values, const std::string& path, const HeatMapOptions& options = {});
/// The same for a terminal: two characters a cell, one of " .:-=+*#%@" doubled, or "??" for what is
/// not finite; the last line explains the scale.
std::string heat_map_text(const Tensor& values, const HeatMapOptions& options = {});

/// A line of a chart.
struct Series {
  std::string name;
  std::vector<double> xs, ys;  ///< equally many
  double thickness = 2.5;      ///< in pixels; a thick line shows under a thin one that runs alike
};

struct LineChartOptions {
  std::string title = {}, x_label = {}, y_label = {};
  std::optional<double> y_low = {}, y_high = {};  ///< ends of the axis; what is outside is cut off
  bool log_y = false;  ///< the vertical axis is logarithmic; values must be positive
  std::size_t width = 960, height = 600;  ///< in pixels
};

/// Writes a PNG with a line per series, axes and a legend.  A point that is not finite interrupts
/// its line.  ValueError if there is no finite point, xs and ys of a series are not equally many,
/// or a value has no logarithm; FileError if the file cannot be written.
void line_chart(const std::vector<Series>& series, const std::string& path,
                const LineChartOptions& options = {});

}  // namespace xgrad::io
