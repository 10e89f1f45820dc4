#include <xgrad/autograd/kernels/norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace {

using kernels::Norm;

void check_parameter(const char* op, const char* name, const Tensor& parameter, const Tensor& x,
                     const Shape& normalized) {
  if (!parameter.defined())
    return;
  if (parameter.shape() != normalized)
    fail<ShapeError>("{}: {} has shape {} but normalized_shape is {}", op, name,
                     to_string(parameter.shape()), to_string(normalized));
  if (parameter.dtype() != x.dtype())
    fail<DTypeError>("{}: x is {} but {} is {}; convert one with to()", op, to_string(x.dtype()),
                     name, to_string(parameter.dtype()));
}

Shape check_inputs(const char* op, const Tensor& x, const Dims& normalized_shape,
                   const Tensor& weight, const Tensor& bias) {
  Shape normalized = to_shape(normalized_shape, op);
  const Shape& shape = x.shape();
  check<ShapeError>(!normalized.empty(),
                    "{}: normalized_shape is empty: it needs at least one size", op);
  if (normalized.size() > shape.size() ||
      !std::equal(normalized.begin(), normalized.end(), shape.end() - std::ssize(normalized)))
    fail<ShapeError>("{}: x {} does not end with normalized_shape {}", op, to_string(shape),
                     to_string(normalized));
  check_parameter(op, "weight", weight, x, normalized);
  check_parameter(op, "bias", bias, x, normalized);
  return normalized;
}

// For each row a power of two near its largest element or sqrt(eps); undefined unless the third
// power of a row, that is in the derivative, leaves the range.
template <class T>
Tensor row_scales(const Tensor& v, const Reduced& rows, double eps) {
  using Limits = std::numeric_limits<T>;
  auto scales = reduce<T>(v, rows, rows.kept(), kernels::max_abs<T>);
  const double root_of_n = std::sqrt(static_cast<double>(rows.count()));
  const double low = std::cbrt(static_cast<double>(Limits::min())) * root_of_n,
               high = std::cbrt(static_cast<double>(Limits::max())) / root_of_n;
  bool needed = false;
  for (T* s = scales.data(); s < scales.data() + scales.size(); ++s) {
    const double largest = std::max(static_cast<double>(*s), std::sqrt(eps));
    const bool in_range = (largest >= low && largest <= high) || largest == 0;
    *s = in_range || !std::isfinite(largest) ? T(1)
                                             : static_cast<T>(std::ldexp(1.0, std::ilogb(largest)));
    needed = needed || *s != 1;
  }
  return needed ? Tensor(std::move(scales)) : Tensor();
}

// r = 1 / sqrt(mean(v^2) + eps) over dims, and h = v r.
struct ByRoot {
  Tensor h, r;
};
ByRoot by_root(const Tensor& v, const Dims& dims, double eps) {
  const Reduced rows(v.shape(), dims, "mean");
  const Tensor scale = dispatch(v.dtype(), [&]<class T>() { return row_scales<T>(v, rows, eps); });
  if (!scale.defined()) {
    const Tensor r = rsqrt(mean(v * v, dims, true) + eps);
    return {v * r, r};
  }
  const Tensor u = v / scale;
  const Tensor r = rsqrt(mean(u * u, dims, true) + eps / scale / scale);
  return {u * r, r / scale};
}

// What is kept for the backward, and what it computes.
struct Normalization {
  Norm norm;
  double eps;
  Shape normalized;
  kernels::NormSizes sizes;
  Saved x, weight;

  template <class T>
  static const T* data(const Tensor& t) {
    return t.defined() ? t.data<T>() : nullptr;
  }

  Tensor forward(std::span<const Tensor> in) const {
    return dispatch(in[0].dtype(), [&]<class T>() {
      auto y = empty_array<T>(in[0].shape());
      kernels::normalize<T>(norm, sizes,
                            {in[0].data<T>(), data<T>(in[1]), data<T>(in[2]), static_cast<T>(eps)},
                            y.data());
      return Tensor(std::move(y));
    });
  }

  // One pass over x and g for all gradients that are wanted.
  template <class T>
  void fused(Sink& sink) const {
    std::array<Array<T>, 3> gradients;
    std::array<T*, 3> to{};
    for (std::size_t i = 0; i < 3; ++i)
      if (sink.needs(i)) {
        gradients[i] = empty_array<T>(i == 0 ? x.value->shape : normalized);
        to[i] = gradients[i].data();
      }
    const T* const w = weight ? weight.value->data<T>() : nullptr;
    kernels::normalize_backward<T>(norm, sizes,
                                   {x.value->data<T>(), w, nullptr, static_cast<T>(eps)},
                                   sink.gradient().data<T>(), {to[0], to[1], to[2]});
    for (std::size_t i = 0; i < 3; ++i)
      if (sink.needs(i))
        sink.add(i, std::move(gradients[i]));
  }

  // h = (x - mean) r:  dx = r (g w - mean(g w) - h mean(g w h)), dw = sum(g h), db = sum(g); for
  // rms norm without what stems from the mean.
  void composed(Sink& sink) const {
    const Dims rows{sizes.rows, sizes.n};
    const bool centred = norm == Norm::layer;
    const Tensor raw = reshape(x.tensor(), rows);
    const Tensor v = centred ? deviations(raw, 1) : raw;
    const auto [h, r] = by_root(v, 1, eps);
    const Tensor g = reshape(sink.gradient(), rows);
    if (sink.needs(0)) {
      const Tensor gw = weight ? g * reshape(weight.tensor(), sizes.n) : g;
      const Tensor from = centred ? deviations(gw, 1) : gw;
      sink.add(0, reshape(r * (from - h * mean(from * h, 1, true)), x.value->shape));
    }
    if (sink.needs(1))
      sink.add(1, reshape(sum(g * h, 0), normalized));
    if (sink.needs(2))
      sink.add(2, reshape(sum(g, 0), normalized));
  }
};

Tensor in_ops(const char* op, Norm norm, const Tensor& x, std::size_t dims, const Tensor& weight,
              const Tensor& bias, double eps) {
  const Scope scope(op);
  Dims last;
  for (std::size_t d = dims; d > 0; --d)
    last.push_back(-static_cast<std::int64_t>(d));
  const Tensor v = norm == Norm::layer ? deviations(x, last) : x;
  Tensor y = by_root(v, last, eps).h;
  if (weight.defined())
    y = y * weight;
  return bias.defined() ? y + bias : y;
}

Tensor normalize(const char* op, Norm norm, const Tensor& x, const Dims& normalized_shape,
                 const Tensor& weight, const Tensor& bias, double eps) {
  const Shape normalized = check_inputs(op, x, normalized_shape, weight, bias);
  if (Mode::current().decompose)
    return in_ops(op, norm, x, normalized.size(), weight, bias, eps);
  kernels::NormSizes sizes{1, static_cast<std::size_t>(numel(normalized))};
  for (std::size_t d = 0; d < x.dim() - normalized.size(); ++d)
    sizes.rows *= x.shape()[d];
  const Normalization shared{norm, eps, normalized, sizes, {}, {}};
  Normalization kept = shared;
  kept.x = x;
  kept.weight = weight;
  return record(
      op, {x, weight, bias}, [shared](std::span<const Tensor> in) { return shared.forward(in); },
      [kept = std::move(kept)](Sink& sink) {
        if (sink.create_graph())
          return kept.composed(sink);
        dispatch(kept.x.value->dtype, [&]<class T>() { kept.fused<T>(sink); });
      });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return normalize("layer_norm", Norm::layer, x, normalized_shape, weight, bias, eps);
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const double epsilon =
      dispatch(x.dtype(), []<class T>() -> double { return std::numeric_limits<T>::epsilon(); });
  return normalize("rms_norm", Norm::rms, x, normalized_shape, weight, {}, eps.value_or(epsilon));
}

}  // namespace xgrad
