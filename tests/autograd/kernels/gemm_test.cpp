// Matrix products against plain loops.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/threads.hpp>

#include "helpers/catch.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

struct Product {
  bool transpose_a, transpose_b;
  std::size_t m, n, k;
  std::size_t lda() const { return (transpose_a ? m : k) + 3; }
  std::size_t ldb() const { return (transpose_b ? k : n) + 2; }
  std::size_t ldc() const { return n + 1; }
};

template <class T>
std::vector<T> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  Generator generator(seed);
  fill_normal(std::span(x), generator);
  return x;
}

// The expected c after gemm, with the gaps between its rows.
template <class T>
std::vector<T> by_loops(const Product& p, T alpha, const std::vector<T>& a, const std::vector<T>& b,
                        T beta, std::vector<T> c) {
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < p.k; ++l)
        sum += static_cast<double>(p.transpose_a ? a[l * p.lda() + i] : a[i * p.lda() + l]) *
               static_cast<double>(p.transpose_b ? b[j * p.ldb() + l] : b[l * p.ldb() + j]);
      T& x = c[i * p.ldc() + j];
      x = static_cast<T>(sum) * alpha + (beta == 0 ? T(0) : beta * x);
    }
  return c;
}

template <class T>
void check_gemm(const Product& p, T alpha, T beta) {
  const auto a = numbers<T>((p.transpose_a ? p.k : p.m) * p.lda(), 1);
  const auto b = numbers<T>((p.transpose_b ? p.n : p.k) * p.ldb(), 2);
  auto before = numbers<T>(p.m * p.ldc(), 3);
  if (beta == 0)  // garbage
    for (std::size_t i = 0; i < p.m; ++i)
      std::fill_n(before.begin() + static_cast<std::ptrdiff_t>(i * p.ldc()), p.n,
                  std::numeric_limits<T>::quiet_NaN());
  const auto expected = by_loops(p, alpha, a, b, beta, before);
  const double close = std::is_same_v<T, float> ? 2e-4 : 1e-11;
  for (const auto gemm : {kernels::gemm<T>, kernels::gemm_parallel<T>}) {
    auto c = before;
    gemm(p.transpose_a, p.transpose_b, p.m, p.n, p.k, alpha, a.data(), p.lda(), b.data(), p.ldb(),
         beta, c.data(), p.ldc(), nullptr);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      if (!(std::abs(static_cast<double>(c[i] - expected[i])) <= close))
        ++wrong;
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("gemm equals plain loops", "[gemm]") {
  const bool transpose_a = GENERATE(false, true), transpose_b = GENERATE(false, true);
  for (const auto& [m, n, k] :
       std::vector<std::array<std::size_t, 3>>{{1, 1, 1},
                                               {5, 7, 3},
                                               {0, 4, 3},
                                               {4, 0, 3},
                                               {4, 3, 0},
                                               {1, 4, 3},
                                               {1, 67, 37},
                                               {1, 500, 131},
                                               {0, 0, 0},
                                               {200, 65, 70},
                                               {64, 300, 50},
                                               {130, 130, 130},
                                               {37, 33, 17},
                                               {65, 290, 400},
                                               {99, 31, 801},
                                               {30, 200, 1021}}) {  // lda 1024
    const Product p{transpose_a, transpose_b, m, n, k};
    INFO(m << " x " << n << " x " << k << ", transposes " << transpose_a << transpose_b);
    check_gemm<float>(p, 1, 0);
    check_gemm<float>(p, 0.5F, 1);
    check_gemm<double>(p, 1, 0);
    check_gemm<double>(p, -2, 0.25);
  }
}

TEST_CASE("gemm adds a bias to each row", "[gemm]") {
  const auto check = []<class T>(std::size_t m, std::size_t n, std::size_t k) {
    INFO(m << " x " << n << " x " << k);
    const auto a = numbers<T>(m * k, 1), b = numbers<T>(n * k, 2), bias = numbers<T>(n, 3);
    for (const auto gemm : {kernels::gemm<T>, kernels::gemm_parallel<T>}) {
      std::vector<T> c(m * n, std::numeric_limits<T>::quiet_NaN()), without(m * n);
      gemm(false, true, m, n, k, 1, a.data(), k, b.data(), k, 0, c.data(), n, bias.data());
      gemm(false, true, m, n, k, 1, a.data(), k, b.data(), k, 0, without.data(), n, nullptr);
      double off = 0, largest = 1;
      for (std::size_t i = 0; i < m * n; ++i) {
        off = std::max(off, std::abs(static_cast<double>(c[i] - (without[i] + bias[i % n]))));
        largest = std::max(largest, std::abs(static_cast<double>(c[i])));
      }
      CHECK(off <= 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * largest);
    }
  };
  for (const auto& [m, n, k] : std::vector<std::array<std::size_t, 3>>{
           {1, 1, 1}, {1, 70, 30}, {7, 3, 0}, {130, 65, 20}, {70, 300, 900}, {13, 700, 64}}) {
    check.operator()<float>(m, n, k);
    check.operator()<double>(m, n, k);
  }
}

TEST_CASE("gemm takes numbers of any size", "[gemm]") {
  const bool transpose_a = GENERATE(false, true), transpose_b = GENERATE(false, true);
  const Product p{transpose_a, transpose_b, 165, 290, 150};
  auto a = numbers<float>((transpose_a ? p.k : p.m) * p.lda(), 1);
  auto b = numbers<float>((transpose_b ? p.n : p.k) * p.ldb(), 2);
  const auto a_at = [&](std::size_t i, std::size_t l) -> float& {
    return a[transpose_a ? l * p.lda() + i : i * p.lda() + l];
  };
  const auto b_at = [&](std::size_t l, std::size_t j) -> float& {
    return b[transpose_b ? j * p.ldb() + l : l * p.ldb() + j];
  };
  for (auto* const x : {&a, &b})  // magnitudes between 1 and 2
    for (float& v : *x)
      v = std::copysign(1 + std::abs(std::tanh(v)), v);
  // Rows of a: 32 of usual size, from 2^-149 to 2^68, usual, 2^-60, 2^-110, usual.  Columns of b
  // of usual size, but for some, and 32 of 2^-60.
  constexpr std::array row_scales{0, 0, 0, -60, -110, 0};
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t l = 0; l < p.k; ++l)
      a_at(i, l) = std::ldexp(
          a_at(i, l), i / 32 == 1 ? static_cast<int>(i % 32) * 7 - 149 : row_scales[i / 32]);
  for (std::size_t l = 0; l < p.k; ++l)
    for (std::size_t j = 64; j < 96; ++j)
      b_at(l, j) = std::ldexp(b_at(l, j), -60);
  for (std::size_t l = 0; l < p.k; ++l) {
    b_at(l, 40) = std::ldexp(b_at(l, 40), 50);
    b_at(l, 41) = std::ldexp(b_at(l, 41), -90);
    b_at(l, 42) = 0;
  }
  const auto check = [&](std::size_t i, std::size_t j, float c) {
    double sum = 0, magnitude = 0;
    for (std::size_t l = 0; l < p.k; ++l) {
      const double term = static_cast<double>(a_at(i, l)) * static_cast<double>(b_at(l, j));
      sum += term;
      magnitude += std::abs(term);
    }
    if (std::isnan(sum))
      return std::isnan(c);
    if (std::isinf(static_cast<float>(sum)))
      return c == static_cast<float>(sum);
    return std::abs(static_cast<double>(c) - sum) <=
           magnitude * 0x1p-21 + static_cast<double>(p.k) * 0x1p-149;
  };
  const auto wrong = [&] {
    std::vector<float> c(p.m * p.ldc(), std::numeric_limits<float>::quiet_NaN());
    kernels::gemm<float>(transpose_a, transpose_b, p.m, p.n, p.k, 1.0F, a.data(), p.lda(), b.data(),
                         p.ldb(), 0.0F, c.data(), p.ldc());
    std::size_t n = 0;
    for (std::size_t i = 0; i < p.m; ++i)
      for (std::size_t j = 0; j < p.n; ++j)
        n += check(i, j, c[i * p.ldc() + j]) ? 0 : 1;
    return n;
  };
  CHECK(wrong() == 0);
  a_at(3, 70) = std::numeric_limits<float>::quiet_NaN();
  a_at(100, 1) = std::numeric_limits<float>::infinity();
  b_at(149, 289) = -std::numeric_limits<float>::infinity();
  a_at(164, 149) = std::numeric_limits<float>::max();
  CHECK(wrong() == 0);
}

TEST_CASE("gemm is as exact as float32 allows", "[gemm]") {
  constexpr std::size_t m = 64, n = 96;
  const bool fma = simd_name() != "sse2" && simd_name() != "wasm";
  const std::size_t k = GENERATE(32, 128, 600, 20'000);
  for (const bool positive : {false, true}) {  // whose errors would all go one way
    INFO(k << " terms, positive " << positive);
    auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
    if (positive)
      for (auto* const x : {&a, &b})
        for (float& v : *x)
          v = std::abs(v);
    std::vector<float> c(m * n);
    kernels::gemm<float>(false, false, m, n, k, 1.0F, a.data(), k, b.data(), n, 0.0F, c.data(), n);
    double ours = 0, plain = 0, mean = 0, size = 0;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double exact = 0;
        float sum = 0;
        for (std::size_t l = 0; l < k; ++l) {
          exact += static_cast<double>(a[i * k + l]) * static_cast<double>(b[l * n + j]);
          const float x = a[i * k + l], y = b[l * n + j];
          sum = fma ? std::fma(x, y, sum) : sum + x * y;
        }
        const double off = static_cast<double>(c[i * n + j]) - exact;
        ours += off * off;
        plain += std::pow(static_cast<double>(sum) - exact, 2);
        mean += off;
        size += std::abs(exact);
      }
    CHECK(ours <= 1.05 * plain);
    CHECK(std::abs(mean) <= 0x1p-26 * size);
  }
}

TEST_CASE("a sum of one term in gemm is nearly a product of float32", "[gemm]") {
  constexpr std::size_t m = 96, n = 128;
  auto a = numbers<float>(m * m, 1);
  const auto b = numbers<float>(m * n, 2);
  for (std::size_t i = 0; i < m * m; ++i)
    if (i % (m + 1) != 0)  // not on the diagonal
      a[i] = 0;
  std::vector<float> c(m * n);
  kernels::gemm<float>(false, false, m, n, m, 1.0F, a.data(), m, b.data(), n, 0.0F, c.data(), n);
  double off = 0;  // relative
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double exact = static_cast<double>(a[i * (m + 1)]) * static_cast<double>(b[i * n + j]);
      off = std::max(off, std::abs(static_cast<double>(c[i * n + j]) / exact - 1));
    }
  CHECK(off <= 0x1.04p-23);
}

// A model's item must not depend on its neighbours, not even in the last bit.  (The order of an
// element's sum may depend on its position: BLAS promises nothing.)
TEST_CASE("an element of gemm depends on its row and its column alone", "[gemm]") {
  const bool transpose_a = GENERATE(false, true), transpose_b = GENERATE(false, true);
  const float beta = GENERATE(0.0F, 1.0F, 0.5F);
  const Product p{transpose_a, transpose_b, 75, 101, 170};
  const auto a = numbers<float>((transpose_a ? p.k : p.m) * p.lda(), 1),
             b = numbers<float>((transpose_b ? p.n : p.k) * p.ldb(), 2);
  const auto before = numbers<float>(p.m * p.ldc(), 3);
  const auto product = [&](const std::vector<float>& x, const std::vector<float>& y) {
    auto c = before;
    kernels::gemm<float>(transpose_a, transpose_b, p.m, p.n, p.k, 1, x.data(), p.lda(), y.data(),
                         p.ldb(), beta, c.data(), p.ldc());
    return c;
  };
  const auto usual = product(a, b);
  constexpr std::size_t row = 37, column = 64;
  for (const float other : {1e-38F, 1e38F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    INFO(other << ", beta " << beta << ", transposes " << transpose_a << transpose_b);
    auto x = a, y = b;
    x[transpose_a ? 160 * p.lda() + row : row * p.lda() + 160] = other;
    y[transpose_b ? column * p.ldb() + 3 : 3 * p.ldb() + column] = other;
    const auto c = product(x, y);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < p.m; ++i)
      for (std::size_t j = 0; j < p.n; ++j)
        if (i != row && j != column)
          changed += c[i * p.ldc() + j] == usual[i * p.ldc() + j] ? 0 : 1;
    CHECK(changed == 0);
  }
}

TEST_CASE("gemm is the same on any number of threads", "[gemm]") {
  for (const auto& [m, n, k] : std::vector<std::array<std::size_t, 3>>{{768, 130, 64},
                                                                       {65, 770, 64},
                                                                       {2000, 40, 30},
                                                                       {1, 770, 130},
                                                                       {129, 64, 64},
                                                                       {449, 300, 300},
                                                                       {192, 1153, 130}}) {
    auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
    a[m * k / 2] = 1e-38F;  // multiplied in another way
    b[k * n / 2] = std::numeric_limits<float>::infinity();
    const auto product = [&, m = m, n = n, k = k] {
      std::vector<float> c(m * n);
      kernels::gemm_parallel(false, false, m, n, k, 1.0F, a.data(), k, b.data(), n, 0.0F, c.data(),
                             n);
      return c;
    };
    const auto run = [&](std::size_t threads) {
      const Threads some(threads);
      return product();
    };
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float v, float w) {
        return std::bit_cast<std::uint32_t>(v) == std::bit_cast<std::uint32_t>(w);
      });
    };
    const auto one = run(1);
    CHECK(same(run(2), one));
    CHECK(same(run(7), one));
    std::vector<std::vector<float>> within(2);
    on_threads(2, [&](std::size_t i) { within[i] = product(); });
    CHECK(same(within[0], one));
    CHECK(same(within[1], one));
  }
}

// OpenBLAS without locks occasionally gives one buffer to two threads (ctest blas_serial).
TEST_CASE("BLAS is called by several threads at a time", "[gemm]") {
  const std::size_t m = 128, n = 128, k = 128;  // smaller ones need no buffer with AVX-512
  const auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
  const auto product = [&](std::vector<float>& c) {
    kernels::gemm(false, false, m, n, k, 1.0F, a.data(), k, b.data(), n, 0.0F, c.data(), n);
  };
  std::vector<float> expected(m * n);
  product(expected);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      std::vector<float> c(m * n);
      for (int i = 0; i < 3000; ++i) {
        product(c);
        wrong += std::memcmp(c.data(), expected.data(), m * n * sizeof(float)) == 0 ? 0 : 1;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

#if defined(__x86_64__)
// OPENBLAS_CORETYPE is Prescott here (ctest blas_core_type): OpenBLAS starts as on a Pentium 4.
TEST_CASE("BLAS gets kernels for the processor", "[.core-type]") {
  kernels::mend_core_type();
  CHECK(blas_name().starts_with("OpenBLAS Prescott"));  // the user's choice
  const Tensor a = randn({70, 70}), before = matmul(a, a);
  unsetenv("OPENBLAS_CORETYPE");
  std::thread(kernels::mend_core_type).join();
  CHECK(blas_name().starts_with("OpenBLAS Prescott"));  // this thread could have been in BLAS
  kernels::mend_core_type();
  CHECK(blas_name().starts_with("OpenBLAS Prescott") ==
        !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
  CHECK(std::getenv("OPENBLAS_CORETYPE") == nullptr);
  CHECK(allclose(matmul(a, a), before, 1e-5, 1e-5));
}
#endif

#if defined(__linux__)
// BLAS's own threads would compete with ours: with two of each, a step takes five times as long.
TEST_CASE("BLAS has no threads of its own", "[gemm]") {
  const Tensor a = randn({700, 700});
  CHECK(matmul(a, a).numel() == 490'000);
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  CHECK(static_cast<std::size_t>(threads) <= num_threads() + (XGRAD_SANITIZER ? 1 : 0));
}
#endif
