#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/softmax.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/rules.hpp>

namespace xgrad {

// y = softmax(x):      dx = y (g - sum(g y))
// y = log softmax(x):  dx = g - exp(y) sum(g)
// (No fused op: these formulas need the output alone, a composition would keep x, too.)
template <bool log>
static Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), op);
  const auto axis = kernels::axis_of(x.shape(), d);
  const auto forward = [axis]<class T>(std::span<const Tensor> in) {
    auto y = empty_array<T>(in[0].shape());
    (log ? kernels::log_softmax<T> : kernels::softmax<T>)(axis, in[0].data<T>(), y.data());
    return y;
  };
  const auto backward = [axis, d](Context& ctx) {
    const Tensor y = ctx.output(), &g = ctx.gradient();
    ops_or_kernel(
        ctx,
        [&] { ctx.add(0, log ? g - exp(y) * sum(g, d, true) : y * (g - sum(g * y, d, true))); },
        [&]<class T>() {
          auto dx = empty_array<T>(y.shape());
          (log ? kernels::log_softmax_backward<T>
               : kernels::softmax_backward<T>)(axis, y.data<T>(), g.data<T>(), dx.data());
          ctx.add(0, std::move(dx));
        });
  };
  return record(op, {x}, forward, backward, {.saves_output = true});
}

XGRAD_RULE(softmax, "exp(a) / Σ exp(a)", {"y ⊙ (g - Σ (g ⊙ y))"},
           "Only the difference of g from its weighted mean moves probabilities; the sums of a row "
           "are 0.");
Tensor softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along<false>("softmax", x, dim);
}
XGRAD_RULE(log_softmax, "a - log Σ exp(a)", {"g - softmax(a) Σ g"}, "The sums of a row are 0.");
Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along<true>("log_softmax", x, dim);
}
Tensor softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return softmax(to(x, dtype), dim);
}
Tensor log_softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return log_softmax(to(x, dtype), dim);
}

}  // namespace xgrad
