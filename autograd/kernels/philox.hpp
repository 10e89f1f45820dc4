#pragma once
// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011): random bits that are a function of a
// counter and a key alone, so that any of them can be had without those before it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <xgrad/autograd/kernels/simd.hpp>

namespace xgrad::kernels {

/// The products of the low halves.
constexpr std::uint64_t low_product(std::uint64_t a, std::uint64_t b) {
  return (a & 0xffffffff) * (b & 0xffffffff);
}
#if defined(__AVX2__)
using PhiloxLanes = xsimd::batch<std::uint64_t, xsimd::avx2>;
inline PhiloxLanes low_product(PhiloxLanes a, PhiloxLanes b) { return _mm256_mul_epu32(a, b); }
#elif defined(__SSE2__)
using PhiloxLanes = xsimd::batch<std::uint64_t, xsimd::sse2>;
inline PhiloxLanes low_product(PhiloxLanes a, PhiloxLanes b) { return _mm_mul_epu32(a, b); }
#else
using PhiloxLanes = std::uint64_t;
#endif
template <class W>
W load(const std::uint64_t* from) {
  if constexpr (std::is_integral_v<W>)
    return *from;
  else
    return W::load_aligned(from);
}
template <class W>
void store(const W& x, std::uint64_t* to) {
  if constexpr (std::is_integral_v<W>)
    *to = x;
  else
    x.store_aligned(to);
}

/// Turns the words of counters into random ones: each in the low half of 64 bits, whose high half
/// means nothing.
template <class W>
constexpr void philox4x32_10(std::array<W, 4>& c, std::uint64_t key) {
  std::uint64_t low = key, high = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const W a = low_product(c[0], W(std::uint64_t{0xd2511f53}));
    const W b = low_product(c[2], W(std::uint64_t{0xcd9e8d57}));
    c = {(b >> 32) ^ c[1] ^ W(low), b, (a >> 32) ^ c[3] ^ W(high), a};
    low += 0x9e3779b9;
    high += 0xbb67ae85;
  }
}

/// The words of counters (block, stream), (block + 1, stream) ..., four of each.  Each number makes
/// two words of a counter, the low half first.  `block` is a multiple of how many counters there
/// are, a power of two from 8 to 2^32.
inline void philox4x32_10(std::uint64_t key, std::uint64_t stream, std::uint64_t block,
                          std::span<std::uint32_t> words) {
  constexpr std::size_t n = sizeof(PhiloxLanes) / sizeof(std::uint64_t);
  const PhiloxLanes low_half(std::uint64_t{0xffffffff});
  for (std::size_t at = 0; at < words.size(); at += 4 * n) {
    alignas(64) std::uint64_t blocks[n], even[n], odd[n];
    for (std::size_t i = 0; i < n; ++i)
      blocks[i] = block + at / 4 + i;
    std::array<PhiloxLanes, 4> c = {load<PhiloxLanes>(blocks), PhiloxLanes(block >> 32),
                                    PhiloxLanes(stream), PhiloxLanes(stream >> 32)};
    philox4x32_10(c, key);
    store((c[0] & low_half) | (c[1] << 32), even);
    store((c[2] & low_half) | (c[3] << 32), odd);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t* const four = words.data() + at + 4 * i;
      four[0] = static_cast<std::uint32_t>(even[i]);
      four[1] = static_cast<std::uint32_t>(even[i] >> 32);
      four[2] = static_cast<std::uint32_t>(odd[i]);
      four[3] = static_cast<std::uint32_t>(odd[i] >> 32);
    }
  }
}

}  // namespace xgrad::kernels
