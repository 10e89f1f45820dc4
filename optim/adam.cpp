#include <xgrad/optim/adam.hpp>

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/optim.hpp>

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

void Adam::step() {
  std::vector<Slot> after = slots();  // takes their place once nothing can fail any more
  std::vector<AdamStep> steps;
  for (Slot& slot : after) {
    const Tensor& p = param(slot);
    const Tensor gradient = p.grad();
    if (!gradient.defined())
      continue;
    prepare(slot);
    const AdamOptions& o = options_[slot.group];
    steps.push_back({.parameter = p,
                     .gradient = gradient,
                     .exp_avg = slot.buffers[0],
                     .exp_avg_sq = slot.buffers[1],
                     .t = ++slot.steps,
                     .lr = o.lr,
                     .beta1 = o.betas.first,
                     .beta2 = o.betas.second,
                     .eps = o.eps,
                     .weight_decay = o.weight_decay,
                     .decoupled = decoupled_});
  }
  adam_step(steps);
  slots().swap(after);
}

}  // namespace xgrad::optim
