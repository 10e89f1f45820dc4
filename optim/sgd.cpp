#include <xgrad/optim/sgd.hpp>

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

std::vector<Option> SGDOptions::options() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {{"lr", &lr},
          {"momentum", &momentum},
          {"dampening", &dampening, -infinity, infinity},
          {"weight_decay", &weight_decay},
          {"nesterov", &nesterov}};
}

std::vector<std::string> SGDOptions::state_names() const {
  return momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>();
}

void SGDOptions::check(const std::vector<Tensor>&) const {
  xgrad::check<ValueError>(!nesterov || (momentum > 0 && dampening == 0),
                           "SGD: nesterov needs momentum and no dampening; they are {} and {}",
                           momentum, dampening);
}

ElementUpdate SGDOptions::update(const Parameter& p) const {
  const auto plain = [o = *this](auto x, auto g) {
    return x - c(x, o.lr) * (g + c(g, o.weight_decay) * x);
  };
  if (momentum == 0)
    return element_update(plain, p.value, p.gradient);
  const double rest = p.step == 1 ? 1 : 1 - dampening;
  const auto formula = [o = *this, rest](auto x, auto b, auto g) {
    g = g + c(g, o.weight_decay) * x;
    b = c(b, o.momentum) * b + c(b, rest) * g;
    x = x - c(x, o.lr) * (o.nesterov ? g + c(b, o.momentum) * b : b);
    return std::array{x, b};
  };
  return element_update(formula, p.value, p.state[0], p.gradient);
}

}  // namespace xgrad::optim
