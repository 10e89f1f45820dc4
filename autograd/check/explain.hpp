#pragma once
// Which op of a composition has the wrong gradient.
//
// gradcheck() of an attention that somebody wrote says that the whole is wrong.  explain_gradient()
// says where:
//
//   const auto found = explain_gradient([&](const auto& in) { return attention(in[0]); }, {x});
//   if (!found)
//     std::cout << found.message << '\n';
//
//   op 7 of 12, my_softmax in attn: its backward is wrong: d / d input 0 (2, 4, 4) at (0, 1, 0):
//   analytic 0.41, numeric -0.12; 24 of 32 elements disagree
//
// A chain of ops whose own gradients are right has a right gradient, so it is enough to look at
// each op alone: at the values that it was given, its own backward is compared with differences of
// its own forward.  The effect of a mistake on the gradients of earlier ops plays no part.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

struct ExplainOptions {
  double eps = 1e-6;   ///< of the central differences
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric|, as gradcheck()
  double rtol = 1e-3;
  std::uint64_t seed = 0;  ///< of the random cotangents
  /// Also compares the gradient of each op's gradient with second differences, as gradgradcheck()
  /// does for the whole.
  bool second_order = false;
  /// Checks up to so many evenly spaced elements of each input of an op one at a time, and the rest
  /// along one direction; a failure there is bisected.
  std::size_t max_elements = 1000;
};

/// One op of the function, looked at alone.
struct OpCheck {
  enum class Verdict {
    right,
    wrong,
    constant,   ///< no gradient flows through it
    unchecked,  ///< message says why
  };
  std::size_t number = 0;  ///< from 1, in the order in which they ran
  std::string op, scope;   ///< "masked_fill", "h.0.attn"
  std::vector<Shape> inputs;
  std::vector<bool> defined;  ///< false for an input that was left out
  Shape output;
  Verdict verdict = Verdict::constant;
  std::size_t checked = 0, disagree = 0;  ///< elements of its inputs
  std::size_t unchecked = 0;              ///< of these: at a kink, say; message tells of the first
  bool infinite = false;                  ///< some of them are at an infinite or NaN place
  bool hooked = false;               ///< a hook on the output changes the gradient that it is given
  double worst_error = 0;            ///< largest |analytic - numeric| / max(1, |numeric|)
  std::size_t input = 0;             ///< where the worst element is
  std::vector<std::size_t> index;    ///< its position in that input
  double analytic = 0, numeric = 0;  ///< for a random cotangent
  std::string message;               ///< one line; empty if there is nothing to say
  /// The op as a function of the inputs that it can be differentiated by, with its own backward
  /// (first derivatives only), and these inputs as they were: gradcheck(op.alone, op.leaves) tells
  /// more of a wrong one.  Empty in a constant.
  std::function<Tensor(const std::vector<Tensor>&)> alone;
  std::vector<Tensor> leaves;
};

/// The result.  Converts to true if the gradient is right.
struct GradientExplanation {
  bool ok = true;
  std::vector<OpCheck> ops;                ///< all ops that ran
  std::optional<std::size_t> first_wrong;  ///< an index into ops
  GradcheckReport whole;                   ///< of the function as a whole
  std::string message;                     ///< says all this
  explicit operator bool() const { return ok; }
};

/// Runs f twice, which must give the same, and checks the backward of every op that ran, in both
/// readings: the ordinary one and that of create_graph.  Then gradcheck() of the whole; if that
/// fails although every op is right, the message names the place where the graph is cut: a value
/// that an op takes as a constant although it depends on an input (detach(), NoGrad, data()), or a
/// hook that changes a gradient.
///
/// Outputs of an op that are infinite or NaN because of its inputs, as behind a mask of -inf that
/// is added, have no derivative and are left out.  An infinity that the op makes whatever they are
/// is a constant.
///
/// Inputs as for gradcheck(): float64, and leaves if they require a gradient.  Dropout may be on:
/// default_generator() is set back before each call of f and after the last.
GradientExplanation explain_gradient(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options = {});

/// A table of the ops, one line each, and the message.
std::string to_string(const GradientExplanation& explanation);

}  // namespace xgrad
