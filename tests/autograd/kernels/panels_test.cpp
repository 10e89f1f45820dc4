// Products with a packed right operand, beside loops.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>
#include <xgrad/autograd/kernels/panels.hpp>
#include <xgrad/autograd/memory.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;
using kernels::Panels;
using kernels::Strided;

namespace {

template <class T>
std::vector<T, Allocator<T>> normal(std::size_t n, std::uint64_t seed) {
  std::vector<T, Allocator<T>> x(n);
  Generator generator(seed);
  fill_normal(std::span(x.data(), n), generator);
  return x;
}

// c (m, n) = a b alpha, or is added to c: a is stored transposed or not, b likewise, rows of c have
// gaps, and only `rows` of a stored b are used.
template <class T>
void check_multiply(std::size_t m, std::size_t n, std::size_t k, bool transposed, bool add) {
  INFO(m << " x " << n << " x " << k << ", transposed " << transposed << ", add " << add);
  const std::size_t ldc = n + 3, before = 2;  // rows of b before those that count
  const auto a = normal<T>(m * k + 1, 1), b = normal<T>((k + before) * n + 1, 2);
  const Strided<T> left{a.data(), transposed ? 1 : k, transposed ? m : 1};
  const Strided<T> right{b.data(), transposed ? 1 : n, transposed ? k + before : 1};
  std::vector<T, Allocator<T>> memory(Panels<T>::size(k + before, n));
  const Panels<T> packed = kernels::pack(k + before, n, right, memory.data());
  auto c = normal<T>(m * ldc + 1, 3);
  const auto old = c;
  if (!add)
    for (std::size_t i = 0; i < m; ++i)
      std::fill_n(c.data() + i * ldc, n, std::numeric_limits<T>::quiet_NaN());
  kernels::multiply(m, T(0.5), left, packed.rows({before, before + k}), add, c.data(), ldc);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < ldc; ++j) {
      double expected = static_cast<double>(old[i * ldc + j]), size = 1;
      if (j < n) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) {
          const T x = left.data[i * left.row + l * left.column];
          const T y = right.data[(l + before) * right.row + j * right.column];
          sum += static_cast<double>(x) * static_cast<double>(y);
          size += std::abs(static_cast<double>(x) * static_cast<double>(y));
        }
        expected = 0.5 * sum + (add ? expected : 0);
      }
      const double close = (std::is_same_v<T, float> ? 1e-6 : 1e-15) * (j < n ? size : 0);
      wrong += !(std::abs(static_cast<double>(c[i * ldc + j]) - expected) <= close);
    }
  CHECK(wrong == 0);
}

}  // namespace

// Sizes around the edges of panels (8 to 32 columns), of groups of rows, chunks of 96 rows and
// pieces of 256.
TEMPLATE_TEST_CASE("products of packed panels equal loops", "[panels]", float, double) {
  const bool transposed = GENERATE(false, true), add = GENERATE(false, true);
  for (const std::size_t m : {0, 1, 3, 4, 5, 6, 8, 13, 24, 96, 97, 200})
    check_multiply<TestType>(m, 33, 5, transposed, add);
  for (const std::size_t n : {0, 1, 7, 8, 16, 31, 32, 64, 100})
    check_multiply<TestType>(11, n, 9, transposed, add);
  for (const std::size_t k : {0, 1, 255, 256, 257, 600})
    check_multiply<TestType>(7, 40, k, transposed, add);
}

TEST_CASE("columns of packed panels", "[panels]") {
  constexpr std::size_t width = Panels<float>::width, n = 3 * width, k = 4;
  const auto b = normal<float>(k * n, 4);
  std::vector<float, Allocator<float>> memory(Panels<float>::size(k, n));
  const auto packed = kernels::pack(k, n, {b.data(), n, 1}, memory.data());
  const float one[k] = {0, 0, 1, 0};
  std::vector<float> row(width + 1);
  kernels::multiply(1, 1.0F, {one, k, 1}, packed.columns({width, 2 * width + 1}), false, row.data(),
                    row.size());
  CHECK(std::equal(row.begin(), row.end(), b.begin() + 2 * n + width));
}
