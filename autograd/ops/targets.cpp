#include <xgrad/autograd/ops/targets.hpp>

#include <array>
#include <numeric>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/axis.hpp>

namespace xgrad::targets {

std::size_t class_dim(const char* op, const Tensor& x) {
  check<ShapeError>(x.dim() > 0, "{}: x is 0-d: it needs a dimension of classes", op);
  return x.dim() == 1 ? 0 : 1;
}

void check_weight(const char* op, const Tensor& weight, const Tensor& x) {
  if (!weight.defined())
    return;
  const std::size_t classes = x.shape()[class_dim(op, x)];
  if (weight.shape() != Shape{classes})
    fail<ShapeError>("{}: weight has shape {} but x {} has {} classes", op,
                     to_string(weight.shape()), to_string(x.shape()), classes);
  if (weight.dtype() != x.dtype())
    fail<DTypeError>("{}: x is {} but weight is {}; convert one with to()", op,
                     to_string(x.dtype()), to_string(weight.dtype()));
  check<GraphError>(!any_requires_grad(std::array{weight}),
                    "{}: weight requires a gradient, but there is none for it: pass "
                    "weight.detach()",
                    op);
}

void check_ids(const char* op, const Tensor& x, const Indices& target, std::int64_t ignored) {
  const std::size_t dim = class_dim(op, x);
  const auto classes = static_cast<std::int64_t>(x.shape()[dim]);
  Shape expected;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d != dim)
      expected.push_back(x.shape()[d]);
  if (target.shape() != expected)
    fail<ShapeError>("{}: x {} takes targets of shape {}, not {}", op, to_string(x.shape()),
                     to_string(expected), to_string(target.shape()));
  for (Size i = 0; i < target.numel(); ++i)
    if (const std::int64_t id = target.data()[i]; id != ignored && (id < 0 || id >= classes)) {
      const auto at = position(expected, i);
      fail<ValueError>("{}: target {} at {} is not one of {} classes, nor ignore_index {}", op, id,
                       to_string(Shape(at.begin(), at.end())), classes, ignored);
    }
}

Denominator denominator(const Indices& target, const Tensor& weight, std::int64_t ignored) {
  Denominator sum;
  const auto add = [&](auto weight_of) {
    for (Size i = 0; i < target.numel(); ++i)
      if (const std::int64_t id = target.data()[i]; id != ignored) {
        sum.weight += weight_of(id);
        sum.any = true;
      }
  };
  if (weight.defined())
    dispatch(weight.dtype(), [&]<class T>() {
      add([w = weight.data<T>()](std::int64_t id) { return static_cast<double>(w[id]); });
    });
  else
    add([](std::int64_t) { return 1.0; });
  return sum;
}

template <class T>
Tensor reduced(Array<T> losses, Reduction reduction, double divisor) {
  if (reduction == Reduction::none)
    return Tensor(std::move(losses));
  const double sum = std::accumulate(losses.data(), losses.data() + losses.size(), 0.0);
  return scalar(reduction == Reduction::mean ? sum / divisor : sum, dtype_of<T>);
}
template Tensor reduced(Array<float>, Reduction, double);
template Tensor reduced(Array<double>, Reduction, double);

Tensor wanted(const Shape& shape, DType dtype, std::size_t class_dim, const Indices& target,
              const Tensor& weight, std::int64_t ignored, double smoothing) {
  return dispatch(dtype, [&]<class T>() {
    const kernels::Axis axis = kernels::axis_of(shape, class_dim);
    const double smooth = smoothing / static_cast<double>(axis.n);
    const auto weight_of = [w = weight.defined() ? weight.data<T>() : nullptr](std::size_t c) {
      return w == nullptr ? 1.0 : static_cast<double>(w[c]);
    };
    auto q = empty_array<T>(shape);
    std::fill_n(q.data(), q.size(), T(0));
    for (Size r = 0; r < target.numel(); ++r)
      if (const std::int64_t id = target.data()[r]; id != ignored) {
        T* const first = q.data() + r / axis.inner * axis.n * axis.inner + r % axis.inner;
        if (smoothing != 0)
          for (std::size_t c = 0; c < axis.n; ++c)
            first[c * axis.inner] = static_cast<T>(smooth * weight_of(c));
        const auto t = static_cast<std::size_t>(id);
        first[t * axis.inner] += static_cast<T>((1 - smoothing) * weight_of(t));
      }
    return Tensor(std::move(q));
  });
}

Tensor expanded_gradient(const Tensor& g, std::size_t class_dim, Reduction reduction,
                         double mean_factor) {
  if (reduction == Reduction::none)
    return unsqueeze(g, static_cast<std::int64_t>(class_dim));
  return reduction == Reduction::mean ? g * mean_factor : g;
}

Tensor of_wanted(const Tensor& q, const Tensor& g) { return where(q != 0.0, q * g, 0.0); }

}  // namespace xgrad::targets
