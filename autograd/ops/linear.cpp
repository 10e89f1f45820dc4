// The linear layer's op.

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/matmul.hpp>

namespace xgrad {
namespace {

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() != 2)
    fail<ShapeError>("linear: weight {} is not (out, in) or (in,)", to_string(weight.shape()));
  if (x.dim() == 0)
    fail<ShapeError>("linear: x is 0-d; it needs a last dimension of size {}", weight.size(1));
  if (x.size(-1) != weight.size(1))
    fail<ShapeError>("linear: x {} has last dimension {} but weight {} expects {}",
                     to_string(x.shape()), x.size(-1), to_string(weight.shape()), weight.size(1));
  if (bias.defined() && bias.shape() != Shape{weight.size(0)})
    fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ({},)",
                     to_string(bias.shape()), to_string(weight.shape()), weight.size(0));
  detail::check_operands("linear", std::array{x, weight, bias.defined() ? bias : x});
}

// y = x Wᵀ + b gives dx = dy W, dW = dyᵀ x and db = the sum of dy's rows.
void linear_backward(Sink& sink, const Saved& x, const Saved& weight, std::size_t in,
                     std::size_t out) {
  const Tensor& g = sink.gradient();
  if (sink.create_graph()) {
    if (sink.needs(0))
      sink.add(0, matmul(g, weight.tensor()));
    const std::size_t rows = numel(detail::leading(g.shape(), 1));
    if (sink.needs(1))
      sink.add(1, detail::product("linear", reshape(g, {rows, out}), true,
                                  reshape(x.tensor(), {rows, in}), false));
    if (sink.needs(2))
      sink.add(2, sum_to(g, {out}));
    return;
  }
  dispatch(g.dtype(), [&]<class T>() {
    const std::size_t rows = numel(detail::leading(g.shape(), 1));
    const T* const dy = g.data<T>();
    if (sink.needs(0)) {
      const Buffer<T> dx = sink.buffer<T>(0);
      kernels::gemm_parallel(false, false, rows, in, out, T(1), dy, out, weight.value->data<T>(),
                             in, dx.beta, dx.data, in);
    }
    if (sink.needs(1)) {
      const Buffer<T> dw = sink.buffer<T>(1);
      kernels::gemm_parallel(true, false, out, in, rows, T(1), dy, out, x.value->data<T>(), in,
                             dw.beta, dw.data, in);
    }
    if (sink.needs(2)) {
      auto db = empty_array<T>({out});
      kernels::sum<T>({1, rows, out}, dy, db.data());
      sink.add(2, Tensor(std::move(db)));
    }
  });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() == 1) {
    if (bias.defined() && bias.dim() != 0)
      fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ()",
                       to_string(bias.shape()), to_string(weight.shape()));
    const Tensor row = bias.defined() ? reshape(bias, {1}) : bias;
    return squeeze(linear(x, unsqueeze(weight, 0), row), {-1});
  }
  check_linear(x, weight, bias);
  const auto run = [](std::span<const Tensor> inputs) {
    const std::size_t out = inputs[1].size(0), in = inputs[1].size(1);
    Shape shape = inputs[0].shape();
    shape.back() = out;
    const std::size_t rows = numel(detail::leading(shape, 1));
    return dispatch(inputs[0].dtype(), [&]<class T>() {
      auto y = empty_array<T>(shape);
      kernels::gemm_parallel(false, true, rows, out, in, T(1), inputs[0].data<T>(), in,
                             inputs[1].data<T>(), in, T(0), y.data(), out,
                             inputs[2].defined() ? inputs[2].data<T>() : nullptr);
      return Tensor(std::move(y));
    });
  };
  const Saved saved_x = weight.requires_grad() ? Saved(x) : Saved();
  const Saved saved_weight = x.requires_grad() ? Saved(weight) : Saved();
  return record("linear", {x, weight, bias}, run,
                [saved_x, saved_weight, in = weight.size(1), out = weight.size(0)](Sink& sink) {
                  linear_backward(sink, saved_x, saved_weight, in, out);
                });
}

}  // namespace xgrad
