#pragma once
// The base of all optimizers: groups of parameters, their gradients, and a state to save and load.
// docs/write_an_optimizer.md describes how to add one.

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "../autograd/update.hpp"

namespace xgrad::optim {

/// Parameters that are trained with the same options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options = {};
};

/// An option under its name, and the range [least, below) of a number.
struct Option {
  std::string name;
  std::variant<double*, bool*> value;
  double least = 0, below = std::numeric_limits<double>::infinity();

  double get() const;
  void set(double number) const;
};

/// A parameter with a gradient, as passed to an optimizer.
struct Parameter {
  Tensor value, gradient;
  std::vector<Tensor>& state;  ///< in the order of state_names(), at first zeros of value's shape,
                               ///< or filled with initial_state(); update() may assign others
  std::size_t step;            ///< 1, 2, ...: counts steps in which it had a gradient
};

/// The state of an optimizer that a checkpoint needs, under PyTorch's names.  Messages name its
/// parts "state.0.exp_avg" and "param_groups.0.lr".
struct OptimizerState {
  struct Parameter {
    std::optional<double> step = {};  ///< counts steps in which it had a gradient
    std::vector<std::pair<std::string, Tensor>> tensors = {};  ///< "exp_avg"
  };
  struct Group {
    std::vector<std::pair<std::string, double>> options = {};  ///< "lr"
    std::size_t params = 0;                                    ///< their number
  };
  std::vector<Parameter> parameters;  ///< in the order of params(); empty before the first step
  std::vector<Group> groups;
};

class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;  // a copy would train the same parameters
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  /// Changes each parameter that has a gradient, in place.  If it throws, nothing has changed:
  /// ShapeError for a gradient without its parameter's shape and dtype, ValueError for a Tensor
  /// that has no gradient, requires none and was not frozen by requires_grad_(false).
  virtual void step();
  /// Clears the gradients.
  void zero_grad();

  std::size_t num_groups() const { return num_groups_; }
  const std::vector<Tensor>& params() const { return params_; }  ///< of all groups
  double learning_rate(std::size_t group = 0) const;
  /// Sets the learning rate of all groups.  ValueError if it is negative or not finite.
  void set_learning_rate(double lr);
  void set_learning_rate(double lr, std::size_t group);

  /// A snapshot: later steps do not change it.  Parameters that have not been stepped have no
  /// state, unless one was loaded.
  OptimizerState state_dict() const;
  /// Sets state and options.  If anything is missing or unexpected, or has another shape, one
  /// ValueError lists it all and nothing has changed.  Values of the other dtype are converted.
  void load_state_dict(const OptimizerState& state);

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}  ///< named in messages
  /// ValueError for options out of range, an undefined Tensor, the result of an op, or a parameter
  /// that is given already.
  void add_group(const std::vector<Tensor>& params);
  void check_not_empty() const;  ///< ValueError if there is no parameter at all

 private:
  struct ParameterState {
    std::size_t param;  // index into params()
    std::size_t group;
    std::size_t steps = 0;
    std::vector<Tensor> state = {};  // empty before the first step
  };
  // The options of a group, as OptimizerOf has them.
  virtual std::vector<Option> options(std::size_t group) const = 0;
  virtual std::vector<std::string> state_names(std::size_t group, const Tensor& param) const = 0;
  virtual bool state_fits(std::size_t group, const std::string& name, const Tensor& state,
                          const Tensor& param) const = 0;
  virtual double initial_state(std::size_t group) const = 0;
  virtual void check_options(std::size_t group, const std::vector<Tensor>& params) const = 0;
  virtual ElementUpdate update(std::size_t group, const Parameter& p) const = 0;

  Option learning_rate_of(std::size_t group) const;
  void check_group(std::size_t group, const std::vector<Tensor>& params) const;
  void check_range(const Option& option, double value) const;

  std::string name_;
  std::size_t num_groups_ = 0;
  std::vector<Tensor> params_;
  std::vector<ParameterState> states_;
};

/// The optimizer that is described by its options, an aggregate with
///   static constexpr const char* name;             // for messages
///   std::vector<Option> options();                 // "lr" is among them
///   std::vector<std::string> state_names() const;  // Tensors kept for a parameter; "step", the
///                                                  // first, says that its steps are saved as well
///   ElementUpdate update(const Parameter& p) const;  // its step of a parameter
/// and, where they are wanted,
///   void check(const std::vector<Tensor>& params) const;  // rules that are no ranges; throws
///   std::vector<std::string> state_names(const Tensor& param) const;  // if they depend on it
///   double initial_state() const;  // what Tensors kept for a parameter are filled with; else 0
///   // whether this is a state of that name of the parameter; absent: it has the parameter's shape
///   bool state_fits(const std::string& which, const Tensor& state, const Tensor& param) const;
template <class O>
class OptimizerOf : public Optimizer {
 public:
  /// ValueError for options out of range, no parameter, a parameter that is not a leaf, or one that
  /// is given twice.
  explicit OptimizerOf(const std::vector<Tensor>& params, const O& options = {});
  explicit OptimizerOf(const std::vector<ParamGroup<O>>& groups);

 private:
  std::vector<Option> options(std::size_t group) const override {
    return const_cast<O&>(options_[group]).options();  // Option::set() writes to them
  }
  std::vector<std::string> state_names(std::size_t group,
                                       [[maybe_unused]] const Tensor& param) const override {
    if constexpr (requires { options_[group].state_names(param); })
      return options_[group].state_names(param);
    else
      return options_[group].state_names();
  }
  bool state_fits([[maybe_unused]] std::size_t group, [[maybe_unused]] const std::string& name,
                  const Tensor& state, const Tensor& param) const override {
    if constexpr (requires { options_[group].state_fits(name, state, param); })
      return options_[group].state_fits(name, state, param);
    else
      return state.shape() == param.shape();
  }
  double initial_state([[maybe_unused]] std::size_t group) const override {
    if constexpr (requires { options_[group].initial_state(); })
      return options_[group].initial_state();
    else
      return 0;
  }
  void check_options([[maybe_unused]] std::size_t group,
                     [[maybe_unused]] const std::vector<Tensor>& params) const override {
    if constexpr (requires { options_[group].check(params); })
      options_[group].check(params);
  }
  ElementUpdate update(std::size_t group, const Parameter& p) const override {
    return options_[group].update(p);
  }

  std::vector<O> options_;
};

template <class O>
OptimizerOf<O>::OptimizerOf(const std::vector<Tensor>& params, const O& options)
    : OptimizerOf(std::vector<ParamGroup<O>>{{params, options}}) {}
template <class O>
OptimizerOf<O>::OptimizerOf(const std::vector<ParamGroup<O>>& groups) : Optimizer(O::name) {
  for (const ParamGroup<O>& group : groups) {
    options_.push_back(group.options);
    add_group(group.params);
  }
  check_not_empty();
}

}  // namespace xgrad::optim
