// Matrices in bfloat16: rounding, and products by oneDNN or in float32.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>
#include "../memory.hpp"
#include "../per_thread.hpp"
#include "../threads.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "simd.hpp"

#ifdef XGRAD_ONEDNN
#include <dlfcn.h>

#include <fmt/format.h>
#include <dnnl.hpp>

#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#endif

namespace xgrad::kernels {
namespace {

#ifdef XGRAD_ONEDNN
// While one lives, oneDNN uses none of OpenMP's threads, which would compete with ours.
struct OneThread {
  static inline auto* const most =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  static inline auto* const set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const int before = most();
  OneThread() { set(1); }
  OneThread(const OneThread&) = delete;
  ~OneThread() { set(before); }
};

// Never destroyed: destructors of objects with static storage may multiply.
const dnnl::engine& engine() {
  static const auto* const made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}

// transpose_a, transpose_b, m, n, k, lda, ldb, ldc, beta
using Size = std::size_t;
using Key = std::tuple<bool, bool, Size, Size, Size, Size, Size, Size, float>;

// A compiled product, with handles of its operands, result and scratch memory.
struct Product {
  dnnl::matmul run;
  std::unordered_map<int, dnnl::memory> arguments;
  std::size_t scratch;

  explicit Product(const Key& key) {
    const auto [transpose_a, transpose_b, m, n, k, lda, ldb, ldc, beta] = key;
    using Type = dnnl::memory::data_type;
    const auto matrix = [](Size rows, Size columns, Type type, bool transpose, Size ld) {
      using Dim = dnnl::memory::dim;
      return dnnl::memory::desc({Dim(rows), Dim(columns)}, type,
                                {Dim(transpose ? 1 : ld), Dim(transpose ? ld : 1)});
    };
    const auto a = matrix(m, k, Type::bf16, transpose_a, lda),
               b = matrix(k, n, Type::bf16, transpose_b, ldb),
               c = matrix(m, n, Type::f32, false, ldc);
    dnnl::post_ops then;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (beta != 0)
      then.append_sum(beta);
    attributes.set_post_ops(then);
#if DNNL_VERSION_MAJOR < 3
    const dnnl::matmul::primitive_desc plan({a, b, c}, attributes, engine());
#else
    const dnnl::matmul::primitive_desc plan(engine(), a, b, c, attributes);
#endif
    if (std::string_view(plan.impl_info_str()).starts_with("ref"))
      throw dnnl::error(dnnl_unimplemented, "a loop that takes a thousand times as long");
    run = dnnl::matmul(plan);
    const dnnl::memory::desc memory = plan.scratchpad_desc();
    scratch = memory.get_size();
    for (const auto& [name, desc] : {std::pair(DNNL_ARG_SRC, a),
                                     {DNNL_ARG_WEIGHTS, b},
                                     {DNNL_ARG_DST, c},
                                     {DNNL_ARG_SCRATCHPAD, memory}})
      arguments.emplace(name, dnnl::memory(desc, engine(), nullptr));
  }
};

// A thread's, because oneDNN lets no two threads share a product.
struct Compiled {
  dnnl::stream stream{engine()};
  std::map<Key, Product> products;
  std::vector<char, Allocator<char>> scratch;
};

// "oneDNN 2.6.3"; empty if this processor has no instructions for bfloat16, or ONEDNN_MAX_CPU_ISA
// forbids them.
const std::string& onednn_name() {
  static const std::string text = [] {
    constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const dnnl_version_t& v = *dnnl_version();
    if (OneThread::most == nullptr || OneThread::set == nullptr || (has & needed) != needed)
      return std::string();
    return fmt::format("oneDNN {}.{}.{}", v.major, v.minor, v.patch);
  }();
  return text;
}

// Whether oneDNN's static objects, which its first product makes, may be gone: late products are
// made without them.
constinit std::atomic<bool> ending = false;

// c = op(a) op(b) + c * beta, on this thread alone.  False, with c as it was, if oneDNN has
// no fast product of this kind, and when the program ends.
bool multiply(const Key& key, const std::uint16_t* a, const std::uint16_t* b, float* c) {
  if (ending || onednn_name().empty())
    return false;
  constexpr std::size_t most = 1024;  // lengths of texts vary
  auto& [stream, products, scratch] = detail::per_thread<Compiled>();
  const OneThread one_thread;
  try {
    if (products.size() == most && !products.contains(key))
      products.clear();
    auto& [run, arguments, needed] = products.try_emplace(key, key).first->second;
    if (scratch.size() < needed)
      scratch.resize(needed);
    arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<std::uint16_t*>(a));
    arguments.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<std::uint16_t*>(b));
    arguments.at(DNNL_ARG_DST).set_data_handle(c);
    arguments.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratch.data());
    run.execute(stream, arguments);
    [[maybe_unused]] static const int at_exit = std::atexit([] { ending = true; });
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}
#endif

using Floats = simd::Batch<float>;
using Words = simd::Batch<std::uint32_t>;
using Halves = simd::Batch<std::uint16_t>;
using Scratch = std::vector<float, Allocator<float>>;

}  // namespace

// The float32 values of a part of a stored matrix, rows x columns, without gaps.
static const float* converted(const std::uint16_t* x, std::size_t ld, std::size_t rows,
                              std::size_t columns, Scratch& to) {
  to.resize(std::max(to.size(), rows * columns));
  for (std::size_t i = 0; i < rows; ++i)
    std::transform(x + i * ld, x + i * ld + columns, to.data() + i * columns, from_bfloat16);
  return to.data();
}

void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
          float alpha, const std::uint16_t* a, std::size_t lda, const std::uint16_t* b,
          std::size_t ldb, float beta, float* c, std::size_t ldc, const float* bias) {
  if (bias != nullptr || k == 0) {  // c becomes the bias or c * beta; oneDNN would leave it
    gemm<float>(false, false, m, n, 0, 1.F, nullptr, 1, nullptr, 1, beta, c, ldc, bias);
    beta = 1.F;
  }
  if (m == 0 || n == 0 || k == 0)
    return;
#ifdef XGRAD_ONEDNN
  if (alpha == 1 && multiply({transpose_a, transpose_b, m, n, k, lda, ldb, ldc, beta}, a, b, c))
    return;
#endif
  auto& as = detail::per_thread<Scratch, struct TileA>();
  auto& bs = detail::per_thread<Scratch, struct TileB>();
  const std::size_t most = std::max<std::size_t>((1 << 20) / (m + n), 64);  // of k, in a tile
  for (std::size_t i = 0; i < k; i += most) {
    const std::size_t part = std::min(most, k - i);
    const float* const x =
        transpose_a ? converted(a + i * lda, lda, part, m, as) : converted(a + i, lda, m, part, as);
    const float* const y =
        transpose_b ? converted(b + i, ldb, n, part, bs) : converted(b + i * ldb, ldb, part, n, bs);
    gemm(transpose_a, transpose_b, m, n, part, alpha, x, transpose_a ? m : part, y,
         transpose_b ? part : n, i == 0 ? beta : 1.F, c, ldc);
  }
}

constexpr std::size_t lanes = Floats::size;
static_assert(bfloat16_columns % Halves::size == 0);

// A register of bfloat16 holds two elements in each 32-bit word.  One shift turns the even elements
// to floats and one mask the odd ones, so x is permuted alike: of every 2 * lanes elements the even
// ones come first.
static void put_in_order(std::size_t k, const float* x, std::size_t padded, float* to) {
  std::fill_n(to, padded, 0.F);
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t block = i / (2 * lanes) * (2 * lanes), within = i % (2 * lanes);
    to[block + within % 2 * lanes + within / 2] = x[i];
  }
}

// The products of the permuted x with `rows` rows of w, interleaved.
template <std::size_t rows>
static void dot_rows(std::size_t padded, const float* x, const std::uint16_t* w, const float* bias,
                     float* y) {
  constexpr std::size_t line = 32;  // elements of a line of the cache
  std::array<Floats, rows> sums;
  sums.fill(Floats(0.F));
  const Words upper(0xFFFF0000U);
  for (std::size_t i = 0; i < padded; i += 2 * lanes) {
    const Floats even = Floats::load_unaligned(x + i), odd = Floats::load_unaligned(x + i + lanes);
    // Prefetches the next rows, in the order of memory.
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

static std::uint16_t nearest(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // A NaN whose fraction has set bits in the lower half alone would become an infinity.
  const std::uint32_t nan = bits >> 16 | ((bits & 0x7F0000) == 0 ? 0x40U : 0U);
  return static_cast<std::uint16_t>(
      (bits & 0x7FFFFFFF) > 0x7F800000 ? nan : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

bool to_bfloat16(std::size_t n, const float* x, std::uint16_t* y) {
  std::uint32_t too_large = 0;  // whether a finite element rounds to infinity
  for (std::size_t i = 0; i < n; ++i) {
    y[i] = nearest(x[i]);
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF;
    too_large |= static_cast<std::uint32_t>(magnitude >= 0x7F7F8000 && magnitude < 0x7F800000);
  }
  return too_large == 0;
}

void round_to_bfloat16(std::size_t n, const float* x, std::uint16_t* y) {
  parallel_for(n, 65'536, [&](std::size_t begin, std::size_t end) {
    to_bfloat16(end - begin, x + begin, y + begin);
  });
}

void rounded_to_bfloat16(std::size_t n, float scale, const float* x, float* y) {
  parallel_for(n, 16'384, [&](std::size_t begin, std::size_t end) {
    std::transform(x + begin, x + end, y + begin,
                   [scale](float v) { return from_bfloat16(nearest(v * scale)); });
  });
}

void linear_bfloat16(std::size_t m, std::size_t n, std::size_t k, const float* x,
                     const std::uint16_t* w, std::size_t stride, const float* bias, float* y) {
  constexpr std::size_t few = 7;  // rows of x; from there on tiles are faster (AVX2)
  const auto rows_of = [&](std::size_t elements) {  // a tile of about so many
    return std::max<std::size_t>(elements / std::max<std::size_t>(stride, 1) / 64 * 64, 64);
  };
  if (m > few) {
    parallel_for(n, rows_of(131'072), [&](std::size_t begin, std::size_t end) {
      const float* const tile = converted(w + begin * stride, stride, end - begin, stride,
                                          detail::per_thread<Scratch, struct TileB>());
      gemm(false, true, m, end - begin, k, 1.F, x, k, tile, stride, 0.F, y + begin, n,
           bias == nullptr ? nullptr : bias + begin);
    });
    return;
  }
  auto& ordered = detail::per_thread<Scratch, struct Ordered>();
  ordered.resize(std::max(ordered.size(), m * stride));
  for (std::size_t i = 0; i < m; ++i)
    put_in_order(k, x + i * k, stride, ordered.data() + i * stride);
  parallel_for(n, rows_of(32'768), [&, xs = ordered.data()](std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t at = begin; at < end; at += at + 4 <= end ? 4 : 1)
        (at + 4 <= end ? dot_rows<4> : dot_rows<1>)(stride, xs + i * stride, w + at * stride,
                                                    bias == nullptr ? nullptr : bias + at,
                                                    y + i * n + at);
  });
}

}  // namespace xgrad::kernels

std::string xgrad::bfloat16_name() {
#ifdef XGRAD_ONEDNN
  if (const std::string& name = kernels::onednn_name(); !name.empty())
    return name;
#endif
  return blas_name() + " in float32, no faster";
}
