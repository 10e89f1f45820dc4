#include <xgrad/autograd/kernels/gemv.hpp>

#include <array>
#include <xgrad/autograd/kernels/lanes.hpp>

namespace xgrad::kernels {
namespace {

template <class T>
T scaled(T beta, T y) {
  return beta == T(0) ? T(0) : beta * y;
}

// The products of x with `rows` rows of b, side by side: each alone would wait for its own sum.
template <std::size_t rows, class T>
void dot_rows(std::size_t k, T alpha, const T* x, const T* b, std::size_t ldb, T beta, T* y) {
  using Lanes = simd::Batch<T>;
  std::array<Lanes, rows> sums;
  sums.fill(Lanes(0));
  std::size_t i = 0;
  for (; i + Lanes::size <= k; i += Lanes::size) {
    const Lanes xi = Lanes::load_unaligned(x + i);
    for (std::size_t r = 0; r < rows; ++r) {
      __builtin_prefetch(b + (r + rows) * ldb + i);  // while these rows' lanes are added up
      sums[r] = xsimd::fma(xi, Lanes::load_unaligned(b + r * ldb + i), sums[r]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    T sum = add_lanes<T>(sums[r]);
    for (std::size_t j = i; j < k; ++j)
      sum += x[j] * b[r * ldb + j];
    y[r] = alpha * sum + scaled(beta, y[r]);
  }
}

// y += the sum of c[r] times row r of b.
template <std::size_t rows, class T>
void add_rows(std::size_t n, const T* c, const T* b, std::size_t ldb, T* y) {
  for (std::size_t j = 0; j < n; ++j) {
    T sum = 0;
    for (std::size_t r = 0; r < rows; ++r)
      sum += c[r] * b[r * ldb + j];
    y[j] += sum;
  }
}

}  // namespace

template <class T>
void gemv(bool transpose_b, std::size_t n, std::size_t k, T alpha, const T* x, const T* b,
          std::size_t ldb, T beta, T* y) {
  constexpr std::size_t together = 4;
  if (transpose_b) {
    std::size_t j = 0;
    for (; j + together <= n; j += together)
      dot_rows<together>(k, alpha, x, b + j * ldb, ldb, beta, y + j);
    for (; j < n; ++j)
      dot_rows<1>(k, alpha, x, b + j * ldb, ldb, beta, y + j);
    return;
  }
  for (std::size_t j = 0; j < n; ++j)
    y[j] = scaled(beta, y[j]);
  std::size_t i = 0;
  for (; i + together <= k; i += together) {
    const std::array<T, together> c{alpha * x[i], alpha * x[i + 1], alpha * x[i + 2],
                                    alpha * x[i + 3]};
    add_rows<together>(n, c.data(), b + i * ldb, ldb, y);
  }
  for (; i < k; ++i) {
    const T c = alpha * x[i];
    add_rows<1>(n, &c, b + i * ldb, ldb, y);
  }
}

template void gemv(bool, std::size_t, std::size_t, float, const float*, const float*, std::size_t,
                   float, float*);
template void gemv(bool, std::size_t, std::size_t, double, const double*, const double*,
                   std::size_t, double, double*);

}  // namespace xgrad::kernels
