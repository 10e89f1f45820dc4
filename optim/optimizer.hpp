#pragma once
// What all optimizers have: parameters in groups, gradients to clear, state to save and load.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::optim {

/// Parameters that are trained with the same options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options = {};
};

/// All that an optimizer must keep from one run to the next, under PyTorch's names:
/// "state.0.exp_avg" is of parameter 0, counted through the groups; "param_groups.0.lr" is an
/// option.
struct OptimizerState {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, double>> numbers;
};

class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;  // a copy would train the same parameters
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Changes each parameter that has a gradient, in place.  If it throws, nothing has changed:
  /// ShapeError for a gradient that has not its parameter's shape and dtype.
  virtual void step() = 0;
  /// Clears the gradients.
  void zero_grad();

  std::size_t num_groups() const { return num_groups_; }
  const std::vector<Tensor>& params() const { return params_; }  ///< of all groups
  double learning_rate(std::size_t group = 0) const;
  /// Of all groups.  ValueError if it is negative or not a number.
  void set_learning_rate(double lr);
  void set_learning_rate(double lr, std::size_t group);

  /// A snapshot: later steps do not show in it.  Parameters that have not been stepped have no
  /// state.
  OptimizerState state_dict() const;
  /// Takes over state and options.  If anything is missing or unexpected, or has another shape,
  /// one ValueError lists it all and nothing has changed.  Values of the other dtype are converted.
  void load_state_dict(const OptimizerState& state);

 protected:
  /// A parameter and what the optimizer keeps for it.
  struct Slot {
    std::size_t param;  ///< index into params()
    std::size_t group;
    std::size_t steps = 0;
    std::vector<Tensor> buffers =
        {};  ///< in the order of buffer_names(); empty before the first step
  };
  /// An option of a group under its name.
  struct Option {
    std::string name;
    double* number;
    bool* flag = nullptr;  ///< in place of number
    double get() const { return flag != nullptr ? static_cast<double>(*flag) : *number; }
    void set(double value) const {
      if (flag != nullptr)
        *flag = value != 0;
      else
        *number = value;
    }
  };

  /// name: for messages.  buffer_names: the Tensors kept for each parameter; counts_steps: whether
  /// the number of steps is part of the state.
  Optimizer(std::string name, std::vector<std::string> buffer_names, bool counts_steps)
      : name_(std::move(name)),
        buffer_names_(std::move(buffer_names)),
        counts_steps_(counts_steps) {}

  /// ValueError for an undefined Tensor, the result of an op, or a parameter that is there already.
  void add_group(const std::vector<Tensor>& params);
  /// ValueError if there is no parameter at all.
  void check_not_empty() const;
  /// The options of a group by name; "lr" is among them.
  virtual std::vector<Option> options_of(std::size_t group) = 0;
  /// ValueError unless the options of a group are in range.
  virtual void check_options(std::size_t group) const = 0;
  /// ValueError naming the option unless it is at least 0 and finite.
  void check_not_negative(const char* option, double value) const;

  const std::string& name() const { return name_; }
  std::vector<Slot>& slots() { return slots_; }
  Tensor& param(const Slot& slot) { return params_[slot.param]; }
  /// Makes the slot's buffers if it has none, zeros, and converts them if the parameter has another
  /// dtype by now.
  void prepare(Slot& slot) const;

 private:
  double& rate(std::size_t group);

  std::string name_;
  std::vector<std::string> buffer_names_;
  bool counts_steps_;
  std::size_t num_groups_ = 0;
  std::vector<Tensor> params_;
  std::vector<Slot> slots_;
};

}  // namespace xgrad::optim
