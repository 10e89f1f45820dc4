#include <xgrad/optim/adam.hpp>

#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/optim.hpp>

namespace xgrad::optim {

Adam::Adam(std::string name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups)
    : Optimizer(std::move(name), {"exp_avg", "exp_avg_sq"}, true), decoupled_(decoupled) {
  for (const auto& group : groups) {
    options_.push_back(group.options);
    Adam::check_options(options_.size() - 1);
    add_group(group.params);
  }
  check_not_empty();
}

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups) : Adam("Adam", false, groups) {}

Adam::Adam(const std::vector<Tensor>& params, const AdamOptions& options)
    : Adam(std::vector<ParamGroup<AdamOptions>>{{params, options}}) {}

static std::vector<ParamGroup<AdamOptions>> as_adam(
    const std::vector<ParamGroup<AdamWOptions>>& groups) {
  std::vector<ParamGroup<AdamOptions>> result;
  for (const auto& [params, o] : groups)
    result.push_back({params, {o.lr, o.betas, o.eps, o.weight_decay}});
  return result;
}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups)
    : Adam("AdamW", true, as_adam(groups)) {}

AdamW::AdamW(const std::vector<Tensor>& params, const AdamWOptions& options)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{params, options}}) {}

std::vector<ParamGroup<AdamWOptions>> decay_matrices(const std::vector<Tensor>& params,
                                                     const AdamWOptions& options) {
  ParamGroup<AdamWOptions> matrices{{}, options}, others{{}, options};
  others.options.weight_decay = 0;
  for (const Tensor& p : params)
    (p.dim() >= 2 ? matrices : others).params.push_back(p);
  std::vector<ParamGroup<AdamWOptions>> groups;
  for (auto* const group : {&matrices, &others})
    if (!group->params.empty())
      groups.push_back(std::move(*group));
  return groups;
}

std::vector<Optimizer::Option> Adam::options_of(std::size_t group) {
  AdamOptions& o = options_[group];
  return {{"lr", &o.lr},
          {"betas.0", &o.betas.first},
          {"betas.1", &o.betas.second},
          {"eps", &o.eps},
          {"weight_decay", &o.weight_decay}};
}

void Adam::check_options(std::size_t group) const {
  const AdamOptions& o = options_[group];
  check_not_negative("lr", o.lr);
  check_not_negative("eps", o.eps);
  check_not_negative("weight_decay", o.weight_decay);
  for (const double beta : {o.betas.first, o.betas.second})
    check<ValueError>(beta >= 0 && beta < 1, "{}: betas are ({}, {}); each must be in [0, 1)",
                      name(), o.betas.first, o.betas.second);
}

template <class T>
void Adam::step_all() {
  std::vector<kernels::AdamTask<T>> tasks;
  for (Slot& slot : slots()) {
    Tensor& p = param(slot);
    const Tensor gradient = p.grad();
    if (p.dtype() != dtype_of<T> || !gradient.defined())
      continue;
    prepare(slot);
    const AdamOptions& o = options_[slot.group];
    const auto [beta1, beta2] = o.betas;
    const auto t = static_cast<double>(++slot.steps);
    // Coefficients are computed in double and rounded once.
    tasks.push_back({.parameter = writable<T>(p),
                     .gradient = gradient.data<T>(),
                     .exp_avg = writable<T>(slot.buffers[0]),
                     .exp_avg_sq = writable<T>(slot.buffers[1]),
                     .n = p.numel(),
                     .keep = static_cast<T>(decoupled_ ? 1 - o.lr * o.weight_decay : 1),
                     .decay = static_cast<T>(decoupled_ ? 0 : o.weight_decay),
                     .beta1 = static_cast<T>(beta1),
                     .beta2 = static_cast<T>(beta2),
                     .rest1 = static_cast<T>(1 - beta1),
                     .rest2 = static_cast<T>(1 - beta2),
                     .step_size = static_cast<T>(o.lr / (1 - std::pow(beta1, t))),
                     .correction = static_cast<T>(std::sqrt(1 - std::pow(beta2, t))),
                     .eps = static_cast<T>(o.eps)});
  }
  kernels::adam<T>(tasks);
}

void Adam::step() {
  step_all<float>();
  step_all<double>();
}

}  // namespace xgrad::optim
