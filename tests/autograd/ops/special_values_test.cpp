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
TEST_CASE("NaN and infinity as gradients of losses: as in PyTorch", "[ops][special]") {
  struct Case {
    Indices target;
    Reduction reduction;
    Values g;
    std::string cross_entropy, nll_loss;
  };
  const double nan = not_a_number;
  for (const Case& c : {Case{{-100, -100}, Reduction::mean, nan, "......", "......"},
                        {{-100, -100}, Reduction::sum, nan, "......", "......"},
                        {{-100, -100}, Reduction::none, {nan, 1}, "......", "......"},
                        {{0, 1}, Reduction::mean, inf, "n+++n+", "-...-."},
                        {{0, 1}, Reduction::none, {inf, 1}, "n++...", "-....."},
                        {{0, -100}, Reduction::mean, nan, "nnn...", "n....."},
                        {{0, -100}, Reduction::none, {nan, inf}, "nnn...", "n....."}})
    for (const bool create_graph : {false, true}) {
      const Tensor x = tensor({{0.1, 0.2, 0.3}, {1, 2, 3}}).requires_grad_();
      const auto kinds_of = [&](const Tensor& y) {
        return signs_of(
            grad({y}, {x}, {.grad_outputs = {tensor(c.g)}, .create_graph = create_graph}));
      };
      CHECK(kinds_of(cross_entropy(x, c.target, {.reduction = c.reduction})) ==
            c.cross_entropy + " ");
      CHECK(kinds_of(nll_loss(x, c.target, {.reduction = c.reduction})) == c.nll_loss + " ");
    }
}
