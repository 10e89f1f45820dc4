#pragma once
// The numbers shown for a Tensor of the graph.

#include <cstddef>
#include <string>
#include <vector>
#include "../autograd/check/describe.hpp"

namespace xgrad::pages::detail {

/// All elements of a small Tensor; the first ones and a summary of a large one.
struct Shown : ValueSummary {
  std::vector<double> elements = {};   ///< all, or the first
  double sum = 0, size = 0, mean = 0;  ///< of the finite ones; size: of their magnitudes
  bool whole() const { return elements.size() == finite + nan + inf + minus_inf; }
};
Shown shown(const Tensor& x, std::size_t max_values);

/// "0.25", "[1, -2, nan]", "-1.2 ... 3.4, mean 0.02, 2 NaN"; four digits.
std::string to_text(const Shown& shown);

}  // namespace xgrad::pages::detail
