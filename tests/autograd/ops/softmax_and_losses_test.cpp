// Softmax, norms, dropout and losses, beyond the table of samples: long sums, and what dropout
// draws.

#include <cmath>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

TEST_CASE("cross_entropy: a class of probability 0 costs nothing unless it is the target",
          "[softmax]") {
  const Tensor x = tensor({{-inf, 1, 1}}).requires_grad_();
  CHECK(cross_entropy(x, Indices{1}).item() == Approx(std::log(2)));
  CHECK(cross_entropy(x, Indices{0}).item() == inf);
  CHECK(std::isnan(cross_entropy(full({1, 3}, -inf), Indices{1}).item()));
  for (const bool create_graph : {false, true}) {
    const auto dx =
        numbers(grad({cross_entropy(x, Indices{1})}, {x}, {.create_graph = create_graph})[0]);
    CHECK(dx[0] == 0);
    CHECK(dx[1] == Approx(-0.5));
  }
}

TEST_CASE("softmax and losses: sums of many terms keep float32's accuracy", "[softmax]") {
  const std::size_t n = 1 << 20;
  const Tensor x = ones({2, n});
  CHECK(element<float>(log_softmax(x, 1), n) == Approx(-std::log(n)).epsilon(2e-7));
  CHECK(element<float>(softmax(transpose(x, 0, 1), 0), 3) == Approx(1.0 / n).epsilon(2e-7));
  CHECK(mse_loss(full({n}, 0.1), zeros({n})).item() == Approx(double(0.1F * 0.1F)).epsilon(2e-7));
  Generator g(1);
  const Indices ids = randint(0, 3, {n}, g);
  CHECK(cross_entropy(zeros({n, 3}), ids).item() == Approx(std::log(3)).epsilon(2e-7));
}

TEST_CASE("layer_norm: the gradient of the weight sums many rows accurately", "[softmax]") {
  const std::size_t rows = 200'000;
  const Tensor x = expand(tensor({1, 2, 3, 4}), {rows, 4});
  Tensor weight = ones({4}), bias = zeros({4});
  weight.requires_grad_();
  bias.requires_grad_();
  sum(layer_norm(x, 4, weight, bias)).backward();
  const double r = 1 / std::sqrt(1.25 + 1e-5);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(element<float>(bias.grad(), i) == rows);
    CHECK(element<float>(weight.grad(), i) ==
          Approx((static_cast<double>(i) - 1.5) * r * rows).epsilon(1e-6));
  }
}

TEST_CASE("dropout: its draws, and when it draws nothing", "[softmax]") {
  const Tensor x = ones({50});
  Generator g(3);
  const std::string before = g.state();
  CHECK(dropout(x, 0, true, g).handle() == x.handle());
  CHECK(dropout(x, 0.5, false, g).handle() == x.handle());
  CHECK(numbers(dropout(x, 1, true, g)) == std::vector<double>(50, 0.0));
  CHECK(g.state() == before);
  dropout(x, 0.5, true, g);
  Generator other(3);
  for (int i = 0; i < 100; ++i)  // two numbers for each element
    other.random();
  CHECK(g.state() == other.state());

  const Tensor scaled = dropout(x, 0.2, true, g);
  for (const double v : numbers(scaled))
    CHECK((v == 0 || v == 1.25));
}
