#include "optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <unordered_set>
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "../autograd/threads.hpp"
#include "../autograd/trace.hpp"
#include "../autograd/update_formula.hpp"

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

template <bool decoupled>
std::vector<Option> AdamOptionsOf<decoupled>::options() {
  return {{"lr", &lr},
          {"betas.0", &betas.first, 0, 1},
          {"betas.1", &betas.second, 0, 1},
          {"eps", &eps},
          {"weight_decay", &weight_decay}};
}

// p *= keep, and g += decay * p.
template <bool decoupled>
ElementUpdate AdamOptionsOf<decoupled>::update(const Parameter& p) const {
  const double keep = decoupled ? 1 - lr * weight_decay : 1, decay = decoupled ? 0 : weight_decay;
  const double t = static_cast<double>(p.step), beta1 = betas.first, beta2 = betas.second,
               rest1 = 1 - beta1, rest2 = 1 - beta2, step_size = lr / (1 - std::pow(beta1, t)),
               correction = std::sqrt(1 - std::pow(beta2, t));
  const auto formula = [=, eps = eps](auto x, auto m, auto v, auto g) {
    x = x * c(x, keep);
    g = g + c(g, decay) * x;
    m = m * c(m, beta1) + c(m, rest1) * g;
    v = v * c(v, beta2) + c(v, rest2) * g * g;
    x = x - c(x, step_size) * m / (sqrt(v) / c(v, correction) + c(v, eps));
    return std::array{x, m, v};
  };
  return element_update(formula, p.value, p.state[0], p.state[1], p.gradient);
}

template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

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

std::vector<Option> AdagradOptions::options() {
  return {{"lr", &lr},
          {"lr_decay", &lr_decay},
          {"weight_decay", &weight_decay},
          {"initial_accumulator_value", &initial_accumulator_value},
          {"eps", &eps}};
}

ElementUpdate AdagradOptions::update(const Parameter& p) const {
  const double rate = lr / (1 + static_cast<double>(p.step - 1) * lr_decay);
  const auto formula = [=, o = *this](auto x, auto s, auto g) {
    g = g + c(g, o.weight_decay) * x;
    s = s + g * g;
    return std::array{x - c(x, rate) * g / (sqrt(s) + c(s, o.eps)), s};
  };
  return element_update(formula, p.value, p.state[0], p.gradient);
}

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

std::vector<Option> LionOptions::options() {
  return {{"lr", &lr},
          {"betas.0", &betas.first, 0, 1},
          {"betas.1", &betas.second, 0, 1},
          {"weight_decay", &weight_decay}};
}

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

std::vector<Option> MuonOptions::options() {
  return {{"lr", &lr},
          {"weight_decay", &weight_decay},
          {"momentum", &momentum},
          {"nesterov", &nesterov},
          {"eps", &eps}};
}

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

namespace {

// Applies `formula` to each gradient once: a parameter may be listed twice, as tied ones may be,
// and two may share a gradient.  A gradient made under create_graph has a graph; the new one has
// none.
template <class F>
void change_gradients(const char* name, const std::vector<Tensor>& params, const F& formula) {
  std::unordered_set<const void*> seen;
  std::vector<ElementUpdate> updates;
  std::vector<std::pair<Tensor, Tensor>> replaced;
  for (const Tensor& p : params) {
    Tensor gradient = p.grad();
    if (!gradient.defined())
      continue;
    const bool has_graph = gradient.requires_grad();
    if (!seen.insert((has_graph ? p : gradient).handle().get()).second)
      continue;
    if (has_graph)
      replaced.emplace_back(p, gradient = gradient.detach());
    updates.push_back(element_update(formula, gradient));
  }
  update_elements(name, updates);
  for (auto& [p, gradient] : replaced)
    p.set_grad(gradient);
}

// f of all elements, combined by `add` in double, in an order that does not depend on the number of
// threads.
template <class F, class Add>
double reduce(const std::vector<Tensor>& tensors, const F& f, const Add& add) {
  constexpr std::size_t grain = 16384;
  double total = 0;
  for (const Tensor& x : tensors)
    dispatch(x.dtype(), [&]<class T>() {
      const T* const elements = x.data<T>();
      const std::size_t n = x.numel(), pieces = (n + grain - 1) / grain;
      std::vector<double> sums(pieces);
      on_threads(pieces, [&](std::size_t piece) {
        constexpr std::size_t chains = 16;  // independent, so the compiler keeps them in registers
        double part[chains] = {};
        std::size_t i = piece * grain;
        const std::size_t end = std::min(n, i + grain);
        for (; i + chains <= end; i += chains)
          for (std::size_t k = 0; k < chains; ++k)
            part[k] = add(part[k], f(double{elements[i + k]}));
        for (std::size_t k = 0; i + k < end; ++k)
          part[k] = add(part[k], f(double{elements[i + k]}));
        for (const double p : part)
          sums[piece] = add(sums[piece], p);
      });
      double of_tensor = 0;
      for (const double sum : sums)
        of_tensor = add(of_tensor, sum);
      total = add(total, of_tensor);
    });
  return total;
}

// The p-norm of all Tensors as one vector (torch.nn.utils.get_total_norm).
double total_norm(const std::vector<Tensor>& tensors, double p) {
  const xgrad::detail::Timed timed("total_norm");
  const auto plus = [](double a, double b) { return a + b; };
  const auto largest = [&] {
    return reduce(
        tensors, [](double v) { return std::abs(v); },
        [](double a, double b) { return b <= a || std::isnan(a) ? a : b; });  // NaN stays
  };
  if (std::isinf(p))
    return largest();
  const double total =
      p == 2 ? reduce(
                   tensors, [](double v) { return v * v; }, plus)
             : reduce(tensors, [p](double v) { return std::pow(std::abs(v), p); }, plus);
  double elements = 0;
  for (const Tensor& x : tensors)
    elements += static_cast<double>(x.numel());
  if (std::isinf(total) || total < std::numeric_limits<double>::min() * elements) {
    const double most = largest();  // float64's powers overflow before their norm does
    if (most == 0 || std::isinf(most))
      return most;
    const auto scaled = [=](double v) { return std::pow(std::abs(v) / most, p); };
    return most * std::pow(reduce(tensors, scaled, plus), 1 / p);
  }
  return p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& params, double max_norm,
                       const ClipOptions& options) {
  check<ValueError>(max_norm >= 0, "clip_grad_norm_: max_norm is {}; it must not be negative",
                    max_norm);
  check<ValueError>(options.norm_type > 0, "clip_grad_norm_: norm_type is {}; it must be above 0",
                    options.norm_type);
  std::unordered_set<const void*> seen;
  std::vector<Tensor> gradients;
  for (const Tensor& p : params)
    if (p.grad().defined() && seen.insert(p.handle().get()).second)
      gradients.push_back(p.grad());
  const double norm = total_norm(gradients, options.norm_type);
  check<ValueError>(std::isfinite(norm) || !options.error_if_nonfinite,
                    "clip_grad_norm_: the norm of the gradients is {}", norm);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1))  // true for NaN, too, which then spreads to the gradients
    change_gradients("clip_grad_norm_", params,
                     [factor](const auto& g) { return g * c(g, factor); });
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& params, double limit) {
  check<ValueError>(limit >= 0, "clip_grad_value_: limit is {}; it must not be negative", limit);
  change_gradients("clip_grad_value_", params, [limit](const auto& g) {
    return maximum(minimum(g, c(g, limit)), c(g, -limit));
  });
}

Schedule constant(double lr) {
  return [lr](std::size_t) { return lr; };
}

Schedule step_decay(double lr, std::size_t step_size, double gamma) {
  check<ValueError>(step_size > 0, "step_decay: step_size is 0");
  return [=](std::size_t step) {
    const std::size_t decays = step / step_size;
    return lr * std::pow(gamma, static_cast<double>(decays));
  };
}

Schedule exponential(double lr, double gamma) { return step_decay(lr, 1, gamma); }

Schedule warmup_cosine(const WarmupCosine& o) {
  const double min_lr = o.min_lr.value_or(o.learning_rate / 10);
  check<ValueError>(min_lr <= o.learning_rate, "warmup_cosine: min_lr {} is above learning_rate {}",
                    min_lr, o.learning_rate);
  check<ValueError>(o.warmup_iters <= o.lr_decay_iters,
                    "warmup_cosine: warmup_iters {} is beyond lr_decay_iters {}", o.warmup_iters,
                    o.lr_decay_iters);
  return [o, min_lr](std::size_t step) {
    const auto [at, warmup, end] =
        std::tuple{static_cast<double>(step), static_cast<double>(o.warmup_iters),
                   static_cast<double>(o.lr_decay_iters)};
    if (at < warmup)
      return o.learning_rate * (at + 1) / (warmup + 1);
    if (at >= end)
      return min_lr;
    const double way = (at - warmup) / (end - warmup);  // 0 to 1
    return min_lr + 0.5 * (1 + std::cos(std::numbers::pi * way)) * (o.learning_rate - min_lr);
  };
}

template class OptimizerOf<SGDOptions>;
template class OptimizerOf<AdamOptions>;
template class OptimizerOf<AdamWOptions>;
template class OptimizerOf<AdagradOptions>;
template class OptimizerOf<RMSpropOptions>;
template class OptimizerOf<LionOptions>;
template class OptimizerOf<MuonOptions>;

}  // namespace xgrad::optim
