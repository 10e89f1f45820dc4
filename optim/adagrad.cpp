#include <xgrad/optim/adagrad.hpp>

#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

std::vector<Option> AdagradOptions::options() {
  return {{"lr", &lr},
          {"lr_decay", &lr_decay},
          {"weight_decay", &weight_decay},
          {"initial_accumulator_value", &initial_accumulator_value},
          {"eps", &eps}};
}

std::vector<std::string> AdagradOptions::state_names() const { return {"step", "sum"}; }

ElementUpdate AdagradOptions::update(const Parameter& p) const {
  const double rate = lr / (1 + static_cast<double>(p.step - 1) * lr_decay);
  const double initial = p.step == 1 ? initial_accumulator_value : 0;
  const auto formula = [=, o = *this](auto x, auto s, auto g) {
    g = g + c(g, o.weight_decay) * x;
    s = s + c(s, initial) + g * g;
    return std::array{x - c(x, rate) * g / (sqrt(s) + c(s, o.eps)), s};
  };
  return element_update(formula, p.value, p.state[0], p.gradient);
}

}  // namespace xgrad::optim
