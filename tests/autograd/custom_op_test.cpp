// A user's ops, outside of namespace xgrad, with custom_op.hpp alone.

#include <xgrad/autograd/custom_op.hpp>

#include <cmath>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

namespace mine {

using namespace xgrad;

// log(1 + exp(x))
Tensor soft_relu(const Tensor& x) {
  return elementwise(
      "soft_relu", x,
      [](const auto& a) { return maximum(a, c(a, 0)) + log(c(a, 1) + exp(-abs(a))); },
      partial<Uses::A>([](const auto& g, const auto& a) { return g * sigmoid(a); }));
}

// sqrt(a^2 + b^2), broadcasting; gradient 0 where both are 0
Tensor hypot(const Tensor& a, const Tensor& b) {
  using enum Uses;
  return elementwise(
      "hypot", a, b, [](const auto& x, const auto& y) { return sqrt(x * x + y * y); },
      partial<A, Y>([](const auto& g, const auto& x, const auto& r) {
        return where(r > c(r, 0), g * x / r, g * c(g, 0));
      }),
      partial<B, Y>([](const auto& g, const auto& y, const auto& r) {
        return where(r > c(r, 0), g * y / r, g * c(g, 0));
      }));
}

Tensor inverses(const Tensor& x) {
  return elementwise(
      "inverses", x, [](const auto& a) { return rsqrt(a) + reciprocal(a); },
      partial<Uses::A>([](const auto& g, const auto& a) {
        return -g * reciprocal(a) * (c(a, 0.5) * rsqrt(a) + reciprocal(a));
      }));
}

// (..., n) -> (..., n): every row divided by its length
Tensor unit_rows(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) {
    return in[0] / vector_norm(in[0], 2, {-1}, true);
  };
  const auto backward = [x = Saved(x)](Context& ctx) {
    const Tensor g = ctx.gradient(), y = ctx.output();
    ctx.add(0, (g - y * sum(g * y, {-1}, true)) / vector_norm(x.tensor(), 2, {-1}, true));
  };
  return record("unit_rows", {x}, forward, backward, {.saves_output = true});
}

// x; its gradient multiplied by a factor
Tensor scale_gradient(const Tensor& x, double factor) {
  return record(
      "scale_gradient", {x}, [](std::span<const Tensor> in) { return in[0]; },
      [factor](Context& ctx) { ctx.add(0, ctx.gradient() * factor); });
}

}  // namespace mine

using namespace xgrad;

namespace {

template <class F>
void check_derivatives(const F& f, const std::vector<Tensor>& inputs) {
  const auto first = gradcheck(f, inputs);
  INFO(first.message);
  CHECK(first);
  const auto second = gradgradcheck(f, inputs);
  INFO(second.message);
  CHECK(second);
}

}  // namespace

TEST_CASE("a user's elementwise op of one operand", "[custom_op]") {
  const Tensor x = leaf({{-6, -1.5, -0.2}, {0.3, 2, 40}});
  const Tensor y = mine::soft_relu(x);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(y.data<double>()[i] == Approx(std::log1p(std::exp(x.data<double>()[i]))).epsilon(1e-12));
  CHECK(mine::soft_relu(tensor({800.0f})).item() == 800);  // exp has not overflowed
  check_derivatives([](const std::vector<Tensor>& in) { return mine::soft_relu(in[0]); }, {x});
}

TEST_CASE("rsqrt and reciprocal in a formula are no estimates", "[custom_op]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = arange(1, 40, 1, dtype);
    const double eps = dtype == DType::float32 ? 0x1p-23 : 0x1p-52;
    CHECK(allclose(mine::inverses(x), 1 / sqrt(x) + 1 / x, 2 * eps, 0));
  }
  check_derivatives([](const auto& in) { return mine::inverses(in[0]); }, {leaf({1, 2, 30})});
}

TEST_CASE("a user's elementwise op of two operands broadcasts", "[custom_op]") {
  const Tensor a = leaf({{3}, {-5}}), b = leaf({4, 12, -1});
  const Tensor y = mine::hypot(a, b);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(y.data<double>()[0] == 5);
  CHECK(y.data<double>()[4] == 13);
  check_derivatives([](const std::vector<Tensor>& in) { return mine::hypot(in[0], in[1]); },
                    {a, b});
  CHECK_THROWS_WITH(mine::hypot(a, tensor({1, 2}, DType::float32)),
                    ContainsSubstring("hypot: operands"));
  CHECK_THROWS_WITH(mine::hypot(zeros({2}), zeros({3})),
                    ContainsSubstring("hypot: shapes (2,) and (3,)"));

  const Tensor zero = leaf({0}), other = leaf({0});
  const auto g = grad({mine::hypot(zero, other)}, {zero, other});
  CHECK(g[0].item() == 0);
  CHECK(g[1].item() == 0);
}

TEST_CASE("a user's op with a hand-written backward", "[custom_op]") {
  const Tensor x = leaf({{3, 4}, {-5, 12}, {0.5, 0.1}});
  const Tensor y = mine::unit_rows(x);
  CHECK(y.data<double>()[0] == Approx(0.6));
  CHECK(y.data<double>()[3] == Approx(12.0 / 13));
  check_derivatives([](const std::vector<Tensor>& in) { return mine::unit_rows(in[0]); }, {x});
  // in a graph with other ops
  check_derivatives(
      [](const std::vector<Tensor>& in) { return sum(mine::unit_rows(in[0] * in[0]) * in[0]); },
      {x});
}

TEST_CASE("an op whose forward gives back its input makes a Tensor of its own", "[custom_op]") {
  const Tensor x = leaf({1, 2});
  Tensor y = mine::scale_gradient(x, -2);
  CHECK(grad({sum(y)}, {x})[0].data<double>()[0] == -2);
  const NoGrad no_grad;
  y = mine::scale_gradient(x, -2);
  CHECK_FALSE(y.requires_grad());
  y.update([](auto& a) { a.data()[0] = 7; });
  CHECK(x.data<double>()[0] == 1);
}
