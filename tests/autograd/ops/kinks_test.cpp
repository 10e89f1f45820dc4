// Gradients at points where an op is not smooth, as ops.hpp states them, that the table of samples
// (golden/table.py) does not hold.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

// The gradient of sum(f(x)), the ordinary one and that under create_graph, in both dtypes.
template <class F>
void check_gradient(const char* what, const Values& x, const F& f, const Values& expected) {
  for (const DType dtype : {DType::float64, DType::float32})
    for (const bool create_graph : {false, true}) {
      INFO(what << ", " << to_string(dtype) << (create_graph ? ", create_graph" : ""));
      const Tensor leaf = tensor(x, dtype).requires_grad_(), want = tensor(expected, dtype);
      const Tensor g = grad({sum(f(leaf))}, {leaf}, {.create_graph = create_graph})[0];
      REQUIRE(g.shape() == want.shape());
      INFO(to_string(g));
      CHECK(all((g == want) | (~(g == g) & ~(want == want))));  // NaN counts as equal
    }
}

}  // namespace

TEST_CASE("gradients at kinks and poles", "[ops][kinks]") {
  check_gradient("logaddexp", {0, -inf},
                 [](const Tensor& x) { return logaddexp(x, full(2, inf, x.dtype())); }, {0, 0});
  check_gradient("div", {0, 2}, [](const Tensor& x) { return 1.0 / x; }, {-inf, -0.25});
  for (const RoundingMode mode : {RoundingMode::trunc, RoundingMode::floor})
    check_gradient("div rounded", {-2, 0, 3},
                   [&](const Tensor& x) { return div(x, x + 5.0, mode); }, {0, 0, 0});
  check_gradient("exponent of 0", {0, 1}, [](const Tensor& e) { return pow(0.0, e); }, {0, 0});
  check_gradient("leaky_relu", {not_a_number, inf, -inf},
                 [](const Tensor& x) { return leaky_relu(x, 0.5); }, {0.5, 1, 0.5});
  check_gradient("topk", {{3, 1, 3, 2}, {0, 0, 0, 0}},
                 [](const Tensor& x) { return topk(x, 1).values; }, {{1, 0, 0, 0}, {1, 0, 0, 0}});
}

// PyTorch 2.15's rule: an op that chooses by comparison passes the gradient at NaN.
TEST_CASE("gradients of clamp between Tensors at NaN", "[ops][kinks]") {
  constexpr double nan = not_a_number;
  const Values other = {1, nan, nan, -inf};
  check_gradient("a Tensor below", {nan, 1, nan, -inf},
                 [&](const Tensor& x) { return clamp(x, tensor(other, x.dtype()), Tensor()); },
                 {1, 1, 1, 0.5});
  // x, min and max, one of them NaN: to x, unless x is beyond the other bound
  const Values x = {nan, 0, 0, 2, 2}, low = {0, nan, 1, nan, 1}, high = {1, 1, nan, 1, nan};
  const auto in = [](const Values& v, const Tensor& a) { return tensor(v, a.dtype()); };
  check_gradient("x", x, [&](const Tensor& a) { return clamp(a, in(low, a), in(high, a)); },
                 {1, 1, 0, 0, 1});
  check_gradient("min", low, [&](const Tensor& a) { return clamp(in(x, a), a, in(high, a)); },
                 {0, 0, 0, 0, 0});
  check_gradient("max", high, [&](const Tensor& a) { return clamp(in(x, a), in(low, a), a); },
                 {0, 0, 0, 0, 0});
}
