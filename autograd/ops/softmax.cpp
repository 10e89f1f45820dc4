#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/softmax.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// y = softmax(x):  dx = y (g - sum(g y))
Tensor softmax(const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), "softmax");
  const auto axis = kernels::axis_of(x.shape(), d);
  return record(
      "softmax", {x},
      [axis](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(in[0].shape());
          kernels::softmax(axis, in[0].data<T>(), y.data());
          return Tensor(std::move(y));
        });
      },
      [axis, d](Sink& sink) {
        const Tensor y = sink.output(), &g = sink.gradient();
        if (sink.create_graph())
          return sink.add(0, y * (g - sum(g * y, d, true)));
        dispatch(y.dtype(), [&]<class T>() {
          auto dx = empty_array<T>(y.shape());
          kernels::softmax_backward(axis, y.data<T>(), g.data<T>(), dx.data());
          sink.add(0, std::move(dx));
        });
      },
      {.saves_output = true});
}

// y = log softmax(x):  dx = g - exp(y) sum(g)
Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), "log_softmax");
  const auto axis = kernels::axis_of(x.shape(), d);
  return record(
      "log_softmax", {x},
      [axis](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(in[0].shape());
          kernels::log_softmax(axis, in[0].data<T>(), y.data());
          return Tensor(std::move(y));
        });
      },
      [axis, d](Sink& sink) {
        const Tensor y = sink.output(), &g = sink.gradient();
        if (sink.create_graph())
          return sink.add(0, g - exp(y) * sum(g, d, true));
        dispatch(y.dtype(), [&]<class T>() {
          auto dx = empty_array<T>(y.shape());
          kernels::log_softmax_backward(axis, y.data<T>(), g.data<T>(), dx.data());
          sink.add(0, std::move(dx));
        });
      },
      {.saves_output = true});
}

}  // namespace xgrad
