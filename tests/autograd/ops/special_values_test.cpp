// The forms of fused ops: the kernels of an ordinary run, the derivative under create_graph, and
// the composition under Decompose.  They agree on numbers, and have NaN, infinities and numbers in
// the same places.

#include <cmath>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "autograd/ops/fused_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// For each element: n, + or - if it is no finite number.
std::string kinds(const Tensors& xs) {
  std::string text;
  for (const Tensor& x : xs) {
    for (const double v : numbers(x.detach()))
      text += std::isnan(v) ? 'n' : !std::isinf(v) ? '.' : v > 0 ? '+' : '-';
    text += ' ';
  }
  return text;
}

// The result, and the gradients of all inputs but `without`, in all forms.
std::vector<Tensors> forms(const FusedCase& c, const Tensors& at, const Tensor& g,
                           std::optional<std::size_t> without = {}) {
  std::vector<Tensors> all;
  for (const bool decomposed : {false, true})
    for (const bool create_graph : {false, true}) {
      std::optional<Decompose> by_ordinary_ops;
      if (decomposed)
        by_ordinary_ops.emplace();
      Tensors in, leaves;
      for (const Tensor& x : at) {
        in.push_back(clone(x));
        if (in.size() - 1 != without)
          leaves.push_back(in.back().requires_grad_());
      }
      const Tensor y = c.f(in);
      all.push_back(grad({y}, leaves, {.grad_outputs = {g}, .create_graph = create_graph}));
      all.back().push_back(y);
    }
  return all;
}

// NaN in one and infinity in the other count as the same, because the order of sums decides.
void unify_what_is_no_number(std::string& a, const std::string& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != '.' && b[i] != '.')
      a[i] = b[i];
}

Tensor with(const Tensor& x, Size i, double value) {
  const Tensor changed = clone(x);
  set_element(changed, static_cast<std::size_t>(i), value);
  return changed;
}

Tensors inputs_of(const FusedCase& c, DType dtype) {
  Tensors x;
  for (const Dims& sizes : c.sizes)
    x.push_back(normal(sizes, x.size() + 1, dtype));
  return x;
}

}  // namespace

TEST_CASE("the forms of fused ops agree on numbers", "[ops][special]") {
  for (const FusedCase& c : fused_cases()) {
    const Tensors x = inputs_of(c, DType::float64);
    const Tensor g = normal(c.f(x).shape(), 9, DType::float64);
    for (std::size_t i = x.size() == 1 ? 1 : 0; i <= x.size(); ++i) {
      INFO(c.name << ", all gradients but of input " << i);
      const auto all = forms(c, x, g, i);
      for (std::size_t form = 1; form < all.size(); ++form)
        for (std::size_t k = 0; k < all[0].size(); ++k) {
          CHECK(kinds({all[form][k]}) == kinds({all[0][k]}));
          const Mask ok = isfinite(all[0][k]);
          CHECK(allclose(where(ok, all[form][k], 0.0), where(ok, all[0][k], 0.0), 1e-12, 1e-13));
        }
    }
  }
}

TEST_CASE("NaN and infinity: the forms of fused ops agree", "[ops][special]") {
  for (const DType dtype : {DType::float64, DType::float32})
    for (const FusedCase& c : fused_cases()) {
      const Tensors x = inputs_of(c, dtype);
      const Tensor g = normal(c.f(x).shape(), 9, dtype);
      const auto check = [&](const Tensors& at, const Tensor& cotangent, const std::string& what,
                             bool infinite_gradient) {
        INFO(c.name << " in " << to_string(dtype) << ", " << what);
        const auto all = forms(c, at, cotangent);
        for (std::size_t form = 1; form < all.size(); ++form) {
          INFO("form " << form);
          std::string ordinary = kinds(all[0]), other = kinds(all[form]);
          if (infinite_gradient && c.own_formula && form >= 2)
            unify_what_is_no_number(other, ordinary);
          CHECK(other == ordinary);
        }
      };
      const auto for_some = [](const Tensor& of, const auto& f) {
        for (Size k = 0; k < of.numel(); k += 1 + of.numel() / 20)
          f(k);
      };
      for (const double v : {not_a_number, inf, -inf}) {
        const std::string value = std::to_string(v) + " at ";
        for (std::size_t i = 0; i < x.size(); ++i)
          for_some(x[i], [&](Size k) {
            Tensors at = x;
            at[i] = with(x[i], k, v);
            check(at, g, value + std::to_string(k) + " of input " + std::to_string(i), false);
          });
        for_some(g, [&](Size k) {
          check(x, with(g, k, v), value + std::to_string(k) + " of the gradient", std::isinf(v));
        });
      }
    }
}

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
          const Tensors x{leaf(large, 1), leaf(1e200, 1), leaf(1, 2)};
          manual_seed(3);
          const Tensor y =
              masked ? scaled_dot_product_attention(x[0], x[1], x[2], mask, {.dropout_p = dropout})
                     : scaled_dot_product_attention(x[0], x[1], x[2],
                                                    {.is_causal = true, .dropout_p = dropout});
          return kinds(grad({sum(y)}, x, {.create_graph = create_graph}));
        };
        const std::string ordinary = gradients(false, false);
        CHECK(gradients(true, false) == ordinary);
        CHECK(gradients(false, true) == ordinary);
      }
}

TEST_CASE("an observer may run a fused op again in the other dtype", "[ops][special]") {
  struct Last final : Observer {
    Tensors inputs;
    Forward forward;
    void on_forward(std::string_view, std::span<const Tensor> in, const Tensor&,
                    const Forward& f) override {
      inputs.assign(in.begin(), in.end());
      forward = f;
    }
    void on_backward(const Node&, std::size_t, const Tensor&) override {}
  };
  for (const FusedCase& c : fused_cases()) {
    INFO(c.name);
    const Tensors x = inputs_of(c, DType::float32);
    Last last;
    Tensor y;
    {
      const ModeGuard observed({true, &last});
      y = c.f(x);
    }
    for (Tensor& in : last.inputs)
      in = in.defined() ? in.to(DType::float64) : in;
    const Tensor again = last.forward(last.inputs);
    CHECK(again.dtype() == DType::float64);
    CHECK(kinds({again}) == kinds({y}));
    const Mask ok = isfinite(y);
    CHECK(allclose(where(ok, again.to(DType::float32), 0.0), where(ok, y, 0.0), 1e-5, 1e-6));
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
        return kinds(grad({y}, {x}, {.grad_outputs = {tensor(c.g)}, .create_graph = create_graph}));
      };
      CHECK(kinds_of(cross_entropy(x, c.target, {.reduction = c.reduction})) ==
            c.cross_entropy + " ");
      CHECK(kinds_of(nll_loss(x, c.target, {.reduction = c.reduction})) == c.nll_loss + " ");
    }
}
