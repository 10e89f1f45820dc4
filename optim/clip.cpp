#include <xgrad/optim/clip.hpp>

#include <cmath>
#include <unordered_set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/optim.hpp>

namespace xgrad::optim {

// A Tensor that is listed under two names is one parameter.
static std::vector<Tensor> once(const std::vector<Tensor>& list) {
  std::vector<Tensor> result;
  std::unordered_set<const void*> seen;
  for (const Tensor& x : list)
    if (seen.insert(x.handle().get()).second)
      result.push_back(x);
  return result;
}

// The gradients there are, as they may be changed in place.
static std::vector<Tensor> gradients_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : params)
    if (const Tensor gradient = p.grad(); gradient.defined())
      gradients.push_back(gradient.requires_grad() ? gradient.detach() : gradient);
  return gradients;
}

// A gradient that was made under create_graph has a graph, and the clipped one has none.
static void replace_gradients(const std::vector<Tensor>& params,
                              const std::vector<Tensor>& gradients) {
  auto next = gradients.begin();
  for (Tensor p : params)
    if (const Tensor gradient = p.grad(); gradient.defined()) {
      if (gradient.requires_grad())
        p.set_grad(*next);
      ++next;
    }
}

double clip_grad_norm(const std::vector<Tensor>& list, double max_norm,
                      const ClipOptions& options) {
  check<ValueError>(max_norm >= 0, "clip_grad_norm: max_norm is {}; it must not be negative",
                    max_norm);
  check<ValueError>(options.norm_type > 0, "clip_grad_norm: norm_type is {}; it must be above 0",
                    options.norm_type);
  const std::vector<Tensor> params = once(list);
  const std::vector<Tensor> gradients = gradients_of(params);
  const double norm = total_norm(gradients, options.norm_type);
  check<ValueError>(std::isfinite(norm) || !options.error_if_nonfinite,
                    "clip_grad_norm: the norm of the gradients is {}", norm);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) {                            // NaN, too, goes into the gradients
    std::vector<Tensor> scaled = once(gradients);  // several may have been given one
    foreach_mul_(scaled, factor);
    replace_gradients(params, gradients);
  }
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& params, double limit) {
  check<ValueError>(limit >= 0, "clip_grad_value: limit is {}; it must not be negative", limit);
  std::vector<Tensor> gradients = gradients_of(params);
  foreach_clamp_(gradients, limit);
  replace_gradients(params, gradients);
}

}  // namespace xgrad::optim
