#pragma once
// Rows of numbers as norms and reductions meet them: every length and place in the range.

#include <algorithm>
#include <random>
#include <xgrad/autograd/ops.hpp>

#include "autograd/accuracy.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {

/// One row, in numbers of its dtype.
struct SweptRow {
  std::string what;
  std::vector<double> x;
};

inline const std::vector<std::size_t>& swept_lengths() {
  static const std::vector<std::size_t> lengths = {1,  2,  3,  5,  7,   8,   9,   15,  16,
                                                   17, 31, 33, 64, 100, 127, 256, 384, 800};
  return lengths;
}

inline double in_dtype(double v, DType dtype) {
  return dtype == DType::float32 ? static_cast<double>(static_cast<float>(v)) : v;
}
inline double next_number(double v, DType dtype) {
  return dtype == DType::float32
             ? static_cast<double>(std::nextafter(static_cast<float>(v), 2 * static_cast<float>(v)))
             : std::nextafter(v, 2 * v);
}

/// Rows about an offset: equal numbers, equal but for one last place, a few last places apart, and
/// with deviations of many sizes.
inline std::vector<SweptRow> rows_about(DType dtype) {
  std::vector<SweptRow> rows;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const std::size_t n : swept_lengths())
    for (const double about : {0.0, 1.0, -0.1, 100.3, -10000.3, 1e6}) {
      const auto add = [&](const std::string& kind, const auto& f) {
        SweptRow row{kind + " about " + std::to_string(about) + ", " + std::to_string(n), {}};
        for (std::size_t i = 0; i < n; ++i)
          row.x.push_back(in_dtype(f(i), dtype));
        rows.push_back(std::move(row));
      };
      const double at = in_dtype(about, dtype), next = next_number(at, dtype);
      add("equal", [&](std::size_t) { return at; });
      add("one off", [&](std::size_t i) { return i == n / 2 ? next : at; });
      add("last places",
          [&](std::size_t) { return at + (next - at) * static_cast<double>(random() % 8); });
      for (const double size : {1e-3, 1.0, 1e4})
        add("size " + std::to_string(size),
            [&](std::size_t) { return at + size * normal(random); });
    }
  return rows;
}

/// Rows of every magnitude, from subnormals to half of the largest number.
inline std::vector<SweptRow> rows_of_all_magnitudes(DType dtype) {
  std::vector<SweptRow> rows;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const int low = dtype == DType::float32 ? -140 : -1060,
            high = dtype == DType::float32 ? 127 : 1023;
  for (const std::size_t n : swept_lengths())
    for (int e = low; e <= high; e += (high - low) / 24) {
      SweptRow row{"times 2^" + std::to_string(e) + ", " + std::to_string(n), {}};
      for (std::size_t i = 0; i < n; ++i)
        row.x.push_back(in_dtype(std::ldexp(uniform(random), e), dtype));
      rows.push_back(std::move(row));
    }
  return rows;
}

/// Rows about 0, with deviations of 1.
inline std::vector<SweptRow> plain_rows(DType dtype) {
  std::vector<SweptRow> rows = rows_about(dtype);
  std::erase_if(rows, [](const SweptRow& row) {
    return !row.what.starts_with("size 1.000000 about 0.000000");
  });
  return rows;
}

inline Tensor row_tensor(const std::vector<double>& x, DType dtype) {
  return to(Tensor(std::vector<double>(x)), dtype);
}

inline Wide wide_mean(const WideRow& x) {
  Wide sum = 0;
  for (const Wide v : x)
    sum += v;
  return sum / static_cast<Wide>(x.size());
}
inline WideRow wide_deviations(WideRow x) {
  for (int times = 0; times < 2; ++times) {  // the first mean is rounded to its own last place
    const Wide m = wide_mean(x);
    for (Wide& v : x)
      v -= m;
  }
  return x;
}
inline Wide wide_product(const WideRow& a, const WideRow& b) {
  Wide sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}
inline Wide wide_largest(const WideRow& x) {
  Wide most = 0;
  for (const Wide v : x)
    most = std::max(most, std::abs(v));
  return most;
}

}  // namespace xgrad::testing
