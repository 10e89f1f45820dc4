#include <xgrad/optim/muon.hpp>

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {

std::vector<Option> MuonOptions::options() {
  return {{"lr", &lr},
          {"weight_decay", &weight_decay},
          {"momentum", &momentum},
          {"nesterov", &nesterov},
          {"eps", &eps}};
}

std::vector<std::string> MuonOptions::state_names() const { return {"momentum_buffer"}; }

void MuonOptions::check(const std::vector<Tensor>& params) const {
  for (const Tensor& p : params)
    xgrad::check<ShapeError>(p.dim() == 2,
                             "Muon: a parameter of shape {} is not a matrix; give it to AdamW",
                             to_string(p.shape()));
}

// The coefficients make the slope at 0 steep: singular values end between 0.7 and 1.2.
static Tensor orthogonal(const Tensor& u, double eps) {
  Tensor x = u / clamp(u.norm(), eps, std::nullopt);
  for (int i = 0; i < 5; ++i) {
    const Tensor a = matmul(x, x.t());
    x = 3.4445 * x + matmul(-4.7750 * a + 2.0315 * matmul(a, a), x);
  }
  return x;
}

ElementUpdate MuonOptions::update(const Parameter& p) const {
  const auto mixed = [this](const Tensor& x, const Tensor& g) {
    return momentum * x + (1 - momentum) * g;
  };
  Tensor& b = p.state[0];
  b = mixed(b, p.gradient);
  const Tensor u = nesterov ? mixed(b, p.gradient) : b;
  const std::size_t rows = u.size(0), columns = u.size(1);
  const Tensor direction = rows > columns ? orthogonal(u.t(), eps).t() : orthogonal(u, eps);
  const double keep = 1 - lr * weight_decay;
  const double ratio = static_cast<double>(rows) / static_cast<double>(columns);
  const double rate = lr * std::sqrt(std::max(1.0, ratio));
  const auto formula = [=](auto x, auto d) { return x * c(x, keep) - c(x, rate) * d; };
  return element_update(formula, p.value, direction);
}

}  // namespace xgrad::optim
