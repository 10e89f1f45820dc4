#include <xgrad/optim/adam.hpp>

#include <cmath>
#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

// Adam's and AdamW's: p *= keep, and g += decay * p.
template <class O>
static ElementUpdate adam(const O& o, const Parameter& p, double keep, double decay) {
  const double t = static_cast<double>(p.step), beta1 = o.betas.first, beta2 = o.betas.second,
               rest1 = 1 - beta1, rest2 = 1 - beta2, eps = o.eps,
               step_size = o.lr / (1 - std::pow(beta1, t)),
               correction = std::sqrt(1 - std::pow(beta2, t));
  const auto formula = [=](auto x, auto m, auto v, auto g) {
    x = x * c(x, keep);
    g = g + c(g, decay) * x;
    m = m * c(m, beta1) + c(m, rest1) * g;
    v = v * c(v, beta2) + c(v, rest2) * g * g;
    x = x - c(x, step_size) * m / (sqrt(v) / c(v, correction) + c(v, eps));
    return std::array{x, m, v};
  };
  return element_update(formula, p.value, p.state[0], p.state[1], p.gradient);
}

template <class O>
static std::vector<Option> adam_options(O& o) {
  return {{"lr", &o.lr},
          {"betas.0", &o.betas.first, 0, 1},
          {"betas.1", &o.betas.second, 0, 1},
          {"eps", &o.eps},
          {"weight_decay", &o.weight_decay}};
}

std::vector<Option> AdamOptions::options() { return adam_options(*this); }
std::vector<Option> AdamWOptions::options() { return adam_options(*this); }

std::vector<std::string> AdamOptions::state_names() const {
  return {"step", "exp_avg", "exp_avg_sq"};
}
std::vector<std::string> AdamWOptions::state_names() const { return AdamOptions().state_names(); }

ElementUpdate AdamOptions::update(const Parameter& p) const {
  return adam(*this, p, 1, weight_decay);
}
ElementUpdate AdamWOptions::update(const Parameter& p) const {
  return adam(*this, p, 1 - lr * weight_decay, 0);
}

std::vector<ParamGroup<AdamWOptions>> decay_matrices(const std::vector<Tensor>& params,
                                                     const AdamWOptions& options) {
  ParamGroup<AdamWOptions> matrices{{}, options}, others{{}, options};
  others.options.weight_decay = 0;
  for (const Tensor& p : params)
    (p.dim() >= 2 ? matrices : others).params.push_back(p);
  std::vector<ParamGroup<AdamWOptions>> groups;
  for (auto* const group : {&matrices, &others})
    if (!group->params.empty())
      groups.push_back(std::move(*group));
  return groups;
}

}  // namespace xgrad::optim
