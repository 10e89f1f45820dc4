#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace xgrad::testing {

using Function = std::function<Tensor(const Inputs&)>;

static Function of(Tensor (*f)(const Tensor&)) {
  return [f](const Inputs& in) { return f(in[0]); };
}

std::vector<Awkward> awkward_functions() {
  const auto z = [](const Dims& sizes) { return zeros(sizes, DType::float64); };
  const Tensor ties = leaf({{2, 2, 2}, {1, 3, 3}}), x = normal({3, 4}, 1);
  const auto at = [](double v) { return leaf({v}); };
  const auto entropy = [](const Inputs& in) {
    const Tensor log_p = log_softmax(in[0], -1);
    return -sum(exp(log_p) * log_p, {-1});
  };
  const auto hidden = [](const Inputs& in) { return matmul(relu(matmul(in[0], in[1])), in[2]); };
  return {
      {"relu at 0", of(relu), {leaf({-1, 0, 2})}},
      {"relu near 0", of(relu), {leaf({3e-7, -3e-7, 1e-10, -1e-13})}},
      {"abs at 0", of(abs), {leaf({-1, 0, 2})}},
      {"the root of abs at 0",
       [](const Inputs& in) { return sqrt(abs(in[0])); },
       {leaf({-1, 0, 2})}},
      {"leaky_relu at 0", [](const Inputs& in) { return leaky_relu(in[0]); }, {z({3})}},
      {"elu at 0", [](const Inputs& in) { return elu(in[0]); }, {z({3})}},
      {"clamp at its ends",
       [](const Inputs& in) { return clamp(in[0], -1, 1); },
       {leaf({-1, 0, 1})}},
      {"hardtanh at its ends",
       [](const Inputs& in) { return hardtanh(in[0]); },
       {leaf({-1, 0, 1})}},
      {"softplus at its threshold",
       [](const Inputs& in) { return softplus(in[0]); },
       {leaf({20, 19.9999999, -800})}},
      {"relu of padded rows",
       hidden,
       {cat({normal({2, 3}, 1), z({2, 3})}, 0), normal({3, 5}, 2), normal({5, 2}, 3)}},
      {"max at ties", [](const Inputs& in) { return max(in[0]); }, {ties}},
      {"amax at ties", [](const Inputs& in) { return amax(in[0], {-1}); }, {ties}},
      {"amin at ties", [](const Inputs& in) { return amin(in[0], {0}); }, {ties}},
      {"topk at ties", [](const Inputs& in) { return topk(in[0], 2).values; }, {ties}},
      {"all of topk at ties", [](const Inputs& in) { return topk(in[0], 3).values; }, {ties}},
      {"maximum of equals", [](const Inputs& in) { return maximum(in[0], in[1]); }, {ties, ties}},
      {"squares of topk at small ties",
       [](const Inputs& in) { return pow(topk(in[0], 2).values, 2); },
       {ties.detach() * 1e-6}},
      {"exp below amax at small ties",
       [](const Inputs& in) { return exp(in[0] - amax(in[0], {-1}, true)); },
       {ties.detach() * 1e-9}},
      {"median-like choice",
       [](const Inputs& in) { return select(topk(in[0], 3).values, 1, 1); },
       {ties}},
      {"steep tanh", [](const Inputs& in) { return tanh(in[0] * 1e8); }, {at(0)}},
      {"steeper tanh", [](const Inputs& in) { return tanh(in[0] * 1e18); }, {at(0)}},
      {"steep sigmoid", [](const Inputs& in) { return sigmoid(in[0] * 1e5); }, {leaf({0, 1e-6})}},
      {"rms_norm of zeros", [](const Inputs& in) { return rms_norm(in[0], {3}); }, {z({2, 3})}},
      {"layer_norm of zeros", [](const Inputs& in) { return layer_norm(in[0], {3}); }, {z({2, 3})}},
      {"layer_norm of nearly equal numbers",
       [](const Inputs& in) { return layer_norm(in[0], {3}); },
       {leaf({{1, 1 + 1e-9, 1 - 2e-9}, {5, 5, 5 + 1e-6}})}},
      {"layer_norm of small numbers",
       [](const Inputs& in) { return layer_norm(in[0], {4}); },
       {x * 1e-6}},
      {"std of equal numbers",
       [](const Inputs& in) { return xgrad::std(in[0], {-1}); },
       {leaf({{1, 1, 1}})}},
      {"a norm at 0", [](const Inputs& in) { return vector_norm(in[0]); }, {z({3})}},
      {"log near 0", of(log), {leaf({5e-7, 1e-12, 1})}},
      {"log at 0", of(log), {leaf({0, 1})}},
      {"log below 0", of(log), {leaf({-1, 1})}},
      {"sqrt near 0", of(sqrt), {leaf({1e-7, 1e-15, 1})}},
      {"sqrt at 0", of(sqrt), {leaf({0, 1})}},
      {"rsqrt near 0", of(rsqrt), {leaf({1e-8, 1})}},
      {"1 / x near 0", [](const Inputs& in) { return 1.0 / in[0]; }, {leaf({1e-6, -1e-9, 2})}},
      {"pow 0.5 near 0", [](const Inputs& in) { return pow(in[0], 0.5); }, {leaf({1e-7, 4})}},
      {"0 to the power",
       [](const Inputs& in) { return pow(in[0], in[1]); },
       {leaf({0, 0, 0, 0, 0}), leaf({-1, 0.5, 1, 2, 0})}},
      {"x^3 at 0 and 1e4", [](const Inputs& in) { return pow(in[0], 3); }, {leaf({0, 1e4})}},
      {"exp at 700 and -700", of(exp), {leaf({700, -700})}},
      {"exp near its limits", of(exp), {leaf({-740, 709})}},
      {"sin of large numbers", of(sin), {x * 1e6}},
      {"layer_norm around 1e5",
       [](const Inputs& in) { return layer_norm(in[0], {3}); },
       {leaf({1e5, 1e5 + 1e-6, 1e5 - 2e-6})}},
      {"layer_norm around 1e6", [](const Inputs& in) { return layer_norm(in[0], {4}); }, {x + 1e6}},
      {"the root of squares at 0",
       [](const Inputs& in) { return sqrt(sum(in[0] * in[0])); },
       {z({3})}},
      {"1e12", [](const Inputs& in) { return in[0] * 3.0; }, {at(1e12)}},
      {"sin of 1e12", of(sin), {leaf({1e12, 3e11})}},
      {"sin of 1e16", of(sin), {leaf({1e16, 3e15})}},
      {"sin of exp(250)", [](const Inputs& in) { return sin(exp(in[0])); }, {leaf({250, 1})}},
      {"log near 0 and at 1", of(log), {leaf({1e-10, 1})}},
      {"1e-9 sin", [](const Inputs& in) { return sin(in[0]) * 1e-9; }, {leaf({0.3, 2})}},
      {"cancellation of 1e8",
       [](const Inputs& in) { return (in[0] + 1e8) - 1e8; },
       {leaf({0.3, -2})}},
      {"cancellation of 1e11",
       [](const Inputs& in) { return (in[0] + 1e11) - 1e11; },
       {leaf({0.3, -2})}},
      {"cancellation of 1e15",
       [](const Inputs& in) { return (in[0] + 1e15) - 1e15; },
       {leaf({0.3, -2})}},
      {"plus 1e9", [](const Inputs& in) { return sin(in[0]) + 1e9; }, {leaf({0.3, -2})}},
      {"plus 1e17", [](const Inputs& in) { return in[0] + 1e17; }, {at(0.3)}},
      {"a product at 1e3", [](const Inputs& in) { return in[0] * in[1]; }, {x * 1e3, x * -2e3}},
      {"a quotient at 1e3", [](const Inputs& in) { return in[0] / in[1]; }, {x * 1e3, x * 1e-3}},
      {"products of unlike sizes",
       [](const Inputs& in) { return matmul(in[0], in[1]); },
       {x * 1e6, normal({4, 2}, 3) * 1e-6}},
      {"a product with 0", [](const Inputs& in) { return prod(in[0]); }, {leaf({2, 0, 3, 0})}},
      {"softmax at 1e3", [](const Inputs& in) { return softmax(in[0], -1); }, {x * 1e3}},
      {"scores + log(mask)",
       [](const Inputs& in) {
         return softmax(in[0] + log(tril(ones({4, 4}, DType::float64))), -1);
       },
       {normal({4, 4}, 2)}},
      {"a mask of -1e9",
       [](const Inputs& in) {
         return softmax(in[0] + triu(full({4, 4}, -1e9, DType::float64), 1), -1);
       },
       {normal({4, 4}, 2)}},
      {"a row that is masked",
       [](const Inputs& in) {
         return softmax(masked_fill(in[0], Mask({{true, true}, {false, true}}), -1e9), -1);
       },
       {normal({2, 2}, 2)}},
      {"-inf given", [](const Inputs& in) { return softmax(in[0], -1); }, {leaf({-inf, 1, 2})}},
      {"cross_entropy at 1e3",
       [](const Inputs& in) {
         return cross_entropy(in[0], Indices({1, 0, 3}));
       },
       {x * 1e3}},
      {"an entropy of a sure guess", entropy, {leaf({25, 0})}},
      {"entropies of surer ones", entropy, {leaf({{30, 0}, {0, 34}, {38, 1}, {25, 24}})}},
      {"cross_entropy of a sure guess",
       [](const Inputs& in) { return cross_entropy(in[0], Indices({0})); },
       {leaf({{25, 0, 1}})}},
      {"log_softmax of a sure guess",
       [](const Inputs& in) { return log_softmax(in[0], -1); },
       {leaf({{25, 0}, {30, 1}, {36, 0}})}},
      {"1 minus a softmax",
       [](const Inputs& in) { return 1.0 - softmax(in[0], -1); },
       {leaf({25, 0})}},
      {"logsigmoid far out", of(logsigmoid), {leaf({-1e3, 1e3, 0})}},
      {"gelu far out", [](const Inputs& in) { return gelu(in[0]); }, {leaf({-100, 100, 0})}},
      {"a sign",
       [](const Inputs& in) { return where(in[0] > 0, ones_like(in[0]), -1.0); },
       {leaf({0.6, -2, 0})}},
      {"constant", [](const Inputs& in) { return in[0] * 0.0 + 5.0; }, {leaf({1, 2})}},
      {"its input", [](const Inputs& in) { return in[0]; }, {leaf({1, 2})}},
      {"a square by one input twice", [](const Inputs& in) { return in[0] * in[0]; }, {x}},
      {"an input made of another",
       [](const Inputs& in) {
         const Tensor y = exp(in[0]);
         return in[0] * y * y;
       },
       {x}},
      {"a scalar", [](const Inputs& in) { return sum(in[0]); }, {leaf(2)}},
      {"constants, and ops without a graph",
       [c = x[0]](const Inputs& in) { return layer_norm(in[0], {4}, c) + exp(c); },
       {x}},
      {"dropout, twice", [](const Inputs& in) { return dropout(dropout(in[0], 0.5), 0.25); }, {x}},
      {"exp of -inf", of(exp), {leaf({-inf, 1})}},
      {"twice a masked -inf",
       [](const Inputs& in) {
         return masked_fill(in[0], Mask({true, false}), -inf) * 2.0;
       },
       {leaf({1, 2})}},
      {"where() made safe first",
       [](const Inputs& in) {
         const Mask above = in[0] > 0.0;
         return where(above, sqrt(where(above, in[0], 1.0)), 0.0);
       },
       {leaf({-1, 2})}},
      {"a gradient that it takes itself",
       [](const Inputs& in) {
         const Tensor a = in[0].requires_grad() ? in[0] : in[0].clone().requires_grad_();
         return in[0] * grad({sum(a * a * a)}, {a}, {.create_graph = true})[0];
       },
       {leaf({0.5, 2})}},
      {"hours since 1970",
       [](const Inputs& in) { return sum((in[0] - 1.7e9) / 3600.0); },
       {leaf({1.7e9 + 1.25, 1.7e9 + 7.5, 1.7e9 + 3601})}},
      {"hours since long ago",
       [](const Inputs& in) { return sum((in[0] - 1e13) / 3600.0); },
       {leaf({1e13 + 1.25, 1e13 + 7.5, 1e13 + 3601})}},
      {"moduli", [](const Inputs& in) { return relu(in[0]) + relu(-in[0]); }, {leaf({1, 0, -2})}},
  };
}

}  // namespace xgrad::testing
