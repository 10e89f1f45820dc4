#include <xgrad/autograd/kernels/moments.hpp>

#include <vector>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/row.hpp>

namespace xgrad::kernels {

template <class T>
ScaledMoments::ScaledMoments(std::size_t n, const T* x, bool centred) {
  if (n == 0)
    return;
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  if (largest > 0 && std::isfinite(largest))
    scale = std::ldexp(1.0, std::ilogb(largest));
  std::vector<double> scaled(n);
  for (std::size_t i = 0; i < n; ++i)
    scaled[i] = static_cast<double>(x[i]) / scale;
  using Lanes = simd::Batch<double>;
  const RowIn<double> row(scaled.data(), n);
  const auto sum_of = [&](const auto& f) {
    return row_sum<double>(n, [&](std::size_t i) { return f(row[i]); });
  };
  if (centred) {
    const Lanes first(scaled[0]);
    const double sum = sum_of([&](const Lanes& v) { return v - first; });
    const Mean<double> m(scaled[0], sum / static_cast<double>(n));
    mean = m.nearest;
    rest = m.rest;
  }
  const Lanes nearest(mean), missing(rest);
  squares = sum_of([&](const Lanes& v) {
    const Lanes deviation = (v - nearest) - missing;
    return deviation * deviation;
  });
}
template ScaledMoments::ScaledMoments(std::size_t, const float*, bool);
template ScaledMoments::ScaledMoments(std::size_t, const double*, bool);

template <class T>
void variance(std::size_t rows, std::size_t n, const T* x, double degrees, bool root, T* y) {
  const std::size_t grain = std::max<std::size_t>(1, 8192 / std::max<std::size_t>(n, 1));
  parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const ScaledMoments row(n, x + r * n, true);
      const double v = row.squares / degrees;
      y[r] = static_cast<T>(root ? std::sqrt(v) * row.scale : v * row.scale * row.scale);
    }
  });
}
template void variance(std::size_t, std::size_t, const float*, double, bool, float*);
template void variance(std::size_t, std::size_t, const double*, double, bool, double*);

}  // namespace xgrad::kernels
