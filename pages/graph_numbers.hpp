#pragma once
// What is shown of a Tensor of the graph.

#include <cstddef>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::pages::detail {

/// All elements of a small Tensor, the first of a large one and what sums them up.
struct Shown {
  std::size_t count = 0;
  std::vector<double> elements;       ///< all, or the first
  double min = 0, max = 0, mean = 0;  ///< of the finite ones; 0 if there are none
  double sum = 0, size = 0;           ///< of all finite elements, and of their magnitudes
  std::size_t nan = 0, inf = 0, minus_inf = 0;
  bool whole() const { return elements.size() == count; }
};
Shown shown(const Tensor& x, std::size_t max_values);

/// "0.25", "[1, -2, nan]", "-1.2 ... 3.4, mean 0.02, 2 NaN"; seven digits at most.
std::string to_text(const Shown& shown, int digits = 4);

}  // namespace xgrad::pages::detail
