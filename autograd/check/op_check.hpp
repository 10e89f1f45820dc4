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

  /// The sources as leaves of their own.
  const std::vector<Tensor>& leaves() const { return leaves_; }

  /// This op again, of other sources; its backward is the one at the values it ran on.
  Tensor replay(const std::vector<Tensor>& sources) const;
  /// The gradients of the sources by the op's own backward; undefined where it adds none.
  /// With create_graph the result has a graph, which leads to the sources and to the cotangent.
  std::vector<Tensor> gradients(const Tensor& cotangent, bool create_graph) const;
  /// Whether a hook on the output changes this gradient.
  bool hooked(const Tensor& cotangent) const;
  /// The gradient of a number that gradients() led to, by each source and, last, by the cotangent;
  /// not along paths through earlier ops.  Undefined where there is none.
  std::vector<Tensor> second_gradients(const Tensor& number, const Tensor& cotangent) const;

  /// The output's elements as a function of the sources.  Refers to this op.
  Probe probe() const;

  /// Marks outputs that have no derivative: NaN, or infinite because of the inputs, as behind a
  /// mask of -inf that is added.  An infinity that stays where all inputs are 0.5 is a constant.
  Mask without_derivative() const;

 private:
  std::vector<Tensor> inputs_with(const std::vector<Tensor>& sources) const;

  Trace::Event event_;
  std::vector<std::vector<std::size_t>> sources_;  // the inputs that are this source
  std::vector<Tensor> leaves_;
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

// ---- what a function does that its graph does not show ----

/// The ops whose result is neither an output nor an input of another op, though an input of theirs
/// goes on, a sentence each: what they computed was lost, or was read as numbers.  Left out are
/// constants; views, which compute nothing; and what is computed last, as a second result is.
std::vector<std::string> unused_results(const std::vector<Trace::Event>& events,
                                        const std::vector<Tensor>& outputs);

/// The first op with an input, or a number of its own, that moves with the function's inputs
/// although no graph leads to it: numbers that were read (item(), data(), array()) came back as a
/// constant there.  Empty if there is none.
std::string copied_value(const TensorFunction& f, const std::vector<Tensor>& inputs);

/// Puts both, of the function that a report is of, into its notes and its message.
void add_hidden(GradcheckReport& report, const TensorFunction& f,
                const std::vector<Tensor>& inputs);

/// "exp", or "exp in h.0.attn".
template <class Op>
std::string in_scope(const Op& op) {
  return op.scope.empty() ? op.op : op.op + " in " + op.scope;
}

}  // namespace xgrad::detail
