// Matrix products against plain loops.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/random.hpp>

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

// What c should be after gemm, the gaps between its rows included.
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

TEST_CASE("gemm is what its loops say", "[gemm]") {
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
      double off = 0;
      for (std::size_t i = 0; i < m * n; ++i)
        off = std::max(off, std::abs(static_cast<double>(c[i] - (without[i] + bias[i % n]))));
      CHECK(off <= (std::is_same_v<T, float> ? 2e-5 : 1e-13));
    }
  };
  for (const auto& [m, n, k] : std::vector<std::array<std::size_t, 3>>{
           {1, 1, 1}, {1, 70, 30}, {7, 3, 0}, {130, 65, 20}, {70, 300, 900}, {13, 700, 64}}) {
    check.operator()<float>(m, n, k);
    check.operator()<double>(m, n, k);
  }
}

TEST_CASE("gemm is the same on any number of threads", "[gemm]") {
  for (const auto& [m, n, k] : std::vector<std::array<std::size_t, 3>>{
           {768, 130, 64}, {65, 770, 64}, {2000, 40, 30}, {1, 770, 130}}) {
    const auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
    const auto run = [&, m = m, n = n, k = k](std::size_t threads) {
      const Threads some(threads);
      std::vector<float> c(m * n);
      kernels::gemm_parallel(false, false, m, n, k, 1.0F, a.data(), k, b.data(), n, 0.0F, c.data(),
                             n);
      return c;
    };
    const auto one = run(1);
    CHECK(run(2) == one);
    CHECK(run(7) == one);
  }
}
