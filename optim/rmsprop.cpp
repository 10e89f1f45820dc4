#include <xgrad/optim/rmsprop.hpp>

#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

std::vector<Option> RMSpropOptions::options() {
  return {{"lr", &lr},
          {"alpha", &alpha},
          {"eps", &eps},
          {"weight_decay", &weight_decay},
          {"momentum", &momentum}};
}

std::vector<std::string> RMSpropOptions::state_names() const {
  if (momentum == 0)
    return {"step", "square_avg"};
  return {"step", "square_avg", "momentum_buffer"};
}

ElementUpdate RMSpropOptions::update(const Parameter& p) const {
  const auto direction = [o = *this](auto x, auto& v, auto g) {
    g = g + c(g, o.weight_decay) * x;
    v = c(v, o.alpha) * v + c(v, 1 - o.alpha) * g * g;
    return g / (sqrt(v) + c(v, o.eps));
  };
  const auto plain = [direction, rate = lr](auto x, auto v, auto g) {
    x = x - c(x, rate) * direction(x, v, g);
    return std::array{x, v};
  };
  if (momentum == 0)
    return element_update(plain, p.value, p.state[0], p.gradient);
  const auto formula = [direction, o = *this](auto x, auto v, auto b, auto g) {
    b = c(b, o.momentum) * b + direction(x, v, g);
    return std::array{x - c(x, o.lr) * b, v, b};
  };
  return element_update(formula, p.value, p.state[0], p.state[1], p.gradient);
}

}  // namespace xgrad::optim
