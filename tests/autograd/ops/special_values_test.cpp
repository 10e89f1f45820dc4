// NaN and infinity in each element of each input and of the gradient: the kernel of a fused op, its
// derivative under create_graph and the ops that it fuses must say NaN, infinity or a number in the
// same places.  (Not here: attention with masks and NaN, where only the first two agree.)

#include <cmath>
#include <functional>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Tensors = std::vector<Tensor>;

struct FusedCase {
  const char* name;
  std::vector<Dims> sizes;
  std::function<Tensor(const Tensors&)> f;
};

std::vector<FusedCase> fused_cases() {
  std::vector<FusedCase> cases = {
      {"softmax", {{3, 4}}, [](const Tensors& x) { return softmax(x[0], -1); }},
      {"softmax of columns", {{4, 3}}, [](const Tensors& x) { return softmax(x[0], 0); }},
      {"log_softmax", {{3, 4}}, [](const Tensors& x) { return log_softmax(x[0], -1); }},
      {"log_softmax of columns", {{4, 3}}, [](const Tensors& x) { return log_softmax(x[0], 0); }},
      {"logsumexp", {{2, 3}}, [](const Tensors& x) { return logsumexp(x[0], {1}); }},
      {"mse_loss", {{3}, {3}}, [](const Tensors& x) { return mse_loss(x[0], x[1]); }},
      {"layer_norm",
       {{2, 4}, {4}, {4}},
       [](const Tensors& x) { return layer_norm(x[0], {4}, x[1], x[2]); }},
      {"rms_norm", {{2, 4}, {4}}, [](const Tensors& x) { return rms_norm(x[0], {4}, x[1]); }},
      {"attention",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"attention, additive mask",
       {{3, 2}, {3, 2}, {3, 2}, {3, 3}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }},
      {"linear", {{2, 3}, {2, 3}, {2}}, [](const Tensors& x) { return linear(x[0], x[1], x[2]); }},
      {"gelu", {{5}}, [](const Tensors& x) { return gelu(x[0]); }},
      {"gelu, tanh", {{5}}, [](const Tensors& x) { return gelu(x[0], Gelu::tanh); }},
  };
  const Tensor weight = tensor({0.5, 2, 1});
  const auto like = [weight](const Tensors& x) { return weight.to(x[0].dtype()); };
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none}) {
    for (const Indices& ids : {Indices{0, 2, 1}, Indices{0, 2, -100}, Indices{-100, -100, -100}}) {
      cases.push_back({"cross_entropy", {{3, 3}}, [=](const Tensors& x) {
                         return cross_entropy(x[0], ids, {.reduction = r});
                       }});
      cases.push_back({"cross_entropy, weight", {{3, 3}}, [=](const Tensors& x) {
                         return cross_entropy(x[0], ids, {.weight = like(x), .reduction = r});
                       }});
      cases.push_back({"cross_entropy, smoothing", {{3, 3}}, [=](const Tensors& x) {
                         return cross_entropy(x[0], ids, {.label_smoothing = 0.1, .reduction = r});
                       }});
      cases.push_back({"nll_loss", {{3, 3}}, [=](const Tensors& x) {
                         return nll_loss(x[0], ids, {.reduction = r});
                       }});
    }
    cases.push_back({"cross_entropy of probabilities", {{3, 3}, {3, 3}}, [=](const Tensors& x) {
                       return cross_entropy(x[0], x[1], {.reduction = r});
                     }});
  }
  return cases;
}

// For each element n, + or - for what is no number.
std::string kinds(const Tensors& xs) {
  std::string text;
  for (const Tensor& x : xs) {
    for (const double v : numbers(x.detach()))
      text += std::isnan(v) ? 'n' : !std::isinf(v) ? '.' : v > 0 ? '+' : '-';
    text += ' ';
  }
  return text;
}

std::string gradients(const FusedCase& c, const Tensors& at, const Tensor& g, bool create_graph,
                      bool decomposed) {
  std::optional<Decompose> by_ordinary_ops;
  if (decomposed)
    by_ordinary_ops.emplace();
  Tensors leaves;
  for (const Tensor& x : at)
    leaves.push_back(clone(x).requires_grad_());
  const Tensor y = c.f(leaves);
  Tensors all = grad({y}, leaves, {.grad_outputs = {g}, .create_graph = create_graph});
  all.push_back(y);
  return kinds(all);
}

Tensor with(const Tensor& x, Size i, double value) {
  const Tensor changed = clone(x);
  set_element(changed, static_cast<std::size_t>(i), value);
  return changed;
}

}  // namespace

TEST_CASE("NaN and infinity: the forms of fused ops agree", "[ops][special]") {
  for (const DType dtype : {DType::float64, DType::float32})
    for (const FusedCase& c : fused_cases()) {
      Tensors x;
      for (const Dims& sizes : c.sizes)
        x.push_back(normal(sizes, x.size() + 1, dtype));
      const Tensor y = c.f(x);
      const Tensor g = normal(y.shape(), 9, dtype);
      const auto check = [&](const Tensors& at, const Tensor& cotangent, bool decomposed_too,
                             const std::string& what) {
        INFO(c.name << " in " << to_string(dtype) << ", " << what);
        const std::string fused = gradients(c, at, cotangent, false, false);
        CHECK(fused == gradients(c, at, cotangent, true, false));
        if (decomposed_too) {
          CHECK(fused == gradients(c, at, cotangent, false, true));
          CHECK(fused == gradients(c, at, cotangent, true, true));
        }
      };
      for (const double v : {not_a_number, inf, -inf}) {
        const std::string value = std::to_string(v) + " at ";
        for (std::size_t i = 0; i < x.size(); ++i)
          for (Size k = 0; k < x[i].numel(); ++k) {
            Tensors at = x;
            at[i] = with(x[i], k, v);
            check(at, g, false, value + std::to_string(k) + " of input " + std::to_string(i));
          }
        // (sums of infinities of both signs are NaN in one order and not in another)
        for (Size k = 0; k < g.numel(); ++k)
          check(x, with(g, k, v), std::isnan(v), value + std::to_string(k) + " of the gradient");
      }
    }
}

// PyTorch 2.15's; ignored rows are 0 here whatever their logits are.
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
