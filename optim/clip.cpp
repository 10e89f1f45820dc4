#include <xgrad/optim/clip.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/update_formula.hpp>

namespace xgrad::optim {
namespace {

// Makes `formula` of each gradient, once: a parameter may be listed twice, as one of a tie is, and
// two may have been given one gradient.  A gradient that was made under create_graph has a graph,
// and the changed one has none.
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

// f of all elements, put together by `add`, in double, in an order that does not depend on the
// number of threads.
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
        constexpr std::size_t chains = 16;  // independent, so the compiler puts them in registers
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
  const double total = p == 2
                           ? reduce(
                                 tensors, [](double v) { return v * v; }, plus)
                           : reduce(
                                 tensors, [p](double v) { return std::pow(std::abs(v), p); }, plus);
  double elements = 0;
  for (const Tensor& x : tensors)
    elements += static_cast<double>(x.numel());
  if (std::isinf(total) || total < std::numeric_limits<double>::min() * elements) {
    const double most = largest();  // powers of float64 leave the range before their norm does
    if (most == 0 || std::isinf(most))
      return most;
    const auto scaled = [=](double v) { return std::pow(std::abs(v) / most, p); };
    return most * std::pow(reduce(tensors, scaled, plus), 1 / p);
  }
  return p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

}  // namespace

double clip_grad_norm(const std::vector<Tensor>& params, double max_norm,
                      const ClipOptions& options) {
  check<ValueError>(max_norm >= 0, "clip_grad_norm: max_norm is {}; it must not be negative",
                    max_norm);
  check<ValueError>(options.norm_type > 0, "clip_grad_norm: norm_type is {}; it must be above 0",
                    options.norm_type);
  std::unordered_set<const void*> seen;
  std::vector<Tensor> gradients;
  for (const Tensor& p : params)
    if (p.grad().defined() && seen.insert(p.handle().get()).second)
      gradients.push_back(p.grad());
  const double norm = total_norm(gradients, options.norm_type);
  check<ValueError>(std::isfinite(norm) || !options.error_if_nonfinite,
                    "clip_grad_norm: the norm of the gradients is {}", norm);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1))  // NaN, too, goes into the gradients
    change_gradients("clip_grad_norm", params,
                     [factor](const auto& g) { return g * c(g, factor); });
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& params, double limit) {
  check<ValueError>(limit >= 0, "clip_grad_value: limit is {}; it must not be negative", limit);
  change_gradients("clip_grad_value", params, [limit](const auto& g) {
    return maximum(minimum(g, c(g, limit)), c(g, -limit));
  });
}

}  // namespace xgrad::optim
