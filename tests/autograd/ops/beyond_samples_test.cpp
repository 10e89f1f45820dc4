// Ops beyond the table of samples: the accuracy of long sums and far arguments, memory that ops
// share or do not, and second derivatives at zero.

#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

using Doubles = std::vector<double>;

TEST_CASE("to() and clone(): whose memory, and what float32 makes of large numbers", "[ops]") {
  const Tensor x = leaf({0.1, 1e300});
  const Tensor y = to(x, DType::float32);
  CHECK(y.data<float>()[0] == 0.1f);
  CHECK(std::isinf(y.data<float>()[1]));
  CHECK(to(x, DType::float64).handle() == x.handle());  // nothing to convert: the same Tensor
  const Tensor copy = clone(x);
  CHECK(copy.data<double>() != x.data<double>());
  CHECK(dropout(x, 0).handle() == x.handle());
}

TEST_CASE("t() of Indices and Masks", "[ops][indices]") {
  const Indices x = {{0, 1, 2}, {3, 4, 5}};
  CHECK(all(x.t() == Indices{{0, 3}, {1, 4}, {2, 5}}));
  CHECK(to_string((x == 4).t()) == to_string(x.t() == 4));
  CHECK((x[0].t().shape() == Shape{3}));
  CHECK_THROWS_WITH(x.reshape({1, 2, 3}).t(), ContainsSubstring("more than two dimensions"));
}

TEST_CASE("losses at their ends", "[ops][loss]") {
  const Doubles far = {-80, -30, -17, 17, 30, 80};
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

TEST_CASE("cumprod: an infinite product leaves the first gradient alone", "[ops]") {
  for (const double large : {1e200, inf}) {
    const Tensor x = leaf({1, large, large});
    CHECK(std::isinf(numbers(grad({sum(cumprod(x, 0))}, {x})[0])[0]));
  }
}

TEST_CASE("second derivatives of norms at zero are finite", "[ops]") {
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
TEST_CASE("sums of many terms keep float32's accuracy", "[accuracy]") {
  const std::size_t many = 20'000'000, n = 1 << 20, rows = 200'000;
  const Tensor all_ones = full({many}, 1);
  CHECK(sum(all_ones).item() == double(many));
  CHECK(element<float>(sum(reshape(all_ones, {many / 2, 2}), {0}), 0) == float(many / 2));
  const Tensor tenth = full({1'000'000, 3}, 0.1);
  for (const float mean_of_column :
       {element<float>(mean(tenth, {0}), 0), element<float>(mean(tenth), 0)})
    CHECK(std::abs(mean_of_column - 0.1f) < 1e-7f);

  const Tensor x = ones({2, n});
  CHECK(element<float>(log_softmax(x, 1), n) == Approx(-std::log(n)).epsilon(2e-7));
  CHECK(element<float>(softmax(transpose(x, 0, 1), 0), 3) == Approx(1.0 / n).epsilon(2e-7));
  CHECK(mse_loss(full({n}, 0.1), zeros({n})).item() == Approx(double(0.1F * 0.1F)).epsilon(2e-7));
  Generator g(1);
  const Indices ids = randint(0, 3, {n}, g);
  CHECK(cross_entropy(zeros({n, 3}), ids).item() == Approx(std::log(3)).epsilon(2e-7));

  const Tensor weight = ones({4}).requires_grad_(), bias = zeros({4}).requires_grad_();
  sum(layer_norm(expand(tensor({1, 2, 3, 4}), {rows, 4}), 4, weight, bias)).backward();
  const double r = 1 / std::sqrt(1.25 + 1e-5);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(element<float>(bias.grad(), i) == rows);
    CHECK(element<float>(weight.grad(), i) ==
          Approx((static_cast<double>(i) - 1.5) * r * rows).epsilon(1e-6));
  }
}

// The mean of the squares minus the square of the mean would lose every digit.
TEST_CASE("the variance of numbers far from zero is accurate in float32", "[accuracy]") {
  const std::size_t n = 100'000;
  const Tensor alternating = where(reshape(arange(n), {n / 2, 2}) < 0.0, 0.0, tensor({8191, 8193}));
  CHECK(var(alternating, {}, false).item() == 1);
  CHECK(var(reshape(alternating, {100, n / 100}), Dims{0, 1}, false).item() == 1);
}

TEST_CASE("linear_cross_entropy in blocks: gradients again, of some inputs, on threads", "[ops]") {
  Generator g(1);
  std::vector<Tensor> in;  // hidden states, and the head's weight and bias
  for (const Dims& sizes : {Dims{300, 5}, Dims{8200, 5}, Dims{8200}})
    in.push_back(randn(sizes, g).requires_grad_());
  const Indices ids = where(arange_indices(0, 300) % 7 == 3, -100, randint(0, 8200, {300}, g));
  const GradOptions options{.grad_outputs = {scalar(0.3)}, .retain_graph = true};
  const Tensor whole = cross_entropy(linear(in[0], in[1], in[2]), ids);
  const auto expected = grad({whole}, in, options);
  std::vector<Tensor> first;
  for (const std::size_t n : {1, 2, 5}) {
    const Threads threads(n);
    const Tensor loss = linear_cross_entropy(in[0], in[1], ids, in[2]);
    CHECK(loss.item() == Approx(whole.item()).epsilon(1e-6));
    const auto found = grad({loss}, in, options), again = grad({loss}, in, options);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(allclose(found[i], expected[i], 1e-4, 1e-7));
      CHECK(same_bits(again[i], found[i]));
      CHECK((first.empty() || same_bits(found[i], first[i])));
    }
    first = found;
  }
  const auto none = cross_entropy(linear(in[0], in[1]), ids, {.weight = zeros({8200})});
  const auto same = linear_cross_entropy(in[0], in[1], ids, {}, {.weight = zeros({8200})});
  CHECK(same_bits(grad({same}, {in[0]})[0], grad({none}, {in[0]})[0]));
  in[1].requires_grad_(false);  // as with LoRA
  in[2].requires_grad_(false);
  const Tensor loss = linear_cross_entropy(in[0], in[1], ids, in[2]);
  CHECK(same_bits(grad({loss}, {in[0]}, options)[0], first[0]));
}
