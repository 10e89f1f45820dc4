// Elementwise ops: gradients at kinks and ties, special cases of pow, gradients of operands that
// were not chosen, conversion, and operators.  golden/table_elementwise.py has all else.

#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
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

TEST_CASE("relu and abs have slope 0 at 0", "[elementwise]") {
  const Tensor x = leaf({-1, 0, -0.0, 2});
  CHECK(slope(relu(x), x) == Doubles{0, 0, 0, 1});
  CHECK(slope(abs(x), x) == Doubles{-1, 0, 0, 1});
}

TEST_CASE("at a tie maximum and minimum give half of the gradient to each", "[elementwise]") {
  const Tensor a = leaf({1, 2, 3}), b = leaf({2, 2, 1});
  CHECK(slopes(maximum(a, b), {a, b}) == std::vector<Doubles>{{0, 0.5, 1}, {1, 0.5, 0}});
  CHECK(slopes(minimum(a, b), {a, b}) == std::vector<Doubles>{{1, 0.5, 0}, {0, 0.5, 1}});
  CHECK(slope(maximum(a, a), a) == Doubles{1, 1, 1});
}

TEST_CASE("clamp passes no gradient at its bounds, as PyTorch from 2.14 on", "[elementwise]") {
  const Tensor x = leaf({-2, -1, 0, 1, 2});
  CHECK(slope(clamp(x, -1, 1), x) == Doubles{0, 0, 1, 0, 0});
  CHECK(slope(clamp(x, -1, {}), x) == Doubles{0, 0, 1, 1, 1});
  CHECK(slope(clamp(x, {}, 1), x) == Doubles{1, 1, 1, 0, 0});
}

TEST_CASE("pow at its edges", "[elementwise]") {
  // values and slopes as PyTorch's
  const Tensor x = leaf({0, -2, 3});
  CHECK(slope(pow(x, 2), x) == Doubles{0, -4, 6});
  CHECK(slope(pow(x, 3), x) == Doubles{0, 12, 27});
  CHECK(slope(pow(x, 1), x) == Doubles{1, 1, 1});
  CHECK(slope(pow(x, 0), x) == Doubles{0, 0, 0});
  CHECK(numbers(pow(x, 0)) == Doubles{1, 1, 1});
  const Tensor zero = leaf({0});
  CHECK(slope(pow(zero, 0.5), zero) == Doubles{inf});

  const Tensor base = leaf({0, 0, 2, 0}), exponent = leaf({0, 2, 0, 1});
  const auto g = slopes(pow(base, exponent), {base, exponent});
  CHECK(g[0] == Doubles{0, 0, 0, 1});
  CHECK(g[1] == Doubles{0, 0, std::log(2.0), 0});
  // 0^e is 0 for all e > 0: the slope in e is 0, and so are its derivatives
  const Tensor zero_and_two = leaf({0, 2}), e2 = leaf({2, 3});
  const Tensor first = grad({sum(pow(zero_and_two, e2))}, {e2}, {.create_graph = true})[0];
  const double log2 = std::log(2.0);
  const auto second = slopes(first, {zero_and_two, e2});
  CHECK(second[0][0] == 0);
  CHECK(second[1][0] == 0);
  CHECK(std::abs(second[1][1] - 8 * log2 * log2) < 1e-12);
  const Tensor negative = leaf({-2}), three = leaf({3});
  const Tensor y = pow(negative, three);
  CHECK(numbers(y) == Doubles{-8});
  const auto h = grad({y}, {negative, three});
  CHECK(h[0].item() == 12);
  CHECK(std::isnan(h[1].item()));
  const Tensor e = leaf({2, -1});
  CHECK(slope(pow(2.0, e), e) == Doubles{4 * std::log(2.0), 0.5 * std::log(2.0)});
}

TEST_CASE("operands that where and masked_fill do not choose have gradient 0, even if NaN",
          "[elementwise]") {
  const Mask m({1, 0, 0});
  const Tensor a = leaf({1, not_a_number, inf}), b = leaf({not_a_number, 2, 3});
  CHECK(slopes(where(m, a, b), {a, b}) == std::vector<Doubles>{{1, 0, 0}, {0, 1, 1}});
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

TEST_CASE("operators with numbers keep the dtype", "[elementwise]") {
  const Tensor x = tensor({1, 2, 4}).requires_grad_();
  CHECK((x * 0.1).dtype() == DType::float32);
  CHECK(element<float>(x * 0.1, 0) == 0.1f);
  const Tensor d = leaf({1, 2, 4});
  CHECK(numbers(d + 1) == Doubles{2, 3, 5});
  CHECK(numbers(1 + d) == Doubles{2, 3, 5});
  CHECK(numbers(d - 1) == Doubles{0, 1, 3});
  CHECK(numbers(1 - d) == Doubles{0, -1, -3});
  CHECK(numbers(d * 3) == Doubles{3, 6, 12});
  CHECK(numbers(d / 2) == Doubles{0.5, 1, 2});
  CHECK(numbers(2 / d) == Doubles{2, 1, 0.5});
  CHECK(numbers(-d) == Doubles{-1, -2, -4});
  CHECK(slope(8 / d, d) == Doubles{-8, -2, -0.5});
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
