#pragma once
// One recorded op without the rest of its graph: its forward at other inputs, and its own backward
// alone. op_check.cpp compares the two.

#include <cstddef>
#include <vector>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

class IsolatedOp {
 public:
  /// The op of an event that has a graph.
  explicit IsolatedOp(const Trace::Event& event);

  /// The inputs that require a gradient, each counted once: mul(x, x) has one.
  std::size_t sources() const { return sources_.size(); }
  const Tensor& source(std::size_t k) const { return event_.inputs[sources_[k][0]]; }
  std::size_t input(std::size_t k) const { return sources_[k][0]; }  ///< its place among the inputs

  struct Gradients {
    std::vector<Tensor> of_sources;  ///< undefined where the backward adds none
    bool hooked = false;             ///< a hook on the output changes the gradient; undone here
  };
  /// What the op's own backward makes of a gradient of its output.  With create_graph the result
  /// has a graph, which leads to the sources and to the cotangent.
  Gradients gradients(const Tensor& cotangent, bool create_graph) const;
  /// The gradient of a number that gradients() led to, by each source and, last, by the cotangent;
  /// not along paths through earlier ops.  Undefined where there is none.
  std::vector<Tensor> second_gradients(const Tensor& number, const Tensor& cotangent) const;

  /// The output's elements after adding to each source: one vector for each source, empty for none.
  std::vector<double> forward(const std::vector<std::vector<double>>& moves) const;

  /// Outputs that are NaN, or infinite because of the inputs, as those of a mask of -inf that is
  /// added: they have no derivative.  An infinity that stays where all inputs are 0.5 is a
  /// constant.
  Mask without_derivative() const;

  /// This op as a new op of its sources: the same forward, and the backward at the values it ran
  /// on.  Where its output was infinite it is 0, so that differences can be taken; what has
  /// no derivative gets no gradient.
  Tensor replay(const std::vector<Tensor>& sources) const;

 private:
  Tensor run(const std::vector<Tensor>& sources) const;

  Trace::Event event_;
  std::vector<std::vector<std::size_t>> sources_;  // the inputs that are this source
};

}  // namespace xgrad::detail
