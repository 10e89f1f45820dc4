#include <xgrad/autograd/kernels/bfloat16.hpp>

#include <algorithm>
#include <array>
#include <vector>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/kernels/lanes.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/memory.hpp>

namespace xgrad::kernels {
namespace {

using Floats = simd::Batch<float>;
using Words = simd::Batch<std::uint32_t>;
using Halves = simd::Batch<std::uint16_t>;
constexpr std::size_t lanes = Floats::size;
static_assert(bfloat16_columns % Halves::size == 0);

using Scratch = std::vector<float, Allocator<float>>;

// A register of bfloat16 is one of words with two elements each.  One shift makes floats of the
// even elements and one mask of the odd ones, so x is put in that order: of every 2 * lanes
// elements the even ones first.
void put_in_order(std::size_t k, const float* x, std::size_t padded, float* to) {
  std::fill_n(to, padded, 0.F);
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t block = i / (2 * lanes) * (2 * lanes), within = i % (2 * lanes);
    to[block + within % 2 * lanes + within / 2] = x[i];
  }
}

// The products of x, in that order, with `rows` rows of w, side by side.
template <std::size_t rows>
void dot_rows(std::size_t padded, const float* x, const std::uint16_t* w, const float* bias,
              float* y) {
  constexpr std::size_t line = 32;  // elements of a line of the cache
  std::array<Floats, rows> sums;
  sums.fill(Floats(0.F));
  const Words upper(0xFFFF0000U);
  for (std::size_t i = 0; i < padded; i += 2 * lanes) {
    const Floats even = Floats::load_unaligned(x + i), odd = Floats::load_unaligned(x + i + lanes);
    // The next rows, in the order of memory.
    for (std::size_t next = 0; next < 2 * lanes * rows; next += line)
      __builtin_prefetch(w + (padded + i) * rows + next);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto pair = std::bit_cast<Words>(Halves::load_unaligned(w + r * padded + i));
      sums[r] = xsimd::fma(even, std::bit_cast<Floats>(pair << 16), sums[r]);
      sums[r] = xsimd::fma(odd, std::bit_cast<Floats>(pair & upper), sums[r]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r)
    y[r] = add_lanes<float>(sums[r]) + (bias == nullptr ? 0.F : bias[r]);
}

void dot(std::size_t n, std::size_t padded, const float* x, const std::uint16_t* w,
         const float* bias, float* y) {
  constexpr std::size_t together = 4;
  const auto bias_of = [&](std::size_t j) { return bias == nullptr ? nullptr : bias + j; };
  std::size_t j = 0;
  for (; j + together <= n; j += together)
    dot_rows<together>(padded, x, w + j * padded, bias_of(j), y + j);
  for (; j < n; ++j)
    dot_rows<1>(padded, x, w + j * padded, bias_of(j), y + j);
}

}  // namespace

bool to_bfloat16(std::size_t n, const float* x, std::uint16_t* y) {
  constexpr std::uint32_t infinity = 0x7F800000;
  std::uint32_t too_large = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]), magnitude = bits & 0x7FFFFFFF;
    const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    // A NaN whose fraction is all in the lower half would become an infinity.
    const std::uint32_t nan = bits >> 16 | ((bits & 0x7F0000) == 0 ? 0x40U : 0U);
    y[i] = static_cast<std::uint16_t>(magnitude > infinity ? nan : rounded);
    too_large |= static_cast<std::uint32_t>(magnitude < infinity && (rounded & 0x7FFF) == 0x7F80);
  }
  return too_large == 0;
}

void linear_bfloat16(std::size_t m, std::size_t n, std::size_t k, const float* x,
                     const std::uint16_t* w, std::size_t stride, const float* bias, float* y) {
  constexpr std::size_t few = 7;  // rows of x; tiles are faster from there on (AVX2)
  const auto rows_of = [&](std::size_t elements) {  // a tile of about so many
    return std::max<std::size_t>(elements / std::max<std::size_t>(stride, 1) / 64 * 64, 64);
  };
  if (m > few) {
    parallel_for(n, rows_of(131'072), [&](std::size_t begin, std::size_t end) {
      thread_local Scratch tile;
      const std::size_t size = (end - begin) * stride;
      tile.resize(std::max(tile.size(), size));
      for (std::size_t i = 0; i < size; ++i)
        tile[i] = from_bfloat16(w[begin * stride + i]);
      gemm(false, true, m, end - begin, k, 1.F, x, k, tile.data(), stride, 0.F, y + begin, n,
           bias == nullptr ? nullptr : bias + begin);
    });
    return;
  }
  thread_local Scratch ordered;
  ordered.resize(std::max(ordered.size(), m * stride));
  for (std::size_t i = 0; i < m; ++i)
    put_in_order(k, x + i * k, stride, ordered.data() + i * stride);
  parallel_for(n, rows_of(32'768),
               [&, in_order = ordered.data()](std::size_t begin, std::size_t end) {
                 for (std::size_t i = 0; i < m; ++i)
                   dot(end - begin, stride, in_order + i * stride, w + begin * stride,
                       bias == nullptr ? nullptr : bias + begin, y + i * n + begin);
               });
}

}  // namespace xgrad::kernels
