#pragma once
// A gradient beside differences of the function that it is of.

#include <cstddef>
#include <functional>
#include <vector>
#include <xgrad/autograd/check/probe.hpp>
#include <xgrad/pages/graph.hpp>

namespace xgrad::pages::detail {

using xgrad::detail::Numbers;

/// How exact the numbers of a check are.
struct Precision {
  bool wide;   ///< differences in float64
  bool exact;  ///< the gradient is float64, too
  xgrad::detail::Tolerance tolerance() const {
    return wide ? xgrad::detail::Tolerance{}
                : xgrad::detail::Tolerance{.eps = 1e-3, .atol = 1e-5, .rtol = 3e-2};
  }
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

/// The engine's verdict.  Unchecked, too, where rounding may be a tenth of the gradient.  Elements
/// that are infinite or below -1e8 (masked scores) stay as they are.
GraphCheck compare(const Numbers& gradient, const Numbers& x, const Precision& precision,
                   const Measured& f);

}  // namespace xgrad::pages::detail
