#include <xgrad/autograd/kernels/softmax.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {
namespace {

constexpr std::size_t grain = 8192;  // elements in a piece of work

// W columns side by side: register i holds their elements i.
template <class T>
struct Columns {
  T* data;
  std::size_t stride;
  auto operator[](std::size_t i) const {
    return simd::Batch<std::remove_const_t<T>>::load_unaligned(data + i * stride);
  }
  void set(std::size_t i, const simd::Batch<T>& v) const { v.store_unaligned(data + i * stride); }
};

// The sums over n > 0 registers of what body(i) returns, gathered in blocks as row_sums does.
template <class T, class F>
simd::Batch<T> column_sum(std::size_t n, const F& body) {
  simd::Batch<T> total(0);
  for (std::size_t i = 0; i < n;) {
    simd::Batch<T> sum(0);
    for (const std::size_t end = std::min(n, i + sum_block); i < end; ++i)
      sum = sum + body(i);
    total = total + sum;
  }
  return total;
}
template <class T>
simd::Batch<T> column_max(std::size_t n, const Columns<const T>& x) {
  simd::Batch<T> largest = x[0];
  for (std::size_t i = 1; i < n; ++i)
    largest = xsimd::max(largest, x[i]);
  return largest;
}

// ---- the four kernels: what each does with a group of rows, and with a register of columns

struct Softmax {
  // A row of only -inf has a maximum that cannot be subtracted.  Left as it is, its exponentials
  // are zeros, and so is their sum.
  template <class T>
  static void rows(std::size_t count, std::size_t n, T* y, const T* x) {
    using Lanes = simd::Batch<T>;
    Group<T> shift = row_maxima(count, n, x), factor;
    for (std::size_t r = 0; r < count; ++r)
      if (shift[r] == -std::numeric_limits<T>::infinity())
        shift[r] = 0;
    for (std::size_t r = 0; r < count; ++r) {
      const double sum = row_exponentials(n, x + r * n, shift[r], y + r * n);
      factor[r] = static_cast<T>(sum == 0 ? 0 : 1 / sum);
    }
    for (std::size_t r = 0; r < count; ++r)
      update_row(n, y + r * n, [&](std::size_t, const Lanes& e) { return e * Lanes(factor[r]); });
  }
  template <class T>
  static void columns(std::size_t n, const Columns<T>& y, const Columns<const T>& x) {
    using Lanes = simd::Batch<T>;
    const Lanes max = column_max(n, x);
    const Lanes shift = where(max == Lanes(-std::numeric_limits<T>::infinity()), Lanes(0), max);
    const Lanes sum = column_sum<T>(n, [&](std::size_t i) {
      const Lanes e = exp(x[i] - shift);
      y.set(i, e);
      return e;
    });
    const Lanes factor = where(sum == Lanes(0), Lanes(0), Lanes(1) / sum);
    for (std::size_t i = 0; i < n; ++i)
      y.set(i, y[i] * factor);
  }
};

struct LogSoftmax {
  template <class T>
  static void rows(std::size_t count, std::size_t n, T* y, const T* x) {
    using Lanes = simd::Batch<T>;
    const LogSums<T> sums(count, n, x);
    for (std::size_t r = 0; r < count; ++r) {
      const RowIn<T> in(x + r * n, n);
      RowOut<T> out(y + r * n, n);
      for_row<T>(n, [&](std::size_t i) {
        out.set(i, in[i] - Lanes(sums.max[r]) - Lanes(sums.log_sum[r]));
      });
    }
  }
  template <class T>
  static void columns(std::size_t n, const Columns<T>& y, const Columns<const T>& x) {
    using Lanes = simd::Batch<T>;
    const Lanes max = column_max(n, x);
    const Lanes log_sum =
        log(column_sum<T>(n, [&](std::size_t i) { return exp(x[i] - max); }));
    for (std::size_t i = 0; i < n; ++i)
      y.set(i, x[i] - max - log_sum);
  }
};

// Of y = softmax(x): y (g - Σ g y).  Of y = log softmax(x): g - exp(y) Σ g.
template <bool log>
struct Backward {
  template <class B>
  static B term(const B& y, const B& g) {
    if constexpr (log)
      return g;
    else
      return g * y;
  }
  template <class B>
  static B result(const B& y, const B& g, const B& sum) {
    if constexpr (log)
      return g - exp(y) * sum;
    else
      return y * (g - sum);
  }
  template <class T>
  static void rows(std::size_t count, std::size_t n, T* dx, const T* y, const T* g) {
    for (std::size_t r = 0; r < count; ++r) {
      const RowIn<T> out(y + r * n, n), gradient(g + r * n, n);
      RowOut<T> to(dx + r * n, n);
      const simd::Batch<T> sum(
          static_cast<T>(row_sum<T>(n, [&](std::size_t i) { return term(out[i], gradient[i]); })));
      for_row<T>(n, [&](std::size_t i) { to.set(i, result(out[i], gradient[i], sum)); });
    }
  }
  template <class T>
  static void columns(std::size_t n, const Columns<T>& dx, const Columns<const T>& y,
                      const Columns<const T>& g) {
    const auto sum = column_sum<T>(n, [&](std::size_t i) { return term(y[i], g[i]); });
    for (std::size_t i = 0; i < n; ++i)
      dx.set(i, result(y[i], g[i], sum));
  }
};

// ---- which rows and columns there are ----

template <class Kernel, class T, class... In>
void run_rows(Axis s, T* out, const In*... in) {
  parallel_for(s.outer, std::max<std::size_t>(row_group, grain / s.n),
               [&](std::size_t begin, std::size_t end) {
                 for_row_groups(begin, end, [&](std::size_t r, std::size_t count) {
                   Kernel::rows(count, s.n, out + r * s.n, in + r * s.n...);
                 });
               });
}

// Columns that fill registers as they lie.
template <class Kernel, class T, class... In>
void run_columns(Axis s, T* out, const In*... in) {
  constexpr std::size_t width = simd::Batch<T>::size;
  const std::size_t groups = s.inner / width;
  parallel_for(s.outer * groups, std::max<std::size_t>(1, grain / (s.n * width)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t k = begin; k < end; ++k) {
                   const std::size_t at = k / groups * s.n * s.inner + k % groups * width;
                   Kernel::columns(s.n, Columns<T>{out + at, s.inner},
                                   Columns<const T>{in + at, s.inner}...);
                 }
               });
}

// Columns left over on the right: packed side by side, whichever outer index they have.
template <class Kernel, class T, class... In>
void run_last_columns(Axis s, T* out, const In*... in) {
  constexpr std::size_t width = simd::Batch<T>::size;
  const std::size_t left = s.inner % width, count = s.outer * left;
  const std::size_t groups = (count + width - 1) / width;
  parallel_for(groups, std::max<std::size_t>(1, grain / (s.n * width)),
               [&](std::size_t begin, std::size_t end) {
                 const std::size_t size = s.n * width;
                 std::vector<T> packed((1 + sizeof...(In)) * size);
                 for (std::size_t k = begin; k < end; ++k) {
                   const std::size_t used = std::min(width, count - k * width);
                   std::array<std::size_t, width> at;
                   for (std::size_t j = 0; j < used; ++j) {
                     const std::size_t column = k * width + j;
                     at[j] = column / left * s.n * s.inner + (s.inner - left) + column % left;
                   }
                   T* free = packed.data() + size;
                   const auto pack = [&](const T* from) {
                     T* const to = std::exchange(free, free + size);
                     for (std::size_t i = 0; i < s.n; ++i)
                       for (std::size_t j = 0; j < used; ++j)
                         to[i * width + j] = from[at[j] + i * s.inner];
                     return Columns<const T>{to, width};
                   };
                   const std::tuple operands{pack(in)...};
                   std::apply(
                       [&](const auto&... operand) {
                         Kernel::columns(s.n, Columns<T>{packed.data(), width}, operand...);
                       },
                       operands);
                   for (std::size_t i = 0; i < s.n; ++i)
                     for (std::size_t j = 0; j < used; ++j)
                       out[at[j] + i * s.inner] = packed[i * width + j];
                 }
               });
}

template <class Kernel, class T, class... In>
void run(Axis s, T* out, const In*... in) {
  if (s.numel() == 0)
    return;
  if (s.inner == 1)
    return run_rows<Kernel>(s, out, in...);
  run_columns<Kernel>(s, out, in...);
  run_last_columns<Kernel>(s, out, in...);
}

}  // namespace

template <class T>
void softmax(Axis axis, const T* x, T* y) {
  run<Softmax>(axis, y, x);
}
template <class T>
void log_softmax(Axis axis, const T* x, T* y) {
  run<LogSoftmax>(axis, y, x);
}
template <class T>
void softmax_backward(Axis axis, const T* y, const T* g, T* dx) {
  run<Backward<false>>(axis, dx, y, g);
}
template <class T>
void log_softmax_backward(Axis axis, const T* y, const T* g, T* dx) {
  run<Backward<true>>(axis, dx, y, g);
}

template void softmax(Axis, const float*, float*);
template void softmax(Axis, const double*, double*);
template void log_softmax(Axis, const float*, float*);
template void log_softmax(Axis, const double*, double*);
template void softmax_backward(Axis, const float*, const float*, float*);
template void softmax_backward(Axis, const double*, const double*, double*);
template void log_softmax_backward(Axis, const float*, const float*, float*);
template void log_softmax_backward(Axis, const double*, const double*, double*);

}  // namespace xgrad::kernels
