// Ops at the limits of their inputs: overflow, mixed dtypes, infinities.

#include <cstdint>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

TEST_CASE("t() of Indices and Masks", "[ops][indices]") {
  const Indices x = {{0, 1, 2}, {3, 4, 5}};
  CHECK(all(x.t() == Indices{{0, 3}, {1, 4}, {2, 5}}));
  CHECK(to_string((x == 4).t()) == to_string(x.t() == 4));
  CHECK((x[0].t().shape() == Shape{3}));
  CHECK_THROWS_WITH(x.reshape({1, 2, 3}).t(), ContainsSubstring("more than two dimensions"));
}

TEST_CASE("pad, roll and meshgrid reject invalid arguments", "[ops]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t left : {most, -most, -most - 1})
    for (const std::int64_t right : {most, -most, -most - 1})
      CHECK_THROWS_WITH(pad(ones(5), {left, right}), ContainsSubstring("pad: "));
  CHECK_THROWS_WITH(roll(scalar(3), 1, 0), ContainsSubstring("roll: x is 0-d"));
  CHECK_THROWS_WITH(meshgrid({ones(2), ones(2, DType::float64)}),
                    ContainsSubstring("meshgrid: axis 0 is float32 but axis 1 is float64"));
}

TEST_CASE("losses at their ends", "[ops][loss]") {
  CHECK_THROWS_WITH(binary_cross_entropy(tensor({0.5, 0.2}), tensor({2, -1})),
                    ContainsSubstring("target has an element"));
  const Tensor target = tensor({0, 0.5, 1}).requires_grad_();
  const Tensor y = binary_cross_entropy(tensor({0, 1, 0}), target, {.reduction = Reduction::sum});
  CHECK(numbers(grad({y}, {target})[0]) == std::vector<double>{100, -100, 100});  // held, as y is
  const std::vector<double> far = {-80, -30, -17, 17, 30, 80};
  for (const DType dtype : {DType::float32, DType::float64})
    for (const double wanted : {0.0, 0.25, 1.0}) {
      const Tensor x = Tensor(far).to(dtype).requires_grad_();
      const Tensor loss = binary_cross_entropy_with_logits(x, full(6, wanted, dtype),
                                                           {.reduction = Reduction::sum});
      const auto g = numbers(grad({loss}, {x})[0]);
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double up = 1 / (1 + std::exp(-far[i])), down = 1 / (1 + std::exp(far[i]));
        CHECK(g[i] == Approx((1 - wanted) * up - wanted * down).epsilon(1e-6));
      }
    }
  // beta rounds to 0, or is subnormal, or large for float32
  for (const double beta : {1e-46, 1e-40})
    CHECK(smooth_l1_loss(ones(1), zeros(1), {Reduction::sum, beta}).item() == Approx(1));
  CHECK(smooth_l1_loss(full(1, 1e30), zeros(1), {Reduction::sum, 1e20}).item() == Approx(1e30));
}

TEST_CASE("cumprod: an infinite product leaves the first gradient alone", "[ops][kinks]") {
  for (const double large : {1e200, std::numeric_limits<double>::infinity()}) {
    const Tensor x = tensor({1, large, large}, DType::float64).requires_grad_();
    const Tensor g = grad({sum(cumprod(x, 0))}, {x})[0];
    CHECK(std::isinf(numbers(g)[0]));
  }
}
