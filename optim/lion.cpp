#include <xgrad/optim/lion.hpp>

#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

std::vector<Option> LionOptions::options() {
  return {{"lr", &lr},
          {"betas.0", &betas.first, 0, 1},
          {"betas.1", &betas.second, 0, 1},
          {"weight_decay", &weight_decay}};
}

std::vector<std::string> LionOptions::state_names() const { return {"exp_avg"}; }

ElementUpdate LionOptions::update(const Parameter& p) const {
  const auto formula = [rate = lr, beta1 = betas.first, beta2 = betas.second, decay = weight_decay](
                           auto x, auto m, auto g) {
    const auto u = c(m, beta1) * m + c(g, 1 - beta1) * g, zero = c(u, 0);
    const auto direction = where(u > zero, c(u, 1), where(u < zero, c(u, -1), u));  // NaN stays
    x = x - c(x, rate) * (direction + c(x, decay) * x);
    m = c(m, beta2) * m + c(g, 1 - beta2) * g;
    return std::array{x, m};
  };
  return element_update(formula, p.value, p.state[0], p.gradient);
}

}  // namespace xgrad::optim
