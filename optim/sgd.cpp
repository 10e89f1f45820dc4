#include <xgrad/optim/sgd.hpp>

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/optim.hpp>

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

template <class T>
void SGD::step_all() {
  std::vector<kernels::SgdTask<T>> tasks;
  for (Slot& slot : slots()) {
    Tensor& p = param(slot);
    const Tensor gradient = p.grad();
    if (p.dtype() != dtype_of<T> || !gradient.defined())
      continue;
    const SGDOptions& o = options_[slot.group];
    const bool first = slot.buffers.empty();
    if (o.momentum != 0)
      prepare(slot);
    tasks.push_back({.parameter = writable<T>(p),
                     .gradient = gradient.data<T>(),
                     .momentum_buffer = o.momentum != 0 ? writable<T>(slot.buffers[0]) : nullptr,
                     .n = p.numel(),
                     .lr = static_cast<T>(o.lr),
                     .weight_decay = static_cast<T>(o.weight_decay),
                     .momentum = static_cast<T>(o.momentum),
                     .rest = first ? T(1) : static_cast<T>(1 - o.dampening),
                     .nesterov = o.nesterov});
  }
  kernels::sgd<T>(tasks);
}

void SGD::step() {
  step_all<float>();
  step_all<double>();
}

}  // namespace xgrad::optim
