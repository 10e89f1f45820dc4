#include <xgrad/autograd/kernels/loss.hpp>

#include <vector>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {
namespace {

// Calls body(first, count, weight) for groups of rows.
template <class T, class F>
void for_groups(const Logits<T>& in, const F& body) {
  const std::size_t grain =
      std::max<std::size_t>(row_group, 8192 / std::max<std::size_t>(in.classes, 1));
  parallel_for(in.rows, grain, [&](std::size_t begin, std::size_t end) {
    const OptionalRow<T> weight(in.weight, in.classes, 1);
    for_row_groups(begin, end,
                   [&](std::size_t first, std::size_t count) { body(first, count, weight); });
  });
}

// -log p_c = (max - x_c) + log_sum.  In this order the loss is exact to rounding where p_c is near
// 1.
template <class V, class T>
V minus_log_p(const LogSums<T>& sums, std::size_t k, const V& x) {
  return (V(sums.max[k]) - x) + V(sums.log_sum[k]);
}

// out = exp(x - max); returns their sums.
template <class T>
Group<T> exponentials(std::size_t count, std::size_t n, const T* x, T* out) {
  const Group<T> max = row_maxima(count, n, x);
  Group<T> sum;
  for (std::size_t k = 0; k < count; ++k)
    sum[k] = static_cast<T>(row_exponentials(n, x + k * n, max[k], out + k * n));
  return sum;
}

}  // namespace

template <class T>
void cross_entropy(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored, T* loss) {
  const std::size_t n = in.classes;
  const T smooth = in.smoothing / static_cast<T>(n);
  for_groups(in, [&](std::size_t first, std::size_t count, const OptionalRow<T>& weight) {
    const LogSums<T> sums(count, n, in.x + first * n);
    for (std::size_t k = 0; k < count; ++k) {
      const T* const x = in.x + (first + k) * n;
      const std::int64_t id = target[first + k];
      T& result = loss[first + k] = 0;
      if (id == ignored)
        continue;
      result = (1 - in.smoothing) * (in.weight == nullptr ? 1 : in.weight[id]) *
               minus_log_p(sums, k, x[id]);
      if (in.smoothing != 0) {
        const RowIn<T> row(x, n);
        result += smooth * static_cast<T>(row_sum<T>(n, [&](std::size_t i) {
                    return weight[i] * minus_log_p(sums, k, row[i]);
                  }));
      }
    }
  });
}

template <class T>
void cross_entropy_backward(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored,
                            const RowGradient<T>& g, T* dx) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const T smooth = in.smoothing / static_cast<T>(n);
  T smooth_sum = in.smoothing;
  if (in.weight != nullptr) {
    const RowIn<T> weight(in.weight, n);
    smooth_sum = smooth * static_cast<T>(row_sum<T>(n, [&](std::size_t i) { return weight[i]; }));
  }
  for_groups(in, [&](std::size_t first, std::size_t count, const OptionalRow<T>& weight) {
    const Group<T> sum = exponentials(count, n, in.x + first * n, dx + first * n);
    for (std::size_t k = 0; k < count; ++k) {
      T* const out = dx + (first + k) * n;
      const std::int64_t id = target[first + k];
      if (id == ignored) {
        std::fill_n(out, n, T(0));
        continue;
      }
      const T gradient = g(first + k);
      const T at_target = (1 - in.smoothing) * (in.weight == nullptr ? 1 : in.weight[id]);
      const Lanes scale((at_target + smooth_sum) * gradient / sum[k]), all(smooth * gradient);
      if (in.smoothing == 0)  // 0 times an infinite gradient would be NaN
        update_row(n, out, [&](std::size_t, const Lanes& e) { return e * scale; });
      else
        update_row(n, out,
                   [&](std::size_t i, const Lanes& e) { return e * scale - weight[i] * all; });
      out[id] -= at_target * gradient;
    }
  });
}

template <class T>
void cross_entropy(const Logits<T>& in, const T* target, T* loss) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const Lanes share(1 - in.smoothing), smooth(in.smoothing / static_cast<T>(n));
  for_groups(in, [&](std::size_t first, std::size_t count, const OptionalRow<T>& weight) {
    const LogSums<T> sums(count, n, in.x + first * n);
    for (std::size_t k = 0; k < count; ++k) {
      const RowIn<T> x(in.x + (first + k) * n, n), t(target + (first + k) * n, n);
      loss[first + k] = static_cast<T>(row_sum<T>(n, [&](std::size_t i) {
        return weight[i] * (t[i] * share + smooth) * minus_log_p(sums, k, x[i]);
      }));
    }
  });
}

template <class T>
void cross_entropy_backward(const Logits<T>& in, const T* target, const RowGradient<T>& g, T* dx,
                            T* dtarget) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = in.classes;
  const Lanes share(1 - in.smoothing), smooth(in.smoothing / static_cast<T>(n));
  for_groups(in, [&](std::size_t first, std::size_t count, const OptionalRow<T>& weight) {
    const T* const x = in.x + first * n;
    if (dx != nullptr) {
      const Group<T> sum = exponentials(count, n, x, dx + first * n);
      for (std::size_t k = 0; k < count; ++k) {
        const RowIn<T> t(target + (first + k) * n, n);
        const auto wanted = [&](std::size_t i) { return weight[i] * (t[i] * share + smooth); };
        const double q = row_sum<T>(n, [&](std::size_t i) { return wanted(i); });
        const Lanes scale(static_cast<T>(q) / sum[k]), gradient(g(first + k));
        update_row(n, dx + (first + k) * n, [&](std::size_t i, const Lanes& e) {
          return (e * scale - wanted(i)) * gradient;
        });
      }
    }
    if (dtarget != nullptr) {
      const LogSums<T> sums(count, n, x);
      for (std::size_t k = 0; k < count; ++k) {
        const RowIn<T> row(x + k * n, n);
        RowOut<T> out(dtarget + (first + k) * n, n);
        const Lanes factor(g(first + k));
        for_row<T>(n, [&](std::size_t i) {
          out.set(i, share * weight[i] * minus_log_p(sums, k, row[i]) * factor);
        });
      }
    }
  });
}

template <class T>
double squared_error(std::size_t n, const T* a, const T* b) {
  const std::size_t grain = elementwise_grain;
  std::vector<double> sums((n + grain - 1) / grain);
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    const RowIn<T> x(a + begin, end - begin), y(b + begin, end - begin);
    sums[begin / grain] =
        row_sum<T>(end - begin, [&](std::size_t i) { return (x[i] - y[i]) * (x[i] - y[i]); });
  });
  double total = 0;
  for (const double sum : sums)
    total += sum;
  return total;
}

template void cross_entropy(const Logits<float>&, const std::int64_t*, std::int64_t, float*);
template void cross_entropy_backward(const Logits<float>&, const std::int64_t*, std::int64_t,
                                     const RowGradient<float>&, float*);
template void cross_entropy(const Logits<float>&, const float*, float*);
template void cross_entropy_backward(const Logits<float>&, const float*, const RowGradient<float>&,
                                     float*, float*);
template double squared_error(std::size_t, const float*, const float*);
template void cross_entropy(const Logits<double>&, const std::int64_t*, std::int64_t, double*);
template void cross_entropy_backward(const Logits<double>&, const std::int64_t*, std::int64_t,
                                     const RowGradient<double>&, double*);
template void cross_entropy(const Logits<double>&, const double*, double*);
template void cross_entropy_backward(const Logits<double>&, const double*,
                                     const RowGradient<double>&, double*, double*);
template double squared_error(std::size_t, const double*, const double*);

}  // namespace xgrad::kernels
