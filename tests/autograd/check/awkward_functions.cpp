#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace xgrad::testing {

std::vector<Awkward> awkward_functions() {
  const auto z = [](const Dims& sizes) { return zeros(sizes, DType::float64); };
  const Tensor ties = leaf({{2, 2, 2}, {1, 3, 3}}), x = normal({3, 4}, 1);
  const auto at = [](double v) { return leaf({v}); };
  const auto entropy = [](const Inputs& in) {
    const Tensor log_p = log_softmax(in[0], -1);
    return -sum(exp(log_p) * log_p, {-1});
  };
  const auto hidden = [](const Inputs& in) { return matmul(relu(matmul(in[0], in[1])), in[2]); };
  std::vector<Awkward> all;
  const auto add = [&](const char* name, const TensorFunction& f, const Inputs& inputs) {
    all.push_back({name, f, inputs});
  };
  add("relu at 0", [](const Tensor& a) { return relu(a); }, {leaf({-1, 0, 2})});
  add("relu near 0", [](const Tensor& a) { return relu(a); }, {leaf({3e-7, -3e-7, 1e-10, -1e-13})});
  add("abs at 0", [](const Tensor& a) { return abs(a); }, {leaf({-1, 0, 2})});
  add("the root of abs at 0", [](const Tensor& a) { return sqrt(abs(a)); }, {leaf({-1, 0, 2})});
  add("leaky_relu at 0", [](const Tensor& a) { return leaky_relu(a); }, {z({3})});
  add("elu at 0", [](const Tensor& a) { return elu(a); }, {z({3})});
  add("clamp at its ends", [](const Tensor& a) { return clamp(a, -1, 1); }, {leaf({-1, 0, 1})});
  add("hardtanh at its ends", [](const Tensor& a) { return hardtanh(a); }, {leaf({-1, 0, 1})});
  add("softplus at its threshold", [](const Tensor& a) { return softplus(a); },
      {leaf({20, 19.9999999, -800})});
  add("relu of padded rows", hidden,
      {cat({normal({2, 3}, 1), z({2, 3})}, 0), normal({3, 5}, 2), normal({5, 2}, 3)});
  add("max at ties", [](const Tensor& a) { return max(a); }, {ties});
  add("amax at ties", [](const Tensor& a) { return amax(a, {-1}); }, {ties});
  add("amin at ties", [](const Tensor& a) { return amin(a, {0}); }, {ties});
  add("topk at ties", [](const Tensor& a) { return topk(a, 2).values; }, {ties});
  add("all of topk at ties", [](const Tensor& a) { return topk(a, 3).values; }, {ties});
  add("maximum of equals", [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
      {ties, ties});
  add("squares of topk at small ties", [](const Tensor& a) { return pow(topk(a, 2).values, 2); },
      {ties.detach() * 1e-6});
  add("exp below amax at small ties", [](const Tensor& a) { return exp(a - amax(a, {-1}, true)); },
      {ties.detach() * 1e-9});
  add("median-like choice", [](const Tensor& a) { return select(topk(a, 3).values, 1, 1); },
      {ties});
  add("steep tanh", [](const Tensor& a) { return tanh(a * 1e8); }, {at(0)});
  add("steeper tanh", [](const Tensor& a) { return tanh(a * 1e18); }, {at(0)});
  add("steep sigmoid", [](const Tensor& a) { return sigmoid(a * 1e5); }, {leaf({0, 1e-6})});
  add("rms_norm of zeros", [](const Tensor& a) { return rms_norm(a, {3}); }, {z({2, 3})});
  add("layer_norm of zeros", [](const Tensor& a) { return layer_norm(a, {3}); }, {z({2, 3})});
  add("layer_norm of nearly equal numbers", [](const Tensor& a) { return layer_norm(a, {3}); },
      {leaf({{1, 1 + 1e-9, 1 - 2e-9}, {5, 5, 5 + 1e-6}})});
  add("layer_norm of small numbers", [](const Tensor& a) { return layer_norm(a, {4}); },
      {x * 1e-6});
  add("std of equal numbers", [](const Tensor& a) { return xgrad::std(a, {-1}); },
      {leaf({{1, 1, 1}})});
  add("a norm at 0", [](const Tensor& a) { return vector_norm(a); }, {z({3})});
  add("log near 0", [](const Tensor& a) { return log(a); }, {leaf({5e-7, 1e-12, 1})});
  add("log at 0", [](const Tensor& a) { return log(a); }, {leaf({0, 1})});
  add("log below 0", [](const Tensor& a) { return log(a); }, {leaf({-1, 1})});
  add("sqrt near 0", [](const Tensor& a) { return sqrt(a); }, {leaf({1e-7, 1e-15, 1})});
  add("sqrt at 0", [](const Tensor& a) { return sqrt(a); }, {leaf({0, 1})});
  add("rsqrt near 0", [](const Tensor& a) { return rsqrt(a); }, {leaf({1e-8, 1})});
  add("1 / x near 0", [](const Tensor& a) { return 1.0 / a; }, {leaf({1e-6, -1e-9, 2})});
  add("pow 0.5 near 0", [](const Tensor& a) { return pow(a, 0.5); }, {leaf({1e-7, 4})});
  add("0 to the power", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
      {leaf({0, 0, 0, 0, 0}), leaf({-1, 0.5, 1, 2, 0})});
  add("x^3 at 0 and 1e4", [](const Tensor& a) { return pow(a, 3); }, {leaf({0, 1e4})});
  add("exp at 700 and -700", [](const Tensor& a) { return exp(a); }, {leaf({700, -700})});
  add("exp near its limits", [](const Tensor& a) { return exp(a); }, {leaf({-740, 709})});
  add("sin of large numbers", [](const Tensor& a) { return sin(a); }, {x * 1e6});
  add("layer_norm around 1e5", [](const Tensor& a) { return layer_norm(a, {3}); },
      {leaf({1e5, 1e5 + 1e-6, 1e5 - 2e-6})});
  add("layer_norm around 1e6", [](const Tensor& a) { return layer_norm(a, {4}); }, {x + 1e6});
  add("the root of squares at 0", [](const Tensor& a) { return sqrt(sum(a * a)); }, {z({3})});
  add("1e12", [](const Tensor& a) { return a * 3.0; }, {at(1e12)});
  add("sin of 1e12", [](const Tensor& a) { return sin(a); }, {leaf({1e12, 3e11})});
  add("sin of 1e16", [](const Tensor& a) { return sin(a); }, {leaf({1e16, 3e15})});
  add("sin of exp(250)", [](const Tensor& a) { return sin(exp(a)); }, {leaf({250, 1})});
  add("log near 0 and at 1", [](const Tensor& a) { return log(a); }, {leaf({1e-10, 1})});
  add("1e-9 sin", [](const Tensor& a) { return sin(a) * 1e-9; }, {leaf({0.3, 2})});
  add("cancellation of 1e8", [](const Tensor& a) { return (a + 1e8) - 1e8; }, {leaf({0.3, -2})});
  add("cancellation of 1e11", [](const Tensor& a) { return (a + 1e11) - 1e11; }, {leaf({0.3, -2})});
  add("cancellation of 1e15", [](const Tensor& a) { return (a + 1e15) - 1e15; }, {leaf({0.3, -2})});
  add("plus 1e9", [](const Tensor& a) { return sin(a) + 1e9; }, {leaf({0.3, -2})});
  add("plus 1e17", [](const Tensor& a) { return a + 1e17; }, {at(0.3)});
  add("a product at 1e3", [](const Tensor& a, const Tensor& b) { return a * b; },
      {x * 1e3, x * -2e3});
  add("a quotient at 1e3", [](const Tensor& a, const Tensor& b) { return a / b; },
      {x * 1e3, x * 1e-3});
  add("products of unlike sizes", [](const Tensor& a, const Tensor& b) { return matmul(a, b); },
      {x * 1e6, normal({4, 2}, 3) * 1e-6});
  add("a product with 0", [](const Tensor& a) { return prod(a); }, {leaf({2, 0, 3, 0})});
  add("softmax at 1e3", [](const Tensor& a) { return softmax(a, -1); }, {x * 1e3});
  add("scores + log(mask)",
      [](const Tensor& a) { return softmax(a + log(tril(ones({4, 4}, DType::float64))), -1); },
      {normal({4, 4}, 2)});
  add("a mask of -1e9",
      [](const Tensor& a) { return softmax(a + triu(full({4, 4}, -1e9, DType::float64), 1), -1); },
      {normal({4, 4}, 2)});
  add("a row that is masked",
      [](const Tensor& a) {
        return softmax(masked_fill(a, Mask({{true, true}, {false, true}}), -1e9), -1);
      },
      {normal({2, 2}, 2)});
  add("-inf given", [](const Tensor& a) { return softmax(a, -1); }, {leaf({-inf, 1, 2})});
  add("cross_entropy at 1e3", [](const Tensor& a) { return cross_entropy(a, Indices({1, 0, 3})); },
      {x * 1e3});
  add("an entropy of a sure guess", entropy, {leaf({25, 0})});
  add("entropies of surer ones", entropy, {leaf({{30, 0}, {0, 34}, {38, 1}, {25, 24}})});
  add("cross_entropy of a sure guess",
      [](const Tensor& a) { return cross_entropy(a, Indices({0})); }, {leaf({{25, 0, 1}})});
  add("log_softmax of a sure guess", [](const Tensor& a) { return log_softmax(a, -1); },
      {leaf({{25, 0}, {30, 1}, {36, 0}})});
  add("1 minus a softmax", [](const Tensor& a) { return 1.0 - softmax(a, -1); }, {leaf({25, 0})});
  add("logsigmoid far out", [](const Tensor& a) { return logsigmoid(a); }, {leaf({-1e3, 1e3, 0})});
  add("gelu far out", [](const Tensor& a) { return gelu(a); }, {leaf({-100, 100, 0})});
  add("a sign", [](const Tensor& a) { return where(a > 0, ones_like(a), -1.0); },
      {leaf({0.6, -2, 0})});
  add("constant", [](const Tensor& a) { return a * 0.0 + 5.0; }, {leaf({1, 2})});
  add("its input", [](const Tensor& a) { return a; }, {leaf({1, 2})});
  add("a square by one input twice", [](const Tensor& a) { return a * a; }, {x});
  add("an input made of another",
      [](const Tensor& a) {
        const Tensor y = exp(a);
        return a * y * y;
      },
      {x});
  add("a scalar", [](const Tensor& a) { return sum(a); }, {leaf(2)});
  add("constants, and ops without a graph",
      [y = x[0]](const Tensor& a) { return layer_norm(a, {4}, y) + exp(y); }, {x});
  add("dropout, twice", [](const Tensor& a) { return dropout(dropout(a, 0.5), 0.25); }, {x});
  add("exp of -inf", [](const Tensor& a) { return exp(a); }, {leaf({-inf, 1})});
  add("twice a masked -inf",
      [](const Tensor& a) { return masked_fill(a, Mask({true, false}), -inf) * 2.0; },
      {leaf({1, 2})});
  add("where() made safe first",
      [](const Tensor& a) {
        const Mask above = a > 0.0;
        return where(above, sqrt(where(above, a, 1.0)), 0.0);
      },
      {leaf({-1, 2})});
  add("a gradient that it takes itself",
      [](const Inputs& in) {
        const Tensor a = in[0].requires_grad() ? in[0] : in[0].clone().requires_grad_();
        return in[0] * grad({sum(a * a * a)}, {a}, {.create_graph = true})[0];
      },
      {leaf({0.5, 2})});
  add("hours since 1970", [](const Tensor& a) { return sum((a - 1.7e9) / 3600.0); },
      {leaf({1.7e9 + 1.25, 1.7e9 + 7.5, 1.7e9 + 3601})});
  add("hours since long ago", [](const Tensor& a) { return sum((a - 1e13) / 3600.0); },
      {leaf({1e13 + 1.25, 1e13 + 7.5, 1e13 + 3601})});
  add("moduli", [](const Tensor& a) { return relu(a) + relu(-a); }, {leaf({1, 0, -2})});
  return all;
}

}  // namespace xgrad::testing
