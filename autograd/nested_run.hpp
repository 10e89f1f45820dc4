#pragma once
// How many runs of the engine are within each other: a hook or a formula may start a run, one of
// that run's a third, and each takes of the thread's stack.

#include <xgrad/autograd/error.hpp>

namespace xgrad::detail {

/// Lives as long as a run does on this thread.  GraphError within `limit` others: they take 0.6 MB
/// of a stack, which has 8 as a rule, and 3 under AddressSanitizer; the rest is for what users do.
class NestedRun {
 public:
  static constexpr int limit = 500;

  NestedRun() {
    if (depth_ == limit)
      throw GraphError(
          "backward: 500 runs within each other: a hook or a backward formula of each starts the "
          "next.  Does one come back to itself?  If not, record what they differentiate in one "
          "graph, and one backward() goes through it all");
    ++depth_;
  }
  NestedRun(const NestedRun&) = delete;
  NestedRun& operator=(const NestedRun&) = delete;
  ~NestedRun() { --depth_; }

  static int depth() { return depth_; }

 private:
  static inline thread_local constinit int depth_ = 0;
};

}  // namespace xgrad::detail
