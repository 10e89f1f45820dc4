#include "optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "../autograd/ops.hpp"

namespace xgrad::optim {

double Option::get() const {
  return std::visit([](const auto* own) -> double { return *own; }, value);
}

void Option::set(double number) const {
  std::visit([number]<class T>(T* own) { *own = static_cast<T>(number); }, value);
}

Optimizer::~Optimizer() = default;

void Optimizer::add_group(const std::vector<Tensor>& params) {
  for (const Tensor& p : params) {
    const std::size_t i = params_.size();
    check<ValueError>(p.defined(), "{}: parameter {} is undefined", name_, i);
    check<ValueError>(
        p.is_leaf(), "{}: parameter {} of shape {} is the result of an op; only leaves are trained",
        name_, i, to_string(p.shape()));
    const auto at = std::ranges::find(params_, p.handle(), &Tensor::handle);
    if (at != params_.end())
      fail<ValueError>("{}: parameter {} of shape {} is given already, as parameter {}", name_, i,
                       to_string(p.shape()), at - params_.begin());
    states_.push_back({.param = i, .group = num_groups_});
    params_.push_back(p);
  }
  check_group(num_groups_++, params);
}

void Optimizer::check_not_empty() const {
  check<ValueError>(!params_.empty(), "{}: there is no parameter to train", name_);
}

void Optimizer::check_group(std::size_t group, const std::vector<Tensor>& params) const {
  for (const Option& option : options(group))
    check_range(option, option.get());
  check_options(group, params);
}

void Optimizer::check_range(const Option& option, double value) const {
  const bool in_range = value >= option.least && value < option.below && std::isfinite(value);
  if (!in_range)
    fail<ValueError>("{}: {} is {}; it must be finite{}", name_, option.name, value,
                     std::isfinite(option.below)
                         ? fmt::format(" and in [{}, {})", option.least, option.below)
                     : std::isfinite(option.least) ? " and not negative"
                                                   : "");
}

// ---- steps ----

void Optimizer::zero_grad() {
  for (Tensor& p : params_)
    p.zero_grad();
}

void Optimizer::step() {
  const NoGrad no_grad;
  std::vector<ParameterState> after = states_;  // replaces states_ once nothing can fail
  std::vector<ElementUpdate> updates;
  for (ParameterState& entry : after) {
    const Tensor& p = params_[entry.param];
    const Tensor gradient = p.grad();
    if (!gradient.defined()) {
      check<ValueError>(p.requires_grad() || p.is_frozen(),
                        "{}: parameter {} of shape {} requires no gradient: requires_grad_(), "
                        "requires_grad_(false) if it is frozen, or nn::buffer() in visit",
                        name_, entry.param, to_string(p.shape()));
      continue;
    }
    if (gradient.shape() != p.shape() || gradient.dtype() != p.dtype())
      fail<ShapeError>("{}: parameter {} is {} of shape {} and its gradient is {} of shape {}",
                       name_, entry.param, to_string(p.dtype()), to_string(p.shape()),
                       to_string(gradient.dtype()), to_string(gradient.shape()));
    std::vector<std::string> names = state_names(entry.group, p);
    for (const std::string& name : names)
      check<ValueError>(std::ranges::count(names, name) == 1,
                        "{}: state_names() has '{}' twice, and restoring could not tell them apart",
                        name_, name);
    std::erase(names, "step");
    while (entry.state.size() < names.size())
      entry.state.push_back(full_like(p, initial_state(entry.group)));
    for (Tensor& x : entry.state)
      if (x.dtype() != p.dtype())  // the parameter has been converted
        x = x.to(p.dtype());
    updates.push_back(update(entry.group, {p, gradient, entry.state, ++entry.steps}));
    check<ValueError>(entry.state.size() == names.size(), "{}: update() leaves {} for {}", name_,
                      counted(entry.state.size(), "state", "states"),
                      counted(names.size(), "name", "names"));
    for (std::size_t i = 0; i < names.size(); ++i) {
      check<ValueError>(entry.state[i].defined(), "{}: update() leaves state.{}.{} undefined",
                        name_, entry.param, names[i]);
      check<ValueError>(names[i].find('.') == std::string::npos,
                        "{}: the state name '{}' has a dot, which separates names in checkpoints",
                        name_, names[i]);
      if (!state_fits(entry.group, names[i], entry.state[i], p))
        fail<ShapeError>(
            "{}: update() makes state.{}.{} {} of a parameter {}, and restoring would refuse it; "
            "let state_fits() accept the shapes that it may have",
            name_, entry.param, names[i], to_string(entry.state[i].shape()), to_string(p.shape()));
    }
  }
  update_elements(name_, updates);
  states_.swap(after);
}

Option Optimizer::learning_rate_of(std::size_t group) const {
  check<ValueError>(group < num_groups_, "{}: there is no group {}; there are {}", name_, group,
                    num_groups_);
  const std::vector<Option> all = options(group);
  const auto lr = std::ranges::find(all, "lr", &Option::name);
  check<ValueError>(lr != all.end(), "{}: has no learning rate", name_);
  return *lr;
}

double Optimizer::learning_rate(std::size_t group) const { return learning_rate_of(group).get(); }

void Optimizer::set_learning_rate(double lr, std::size_t group) {
  const Option option = learning_rate_of(group);
  check_range(option, lr);
  option.set(lr);
}

void Optimizer::set_learning_rate(double lr) {
  for (std::size_t group = 0; group < num_groups_; ++group)
    set_learning_rate(lr, group);
}

// ---- saving and loading ----

OptimizerState Optimizer::state_dict() const {
  OptimizerState result;
  for (const ParameterState& entry : states_) {
    OptimizerState::Parameter& of = result.parameters.emplace_back();
    const Tensor& p = params_[entry.param];
    std::size_t i = 0;
    for (const std::string& name : state_names(entry.group, p))
      if (entry.steps == 0 && entry.state.empty())
        continue;
      else if (name == "step")
        of.step = static_cast<double>(entry.steps);
      else
        of.tensors.emplace_back(name, entry.state[i++].to(p.dtype()).detach());
  }
  for (std::size_t group = 0; group < num_groups_; ++group) {
    OptimizerState::Group& of = result.groups.emplace_back();
    for (const Option& option : options(group))
      of.options.emplace_back(option.name, option.get());
    of.params = std::ranges::count(states_, group, &ParameterState::group);
  }
  return result;
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  std::vector<std::string> problems;
  // Takes a value out of a list; entries left at the end were not expected.
  const auto take = [&problems](auto& from, const std::string& prefix, const std::string& name) {
    const auto at = std::ranges::find_if(from, [&](const auto& e) { return e.first == name; });
    if (at == from.end()) {
      problems.push_back("missing: " + prefix + name);
      return decltype(at->second)();
    }
    auto value = at->second;
    from.erase(at);
    return value;
  };
  const auto refuse_rest = [&problems](const auto& from, const std::string& prefix) {
    for (const auto& [name, value] : from)
      problems.push_back("unexpected: " + prefix + name);
  };

  std::vector<std::pair<Option, double>> before;
  for (std::size_t group = 0; group < num_groups_; ++group)
    for (const Option& option : options(group))
      before.emplace_back(option, option.get());
  std::vector<ParameterState> states = states_;
  try {
    for (std::size_t group = 0; group < std::max(num_groups_, state.groups.size()); ++group) {
      const std::string prefix = fmt::format("param_groups.{}.", group);
      auto of = group < state.groups.size() ? state.groups[group] : OptimizerState::Group();
      if (group < num_groups_) {
        for (const Option& option : options(group))
          option.set(take(of.options, prefix, option.name));
        if (const auto own = std::ranges::count(states, group, &ParameterState::group);
            std::cmp_not_equal(of.params, own))
          problems.push_back(
              fmt::format("{}params is {} and the group has {}", prefix, of.params, own));
      }
      refuse_rest(of.options, prefix);
    }
    for (std::size_t i = 0; i < std::max(states.size(), state.parameters.size()); ++i) {
      const std::string prefix = fmt::format("state.{}.", i);
      auto of = i < state.parameters.size() ? state.parameters[i] : OptimizerState::Parameter();
      for (const auto& [name, x] : of.tensors)
        if (!x.defined())
          problems.push_back("undefined: " + prefix + name);
      if (i < states.size()) {
        ParameterState& entry = states[i];
        const Tensor& p = params_[entry.param];
        const bool stepped = of.step || !of.tensors.empty();  // before it was saved
        entry.steps = stepped ? 1 : 0;
        entry.state.clear();
        for (const std::string& name :
             stepped ? state_names(entry.group, p) : std::vector<std::string>())
          if (name != "step") {
            const Tensor x = take(of.tensors, prefix, name);
            if (x.defined() && !state_fits(entry.group, name, x, p))
              problems.push_back(fmt::format("wrong shape: {}{} is {} and the parameter {}", prefix,
                                             name, to_string(x.shape()), to_string(p.shape())));
            entry.state.push_back(x.defined() ? x.detach().to(p.dtype()) : x);
          } else if (!of.step) {
            problems.push_back("missing: " + prefix + name);
          } else if (const double n = *std::exchange(of.step, std::nullopt);
                     n >= 0 && n < 1e15 && n == std::floor(n)) {
            entry.steps = static_cast<std::size_t>(n);
          } else {
            problems.push_back(fmt::format("out of range: {}step is {}", prefix, n));
          }
      }
      if (of.step)
        problems.push_back("unexpected: " + prefix + "step");
      refuse_rest(of.tensors, prefix);
    }
    if (!problems.empty())
      fail<ValueError>("{}: the state does not fit this optimizer\n  {}", name_,
                       listed(problems, "\n  "));
    for (std::size_t group = 0; group < num_groups_; ++group)
      check_group(group, params_);
  } catch (...) {
    for (const auto& [option, value] : before)
      option.set(value);
    throw;
  }
  states_ = std::move(states);
}

}  // namespace xgrad::optim
