// Reductions, beyond the table of samples: NaN and infinity, ties of topk, and the accuracy of
// sums.

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

// d sum(y * [1, 2, ...]) / d x
std::vector<double> gradient(const Tensor& y, const Tensor& x) {
  const Tensor v = reshape(arange(1, static_cast<double>(y.numel()) + 1, 1, y.dtype()), y.shape());
  return numbers(grad({y}, {x}, {.grad_outputs = {v}})[0]);
}

using Doubles = std::vector<double>;
using Places = std::vector<std::int64_t>;

}  // namespace

// PyTorch 2.15's.
TEST_CASE("reductions of NaN and infinity, and their gradients", "[reduce]") {
  const double nan = not_a_number;
  struct Case {
    const char* op;
    Tensor (*f)(const Tensor&);
    std::vector<Doubles> results;  // of each row: the value, and the gradient's three elements
  };
  const std::vector<Values> rows = {{1, nan, nan}, {inf, 2, inf}, {-inf, 1, 2}, {inf, inf, inf}};
  const Doubles nans = {nan, nan, nan, nan};
  const double p1 = 1 / (1 + std::exp(1.0));
  for (const Case& c : std::vector<Case>{
           {"max",
            [](const Tensor& x) { return max(x, 0).values; },
            {{nan, 0, 1, 0}, {inf, 1, 0, 0}, {2, 0, 0, 1}, {inf, 1, 0, 0}}},
           {"min",
            [](const Tensor& x) { return min(x, 0).values; },
            {{nan, 0, 1, 0}, {2, 0, 1, 0}, {-inf, 1, 0, 0}, {inf, 1, 0, 0}}},
           {"max of all",
            [](const Tensor& x) { return max(x); },
            {{nan, 0, 0.5, 0.5}, {inf, 0.5, 0, 0.5}, {2, 0, 0, 1}, {inf, 1. / 3, 1. / 3, 1. / 3}}},
           {"amax",
            [](const Tensor& x) { return amax(x, {0}); },
            {nans, {inf, 0.5, 0, 0.5}, {2, 0, 0, 1}, {inf, 1. / 3, 1. / 3, 1. / 3}}},
           {"amin",
            [](const Tensor& x) { return amin(x, {0}); },
            {nans, {2, 0, 1, 0}, {-inf, 1, 0, 0}, {inf, 1. / 3, 1. / 3, 1. / 3}}},
           {"logsumexp",
            [](const Tensor& x) { return logsumexp(x, {0}); },
            {nans,
             {inf, nan, 0, nan},
             {2 + std::log1p(std::exp(-1.0)), 0, p1, 1 - p1},
             {inf, nan, nan, nan}}},
           {"mean",
            [](const Tensor& x) { return mean(x); },
            {{nan, 1. / 3, 1. / 3, 1. / 3},
             {inf, 1. / 3, 1. / 3, 1. / 3},
             {-inf, 1. / 3, 1. / 3, 1. / 3},
             {inf, 1. / 3, 1. / 3, 1. / 3}}},
           {"std", [](const Tensor& x) { return xgrad::std(x); }, {nans, nans, nans, nans}},
           {"vector_norm",
            [](const Tensor& x) { return vector_norm(x); },
            {nans, {inf, nan, 0, nan}, {inf, nan, 0, 0}, {inf, nan, nan, nan}}},
           {"vector_norm 3",
            [](const Tensor& x) { return vector_norm(x, 3); },
            {nans, {inf, nan, 0, nan}, {inf, nan, 0, 0}, {inf, nan, nan, nan}}},
           {"vector_norm -1",
            [](const Tensor& x) { return vector_norm(x, -1); },
            {nans, {2, 0, 1, 0}, {2. / 3, 0, 4. / 9, 1. / 9}, {inf, nan, nan, nan}}},
           {"vector_norm inf",
            [](const Tensor& x) { return vector_norm(x, inf); },
            {{nan, 0, 0, 0}, {inf, 0.5, 0, 0.5}, {inf, -1, 0, 0}, {inf, 1. / 3, 1. / 3, 1. / 3}}}})
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (const bool create_graph : {false, true}) {
        const Tensor x = leaf(rows[r]), y = c.f(x);
        const Tensor dx = grad({y}, {x}, {.create_graph = create_graph})[0];
        Doubles got = numbers(dx);
        got.insert(got.begin(), numbers(y)[0]);
        for (std::size_t i = 0; i < got.size(); ++i) {
          INFO(c.op << ", row " << r << ", number " << i << ": " << got[i]);
          const double want = c.results[r][i];
          CHECK((std::isnan(want) ? std::isnan(got[i])
                                  : got[i] == want || std::abs(got[i] - want) < 1e-15));
        }
      }
}

TEST_CASE("topk returns places in order, the first of equals first, and NaN as the largest",
          "[index]") {
  const Tensor x = leaf({2, 5, not_a_number, 5, 1});
  const Extremum largest = topk(x, 4), smallest = topk(x, 4, 0, false);
  CHECK(numbers(largest.indices) == Places{2, 1, 3, 0});
  CHECK(numbers(smallest.indices) == Places{4, 0, 1, 3});
  CHECK(gradient(smallest.values, x) == Doubles{2, 3, 0, 4, 1});
}

TEST_CASE("gradients where functions of norms have none are zero", "[reduce]") {
  const Tensor x = leaf({{0, 0}, {3, 4}});
  CHECK(gradient(vector_norm(x, 0.5, {1}), x)[0] == 0);
  CHECK(gradient(vector_norm(x, 0, {1}), x) == Doubles{0, 0, 0, 0});
  CHECK(gradient(vector_norm(x, -inf, {1}), x) == Doubles{0, 0, 2, 0});
}

TEST_CASE("second derivatives at zero are finite", "[reduce]") {
  for (const double ord : {1.0, 1.5, 2.0, 3.0, inf}) {
    const Tensor x = leaf({{0, 0}, {0, 4}});
    const Tensor g = grad({sum(vector_norm(x, ord, {1}))}, {x}, {.create_graph = true})[0];
    INFO("ord " << ord);
    if (g.requires_grad())
      CHECK(all(isfinite(grad({sum(g * g)}, {x}, {.allow_unused = true})[0])));
    CHECK(all(isfinite(g)));
  }
}

// Adding one by one in float32 would stop at 2^24.
TEST_CASE("long float32 sums are accurate", "[reduce]") {
  const std::size_t n = 20'000'000;
  const Tensor x = full({n}, 1);
  CHECK(sum(x).item() == double(n));
  CHECK(element<float>(sum(reshape(x, {n / 2, 2}), {0}), 0) == float(n / 2));
  const Tensor tenth = full({1'000'000, 3}, 0.1);
  for (const float mean_of_column :
       {element<float>(mean(tenth, {0}), 0), element<float>(mean(tenth), 0)})
    CHECK(std::abs(mean_of_column - 0.1f) < 1e-7f);
}

// The mean of the squares minus the square of the mean would lose every digit.
TEST_CASE("the variance of numbers far from zero is accurate in float32", "[reduce]") {
  const std::size_t n = 100'000;
  const Tensor alternating = where(reshape(arange(n), {n / 2, 2}) < 0.0, 0.0, tensor({8191, 8193}));
  CHECK(var(alternating, {}, false).item() == 1);
  CHECK(var(reshape(alternating, {100, n / 100}), Dims{0, 1}, false).item() == 1);
}

TEST_CASE("embedding adds to the gradient that other uses left", "[index]") {
  const Tensor w = leaf({{1, 2}, {3, 4}});
  const Indices ids = {1, 1, 0};
  backward({sum(embedding(ids, w)) + sum(w * w)});
  CHECK(numbers(w.grad()) == Doubles{3, 5, 8, 10});
}
