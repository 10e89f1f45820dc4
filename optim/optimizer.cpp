#include <xgrad/optim/optimizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::optim {

void Optimizer::add_group(const std::vector<Tensor>& params) {
  for (const Tensor& p : params) {
    const std::size_t i = params_.size();
    check<ValueError>(p.defined(), "{}: parameter {} is undefined", name_, i);
    check<ValueError>(
        p.is_leaf(), "{}: parameter {} of shape {} is the result of an op; only leaves are trained",
        name_, i, to_string(p.shape()));
    const auto same = [&p](const Tensor& q) { return q.handle() == p.handle(); };
    const auto at = std::ranges::find_if(params_, same);
    if (at != params_.end())
      fail<ValueError>("{}: parameter {} of shape {} is there already, as parameter {}", name_, i,
                       to_string(p.shape()), at - params_.begin());
    slots_.push_back({.param = i, .group = num_groups_});
    params_.push_back(p);
  }
  ++num_groups_;
}

void Optimizer::check_not_empty() const {
  check<ValueError>(!params_.empty(), "{}: there is no parameter to train", name_);
}

void Optimizer::zero_grad() {
  for (Tensor& p : params_)
    p.zero_grad();
}

double& Optimizer::rate(std::size_t group) {
  check<ValueError>(group < num_groups_, "{}: there is no group {}; there are {}", name_, group,
                    num_groups_);
  for (const Option& option : options_of(group))
    if (option.name == "lr")
      return *option.number;
  fail<ValueError>("{}: has no learning rate", name_);
}

void Optimizer::check_not_negative(const char* option, double value) const {
  check<ValueError>(value >= 0 && std::isfinite(value),
                    "{}: {} is {}; it must be finite and not negative", name_, option, value);
}

// options_of() gives access for reading and writing alike.
double Optimizer::learning_rate(std::size_t group) const {
  return const_cast<Optimizer*>(this)->rate(group);
}

void Optimizer::set_learning_rate(double lr, std::size_t group) {
  check_not_negative("lr", lr);
  rate(group) = lr;
}

void Optimizer::set_learning_rate(double lr) {
  for (std::size_t group = 0; group < num_groups_; ++group)
    set_learning_rate(lr, group);
}

void Optimizer::prepare(Slot& slot) const {
  const Tensor& p = params_[slot.param];
  if (slot.buffers.empty())
    for (std::size_t i = 0; i < buffer_names_.size(); ++i)
      slot.buffers.push_back(zeros_like(p).detach());
  for (Tensor& buffer : slot.buffers)
    if (buffer.dtype() != p.dtype())
      buffer = buffer.to(p.dtype());
}

// ---- saving and loading ----

OptimizerState Optimizer::state_dict() const {
  OptimizerState state;
  for (const Slot& slot : slots_) {
    const std::string prefix = fmt::format("state.{}.", slot.param);
    if (counts_steps_ && slot.steps > 0)
      state.numbers.emplace_back(prefix + "step", slot.steps);
    for (std::size_t i = 0; i < slot.buffers.size(); ++i)
      state.tensors.emplace_back(prefix + buffer_names_[i],
                                 slot.buffers[i].to(params_[slot.param].dtype()).detach());
  }
  for (std::size_t group = 0; group < num_groups_; ++group) {
    const std::string prefix = fmt::format("param_groups.{}.", group);
    for (const Option& option : const_cast<Optimizer*>(this)->options_of(group))
      state.numbers.emplace_back(prefix + option.name, option.get());
    state.numbers.emplace_back(prefix + "params", std::ranges::count(slots_, group, &Slot::group));
  }
  return state;
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  std::vector<std::string> problems;
  std::set<std::string> names;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, double> given;
  const auto note = [&](const std::string& name) {
    if (!names.insert(name).second)
      problems.push_back(fmt::format("given twice: {}", name));
  };
  for (const auto& [name, tensor] : state.tensors) {
    note(name);
    tensors.emplace(name, tensor);
    if (!tensor.defined())
      problems.push_back("undefined: " + name);
  }
  for (const auto& [name, number] : state.numbers) {
    note(name);
    given.emplace(name, number);
  }
  // Takes a number or a Tensor out; what is left in the end was not expected.
  const auto take = [&problems](auto& from, const std::string& name) {
    auto node = from.extract(name);
    if (node.empty()) {
      problems.push_back("missing: " + name);
      return typename std::remove_reference_t<decltype(from)>::mapped_type();
    }
    return std::move(node.mapped());
  };

  std::vector<Slot> slots = slots_;
  for (Slot& slot : slots) {
    const Tensor& p = params_[slot.param];
    const std::string prefix = fmt::format("state.{}.", slot.param);
    slot.steps = 0;
    slot.buffers.clear();
    const auto begins = [&prefix](const std::string& name) { return name.starts_with(prefix); };
    if (std::ranges::none_of(names, begins))
      continue;  // saved before its first step
    slot.steps = 1;
    if (counts_steps_) {
      const double steps = take(given, prefix + "step");
      if (steps >= 0 && steps < 1e15)
        slot.steps = static_cast<std::size_t>(steps);
      else
        problems.push_back(fmt::format("out of range: {}step is {}", prefix, steps));
    }
    for (const std::string& name : buffer_names_) {
      const Tensor buffer = take(tensors, prefix + name);
      if (buffer.defined() && buffer.shape() != p.shape())
        problems.push_back(fmt::format("wrong shape: {}{} is {} and the parameter {}", prefix, name,
                                       to_string(buffer.shape()), to_string(p.shape())));
      if (buffer.defined())
        slot.buffers.push_back(buffer.detach().to(p.dtype()));
    }
  }

  std::vector<std::pair<Option, double>> options;
  for (std::size_t group = 0; group < num_groups_; ++group) {
    const std::string prefix = fmt::format("param_groups.{}.", group);
    for (const Option& option : options_of(group))
      options.emplace_back(option, take(given, prefix + option.name));
    const auto own = static_cast<double>(std::ranges::count(slots_, group, &Slot::group));
    if (const double n = take(given, prefix + "params"); n != own)
      problems.push_back(fmt::format("{}params is {} and the group has {}", prefix, n, own));
  }
  for (const auto& [name, tensor] : tensors)
    problems.push_back("unexpected: " + name);
  for (const auto& [name, number] : given)
    problems.push_back("unexpected: " + name);
  if (!problems.empty())
    fail<ValueError>("{}: the state does not fit this optimizer\n  {}", name_,
                     fmt::join(problems, "\n  "));

  for (auto& [option, value] : options) {  // afterwards value is what was there before
    const double before = option.get();
    option.set(std::exchange(value, before));
  }
  try {
    for (std::size_t group = 0; group < num_groups_; ++group)
      check_options(group);
  } catch (...) {
    for (const auto& [option, before] : options)
      option.set(before);
    throw;
  }
  slots_ = std::move(slots);
}

}  // namespace xgrad::optim
