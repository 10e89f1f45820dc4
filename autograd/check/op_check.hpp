#pragma once
// The ops of one run, each without the rest of its graph.  Not for users.

#include <cstddef>
#include <string>
#include <vector>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/probe.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

/// One recorded op: its forward at other inputs, and its own backward alone.
class RecordedOp {
 public:
  /// The op of an event that has a graph.
  explicit RecordedOp(const Trace::Event& event);

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

  /// The output's elements as a function of the sources.  Refers to this op.
  Probe probe() const;

  /// Outputs that are NaN, or infinite because of the inputs, as those of a mask of -inf that is
  /// added: they have no derivative.  An infinity that stays where all inputs are 0.5 is a
  /// constant.
  Mask without_derivative() const;

  /// This op as a new op of its sources: the same forward, and the backward at the values it ran
  /// on.  Where its output was infinite it is 0, so that differences can be taken; elements without
  /// a derivative get no gradient.
  Tensor replay(const std::vector<Tensor>& sources) const;

 private:
  Tensor run(const std::vector<Tensor>& sources) const;

  Trace::Event event_;
  std::vector<std::vector<std::size_t>> sources_;  // the inputs that are this source
};

/// Differentiates the op of this event at the inputs it ran on, by its own backward in both
/// readings and by differences of its forward.
OpCheck check_op(const Trace::Event& event, std::size_t number, const ExplainOptions& options);

/// The ops of one run, checked one by one: places where right ops may give a gradient that is not
/// the function's.
struct SpecialPlaces {
  std::string wrong;     ///< "op 2, mine: its backward is wrong: ...", and nothing else, if one is
  std::string infinite;  ///< "op 3, sqrt", the first at an infinite or NaN place
  bool kink = false;     ///< an op is at one
  std::size_t ops = 0;
};
SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options);

/// The first op of a run that makes float32 numbers of others, in a float32 Tensor or, in a loop of
/// its own, in a float64 one.  Empty if none does.
std::string float32_op(const CheckedFunction& f);

/// "exp", or "exp in h.0.attn".
template <class Op>
std::string in_scope(const Op& op) {
  return op.scope.empty() ? op.op : op.op + " in " + op.scope;
}

}  // namespace xgrad::detail
