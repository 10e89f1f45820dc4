#include <xgrad/optim/sgd.hpp>

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/optim.hpp>

namespace xgrad::optim {

SGD::SGD(const std::vector<Tensor>& params, const SGDOptions& options)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{params, options}}) {}

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups)
    : Optimizer("SGD", {"momentum_buffer"}, false) {
  for (const auto& group : groups) {
    options_.push_back(group.options);
    SGD::check_options(options_.size() - 1);
    add_group(group.params);
  }
  check_not_empty();
}

std::vector<Optimizer::Option> SGD::options_of(std::size_t group) {
  SGDOptions& o = options_[group];
  return {{"lr", &o.lr},
          {"momentum", &o.momentum},
          {"dampening", &o.dampening},
          {"weight_decay", &o.weight_decay},
          {"nesterov", nullptr, &o.nesterov}};
}

void SGD::check_options(std::size_t group) const {
  const SGDOptions& o = options_[group];
  check_not_negative("lr", o.lr);
  check_not_negative("momentum", o.momentum);
  check_not_negative("weight_decay", o.weight_decay);
  check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                    "SGD: nesterov needs momentum and no dampening; they are {} and {}", o.momentum,
                    o.dampening);
}

void SGD::step() {
  std::vector<Slot> after = slots();  // takes their place once nothing can fail any more
  std::vector<SgdStep> steps;
  for (Slot& slot : after) {
    const Tensor& p = param(slot);
    const Tensor gradient = p.grad();
    if (!gradient.defined())
      continue;
    const SGDOptions& o = options_[slot.group];
    const bool first = slot.buffers.empty();
    if (o.momentum != 0)
      prepare(slot);
    steps.push_back({.parameter = p,
                     .gradient = gradient,
                     .momentum_buffer = o.momentum != 0 ? slot.buffers[0] : Tensor(),
                     .lr = o.lr,
                     .weight_decay = o.weight_decay,
                     .momentum = o.momentum,
                     .dampening = o.dampening,
                     .nesterov = o.nesterov,
                     .first = first});
  }
  sgd_step(steps);
  slots().swap(after);
}

}  // namespace xgrad::optim
