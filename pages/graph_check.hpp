#pragma once
// The gradients of a recorded graph, compared with differences of its ops, run at other values.

#include <cstddef>
#include <optional>
#include <vector>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/pages/graph.hpp>

namespace xgrad::pages::detail {

/// An op that ran: its event, and its node in the graph.
struct RanOp {
  const Trace::Event* event;
  std::size_t node;
};

/// Fills in the checks of a graph.  `ops` in the order in which they ran; `seed` is the gradient of
/// the result.  Ops of float32 are run in float64 where they can be.  Each contribution is held to
/// the op's own forward, and so is 0 where an op that got a gradient added none.  Whole gradients,
/// of leaves first, are held to the result.  Each of both as long as `work` lasts, in elements read
/// and written and sixteenths of a product's multiplications, or nanoseconds of an op that takes
/// 20 ms and more; nothing is checked if one run of the ops takes more.
void check_gradients(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed,
                     double work = 1e9);

}  // namespace xgrad::pages::detail
