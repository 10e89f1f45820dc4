#pragma once
// A gradient beside differences of the function that it is of.

#include <cstddef>
#include <functional>
#include <vector>
#include <xgrad/pages/graph.hpp>

namespace xgrad::pages::detail {

using Numbers = std::vector<double>;

/// How exact the numbers of a check are.
struct Precision {
  bool wide;   ///< differences in float64
  bool exact;  ///< the gradient is float64, too
  double unit() const { return wide ? 2.2e-16 : 1.2e-7; }
  double tolerance() const { return !wide ? 3e-2 : exact ? 1e-5 : 1e-3; }
};

/// A function of x: the sum of weights times values.
struct Measured {
  std::function<Numbers(const Numbers& x)> at;  ///< the values at x
  Numbers weights;                              ///< of the values
  double slack;      ///< what rounding may do to a right gradient along a direction
  Numbers rounding;  ///< and to each of its elements
};

/// The function runs so often, if nothing disagrees, for a gradient of n elements.
std::size_t runs_for(std::size_t n);

/// Right or wrong only where differences can tell.  Unchecked, with the reason, where rounding may
/// be a tenth of the gradient, or where those of smaller steps are others: then the function bends
/// within the step.  Elements that are infinite or below -1e8 (masked scores) stay as they are.
GraphCheck compare(const Numbers& gradient, const Numbers& x, const Precision& precision,
                   const Measured& f);

}  // namespace xgrad::pages::detail
