#pragma once
// The rules of ops for readers: the formulas of the value and of each gradient, beside the op's
// definition.  The graph page shows them.

#include <array>
#include <string_view>
#include <utility>

namespace xgrad {

/// The gradients of an op's inputs: g is the gradient of the output y (the upstream gradient), a,
/// b, c are the inputs; ⊙ multiplies element by element.  A broadcast operand gets the sum over the
/// dimensions along which it was repeated.
struct OpRule {
  std::string_view op;
  std::string_view value;                     ///< "a ⊙ b"
  std::array<std::string_view, 4> gradients;  ///< by input; the last serves all further ones
  std::string_view words = {};                ///< one sentence
};

namespace detail {

/// Registers a rule: an object beside the op's definition, so that every program that calls the op
/// has its rule.
struct StatedRule : OpRule {
  explicit StatedRule(const OpRule& rule) noexcept
      : OpRule(rule), next(std::exchange(first, this)) {}
  inline static const StatedRule* first = nullptr;
  const StatedRule* next;
};

// The sentences of several ops.
inline constexpr std::string_view
    elements_move = "Elements only move: each gradient moves back with its element.",
    part_of_x = "The part gets the upstream gradient; all other elements get 0.";

}  // namespace detail

/// XGRAD_RULE(exp, "exp(a)", {"g ⊙ y"}, "exp is its own slope.");
#define XGRAD_RULE(op, ...) static const detail::StatedRule op##_rule({#op, __VA_ARGS__})

/// The rule of an op; null if none is stated.
inline const OpRule* op_rule(std::string_view op) {
  const detail::StatedRule* rule = detail::StatedRule::first;
  while (rule != nullptr && rule->op != op)
    rule = rule->next;
  return rule;
}

}  // namespace xgrad
