#pragma once
// The numbers shown for a Tensor of the graph; and the comparison of the gradients of a recorded
// graph with differences of its ops, run with other values.

#include <cstddef>
#include <string>
#include <vector>
#include "../autograd/check/describe.hpp"
#include "../autograd/trace.hpp"
#include "graph.hpp"

namespace xgrad::viz::detail {

/// All elements of a small Tensor; the first ones and a summary of a large one.
struct Shown : ValueSummary {
  std::vector<double> elements = {};   ///< all, or the first
  double sum = 0, size = 0, mean = 0;  ///< of the finite ones; size: of their magnitudes
  bool whole() const { return elements.size() == finite + nan + inf + minus_inf; }
};
Shown shown(const Tensor& x, std::size_t max_values);

/// "0.25", "[1, -2, nan]", "-1.2 ... 3.4, mean 0.02, 2 NaN"; four digits.
std::string to_text(const Shown& shown);

/// An op that ran: its event, and its node in the graph.
struct RanOp {
  const Trace::Event* event;
  std::size_t node;
};

/// Fills in the checks of a graph.  `ops` in the order in which they ran; `seed` is the gradient of
/// the result.  float32 ops run in float64 if they can.  Each contribution is compared with the
/// op's own forward, also a missing one, as 0; whole gradients, leaves first, are compared with the
/// result.  Both stop when `work` is used up, counted in elements read and written and sixteenths
/// of a product's multiplications, or in nanoseconds for an op of 20 ms and more; nothing is
/// checked if one run of all ops takes more.
void check_gradients(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed,
                     double work = 1e9);

}  // namespace xgrad::viz::detail
