#include <xgrad/nn/lora.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/linear.hpp>

namespace xgrad::nn::detail {

void add_lora(const Members& members, const LoraOptions& options, Generator& generator) {
  const double alpha = options.alpha.value_or(static_cast<double>(options.rank));
  check<ValueError>(options.rank > 0, "add_lora: rank is {}; it must be at least 1", options.rank);
  check<ValueError>(alpha > 0 && std::isfinite(alpha), "add_lora: alpha is {}; it must be positive",
                    alpha);
  members.check_tensors("add_lora");
  std::map<std::string, Linear*> chosen;            // by the name of the weight
  std::map<const void*, std::string> weight_names;  // by the weight: the first of those tied
  for (const auto& [name, linear] : members.linears) {
    const std::string weight = name_below(name, "weight");
    check<ValueError>(!linear->lora_A.defined(),
                      "add_lora: {} has adapters already; merge_lora() adds them to it", weight);
    const bool excepted = std::ranges::any_of(options.except, [&, &layer = name](auto& other) {
      return layer == other || layer.starts_with(other + ".");
    });
    if (excepted || !linear->weight.defined())
      continue;
    const auto smaller = std::min(linear->weight.size(0), linear->weight.size(1));
    check<ValueError>(options.rank <= smaller,
                      "add_lora: rank is {}, above the smaller side of {}, {}", options.rank,
                      weight, to_string(linear->weight.shape()));
    chosen.emplace(weight, linear);
    weight_names.emplace(linear->weight.handle().get(), weight);
  }
  check<ValueError>(!chosen.empty(), "add_lora: the model has no Linear that may have adapters");
  const auto adapter_of = [](const std::string& weight) {
    return weight.substr(0, weight.size() - std::string("weight").size()) + "lora_A";
  };
  for (const Member& m : members.tensors) {
    check<GraphError>(m.tensor.is_leaf(), "add_lora: {} is the result of an op, not a leaf",
                      m.name);
    const auto first = weight_names.find(m.tensor.handle().get());
    check<ValueError>(first == weight_names.end() || first->second == m.name ||
                          (chosen.contains(m.name) &&
                           members.tied(adapter_of(first->second), adapter_of(m.name))),
                      "add_lora: {} and {} are one Tensor, of which each would have its own "
                      "adapters: name the Linear in .except",
                      m.name, first == weight_names.end() ? "" : first->second);
  }

  for (const Member& m : members.tensors) {
    Tensor x = m.tensor;
    if (!m.is_buffer)
      x.requires_grad_(false);
    x.zero_grad();
  }
  for (const auto& [name, linear] : members.linears) {
    if (chosen.count(name_below(name, "weight")) == 0)
      continue;
    const Tensor& W = linear->weight;
    linear->lora_scale = alpha / static_cast<double>(options.rank);
    if (const Linear& first = *chosen.at(weight_names.at(W.handle().get())); &first != linear) {
      linear->lora_A = first.lora_A;
      linear->lora_B = first.lora_B;
      continue;
    }
    linear->lora_A = zeros({options.rank, W.shape()[1]}, W.dtype());
    linear->lora_B = zeros({W.shape()[0], options.rank}, W.dtype()).requires_grad_();
    init::kaiming_uniform_(linear->lora_A, {.a = std::sqrt(5.0)}, generator).requires_grad_();
  }
}

void merge_lora(const Members& members) {
  members.check_tensors("merge_lora");
  const NoGrad no_grad;
  std::map<const void*, Linear*> merged;
  for (const auto& [name, linear] : members.linears) {
    if (!linear->lora_A.defined())
      continue;
    if (merged.emplace(linear->weight.handle().get(), linear).second)
      linear->weight.copy_(linear->weight +
                           linear->lora_scale * matmul(linear->lora_B, linear->lora_A));
    linear->lora_A = linear->lora_B = Tensor();
  }
}

}  // namespace xgrad::nn::detail
