#pragma once
// Checks of a learner's functions, shared by the Catch2 files of checks/.  Each of these files
// includes a learner's file.  The first check that fails ends its test case with words that
// scripts/learn shows.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>
#include <xgrad/autograd/check/tensor_function.hpp>

#include "../tests/helpers/catch.hpp"
#include "exercise.hpp"

namespace learn {

using exercise::Inputs;
using xgrad::Tensor, xgrad::TensorFunction;

/// Ends the test case with this text unless `right`.
void expect(bool right, const std::string& text);
template <class... T>
void expect(bool right, fmt::format_string<T...> text, T&&... values) {
  expect(right, fmt::format(text, std::forward<T>(values)...));
}

/// Checks the gradient of an op: by gradcheck() alone, by explain_gradient() among other layers;
/// that it is not zero or cut off; and that an update of an input before the backward does not
/// change it.  `name` is the function's.
void check_gradient(const std::string& name, const TensorFunction& f, const Inputs& inputs);
/// Checks that both give the same shapes and, by compare(), the same numbers.
void check_values(const std::string& name, const TensorFunction& mine,
                  const TensorFunction& reference, const Inputs& inputs);
/// Both checks on each case, of several sizes and magnitudes, because an op may be right for one
/// size alone.
void check_op(const std::string& name, const TensorFunction& mine, const TensorFunction& reference,
              const std::vector<Inputs>& cases);
/// A learner's function as a function of Inputs.  Clears its inputs after the call, so that a
/// backward that captured a reference fails instead of reading freed memory.
template <class... T>
std::function<Tensor(const Inputs&)> lent(Tensor (*mine)(const T&...)) {
  return [mine, given = std::make_shared<std::array<Tensor, sizeof...(T)>>()](const Inputs& x) {
    std::copy_n(x.begin(), given->size(), given->begin());
    Tensor y = std::apply(mine, *given);
    given->fill({});
    return y;
  };
}

/// Checks slopes by gradcheck() at points.  `names` are those of the function's arguments.
void check_slopes(const std::string& name, const std::vector<std::string>& names,
                  const std::vector<std::vector<double>>& points,
                  const std::function<double(const std::vector<double>&)>& value,
                  const std::function<std::vector<double>(const std::vector<double>&)>& slopes);

/// Checks by check_causal() that no position of f(x) depends on a later one of x, with a tolerance
/// for rounding.  `where` stands before the text, `why` after it.
void check_future(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                  const std::string& where = "", const std::string& why = "");
/// softmax(q kᵀ / √D) v, made of single steps, so that compare() can name one.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal);
/// Checks an attention with an op of its own (explain_gradient() takes each op as given), and one
/// of ready-made ops.
void check_explained(Tensor (*attention)(const Inputs&));
void check_compared(Tensor (*attention)(const Inputs&));
/// Checks that each of these weights is dropped with probability p, independently of the others,
/// and that kept ones are divided by 1 - p.
void check_drops(const std::string& name, const std::function<Tensor()>& dropped,
                 const Tensor& weights, double p);

/// A number with six digits.
std::string number(double x);
/// Two numbers, with enough digits to show that they differ.
std::array<std::string, 2> numbers(double a, double b);
/// Whether two Tensors have the same bits.
bool same(const Tensor& a, const Tensor& b);

}  // namespace learn
