// Softmax, norms, dropout and losses, beyond the op table: gradients without finite differences,
// long sums, and PyTorch's numbers.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

// The gradient of sum(f(x) * g) by the ordinary backward and under create_graph, which must be
// equal.
std::vector<double> gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& value,
                             const Tensor& g) {
  std::vector<std::vector<double>> modes;
  for (const bool create_graph : {false, true}) {
    Tensor x = value.detach();
    x.requires_grad_();
    const Tensor y = f(x);
    modes.push_back(
        numbers(grad({y}, {x}, {.grad_outputs = {g}, .create_graph = create_graph})[0]));
  }
  REQUIRE(modes[0].size() == modes[1].size());
  for (std::size_t i = 0; i < modes[0].size(); ++i)
    CHECK(modes[1][i] == Approx(modes[0][i]).margin(3e-7));
  return modes[0];
}

bool all_nan(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isnan(x); });
}

}  // namespace

TEST_CASE("softmax: -inf has probability 0 and gradient 0, also in a row of nothing else",
          "[softmax]") {
  const Tensor x = tensor({{-inf, 1, 2}, {-inf, -inf, -inf}}), g = tensor({{1, 2, 3}, {4, 5, 6}});
  for (const std::int64_t dim : {1, 0}) {
    const Tensor at = dim == 1 ? x : transpose(x, 0, 1), v = dim == 1 ? g : transpose(g, 0, 1);
    const auto y = numbers(softmax(at, dim));
    const auto dx = gradient([&](const Tensor& t) { return softmax(t, dim); }, at, v);
    const std::vector<std::size_t> masked =
        dim == 1 ? std::vector<std::size_t>{0, 3, 4, 5} : std::vector<std::size_t>{0, 1, 3, 5};
    for (const std::size_t i : masked) {
      CHECK(y[i] == 0);
      CHECK(dx[i] == 0);
    }
    CHECK(y[dim == 1 ? 2 : 4] == Approx(1 / (1 + std::exp(-1))));
  }
}

TEST_CASE("log_softmax and cross_entropy of a row of only -inf are NaN, as in PyTorch",
          "[softmax]") {
  const Tensor x = full({1, 3}, -inf);
  CHECK(all_nan(numbers(log_softmax(x, 1))));
  CHECK(all_nan(numbers(log_softmax(x, 0))));
  CHECK(std::isnan(cross_entropy(x, Indices{1}).item()));
}

TEST_CASE("cross_entropy: a class of probability 0 that is not the target costs nothing",
          "[softmax]") {
  const Tensor x = tensor({{-inf, 1, 1}}), one = ones({});
  CHECK(cross_entropy(x, Indices{1}).item() == Approx(std::log(2)));
  CHECK(cross_entropy(x, Indices{0}).item() == inf);
  const auto dx = gradient([](const Tensor& t) { return cross_entropy(t, Indices{1}); }, x, one);
  CHECK(dx[0] == 0);
  CHECK(dx[1] == Approx(-0.5));
}

TEST_CASE("losses: when all targets are ignored the mean is NaN and its gradient 0", "[softmax]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}), one = ones({});
  const Indices none{-100, -100};
  const std::vector<double> zero(6, 0.0);
  for (const double smoothing : {0.0, 0.1}) {
    const auto f = [&](const Tensor& t) {
      return cross_entropy(t, none, {.label_smoothing = smoothing});
    };
    CHECK(std::isnan(f(x).item()));
    CHECK(gradient(f, x, one) == zero);
  }
  const auto f = [&](const Tensor& t) { return nll_loss(t, none); };
  CHECK(std::isnan(f(x).item()));
  CHECK(gradient(f, x, one) == zero);
}

TEST_CASE("cross_entropy gives PyTorch's numbers", "[softmax]") {
  const Tensor x = tensor({{0.5, -1.25, 2, 0}, {1, 1, -3, 0.25}, {-0.75, 4, 0.125, 2}});
  const Indices target{2, 0, 3};
  const Tensor weight = tensor({1, 2, 0.5, 0.25}),
               p = tensor({{0.1, 0.2, 0.3, 0.4}, {1, 0, 0, 0}, {0.25, 0.25, 0.25, 0.25}});
  CHECK(cross_entropy(x, target).item() == Approx(1.13318476).epsilon(1e-6));
  CHECK(cross_entropy(x, target, {.reduction = Reduction::sum}).item() ==
        Approx(3.39955427).epsilon(1e-6));
  CHECK(cross_entropy(x, target, {.weight = weight}).item() == Approx(0.924531832).epsilon(1e-6));
  CHECK(cross_entropy(x, target, {.weight = weight, .ignore_index = 0}).item() ==
        Approx(0.940498747).epsilon(1e-6));
  CHECK(cross_entropy(x, target, {.label_smoothing = 0.2}).item() ==
        Approx(1.36860142).epsilon(1e-6));
  CHECK(cross_entropy(x, target, {.weight = weight, .ignore_index = 0, .label_smoothing = 0.2})
            .item() == Approx(1.91998174).epsilon(1e-6));
  CHECK(cross_entropy(x, p).item() == Approx(1.88526809).epsilon(1e-6));
  CHECK(cross_entropy(x, p, {.weight = weight, .label_smoothing = 0.2}).item() ==
        Approx(1.65292839).epsilon(1e-6));
  CHECK(nll_loss(x, target, {.weight = weight}).item() == Approx(-1.42857143).epsilon(1e-6));
  CHECK(mse_loss(x, p).item() == Approx(2.79296875).epsilon(1e-6));
  const auto dx = gradient(
      [&](const Tensor& v) {
        return cross_entropy(v, target,
                             {.weight = weight, .ignore_index = 0, .label_smoothing = 0.2});
      },
      x, ones({}));
  const std::vector<double> expected{
      0.0584266142,  -0.111595381, -0.00603747707, 0.0592062435, 0, 0, 0, 0,
      -0.0628288681, 0.310255865,  -0.0241269332,  -0.223300064};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(dx[i] == Approx(expected[i]).margin(3e-7));
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

TEST_CASE("dropout: the gradient passes where the value did, in both modes", "[softmax]") {
  const auto f = [](const Tensor& t) {
    Generator g(4);
    return dropout(t, 0.4, true, g);
  };
  const auto y = numbers(f(ones({30})));
  CHECK(gradient(f, full({30}, 7), ones({30})) == y);
}
