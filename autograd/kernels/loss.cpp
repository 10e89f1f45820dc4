#include <xgrad/autograd/kernels/loss.hpp>

#include <cmath>
#include <vector>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {
namespace {

template <class T, class F>
void for_rows(const Logits<T>& in, const F& body) {
  const std::size_t grain = std::max<std::size_t>(1, 8192 / std::max<std::size_t>(in.classes, 1));
  parallel_for(in.rows, grain, [&](std::size_t begin, std::size_t end) {
    const OptionalRow<T> weight(in.weight, in.classes, 1);
    for (std::size_t r = begin; r < end; ++r)
      body(r, weight);
  });
}

// -log p_c = (max - x_c) + log_sum.  In this order the loss is exact to rounding where p_c is near
// 1.
template <class T>
struct LogSum {
  T max, log_sum;
  LogSum(std::size_t n, const RowIn<T>& x)
      : max(row_max(n, x)),
        log_sum(std::log(static_cast<T>(row_sum<T>(n, [&](std::size_t i, const auto&) {
          return xsimd::exp(x[i] - simd::Batch<T>(max));
        })))) {}
  template <class V>
  V minus_log_p(const V& x) const {
    return (V(max) - x) + V(log_sum);
  }
};

// out = exp(x - max); returns their sum.
template <class T>
T exponentials(std::size_t n, const RowIn<T>& x, RowOut<T>& out) {
  const simd::Batch<T> max(row_max(n, x));
  return static_cast<T>(row_sum<T>(n, [&](std::size_t i, const auto&) {
    const simd::Batch<T> e = xsimd::exp(x[i] - max);
    out.set(i, e);
    return e;
  }));
}

}  // namespace

template <class T>
void cross_entropy(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored, T* loss) {
  const std::size_t n = in.classes;
  for_rows(in, [&](std::size_t r, const OptionalRow<T>& weight) {
    if (target[r] == ignored) {
      loss[r] = 0;
      return;
    }
    const auto t = static_cast<std::size_t>(target[r]);
    const RowIn<T> x(in.x + r * n, n);
    const LogSum<T> row(n, x);
    const T target_weight = in.weight == nullptr ? 1 : in.weight[t];
    loss[r] = (1 - in.smoothing) * target_weight * row.minus_log_p(in.x[r * n + t]);
    if (in.smoothing != 0)
      loss[r] += in.smoothing / static_cast<T>(n) *
                 static_cast<T>(row_sum<T>(n, [&](std::size_t i, const auto&) {
                   return weight[i] * row.minus_log_p(x[i]);
                 }));
  });
}

template <class T>
void cross_entropy_backward(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored,
                            const RowGradient<T>& g, T* dx) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const T smooth = in.smoothing / static_cast<T>(n);
  T smooth_sum = smooth * static_cast<T>(n);
  if (in.weight != nullptr) {
    const RowIn<T> weight(in.weight, n);
    smooth_sum = smooth * static_cast<T>(
                              row_sum<T>(n, [&](std::size_t i, const auto&) { return weight[i]; }));
  }
  for_rows(in, [&](std::size_t r, const OptionalRow<T>& weight) {
    if (target[r] == ignored) {
      std::fill_n(dx + r * n, n, T(0));
      return;
    }
    const auto t = static_cast<std::size_t>(target[r]);
    const T at_target = (1 - in.smoothing) * (in.weight == nullptr ? 1 : in.weight[t]);
    {
      const RowIn<T> x(in.x + r * n, n);
      RowOut<T> out(dx + r * n, n);
      const T sum = exponentials(n, x, out);
      const Lanes scale((at_target + smooth_sum) * g(r) / sum), all(smooth * g(r));
      for_row<T>(n, [&](std::size_t i, const auto& keep) {
        out.set(i, keep(out[i] * scale - weight[i] * all, out[i]));
      });
    }
    dx[r * n + t] -= at_target * g(r);
  });
}

template <class T>
void cross_entropy(const Logits<T>& in, const T* target, T* loss) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const Lanes share(1 - in.smoothing), smooth(in.smoothing / static_cast<T>(n));
  for_rows(in, [&](std::size_t r, const OptionalRow<T>& weight) {
    const RowIn<T> x(in.x + r * n, n), t(target + r * n, n);
    const LogSum<T> row(n, x);
    loss[r] = static_cast<T>(row_sum<T>(n, [&](std::size_t i, const auto&) {
      return weight[i] * (t[i] * share + smooth) * row.minus_log_p(x[i]);
    }));
  });
}

template <class T>
void cross_entropy_backward(const Logits<T>& in, const T* target, const RowGradient<T>& g, T* dx,
                            T* dtarget) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const Lanes share(1 - in.smoothing), smooth(in.smoothing / static_cast<T>(n));
  for_rows(in, [&](std::size_t r, const OptionalRow<T>& weight) {
    const RowIn<T> x(in.x + r * n, n), t(target + r * n, n);
    const Lanes gradient(g(r));
    if (dx != nullptr) {
      RowOut<T> out(dx + r * n, n);
      const T sum = exponentials(n, x, out);
      const auto wanted = [&](std::size_t i) { return weight[i] * (t[i] * share + smooth); };
      const double q = row_sum<T>(n, [&](std::size_t i, const auto&) { return wanted(i); });
      const Lanes scale(static_cast<T>(q) / sum);
      for_row<T>(n, [&](std::size_t i, const auto& keep) {
        out.set(i, keep((out[i] * scale - wanted(i)) * gradient, out[i]));
      });
    }
    if (dtarget != nullptr) {
      const LogSum<T> row(n, x);
      RowOut<T> out(dtarget + r * n, n);
      for_row<T>(n, [&](std::size_t i, const auto&) {
        out.set(i, share * weight[i] * row.minus_log_p(x[i]) * gradient);
      });
    }
  });
}

template <class T>
double squared_error(std::size_t n, const T* a, const T* b) {
  const std::size_t grain = elementwise_grain;
  std::vector<double> sums((n + grain - 1) / grain);
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    const RowIn<T> x(a + begin, end - begin), y(b + begin, end - begin);
    sums[begin / grain] = row_sum<T>(
        end - begin, [&](std::size_t i, const auto&) { return (x[i] - y[i]) * (x[i] - y[i]); });
  });
  double total = 0;
  for (const double sum : sums)
    total += sum;
  return total;
}

template <class T>
void squared_errors(std::size_t n, const T* a, const T* b, T* y) {
  parallel_for(n, elementwise_grain, [&](std::size_t begin, std::size_t end) {
    map_row<T, 2>(y + begin, {a + begin, b + begin}, {1, 1}, end - begin,
                  [](const auto& p, const auto& q) { return (p - q) * (p - q); });
  });
}

template void cross_entropy(const Logits<float>&, const std::int64_t*, std::int64_t, float*);
template void cross_entropy_backward(const Logits<float>&, const std::int64_t*, std::int64_t,
                                     const RowGradient<float>&, float*);
template void cross_entropy(const Logits<float>&, const float*, float*);
template void cross_entropy_backward(const Logits<float>&, const float*, const RowGradient<float>&,
                                     float*, float*);
template double squared_error(std::size_t, const float*, const float*);
template void squared_errors(std::size_t, const float*, const float*, float*);
template void cross_entropy(const Logits<double>&, const std::int64_t*, std::int64_t, double*);
template void cross_entropy_backward(const Logits<double>&, const std::int64_t*, std::int64_t,
                                     const RowGradient<double>&, double*);
template void cross_entropy(const Logits<double>&, const double*, double*);
template void cross_entropy_backward(const Logits<double>&, const double*,
                                     const RowGradient<double>&, double*, double*);
template double squared_error(std::size_t, const double*, const double*);
template void squared_errors(std::size_t, const double*, const double*, double*);

}  // namespace xgrad::kernels
