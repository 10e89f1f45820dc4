#pragma once
// Low-rank adaptation: a model's own weights stay as they are, and each Linear learns the product
// of two small matrices beside its weight.  Hu et al., 2021 (arXiv 2106.09685).
//
//   nn::add_lora(model, {.rank = 8});
//   optim::AdamW optimizer(nn::parameters(model));  // what is frozen has no gradient, and stays
//   ...
//   nn::merge_lora(model);  // the model that it was, with other weights

#include <optional>
#include <string>
#include <vector>
#include <xgrad/autograd/generator.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

struct LoraOptions {
  Size rank = 8;
  /// `rank` unless given, so that B A counts as it is: the paper's first choice, and what PEFT's
  /// defaults are.  Many give twice the rank.
  std::optional<double> alpha = {};
  /// Names of layers that get none, nor what is in them; they need not be there.
  std::vector<std::string> except = {"lm_head"};
};

namespace detail {
void add_lora(const Members& members, const LoraOptions& options, Generator& generator);
void merge_lora(const Members& members);
}  // namespace detail

/// Gives each Linear the adapters lora_A (rank, in), from U(-1 / sqrt(in), 1 / sqrt(in)), and
/// lora_B (out, rank), zeros: y = x Wᵀ + b + (alpha / rank) (x Aᵀ) Bᵀ is what it was, at first. All
/// other parameters are frozen, and lose their gradients.  Linears that are tied as a whole get the
/// same.  ValueError, before anything changes, for a rank of 0 or above a weight's smaller side, an
/// alpha that is not positive, adapters that are there already, weights in bfloat16, a weight that
/// is another Tensor of the model as well, and if no Linear is left.
template <MutableLayer M>
void add_lora(M& model, const LoraOptions& options = {},
              Generator& generator = default_generator()) {
  detail::add_lora(detail::members(model), options, generator);
}

/// Adds (alpha / rank) B A to each weight and removes the adapters, if there are any.  What was
/// frozen stays so.  ValueError for weights in bfloat16.
template <MutableLayer M>
void merge_lora(M& model) {
  detail::merge_lora(detail::members(model));
}

}  // namespace xgrad::nn
