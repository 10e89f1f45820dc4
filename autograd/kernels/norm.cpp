#include <xgrad/autograd/kernels/norm.hpp>

#include <cmath>
#include <vector>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {
namespace {

// Rows in a piece of work; the gradients of weight and bias are summed over them before the sums of
// all pieces are added, in order.
std::size_t rows_in_piece(std::size_t n) {
  return std::clamp<std::size_t>(8192 / std::max<std::size_t>(n, 1), 8, 128);
}

// Mean and r of a row; for rms norm the mean counts as 0.
template <class T>
struct Moments {
  T mean, r;
};
template <Norm kind, class T>
Moments<T> moments(std::size_t n, const RowIn<T>& x, T eps) {
  using Lanes = simd::Batch<T>;
  const auto count = static_cast<double>(n);
  T mean = 0;
  if constexpr (kind == Norm::layer)
    mean = static_cast<T>(row_sum<T>(n, [&](std::size_t i, const auto&) { return x[i]; }) / count);
  const double squares = row_sum<T>(
      n, [&, m = Lanes(mean)](std::size_t i, const auto&) { return (x[i] - m) * (x[i] - m); });
  return {mean, static_cast<T>(1 / std::sqrt(squares / count + static_cast<double>(eps)))};
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
  std::vector<T> sums_;
};

template <Norm kind, class T>
void normalize_rows(NormSizes s, const NormInputs<T>& in, T* out) {
  using Lanes = simd::Batch<T>;
  const std::size_t n = s.n;
  parallel_for(s.rows, rows_in_piece(n), [&](std::size_t begin, std::size_t end) {
    const OptionalRow<T> w(in.weight, n, 1), b(in.bias, n, 0);
    for (std::size_t r = begin * n; r < end * n; r += n) {
      const RowIn<T> x(in.x + r, n);
      RowOut<T> y(out + r, n);
      const auto [mean, scale] = moments<kind>(n, x, in.eps);
      const Lanes m(mean), k(scale);
      for_row<T>(
          n, [&](std::size_t i, const auto&) { y.set(i, xsimd::fma((x[i] - m) * k, w[i], b[i])); });
    }
  });
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
    RowOut<T> dw(dweight.piece(begin / piece_rows), dweight.length()),
        db(dbias.piece(begin / piece_rows), dbias.length());
    for (std::size_t r = begin * n; r < end * n; r += n) {
      const RowIn<T> x(in.x + r, n), g(gradient + r, n);
      const auto [mean, scale] = moments<kind>(n, x, in.eps);
      const Lanes m(mean), k(scale);
      if (out.dx != nullptr) {
        const auto [sum_g, sum_gx] = row_sums<T, 2>(n, [&](std::size_t i, const auto&) {
          const Lanes gw = g[i] * w[i];
          return std::array<Lanes, 2>{gw, gw * ((x[i] - m) * k)};
        });
        const auto count = static_cast<double>(n);
        const Lanes mean_g(kind == Norm::layer ? static_cast<T>(sum_g / count) : T(0));
        const Lanes mean_gx(static_cast<T>(sum_gx / count));
        RowOut<T> dx(out.dx + r, n);
        for_row<T>(n, [&](std::size_t i, const auto&) {
          dx.set(i, k * (g[i] * w[i] - (x[i] - m) * k * mean_gx - mean_g));
        });
      }
      for_row<T>(dweight.length(), [&](std::size_t i, const auto& keep) {
        dw.set(i, dw[i] + keep(g[i] * ((x[i] - m) * k), Lanes(0)));
      });
      for_row<T>(dbias.length(),
                 [&](std::size_t i, const auto& keep) { db.set(i, db[i] + keep(g[i], Lanes(0))); });
    }
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
