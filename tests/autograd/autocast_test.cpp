// Autocast: products of operands rounded to bfloat16, forward and backward, and the rest as it was.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <vector>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/recompute.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/optim/optimizers.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

// x rounded to bfloat16, in float64.
Tensor rounded_exactly(const Tensor& x) {
  auto y = copy_of(x.data<float>(), x.shape());
  for (float& v : y) {
    std::uint16_t upper = 0;
    kernels::to_bfloat16(1, &v, &upper);
    v = kernels::from_bfloat16(upper);
  }
  return Tensor(std::move(y)).to(DType::float64);
}

struct Sizes {
  Shape a, b;
  bool bias = false;
};

// The product: linear() with a bias, else matmul().
Tensor multiply(const Tensor& a, const Tensor& b, const Tensor& bias) {
  return bias.defined() ? linear(a, b, bias) : matmul(a, b);
}

// Whether `result` is `exact` up to 1e-6 of the sum of its terms' absolute values.
bool agrees(const Tensor& result, const Tensor& exact, const Tensor& absolute) {
  const Tensor error = abs(result.to(DType::float64) - exact) - absolute * 1e-6;
  return result.dtype() == DType::float32 && (error.numel() == 0 || error.max().item() <= 1e-37);
}

// Three results of one product: c, da and db.
std::vector<Tensor> product_and_gradients(const Tensor& a, const Tensor& b, const Tensor& bias,
                                          const Tensor& dc) {
  const Tensor x = a.detach().requires_grad_(), y = b.detach().requires_grad_();
  Tensor c;
  if (const Autocast autocast; true)
    c = multiply(x, y, bias);
  const auto gradients = grad({c}, {x, y}, {.grad_outputs = {dc}});
  return {c.detach(), gradients[0], gradients[1]};
}

std::vector<Sizes> all_sizes() {
  return {{{1, 1}, {1, 1}},
          {{3, 5}, {5, 7}},
          {{1, 64}, {64, 33}},
          {{64, 1}, {1, 64}},
          {{40, 0}, {0, 30}},
          {{0, 8}, {8, 4}},
          {{200, 385}, {385, 96}},
          {{17, 1000}, {1000, 130}},
          {{8, 4096}, {4096, 8}},
          {{4, 33, 20}, {20, 70}},
          {{4, 33, 20}, {4, 20, 9}},
          {{2, 1, 9, 16}, {3, 16, 40}},
          {{5, 6}, {6}},
          {{300, 60}, {500, 60}, true},
          {{2, 100, 48}, {64, 48}, true}};
}

// Everything that two threads could divide differently.
std::vector<Tensor> many_products() {
  manual_seed(5);
  std::vector<Tensor> results;
  for (const Sizes& sizes : all_sizes()) {
    const Tensor a = randn(Dims(sizes.a)), b = randn(Dims(sizes.b));
    const Tensor bias = sizes.bias ? randn({sizes.b[0]}) : Tensor();
    const Tensor dc = randn(Dims(multiply(a, b, bias).shape()));
    std::ranges::copy(product_and_gradients(a, b, bias, dc), std::back_inserter(results));
  }
  const Autocast autocast;
  const Tensor q = randn({2, 4, 70, 16}).requires_grad_();
  const Tensor y = scaled_dot_product_attention(q, q, q, {.is_causal = true});
  results.push_back(y.detach());
  results.push_back(grad({sum(square(y))}, {q})[0]);
  return results;
}

double distance(const Tensor& a, const Tensor& b) {
  return abs(a - b).max().item() / abs(b).max().item();
}

}  // namespace

TEST_CASE("autocast: products are those of rounded operands", "[autocast]") {
  manual_seed(1);
  for (const Sizes& sizes : all_sizes()) {
    CAPTURE(sizes.a, sizes.b);
    const Tensor a = randn(Dims(sizes.a)), b = randn(Dims(sizes.b));
    const Tensor bias = sizes.bias ? randn({sizes.b[0]}) : Tensor();
    const Tensor dc = randn(Dims(multiply(a, b, bias).shape()));
    const auto results = product_and_gradients(a, b, bias, dc);

    // The same in float64, and of absolute values.
    const auto exact = [&](bool absolute) -> std::vector<Tensor> {
      const auto of = [&](const Tensor& x) {
        const Tensor y = rounded_exactly(x);
        return absolute ? abs(y) : y;
      };
      const Tensor x = of(a).requires_grad_(), y = of(b).requires_grad_();
      const Tensor bias64 = bias.defined() ? bias.to(DType::float64) : bias;
      const Tensor c = multiply(x, y, absolute && bias.defined() ? abs(bias64) : bias64);
      const auto gradients = grad({c}, {x, y}, {.grad_outputs = {of(dc)}});
      return {c.detach(), gradients[0], gradients[1]};
    };
    const auto expected = exact(false), absolute = exact(true);
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(i);
      CHECK(agrees(results[i], expected[i], absolute[i]));
    }
  }
}

TEST_CASE("autocast: the bits are the same on any number of threads", "[autocast]") {
  std::vector<Tensor> expected;
  for (const std::size_t n : {1, 2, 4}) {
    const Threads threads(n);
    const std::vector<Tensor> results = many_products();
    if (n == 1)
      expected = results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(n, i);
      CHECK(same_bits(results[i], expected[i]));
    }
  }
}

TEST_CASE("autocast: kernels of products have no gaps and keep what beta says", "[autocast]") {
  const std::vector<std::uint16_t> ones(64, 0x3F80), none;
  for (const std::size_t k : {0, 1, 8}) {
    std::vector<float> c(12, 7.F);  // 2 x 3, in rows of 6
    kernels::gemm(false, true, 2, 3, k, 0.5F, ones.data(), 8, ones.data(), 8, 2.F, c.data(), 6);
    const float sum = 14.F + 0.5F * static_cast<float>(k);
    CHECK(c == std::vector<float>{sum, sum, sum, 7, 7, 7, sum, sum, sum, 7, 7, 7});
    std::vector<float> garbage(6, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> bias{1, 2, 3};
    kernels::gemm(true, false, 2, 3, k, 1.F, ones.data(), 2, ones.data(), 3, 0.F, garbage.data(), 3,
                  bias.data());
    const auto n = static_cast<float>(k);
    CHECK(garbage == std::vector<float>{n + 1, n + 2, n + 3, n + 1, n + 2, n + 3});
  }
}

TEST_CASE("autocast: a graph keeps the mode in which it was recorded", "[autocast]") {
  manual_seed(2);
  const Tensor x = randn({6, 20}).requires_grad_(), w = randn({8, 20}).requires_grad_();
  const auto gradient_of = [&](bool forward, bool backward, bool create_graph = false) {
    Tensor y;
    if (const Autocast autocast(forward); true)
      y = sum(square(linear(x, w)));
    const Autocast autocast(backward);
    return grad({y}, {w}, {.create_graph = create_graph})[0];
  };
  const Tensor rounded = gradient_of(true, false), exact = gradient_of(false, false);
  CHECK(distance(rounded, exact) > 1e-4);
  CHECK(same_bits(gradient_of(true, true), rounded));
  CHECK(same_bits(gradient_of(false, true), exact));
  // Derivatives of derivatives round, too.
  const Tensor first = gradient_of(true, false, true);
  CHECK(same_bits(first.detach(), rounded));
  const Tensor second = grad({sum(first)}, {x})[0];
  const Tensor plain = grad({sum(gradient_of(false, false, true))}, {x})[0];
  CHECK(distance(second, plain) > 1e-4);
  CHECK(distance(second, plain) < 0.03);
}

TEST_CASE("autocast: guards nest, and float64 is not rounded", "[autocast]") {
  manual_seed(3);
  const Tensor a = randn({5, 9}), b = randn({9, 4});
  const Tensor exact = matmul(a, b);
  const Tensor exact64 = matmul(a.to(DType::float64), b.to(DType::float64));
  const Autocast autocast;
  const Tensor rounded = matmul(a, b);
  CHECK_FALSE(same_bits(rounded, exact));
  CHECK(same_bits(matmul(a.to(DType::float64), b.to(DType::float64)), exact64));
  {
    const NoGrad no_grad;
    CHECK(same_bits(matmul(a, b), rounded));
    const Decompose decompose;
    CHECK(same_bits(matmul(a, b), rounded));
    const Autocast off(false);
    CHECK(same_bits(matmul(a, b), exact));
  }
  CHECK(same_bits(einsum("ik,kj->ij", {a, b}), rounded));
  CHECK_FALSE(bfloat16_name().empty());
}

TEST_CASE("autocast: a changed weight is rounded anew", "[autocast]") {
  const Tensor w = ones({4, 3}).requires_grad_(), x = ones({2, 3});
  optim::SGD optimizer({w}, {.lr = 1});
  const Autocast autocast;
  sum(linear(x, w)).backward();
  optimizer.step();  // in place: nothing shares the weight
  CHECK(sum(linear(x, w)).item() == -24);
}

TEST_CASE("autocast: attention rounds as its composition does", "[autocast]") {
  manual_seed(6);
  const Tensor q = randn({2, 4, 70, 16}), k = randn({2, 2, 50, 16}), v = randn({2, 2, 50, 24});
  const Tensor qkv = randn({2, 70, 96}), bias = randn({70, 50}), square_v = randn({2, 4, 70, 16});
  using Inputs = std::vector<Tensor>;
  using Case = std::tuple<std::string, Inputs, std::function<Tensor(const Inputs&)>>;
  const auto with = [](AttentionOptions options) {
    return [options](const Inputs& in) {
      manual_seed(7);
      return in.size() > 3 ? scaled_dot_product_attention(in[0], in[1], in[2], in[3], options)
                           : scaled_dot_product_attention(in[0], in[1], in[2], options);
    };
  };
  const Inputs same{q, square_v, square_v};
  for (const auto& [name, inputs, f] : std::vector<Case>{
           {"plain", same, with({})},
           {"causal", same, with({.is_causal = true})},
           {"scaled", same, with({.scale = 0.3, .softcap = 2})},
           {"dropout", same, with({.dropout_p = 0.3})},
           {"grouped", {q, k, v}, with({.enable_gqa = true})},
           {"bias", {q, k, v, bias}, with({.enable_gqa = true})},
           {"packed", {qkv}, [](const Inputs& in) { return causal_self_attention(in[0], 2); }}}) {
    CAPTURE(name);
    const auto results = [&given = inputs, &f = f](bool autocast, bool decompose) {
      Inputs leaves;
      for (const Tensor& x : given)
        leaves.push_back(x.detach().requires_grad_());
      const Autocast rounding(autocast);
      Mode mode = Mode::current();
      mode.decompose = decompose;
      const ModeGuard form(mode);
      const Tensor y = f(leaves);
      Inputs all = grad({sum(square(y))}, leaves);
      all.push_back(y.detach());
      return all;
    };
    const auto error = [](const Tensor& a, const Tensor& b) {  // relative, of all elements
      return (mean(square(a - b)) / mean(square(b))).item();
    };
    const Inputs fused = results(true, false), composed = results(true, true),
                 exact = results(false, false);
    for (std::size_t i = 0; i < fused.size(); ++i) {
      CAPTURE(i);
      CHECK(error(fused[i], composed[i]) < 1e-8);  // some weights are rounded the other way
      CHECK(error(fused[i], exact[i]) > 1e-6);
      CHECK(error(fused[i], exact[i]) < 1e-4);
    }
  }
}

TEST_CASE("autocast: explain_gradient runs a function twice alike", "[autocast]") {
  const Tensor x = (randn({8, 8}) * 1.001).detach().requires_grad_();
  const Autocast autocast;
  CHECK_THROWS_WITH(explain_gradient([](const auto& in) { return matmul(in[0], in[0]); }, {x}),
                    ContainsSubstring("too coarse for finite differences"));
}

TEST_CASE("autocast: recomputation and shards round as the whole does", "[autocast]") {
  manual_seed(4);
  const Tensor x = randn({8, 12}), w = randn({12, 12}).requires_grad_();
  const auto loss = [&](const Tensor& rows) { return mean(square(tanh(matmul(rows, w)))); };
  const auto gradient_of = [&](const std::function<Tensor()>& f) {
    Tensor y;
    if (const Autocast autocast; true)
      y = f();
    return grad({y}, {w})[0];
  };
  const Tensor expected = gradient_of([&] { return loss(x); });
  CHECK(distance(grad({loss(x)}, {w})[0], expected) > 1e-4);
  const auto again = [&](const std::vector<Tensor>& in) { return loss(in[0]); };
  CHECK(same_bits(gradient_of([&] { return checkpoint(again, {x}); }), expected));
  const Autocast autocast;
  parallel::backward(loss, x);
  CHECK(distance(w.grad(), expected) < 1e-6);
}
