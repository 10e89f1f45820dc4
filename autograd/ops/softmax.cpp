#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/softmax.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// y = softmax(x):      dx = y (g - sum(g y))
// y = log softmax(x):  dx = g - exp(y) sum(g)
template <bool log>
static Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), op);
  const auto axis = kernels::axis_of(x.shape(), d);
  const auto forward = [axis](std::span<const Tensor> in) {
    return dispatch(in[0].dtype(), [&]<class T>() {
      auto y = empty_array<T>(in[0].shape());
      (log ? kernels::log_softmax<T> : kernels::softmax<T>)(axis, in[0].data<T>(), y.data());
      return Tensor(std::move(y));
    });
  };
  const auto backward = [axis, d](Sink& sink) {
    const Tensor y = sink.output(), &g = sink.gradient();
    if (sink.create_graph())
      return sink.add(0, log ? g - exp(y) * sum(g, d, true) : y * (g - sum(g * y, d, true)));
    dispatch(y.dtype(), [&]<class T>() {
      auto dx = empty_array<T>(y.shape());
      (log ? kernels::log_softmax_backward<T>
           : kernels::softmax_backward<T>)(axis, y.data<T>(), g.data<T>(), dx.data());
      sink.add(0, std::move(dx));
    });
  };
  return record(op, {x}, forward, backward, {.saves_output = true});
}

Tensor softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along<false>("softmax", x, dim);
}
Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along<true>("log_softmax", x, dim);
}

}  // namespace xgrad
