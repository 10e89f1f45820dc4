#pragma once
// The ops of one run, each without the rest of its graph.  Internal.

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>
#include "../trace.hpp"
#include "explain.hpp"
#include "probe.hpp"

namespace xgrad::detail {

/// One recorded op: its forward for other inputs, and its own backward alone.
class RecordedOp {
 public:
  /// The op of an event that has a graph.
  explicit RecordedOp(const Trace::Event& event);

  /// The number of inputs that require a gradient, without repeats: mul(x, x) has one.
  std::size_t sources() const { return sources_.size(); }
  const Tensor& source(std::size_t k) const { return event_.inputs[sources_[k][0]]; }
  std::size_t input(std::size_t k) const { return sources_[k][0]; }  ///< the index of an input

  /// The sources as leaves of their own.
  const std::vector<Tensor>& leaves() const { return leaves_; }

  /// Runs this op with other sources; its backward is the one at the original values.
  Tensor replay(const std::vector<Tensor>& sources) const;
  /// The gradients of the sources by the op's own backward; undefined if it adds none.  With
  /// create_graph the result has a graph, which leads to the sources and to the cotangent.
  std::vector<Tensor> gradients(const Tensor& cotangent, bool create_graph) const;
  /// Whether a hook on the output changes this gradient.
  bool hooked(const Tensor& cotangent) const;
  /// The gradient of a number computed from gradients(), by each source and, last, by the
  /// cotangent; not along paths through earlier ops.  Undefined if there is none.
  std::vector<Tensor> second_gradients(const Tensor& number, const Tensor& cotangent) const;

  /// The output's elements as a function of the sources.  Refers to this op.
  Probe probe() const;

  /// Marks outputs without a derivative: NaN, or infinite because of the inputs, as after an
  /// additive mask of -inf.  An infinity that stays with all inputs at 0.5 is a constant.
  Mask without_derivative() const;

 private:
  std::vector<Tensor> inputs_with(const std::vector<Tensor>& sources) const;

  Trace::Event event_;
  std::vector<std::vector<std::size_t>> sources_;  // indices of the inputs that are this source
  std::vector<Tensor> leaves_;
};

/// Differentiates an event's op at its inputs, by its own backward, ordinary and under
/// create_graph, and by differences of its forward.
OpCheck check_op(const Trace::Event& event, std::size_t number, const ExplainOptions& options);

/// The ops of one run, checked one by one: places where right ops may give another gradient than
/// the function's.
struct SpecialPlaces {
  std::string wrong;     ///< "op 2, mine: its backward is wrong: ...", then alone
  std::string infinite;  ///< "op 3, sqrt", the first infinite or NaN place
  bool kink = false;     ///< an op is at a kink
  bool steep = false;    ///< differences of an op have no digit left, or never settle
  std::size_t ops = 0;
};
SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options);

/// The first op of a traced run that rounds numbers to float32, in a float32 Tensor or, if asked,
/// in its own loop, in a float64 one.  Empty if there is none.
std::string float32_op(const std::vector<Trace::Event>& events, bool loops_too);

/// Gradients of a function, and the rounding of the terms of which they are sums: the gradient of
/// the sum of a softmax is 1e-17 although it is 0.
class GradientTerms {
 public:
  /// Runs the function.  Refers to it.
  explicit GradientTerms(const CheckedFunction& f);
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// d sum(outputs * cotangents) / d leaves, of some of the outputs.
  std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& cotangents);
  /// By how much rounding may change the last gradient of leaf k: 64 units in the last place of its
  /// largest term.  An op's term is as large as the leaf's gradient for a random cotangent of the
  /// op's output that is as large as the output's own gradient.
  double rounding(std::size_t k);
  /// Whether rounding alone may give the last gradient of leaf k.
  bool is_zero(std::size_t k);

 private:
  const CheckedFunction& f_;
  std::vector<Tensor> outputs_, last_;
  std::unordered_map<const Node*, Tensor> made_;   // the outputs of ops
  std::unordered_map<const Node*, Doubles> ways_;  // the leaves' gradients for cotangents of size 1
  std::unordered_map<const Node*, double> sizes_;  // of the last gradients
};

// ---- parts of a function that its graph does not show ----

/// A sentence for each op whose result is neither an output nor an input of another op, though one
/// of its inputs is used further: the result was lost, or read as numbers.  Skips constants; views,
/// which compute nothing; and the last results, which may be second results.
std::vector<std::string> unused_results(const std::vector<Trace::Event>& events,
                                        const std::vector<Tensor>& outputs);

/// The first op with an input, or a number, that moves with the function's inputs although no graph
/// leads to it: numbers that were read (item(), data(), array()) came back as a constant.  Empty if
/// there is none.
std::string copied_value(const TensorFunction& f, const std::vector<Tensor>& inputs);

/// Adds both, for the report's function, to its notes and message.
void add_hidden(GradcheckReport& report, const TensorFunction& f,
                const std::vector<Tensor>& inputs);

/// "exp", or "exp in h.0.attn".
template <class Op>
std::string in_scope(const Op& op) {
  return op.scope.empty() ? op.op : op.op + " in " + op.scope;
}

}  // namespace xgrad::detail
