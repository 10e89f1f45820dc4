// Elementwise ops: second derivatives of pow, infinite gradients, conversion, and assignments.
// golden/table_elementwise.py has all else.

#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Doubles = std::vector<double>;

// The gradients of sum(y), by the ordinary backward and under create_graph, which must agree.
std::vector<Doubles> slopes(const Tensor& y, const std::vector<Tensor>& inputs) {
  std::vector<Doubles> result, graph;
  for (const Tensor& g : grad({sum(y)}, inputs, {.create_graph = true}))
    graph.push_back(numbers(g));
  for (const Tensor& g : grad({sum(y)}, inputs))
    result.push_back(numbers(g));
  CHECK(result == graph);
  return result;
}

Doubles slope(const Tensor& y, const Tensor& x) { return slopes(y, {x})[0]; }

}  // namespace

TEST_CASE("second derivatives of pow at a base of 0", "[elementwise]") {
  // 0^e is 0 for all e > 0: the slope in e is 0, and so are its derivatives
  const Tensor zero_and_two = leaf({0, 2}), e2 = leaf({2, 3});
  const Tensor first = grad({sum(pow(zero_and_two, e2))}, {e2}, {.create_graph = true})[0];
  const double log2 = std::log(2.0);
  const auto second = slopes(first, {zero_and_two, e2});
  CHECK(second[0][0] == 0);
  CHECK(second[1][0] == 0);
  CHECK(std::abs(second[1][1] - 8 * log2 * log2) < 1e-12);
}

TEST_CASE("gradients that are infinite or NaN, through masked_fill, abs and relu",
          "[elementwise]") {
  const Mask m({1, 0, 0});
  const Tensor b = leaf({not_a_number, 2, 3});
  CHECK(slope(masked_fill(b, m, 7), b) == Doubles{0, 1, 1});
  // a gradient that is infinite or NaN does not leak past the mask
  const Tensor x = leaf({4, 5, 6});
  const Tensor v = tensor({inf, not_a_number, 1}, DType::float64);
  const auto g = grad({masked_fill(x, Mask({1, 1, 0}), -inf)}, {x}, {.grad_outputs = {v}});
  CHECK(numbers(g[0]) == Doubles{0, 0, 1});
  // abs multiplies by the sign, as in PyTorch
  const Tensor kink = leaf({0});
  CHECK(std::isnan(
      grad({abs(kink)}, {kink}, {.grad_outputs = {full({1}, inf, DType::float64)}})[0].item()));
  const Tensor s = leaf({-1, 2});
  CHECK(numbers(grad({relu(s)}, {s}, {.grad_outputs = {tensor({inf, 3}, DType::float64)}})[0]) ==
        Doubles{0, 3});
}

TEST_CASE("to converts values, and gradients back", "[elementwise]") {
  const Tensor x = leaf({0.1, 1e300, -2});
  const Tensor y = to(x, DType::float32);
  REQUIRE(y.dtype() == DType::float32);
  CHECK(y.data<float>()[0] == 0.1f);
  CHECK(std::isinf(y.data<float>()[1]));
  const auto g = grad({y}, {x}, {.grad_outputs = {tensor({0.3, 0.5, 1})}});
  REQUIRE(g[0].dtype() == DType::float64);
  CHECK(numbers(g[0]) == Doubles{static_cast<double>(0.3f), 0.5, 1});
  CHECK(to(x, DType::float64).handle() == x.handle());  // nothing to convert: the same Tensor
  const Tensor s = to(x * x, DType::float32);
  const Tensor second = grad({sum(s)}, {x}, {.create_graph = true})[0];
  CHECK(grad({sum(second)}, {x})[0].data<double>()[2] == 2);
}

TEST_CASE("clone copies and can be differentiated", "[elementwise]") {
  const Tensor x = leaf({1, 2});
  Tensor y = clone(x);
  CHECK(y.data<double>() != x.data<double>());
  CHECK(slope(y * 3.0, x) == Doubles{3, 3});
  Tensor z = clone(x.detach());
  z.fill_(9);
  CHECK(numbers(x) == Doubles{1, 2});
}

TEST_CASE("+= rebinds the handle and leaves others alone", "[elementwise]") {
  const Tensor x = leaf({1, 2});
  Tensor a = x;
  a += x;
  a *= 10;
  a -= 1;
  a /= tensor({1, 4}, DType::float64);
  CHECK(numbers(a) == Doubles{19, 9.75});
  CHECK(numbers(x) == Doubles{1, 2});
  CHECK(slope(a, x) == Doubles{20, 5});
}
