#include <xgrad/autograd/kernels/norm.hpp>

#include <limits>
#include <vector>
#include <xgrad/autograd/buffer.hpp>
#include <xgrad/autograd/kernels/moments.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {
namespace {

template <class T>
using Limits = std::numeric_limits<T>;

// Rows in a piece of work; the gradients of weight and bias are summed over them before the sums of
// all pieces are added, in order.
std::size_t rows_in_piece(std::size_t n) {
  return std::clamp<std::size_t>(8192 / std::max<std::size_t>(n, 1), 8, 128);
}

// Of a group of rows, h = (x - mean) r + shift: what the mean lacks makes the shift.  For rms norm
// the mean counts as 0.
template <class T>
struct Moments {
  Group<T> mean{}, r{}, shift{};
};

// Where squares left the range of T.
template <Norm kind, class T>
[[gnu::noinline]] void scaled_moments(std::size_t n, const T* x, T eps, std::size_t k,
                                      Moments<T>& result) {
  const ScaledMoments row(n, x, kind == Norm::layer);
  const double mean = row.mean * row.scale;
  const double root = row.scale * std::sqrt(row.squares / static_cast<double>(n));
  const double r = 1 / std::hypot(root, std::sqrt(static_cast<double>(eps)));
  const Mean<T> m(static_cast<T>(mean),
                  mean - static_cast<double>(static_cast<T>(mean)) + row.rest * row.scale);
  result.mean[k] = m.nearest;
  result.r[k] = static_cast<T>(r);
  result.shift[k] = static_cast<T>(-m.rest * r);
}

template <Norm kind, class T>
Moments<T> moments(std::size_t count, std::size_t n, const T* x, T eps) {
  using Lanes = simd::Batch<T>;
  Moments<T> result;
  if (n == 0)
    return result;
  Group<double> rest{}, square{};
  const double one_of_n = 1 / static_cast<double>(n);
  if constexpr (kind == Norm::layer) {
    Group<double> shift{};
    for (std::size_t k = 0; k < count; ++k) {
      const RowIn<T> row(x + k * n, n);
      const Lanes first(x[k * n]);
      shift[k] = row_sum<T>(n, [&](std::size_t i) { return row[i] - first; }) * one_of_n;
    }
    for (std::size_t k = 0; k < count; ++k) {
      const Mean<T> mean(x[k * n], shift[k]);
      result.mean[k] = mean.nearest;
      rest[k] = mean.rest;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    const RowIn<T> row(x + k * n, n);
    const Lanes mean(result.mean[k]);
    square[k] = row_sum<T>(n, [&](std::size_t i) { return (row[i] - mean) * (row[i] - mean); });
  }
  const auto in_range = [](double v) { return v >= Limits<T>::min() && v <= Limits<T>::max(); };
  bool all_in_range = true;
  for (std::size_t k = 0; k < count; ++k) {
    square[k] = square[k] * one_of_n - rest[k] * rest[k] + static_cast<double>(eps);
    all_in_range = all_in_range && in_range(square[k]);
    result.r[k] = static_cast<T>(square[k]);
  }
  map_group(result.r, [](const Lanes& v) { return Lanes(1) / sqrt(v); });
  for (std::size_t k = 0; k < count; ++k)
    result.shift[k] = static_cast<T>(-rest[k] * static_cast<double>(result.r[k]));
  if (!all_in_range)
    for (std::size_t k = 0; k < count; ++k)
      if (!in_range(square[k]))  // a row's bits do not depend on its neighbours
        scaled_moments<kind>(n, x + k * n, eps, k, result);
  return result;
}

// Gathers the sum over rows of one gradient.  Each piece of work has a row of its own to add to; at
// the end these are added in order, so that the sum does not depend on who did which piece.  If the
// gradient is not wanted (null), length() is 0.
template <class T>
class PieceSums {
 public:
  PieceSums(T* out, std::size_t pieces, std::size_t n)
      : out_(out), pieces_(pieces), n_(out == nullptr ? 0 : n), sums_(pieces * n_) {}
  std::size_t length() const { return n_; }
  T* piece(std::size_t i) { return sums_.data() + i * n_; }
  void finish() const {
    std::array<double, 256> total;
    for (std::size_t begin = 0; begin < n_; begin += total.size()) {
      const std::size_t length = std::min(total.size(), n_ - begin);
      total.fill(0);
      for (std::size_t p = 0; p < pieces_; ++p)
        for (std::size_t j = 0; j < length; ++j)
          total[j] += static_cast<double>(sums_[p * n_ + begin + j]);
      for (std::size_t j = 0; j < length; ++j)
        out_[begin + j] = static_cast<T>(total[j]);
    }
  }

 private:
  T* out_;
  std::size_t pieces_, n_;
  std::vector<T, Allocator<T>> sums_;
};

template <Norm kind, class T>
void normalize_rows(NormSizes s, const NormInputs<T>& in, T* out) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = s.n;
  parallel_for(s.rows, rows_in_piece(n), [&](std::size_t begin, std::size_t end) {
    const OptionalRow<T> w(in.weight, n, 1), b(in.bias, n, 0);
    for_row_groups(begin, end, [&](std::size_t first, std::size_t count) {
      const Moments<T> moment = moments<kind>(count, n, in.x + first * n, in.eps);
      for (std::size_t k = 0; k < count; ++k) {
        const RowIn<T> x(in.x + (first + k) * n, n);
        RowOut<T> y(out + (first + k) * n, n);
        const Lanes mean(moment.mean[k]), r(moment.r[k]), shift(moment.shift[k]);
        for_row<T>(n, [&](std::size_t i) {
          y.set(i, xsimd::fma(xsimd::fma(x[i] - mean, r, shift), w[i], b[i]));
        });
      }
    });
  });
}

// dx of a group of rows:  dx = r (g w - mean(g w) - h mean(g w h)), for rms norm without the second
// term.  The mean of h is 0, so what is constant in g w adds nothing to the third and is left out
// of both sums.
template <Norm kind, class T>
void input_gradient(std::size_t count, std::size_t n, const Moments<T>& moment, const T* x,
                    const OptionalRow<T>& w, const T* g, T* dx) {
  using Lanes = simd::Batch<T>;
  Group<T> mean_g{}, rest_g{}, mean_gh;
  const double one_of_n = 1 / static_cast<double>(n);
  for (std::size_t k = 0; k < count; ++k) {
    const RowIn<T> row(x + k * n, n), gradient(g + k * n, n);
    const Lanes mean(moment.mean[k]), r(moment.r[k]), shift(moment.shift[k]);
    const T first = kind == Norm::rms || n == 0 ? T(0) : (gradient[0] * w[0]).get(0);
    const auto gw = [&](std::size_t i) { return xsimd::fms(gradient[i], w[i], Lanes(first)); };
    const auto [sum_g, sum_gh] = row_sums<T>(
        n, gw, [&](std::size_t i) { return gw(i) * xsimd::fma(row[i] - mean, r, shift); });
    if constexpr (kind == Norm::layer) {
      const Mean<T> of_g(first, sum_g * one_of_n);
      mean_g[k] = of_g.nearest;
      rest_g[k] = static_cast<T>(of_g.rest);
    }
    mean_gh[k] = static_cast<T>(sum_gh * one_of_n);
  }
  for (std::size_t k = 0; k < count; ++k) {
    const RowIn<T> row(x + k * n, n), gradient(g + k * n, n);
    RowOut<T> out(dx + k * n, n);
    const Lanes mean(moment.mean[k]), r(moment.r[k]), shift(moment.shift[k]);
    const Lanes of_g(mean_g[k]), rest(rest_g[k]), along(mean_gh[k]);
    for_row<T>(n, [&](std::size_t i) {
      const Lanes h = xsimd::fma(row[i] - mean, r, shift);
      if constexpr (kind == Norm::layer)
        out.set(i, r * xsimd::fnma(h, along, xsimd::fms(gradient[i], w[i], of_g) - rest));
      else
        out.set(i, r * xsimd::fms(gradient[i], w[i], h * along));
    });
  }
}

template <Norm kind, class T>
void gradients(NormSizes s, const NormInputs<T>& in, const T* gradient,
               const NormGradients<T>& out) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = s.n, piece_rows = rows_in_piece(n);
  const std::size_t pieces = (s.rows + piece_rows - 1) / piece_rows;
  PieceSums<T> dweight(out.dweight, pieces, n), dbias(out.dbias, pieces, n);
  parallel_for(s.rows, piece_rows, [&](std::size_t begin, std::size_t end) {
    const OptionalRow<T> w(in.weight, n, 1);
    T *const dw = dweight.piece(begin / piece_rows), *const db = dbias.piece(begin / piece_rows);
    for_row_groups(begin, end, [&](std::size_t first, std::size_t count) {
      const T *const x = in.x + first * n, *const g = gradient + first * n;
      const Moments<T> moment = moments<kind>(count, n, x, in.eps);
      if (out.dx != nullptr)
        input_gradient<kind>(count, n, moment, x, w, g, out.dx + first * n);
      for (std::size_t k = 0; k < count; ++k) {
        const RowIn<T> row(x + k * n, n), row_g(g + k * n, n);
        const Lanes mean(moment.mean[k]), r(moment.r[k]), shift(moment.shift[k]);
        update_row(dweight.length(), dw, [&](std::size_t i, const Lanes& sum) {
          return sum + row_g[i] * xsimd::fma(row[i] - mean, r, shift);
        });
        update_row(dbias.length(), db,
                   [&](std::size_t i, const Lanes& sum) { return sum + row_g[i]; });
      }
    });
  });
  dweight.finish();
  dbias.finish();
}

}  // namespace

template <class T>
void normalize(Norm norm, NormSizes sizes, const NormInputs<T>& in, T* y) {
  norm == Norm::layer ? normalize_rows<Norm::layer>(sizes, in, y)
                      : normalize_rows<Norm::rms>(sizes, in, y);
}
template <class T>
void normalize_backward(Norm norm, NormSizes sizes, const NormInputs<T>& in, const T* g,
                        const NormGradients<T>& out) {
  norm == Norm::layer ? gradients<Norm::layer>(sizes, in, g, out)
                      : gradients<Norm::rms>(sizes, in, g, out);
}

template void normalize(Norm, NormSizes, const NormInputs<float>&, float*);
template void normalize_backward(Norm, NormSizes, const NormInputs<float>&, const float*,
                                 const NormGradients<float>&);
template void normalize(Norm, NormSizes, const NormInputs<double>&, double*);
template void normalize_backward(Norm, NormSizes, const NormInputs<double>&, const double*,
                                 const NormGradients<double>&);

}  // namespace xgrad::kernels
