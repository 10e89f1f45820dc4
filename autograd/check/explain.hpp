#pragma once
// Finds the op of a composition whose gradient is wrong.
//
// gradcheck() of a user's attention only tells that the whole is wrong.  explain_gradient() finds
// the place:
//
//   const auto found = explain_gradient([&](const auto& in) { return attention(in[0]); }, {x});
//   if (!found)
//     std::cout << found.message << '\n';
//
//   op 7 of 12, my_softmax in attn: its backward is wrong: d / d input 0 (2, 4, 4) at (0, 1, 0):
//   analytic 0.41, numeric -0.12; 24 of 32 elements disagree
//
// A chain of right ops is right, so each op is checked alone: its backward is compared with
// differences of its forward, at the values of its inputs.  Mistakes in other ops do not matter.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "../tensor.hpp"
#include "gradcheck.hpp"

namespace xgrad {

struct ExplainOptions {
  double eps = 1e-6;   ///< of the central differences
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric|, as gradcheck()
  double rtol = 1e-3;
  std::uint64_t seed = 0;  ///< of the random cotangents
  /// Also compares the gradient of each op's gradient with second differences, as gradgradcheck()
  /// does for the whole.
  bool second_order = false;
  /// Checks up to this many evenly spaced elements of each input of an op one at a time, and the
  /// rest along one direction; a failure there is bisected.
  std::size_t max_elements = 1000;
  std::vector<std::string> names = {};  ///< of the inputs, in messages
};

/// One op of the function, checked alone.
struct OpCheck {
  enum class Verdict {
    right,
    wrong,
    constant,   ///< no gradient flows through it
    unchecked,  ///< message says why
  };
  std::size_t number = 0;  ///< from 1, in running order
  std::string op, scope;   ///< "masked_fill", "h.0.attn"
  std::vector<Shape> inputs;
  std::vector<bool> defined;  ///< false for an absent input
  Shape output;
  Verdict verdict = Verdict::constant;
  std::size_t checked = 0, disagree = 0;  ///< elements of its inputs
  std::size_t unchecked = 0;         ///< elements at kinks and the like; message names the first
  bool infinite = false;             ///< some unchecked elements are infinite or NaN
  bool steep = false;                ///< some are steep, or rounding leaves them no digit
  bool hooked = false;               ///< a hook on the output changes the op's gradient
  double worst_error = 0;            ///< largest |analytic - numeric| / max(1, |numeric|)
  std::size_t input = 0;             ///< where the worst element is
  std::vector<std::size_t> index;    ///< its position in that input
  double analytic = 0, numeric = 0;  ///< for a random cotangent
  std::string message;               ///< one line, maybe empty
  /// The op as a function of its differentiable inputs, with its own backward (first derivatives
  /// only), and these inputs at the time of the run: gradcheck(op.alone, op.leaves) has details of
  /// a wrong one.  Empty in a constant.
  std::function<Tensor(const std::vector<Tensor>&)> alone;
  std::vector<Tensor> leaves;
};

/// The result.  Converts to true if the gradient is right.
struct GradientExplanation {
  bool ok = true;
  std::vector<OpCheck> ops;                ///< all ops that ran
  std::optional<std::size_t> first_wrong;  ///< an index into ops
  GradcheckReport whole;                   ///< of the function as a whole
  std::string message;                     ///< a summary of all this
  explicit operator bool() const { return ok; }
};

/// Runs f twice, with equal results, and checks the backward of every op, with and without
/// create_graph.  Then runs gradcheck() of the whole.  If that fails although every op is right,
/// the message names the place where the graph is cut: a constant that depends on an input
/// (detach(), NoGrad, data()), or a hook that changes a gradient.
///
/// Outputs of an op that are infinite or NaN because of its inputs, as after an additive mask of
/// -inf, have no derivative and are skipped.  An infinity that inputs do not change is a constant.
///
/// Inputs as for gradcheck(): float64, and leaves if they require a gradient.  Dropout may be on:
/// default_generator() is reset before each call of f and after the last.
GradientExplanation explain_gradient(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options = {});

/// A table of the ops, one line each, and the message.
std::string to_string(const GradientExplanation& explanation);

}  // namespace xgrad
