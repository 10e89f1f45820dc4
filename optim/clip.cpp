#include <xgrad/optim/clip.hpp>

#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/optim.hpp>

namespace xgrad::optim {

// f(data, n) on the gradient of each parameter that has one, in place.
template <class F>
static void change_gradients(const std::vector<Tensor>& params, const F& f) {
  for (Tensor p : params) {
    Tensor gradient = p.grad();
    if (!gradient.defined())
      continue;
    if (gradient.requires_grad()) {  // made under create_graph: the clipped one has no graph
      gradient = gradient.detach();
      p.set_grad(gradient);
    }
    dispatch(gradient.dtype(),
             [&]<class T>() { f(xgrad::detail::writable_data<T>(gradient), gradient.numel()); });
  }
}

// The p-norm of all gradients as one vector.
static double norm_of_gradients(const std::vector<Tensor>& params, double p) {
  double total = 0;
  for (const Tensor& x : params)
    if (const Tensor gradient = x.grad(); gradient.defined())
      dispatch(gradient.dtype(), [&]<class T>() {
        const T* const data = gradient.data<T>();
        if (p == 2)
          total += kernels::sum_of_squares(data, gradient.numel());
        else if (std::isinf(p))
          total = kernels::largest_magnitude(data, gradient.numel(), total);
        else
          total += kernels::sum_of_powers(data, gradient.numel(), p);
      });
  if (p == 2)
    return std::sqrt(total);
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

double clip_grad_norm(const std::vector<Tensor>& params, double max_norm,
                      const ClipOptions& options) {
  check<ValueError>(max_norm >= 0, "clip_grad_norm: max_norm is {}; it must not be negative",
                    max_norm);
  check<ValueError>(options.norm_type > 0, "clip_grad_norm: norm_type is {}; it must be above 0",
                    options.norm_type);
  const double norm = norm_of_gradients(params, options.norm_type);
  check<ValueError>(std::isfinite(norm) || !options.error_if_nonfinite,
                    "clip_grad_norm: the norm of the gradients is {}", norm);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1))  // NaN, too, goes into the gradients
    change_gradients(params, [factor]<class T>(T* x, std::size_t n) {
      kernels::scale(x, n, static_cast<T>(factor));
    });
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& params, double limit) {
  check<ValueError>(limit >= 0, "clip_grad_value: limit is {}; it must not be negative", limit);
  change_gradients(params, [limit]<class T>(T* x, std::size_t n) {
    kernels::clamp(x, n, static_cast<T>(limit));
  });
}

}  // namespace xgrad::optim
