#pragma once
// The axes of a chart: from numbers to places.

#include <cstddef>
#include <limits>
#include <vector>
#include <xgrad/pages/picture.hpp>
#include <xgrad/pages/ticks.hpp>

namespace xgrad::pages {

/// A direction of a chart.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double first = 0, last = 1;  ///< the places of the ends, in pixels or characters
  bool log = false;

  void include(double v);
  double scaled(double v) const;
  double place(double v) const;
  /// Some room at both ends, and a length where there is none.
  void widen(double share);
  /// Places are computed from the length, which must be a number that can be divided by.
  void check_length(const char* name) const;
  /// Round numbers that far from each other, or further.
  std::vector<Tick> marks(double apart) const;
};

struct Axes {
  Axis x, y;
  std::vector<std::size_t> missing;  ///< how many points of each series are not finite
};

/// Axes for all points, from (0, height) at their lowest to (width, 0).  ValueError as line_chart()
/// says.
Axes axes_of(const std::vector<Series>& series, const LineChartOptions& options, double width,
             double height);

}  // namespace xgrad::pages
