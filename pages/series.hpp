#pragma once
// Numbers along an axis, to be drawn as a line.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace xgrad::pages {

/// A line of a chart.
struct Series {
  std::string name;
  std::vector<double> xs, ys;             ///< equally many
  double thickness = 2;                   ///< in pixels
  bool dots = false;                      ///< a dot at each point
  std::optional<std::size_t> color = {};  ///< in the palette; the series' own place unless given
  double opacity = 1;
};

/// An exponential moving average of the ys, as TensorBoard's: m = weight m + (1 - weight) y from
/// m = 0, divided by 1 - weightⁿ after n points, so that the first are not drawn to 0.  A y that is
/// not finite stays as it is and does not count.  ValueError unless weight is in [0, 1).
Series smoothed(const Series& series, double weight);

/// At most four points of those that follow one another within one of `columns` equal parts of
/// [low, high]: the first, the last, the highest and the lowest.  A line through them looks as one
/// through all where a column is a pixel wide, and no extreme is lost.  Of ys that are not finite
/// in one column the first and the last are kept, of points whose x is not finite one in a row.
Series thinned(const Series& series, std::size_t columns, double low, double high);

}  // namespace xgrad::pages
