#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/lines.hpp>
#include <xgrad/autograd/kernels/norm.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/reduced.hpp>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/autograd/random.hpp>

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
// power of a row, that is in the second derivative, leaves the range.
template <class T>
Tensor row_scales(const Tensor& v, const Reduced& rows, double eps) {
  using Limits = std::numeric_limits<T>;
  const ModeGuard unseen({false, nullptr});
  auto scales = reduce<T>(abs(v), rows, rows.kept(), kernels::max<T>);
  const double root_of_n = std::sqrt(static_cast<double>(rows.count()));
  const double low = std::cbrt(static_cast<double>(Limits::min())) * root_of_n,
               high = std::cbrt(static_cast<double>(Limits::max())) / root_of_n;
  bool needed = false;
  for (T& s : scales) {
    const double largest = std::max(static_cast<double>(s), std::sqrt(eps));
    const bool in_range = (largest >= low && largest <= high) || largest == 0;
    s = in_range || !std::isfinite(largest) ? T(1)
                                            : static_cast<T>(std::ldexp(1.0, std::ilogb(largest)));
    needed = needed || s != 1;
  }
  return needed ? Tensor(std::move(scales)) : Tensor();
}

// v / sqrt(mean(v^2) + eps) over dims, of v / scale if there is one.  An op of its own, so that its
// gradient rounds as the kernel's: its two terms nearly cancel in rows of one element.  Decompose
// shows what it is made of.
Tensor over_root(const Tensor& v, const Dims& dims, double eps, const Tensor& scale) {
  const auto inverse_root = [dims, eps, scale = Saved(scale)](const Tensor& u) {
    const Tensor square = mean(pow(u, 2), dims, true);
    if (!scale)
      return rsqrt(square + eps);
    const Tensor s = to(scale.tensor(), u.dtype());
    return rsqrt(square + eps / s / s);
  };
  const Tensor u = scale.defined() ? v / scale : v;
  if (Mode::current().decompose)
    return u * inverse_root(u);
  return record(
      "over_root", {u},
      [inverse_root](std::span<const Tensor> in) { return in[0] * inverse_root(in[0]); },
      [inverse_root, dims, u = Saved(u)](Context& ctx) {
        const Tensor y = ctx.output(), &g = ctx.gradient();
        ctx.add(0, inverse_root(u.tensor()) * (g - y * mean(g * y, dims, true)));
      },
      {.saves_output = true});
}

Tensor over_root(const Tensor& v, const Dims& dims, double eps) {
  const Reduced rows(v.shape(), dims, "rms_norm");
  const auto scales = [&]<class T>() { return row_scales<T>(v, rows, eps); };
  return over_root(v, dims, eps, detail::compute("rms_norm", std::array{v}, scales));
}

// The mean that is taken away last is 0, but for rounding.  That of the gradient is not, and is
// better taken away before the other terms.
Tensor composed(Norm norm, std::size_t rank, double eps, std::span<const Tensor> in) {
  Dims last;
  for (std::size_t d = rank; d > 0; --d)
    last.push_back(-static_cast<std::int64_t>(d));
  Tensor y = norm == Norm::layer ? deviations(over_root(deviations(in[0], last), last, eps), last)
                                 : over_root(in[0], last, eps);
  if (in[1].defined())
    y = y * in[1];
  return in[2].defined() ? y + in[2] : y;
}

Tensor normalize(const char* op, Norm norm, const Tensor& x, const Dims& normalized_shape,
                 const Tensor& weight, const Tensor& bias, double eps) {
  const Shape normalized = check_inputs(op, x, normalized_shape, weight, bias);
  kernels::NormSizes sizes{1, static_cast<std::size_t>(numel(normalized))};
  for (std::size_t d = 0; d < x.dim() - normalized.size(); ++d)
    sizes.rows *= x.shape()[d];
  return fused(
      op, std::array{x, weight, bias},
      [norm, eps, rank = normalized.size()](std::span<const Tensor> in) {
        return composed(norm, rank, eps, in);
      },
      [norm, eps, sizes]<class T>(std::span<const Tensor> in) {
        const auto data = [&](std::size_t i) {
          return in[i].defined() ? in[i].data<T>() : nullptr;
        };
        auto y = empty_array<T>(in[0].shape());
        kernels::normalize<T>(norm, sizes, {data(0), data(1), data(2), static_cast<T>(eps)},
                              y.data());
        return y;
      },
      // one pass over x and g for all gradients that are wanted
      [norm, eps, sizes]<class T>(Context& ctx, std::span<const Saved> in) {
        std::array<Array<T>, 3> gradients;
        std::array<T*, 3> to{};
        for (std::size_t i = 0; i < 3; ++i)
          if (ctx.needs(i)) {
            gradients[i] = empty_array<T>(in[i].value->shape);
            to[i] = gradients[i].data();
          }
        const T* const w = in[1] ? in[1].value->data<T>() : nullptr;
        kernels::normalize_backward<T>(norm, sizes,
                                       {in[0].value->data<T>(), w, nullptr, static_cast<T>(eps)},
                                       ctx.gradient().data<T>(), {to[0], to[1], to[2]});
        for (std::size_t i = 0; i < 3; ++i)
          if (ctx.needs(i))
            ctx.add(i, std::move(gradients[i]));
      });
}

}  // namespace

XGRAD_RULE(
    layer_norm, "n ⊙ b + c, n = (a - mean) / std",
    {"(h - mean(h) - n mean(h ⊙ n)) / std, h = g ⊙ b", "Σ g ⊙ n", "Σ g"},
    "A shift or a scale of a row changes nothing, so these two directions are taken out of h.");
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return normalize("layer_norm", Norm::layer, x, normalized_shape, weight, bias, eps);
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const double epsilon = x.dtype() == DType::float32 ? double{std::numeric_limits<float>::epsilon()}
                                                     : std::numeric_limits<double>::epsilon();
  return normalize("rms_norm", Norm::rms, x, normalized_shape, weight, {}, eps.value_or(epsilon));
}

namespace {

// An op along lines, from its forward on a line and its derivative, which is a formula of the
// output y, the gradient g and the sum of a term of both: on registers and on Tensors.
// (No fused op: these formulas need the output alone, a composition would keep x, too.)
template <class Rule>
Tensor along_lines(const char* op, const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), op);
  const auto axis = kernels::axis_of(x.shape(), d);
  const auto forward = [axis]<class T>(std::span<const Tensor> in) {
    auto y = empty_array<T>(in[0].shape());
    kernels::for_lines<T>(axis, axis.n, [from = in[0].data<T>(), to = y.data()](const auto& line) {
      Rule::forward(line, from, to);
    });
    return y;
  };
  const auto backward = [axis, d](Context& ctx) {
    const Tensor output = ctx.output(), &gradient = ctx.gradient();
    ops_or_kernel(
        ctx,
        [&] {
          const Tensor total = sum(Rule::gradient_term(output, gradient), d, true);
          ctx.add(0, Rule::gradient(output, gradient, total));
        },
        [&]<class T>() {
          auto dx = empty_array<T>(output.shape());
          const T *const y = output.data<T>(), *const g = gradient.data<T>();
          kernels::for_lines<T>(axis, axis.n, [&, to = dx.data()](const auto& line) {
            const auto total =
                line.sum([&](auto i) { return Rule::gradient_term(i.load(y), i.load(g)); });
            line.each([&](auto i) { i.store(to, Rule::gradient(i.load(y), i.load(g), total)); });
          });
          ctx.add(0, std::move(dx));
        });
  };
  return record(op, {x}, forward, backward, {.saves_output = true});
}

struct Softmax {
  // A row of only -inf has a maximum that cannot be subtracted.  Left as it is, its exponentials
  // are zeros, and so is their sum.
  template <class T>
  static void forward(const auto& line, const T* x, T* y) {
    using V = simd::Batch<T>;
    const V max = kernels::largest(line, x);
    const V shift = where(max == V(-std::numeric_limits<T>::infinity()), V(0), max);
    const V factor = line.inverse_sum(kernels::exponentials(x, shift, y));
    line.each([&](auto i) { i.store(y, i.load(y) * factor); });
  }
  static auto gradient_term(const auto& y, const auto& g) { return g * y; }
  static auto gradient(const auto& y, const auto& g, const auto& sum) { return y * (g - sum); }
};

struct LogSoftmax {
  template <class T>
  static void forward(const auto& line, const T* x, T* y) {
    const kernels::LogSum<T> sum(line, x);
    line.each([&](auto i) { i.store(y, i.load(x) - sum.max - sum.log_sum); });
  }
  static auto gradient_term(const auto&, const auto& g) { return g; }
  static auto gradient(const auto& y, const auto& g, const auto& sum) { return g - exp(y) * sum; }
};

}  // namespace

XGRAD_RULE(softmax, "exp(a) / Σ exp(a)", {"y ⊙ (g - Σ (g ⊙ y))"},
           "Only the difference of g from its weighted mean moves probabilities; the sums of a row "
           "are 0.");
Tensor softmax(const Tensor& x, std::int64_t dim) {
  return along_lines<Softmax>("softmax", x, dim);
}
XGRAD_RULE(log_softmax, "a - log Σ exp(a)", {"g - softmax(a) Σ g"}, "The sums of a row are 0.");
Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return along_lines<LogSoftmax>("log_softmax", x, dim);
}
Tensor softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return softmax(to(x, dtype), dim);
}
Tensor log_softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return log_softmax(to(x, dtype), dim);
}

XGRAD_RULE(dropout, "a ⊙ kept / (1 - p)", {"g ⊙ kept / (1 - p)"},
           "Dropped elements get 0; the others are scaled as in the forward pass.");
Tensor dropout(const Tensor& x, double p, bool training) {
  return dropout(x, p, training, default_generator());
}

Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check<ValueError>(p >= 0 && p <= 1, "dropout: p {} is not between 0 and 1", p);
  if (!training || p == 0 || x.numel() == 0)
    return x;
  const Saved scales = detail::compute("dropout", std::array{x}, [&]<class T>() {
    auto drawn = empty_array<T>(x.shape());
    fill_dropout(std::span(drawn.data(), drawn.size()), p, generator,
                 x.dim() > 0 ? x.shape().front() : 0);
    return Tensor(std::move(drawn));
  });
  return record(
      "dropout", {x}, [scales](std::span<const Tensor> in) { return mul(in[0], scales.tensor()); },
      [scales](Context& ctx) { ctx.add(0, mul(ctx.gradient(), scales.tensor())); });
}

}  // namespace xgrad
