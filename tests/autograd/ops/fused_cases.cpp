#include "autograd/ops/fused_cases.hpp"

#include <algorithm>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/tensors.hpp"

namespace xgrad::testing {

// Repeats these ids.
static Indices repeated(const Indices& ids, Size n) {
  auto all = empty_array<std::int64_t>(Shape{static_cast<std::size_t>(n)});
  for (std::size_t i = 0; i < all.size(); ++i)
    all.data()[i] = ids.data()[i % static_cast<std::size_t>(ids.numel())];
  return all;
}

std::vector<FusedCase> fused_cases() {
  const std::vector<Dims> rows{{768, 65}}, heads(3, Dims{12, 4, 64, 32});
  std::vector<FusedCase> cases = {
      {"softmax", {{3, 4}}, [](const Tensors& x) { return softmax(x[0], -1); }, rows},
      {"softmax of columns", {{4, 3}}, [](const Tensors& x) { return softmax(x[0], 0); }},
      {"log_softmax", {{3, 4}}, [](const Tensors& x) { return log_softmax(x[0], -1); }, rows},
      {"log_softmax of columns", {{4, 3}}, [](const Tensors& x) { return log_softmax(x[0], 0); }},
      {"logsumexp", {{2, 3}}, [](const Tensors& x) { return logsumexp(x[0], {1}); }, rows},
      {"mse_loss", {{3}, {3}}, [](const Tensors& x) { return mse_loss(x[0], x[1]); }},
      {"layer_norm",
       {{2, 4}, {4}, {4}},
       [](const Tensors& x) { return layer_norm(x[0], x[1].numel(), x[1], x[2]); },
       {{768, 128}, {128}, {128}},
       true},
      {"rms_norm",
       {{2, 4}, {4}},
       [](const Tensors& x) { return rms_norm(x[0], x[1].numel(), x[1]); },
       {{768, 128}, {128}},
       true},
      {"layer_norm, one parameter for both",
       {{2, 4}, {4}},
       [](const Tensors& x) { return layer_norm(x[0], {4}, x[1], x[1]); },
       {},
       true},
      {"layer_norm alone",
       {{2, 4}},
       [](const Tensors& x) { return layer_norm(x[0], {4}); },
       {},
       true},
      {"attention",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       heads},
      {"attention of one Tensor",
       {{3, 2}, {3, 2}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[0], x[1]); }},
      {"attention, shared keys",
       {{2, 3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"attention, a row that sees nothing, a key that nobody sees",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) {
         const Tensor open = tensor({{1, 1, 0}, {0, 0, 0}, {0, 1, 0}});
         return scaled_dot_product_attention(x[0], x[1], x[2], open != 0.0);
       }},
      {"attention, additive mask of -inf",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) {
         const Tensor bias = tensor({{0, 1, -inf}, {-inf, -inf, -inf}, {-inf, 0, -inf}});
         return scaled_dot_product_attention(x[0], x[1], x[2], bias.to(x[0].dtype()));
       }},
      {"attention, causal",
       {{40, 2}, {40, 2}, {40, 2}},  // larger than a block of the kernel
       [](const Tensors& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true});
       },
       heads},
      {"attention, causal, more keys",
       {{2, 2}, {5, 2}, {5, 2}},
       [](const Tensors& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2],
                                             {.is_causal = true, .causal_offset = 1});
       }},
      {"attention, first keys",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2],
                                             {.is_causal = true, .first_key = Indices{1, 1, 2}});
       }},
      {"attention, dropout",
       {{3, 2}, {3, 2}, {3, 2}},
       [](const Tensors& x) {
         manual_seed(2);
         return scaled_dot_product_attention(x[0], x[1], x[2], AttentionOptions{.dropout_p = 0.4});
       },
       heads},
      {"attention, softcap and additive mask",
       {{3, 2}, {3, 2}, {3, 2}, {3, 3}},
       [](const Tensors& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.softcap = 0.5});
       }},
      {"attention, softcap, causal",
       {{40, 2}, {40, 2}, {40, 2}},
       [](const Tensors& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true, .softcap = 2});
       }},
      {"causal_self_attention",
       {{1, 35, 24}},
       [](const Tensors& x) { return causal_self_attention(x[0], 4); },
       {{12, 64, 384}}},
      {"causal_self_attention, first keys",
       {{1, 70, 6}},  // blocks of the kernel that begin after key 0
       [](const Tensors& x) {
         return causal_self_attention(x[0], 1, 0, arange_indices(-30, 40));
       }},
      {"causal_self_attention, dropout",
       {{2, 3, 6}},
       [](const Tensors& x) {
         manual_seed(3);
         return causal_self_attention(x[0], 1, 0.3);
       }},
      {"attention, additive mask",
       {{3, 2}, {3, 2}, {3, 2}, {3, 3}},
       [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }},
      {"linear",
       {{2, 3}, {2, 3}, {2}},
       [](const Tensors& x) { return linear(x[0], x[1], x[2]); },
       {{768, 128}, {512, 128}, {512}}},
      {"gelu", {{5}}, [](const Tensors& x) { return gelu(x[0]); }, {{768, 512}}, true},
      {"gelu, tanh",
       {{5}},
       [](const Tensors& x) { return gelu(x[0], Gelu::tanh); },
       {{768, 512}},
       true},
  };
  const Tensor weight = tensor({0.5, 2, 1});
  const auto like = [weight](const Tensors& x) { return weight.to(x[0].dtype()); };
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const bool in_table = r == Reduction::mean;
    for (const Indices& ids : {Indices{0, 2, 1}, Indices{0, 2, -100}, Indices{-100, -100, -100}}) {
      const auto add = [&](const char* name, const auto& loss, bool of_table) {
        const bool row = of_table && in_table && *std::min_element(ids.data(), ids.data() + 3) == 0;
        cases.push_back({name,
                         {{3, 3}},
                         [=](const Tensors& x) { return loss(x, repeated(ids, x[0].size(0))); },
                         row ? rows : std::vector<Dims>()});
      };
      add(
          "cross_entropy",
          [=](const Tensors& x, const Indices& t) {
            return cross_entropy(x[0], t, {.reduction = r});
          },
          true);
      add(
          "cross_entropy, weight",
          [=](const Tensors& x, const Indices& t) {
            return cross_entropy(x[0], t, {.weight = like(x), .reduction = r});
          },
          false);
      add(
          "cross_entropy, smoothing",
          [=](const Tensors& x, const Indices& t) {
            return cross_entropy(x[0], t, {.label_smoothing = 0.1, .reduction = r});
          },
          true);
      add(
          "nll_loss",
          [=](const Tensors& x, const Indices& t) { return nll_loss(x[0], t, {.reduction = r}); },
          true);
    }
    cases.push_back({"cross_entropy of probabilities",
                     {{3, 3}, {3, 3}},
                     [=](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = r}); },
                     in_table ? std::vector<Dims>{{768, 65}, {768, 65}} : std::vector<Dims>()});
    cases.push_back({"cross_entropy of probabilities, itself", {{3, 3}}, [=](const Tensors& x) {
                       return cross_entropy(
                           x[0], x[0], {.weight = like(x), .label_smoothing = 0.2, .reduction = r});
                     }});
  }
  return cases;
}

}  // namespace xgrad::testing
