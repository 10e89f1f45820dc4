#pragma once
// How far results are from the right ones, over the whole range of a dtype.
//
// A sweep computes a function of many inputs and compares with plain loops in long double.  An
// error is counted in the dtype's epsilon of what the bound is relative to (ops.hpp says what): of
// the result itself that is one to two ulp.

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::testing {

using Wide = long double;
using WideRow = std::vector<Wide>;

inline double epsilon(DType dtype) {
  return dtype == DType::float32 ? std::numeric_limits<float>::epsilon()
                                 : std::numeric_limits<double>::epsilon();
}
inline double smallest_normal(DType dtype) {
  return dtype == DType::float32 ? std::numeric_limits<float>::min()
                                 : std::numeric_limits<double>::min();
}
inline double largest(DType dtype) {
  return dtype == DType::float32 ? std::numeric_limits<float>::max()
                                 : std::numeric_limits<double>::max();
}

/// |got - want| in epsilons of `scale`.  Results next to zero are compared in steps of the smallest
/// number; what overflows must be infinite, or next to it; NaN must be NaN.
inline double error_in_epsilons(double got, Wide want, Wide scale, DType dtype) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const Wide most = largest(dtype);
  if (std::isinf(got) && std::abs(want) > most * (1 - 4 * epsilon(dtype)))
    return (got > 0) == (want > 0) ? 0 : std::numeric_limits<double>::infinity();
  const Wide step = epsilon(dtype) * std::max<Wide>(std::abs(scale), smallest_normal(dtype));
  return static_cast<double>(std::abs(static_cast<Wide>(got) - want) / step);
}

/// The largest error of a sweep, and where it is.
struct Worst {
  double error = 0;
  std::string where;

  void add(double e, const std::string& at) {
    if (!(e <= error)) {
      error = e;
      where = at;
    }
  }
};

/// The table that xgrad_tests "[.accuracy-summary]" prints, and scripts/pytorch/accuracy.py of
/// PyTorch: the largest errors of a sweep.
inline void print_accuracy_header() {
  std::printf("%-20s %-8s %-8s %10s %10s\n", "function", "rows", "dtype", "value", "gradient");
}
inline void print_accuracy(const char* function, const char* rows, DType dtype, double value,
                           double gradient) {
  std::printf("%-20s %-8s %-8s %10.3g %10.3g\n", function, rows, to_string(dtype), value, gradient);
}

}  // namespace xgrad::testing
