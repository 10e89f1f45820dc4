// NaN and infinity where the table of samples has none: scores of attention that leave the range,
// and gradients of losses.  samples_test.cpp compares the forms of every op with NaN and infinity.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "golden/samples.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;

TEST_CASE("scores that leave the range: the forms of attention agree", "[ops][special]") {
  const Mask mask = {{true, false}, {true, true}};
  for (const double large : {1e200, -1e200})
    for (const double dropout : {0.0, 0.5})
      for (const bool masked : {false, true}) {
        INFO(large << " " << dropout << " " << masked);
        const auto gradients = [&](bool create_graph, bool decompose) {
          const ModeGuard mode({true, nullptr, decompose});
          const auto leaf = [](double a, double b) {
            return tensor({a, b}, DType::float64).reshape({2, 1}).requires_grad_();
          };
          const Inputs x{leaf(large, 1), leaf(1e200, 1), leaf(1, 2)};
          manual_seed(3);
          const Tensor y =
              masked ? scaled_dot_product_attention(x[0], x[1], x[2], mask, {.dropout_p = dropout})
                     : scaled_dot_product_attention(x[0], x[1], x[2],
                                                    {.is_causal = true, .dropout_p = dropout});
          return signs_of(grad({sum(y)}, x, {.create_graph = create_graph}));
        };
        const std::string ordinary = gradients(false, false);
        CHECK(gradients(true, false) == ordinary);
        CHECK(gradients(false, true) == ordinary);
      }
}

// PyTorch 2.15's; here ignored rows are 0 for any logits.
TEST_CASE("NaN and infinity as gradients", "[ops][special]") {
  const double nan = not_a_number;
  const auto check = [](const std::string& what, const Tensor& x, const auto& f, const Values& g,
                        const std::string& signs) {
    for (const bool create_graph : {false, true}) {
      INFO(what << (create_graph ? ", create_graph" : ""));
      const Tensor v = tensor(g, x.dtype());
      CHECK(signs_of(grad({f(x)}, {x}, {.grad_outputs = {v}, .create_graph = create_graph})) ==
            signs + " ");
    }
  };
  struct Case {
    Indices target;
    Reduction reduction;
    Values g;
    std::string cross_entropy, nll_loss;
  };
  const Tensor logits = tensor({{0.1, 0.2, 0.3}, {1, 2, 3}}).requires_grad_();
  for (const Case& c : {Case{{-100, -100}, Reduction::mean, nan, "......", "......"},
                        {{-100, -100}, Reduction::sum, nan, "......", "......"},
                        {{-100, -100}, Reduction::none, {nan, 1}, "......", "......"},
                        {{0, 1}, Reduction::mean, inf, "n+++n+", "-...-."},
                        {{0, 1}, Reduction::none, {inf, 1}, "n++...", "-....."},
                        {{0, -100}, Reduction::mean, nan, "nnn...", "n....."},
                        {{0, -100}, Reduction::none, {nan, inf}, "nnn...", "n....."}}) {
    check(
        "cross_entropy", logits,
        [&](const Tensor& x) { return cross_entropy(x, c.target, {.reduction = c.reduction}); },
        c.g, c.cross_entropy);
    check(
        "nll_loss", logits,
        [&](const Tensor& x) { return nll_loss(x, c.target, {.reduction = c.reduction}); }, c.g,
        c.nll_loss);
  }
  // It does not leak past a mask; abs multiplies by the sign, as in PyTorch; relu chooses.
  check(
      "masked_fill", leaf({4, nan, 6}),
      [](const Tensor& x) { return masked_fill(x, Mask({1, 1, 0}), -inf); }, {inf, nan, 1}, "...");
  check("abs", leaf({0, -1}), [](const Tensor& x) { return abs(x); }, {inf, inf}, "n-");
  check("relu", leaf({-1, 2}), [](const Tensor& x) { return relu(x); }, {inf, 3}, "..");
}
