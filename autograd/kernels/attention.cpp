#include "attention.hpp"
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include "../buffer.hpp"
#include "../per_thread.hpp"
#include "gemm.hpp"
#include "lines.hpp"
#include "panels.hpp"
#include "parallel.hpp"

namespace xgrad::kernels {
namespace {

// Rows of weights that are computed together: they stay in the cache between two products, and a
// causal mask lets a block skip the keys that none of its rows sees.
constexpr std::size_t most_rows = 48;
constexpr std::size_t block_rows(std::size_t t) { return t < 1024 ? 24 : most_rows; }

template <class T>
constexpr std::size_t lanes = simd::Batch<T>::size;

// The distance between rows of scratch: whole panels, and no power of two, for which all rows
// would compete for the same cache lines.
template <class T>
std::size_t scratch_stride(std::size_t s) {
  return Panels<T>::size(1, s) + lanes<T>;
}

constexpr std::size_t few_rows = 7;  // of queries: packing takes longer than their products

// This thread's memory for one use, kept for its next item.
template <class T, class Use>
T* scratch(std::size_t n) {
  auto& memory = detail::per_thread<std::vector<T, Allocator<T>>, Use>();
  if (memory.size() < n)
    memory.resize(n);
  return memory.data();
}

// x = x * scale where the mask is true, else `otherwise`.  GCC vectorises this form: the mask as
// bytes, and no arithmetic under a condition.
template <class T>
void select(const bool* mask, std::size_t n, T* x, T scale, T otherwise) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(mask);
  for (std::size_t j = 0; j < n; ++j) {
    const T scaled = x[j] * scale;
    x[j] = bytes[j] == 0 ? otherwise : scaled;
  }
}

// x[n ... end) = value, and so on to the end of the last register.
template <class T>
void fill_from(T* x, std::size_t n, std::size_t end, T value) {
  std::fill(x + n, x + (end + lanes<T> - 1) / lanes<T> * lanes<T>, value);
}

// A block of queries, rows begin ... begin + rows - 1, and the keys that any of them may attend to:
// `keys` of them, from the panel of the least first key of its rows on.  Scores and weights of a
// block begin there.
struct Block {
  std::size_t begin, rows, first, keys;
};
template <class T>
Block block_of(const Attention<T>& p, std::size_t item, std::size_t index) {
  const std::size_t begin = index * block_rows(p.t);
  const std::size_t rows = std::min(block_rows(p.t), p.t - begin);
  const std::size_t end = p.keys_of(begin + rows - 1);
  std::size_t first = p.first ? end : 0;
  for (std::size_t i = begin; first > 0 && i < begin + rows; ++i)
    first = std::min(first, p.first_of(item, i));
  first = first / Panels<T>::width * Panels<T>::width;
  return {begin, rows, first, end - first};
}

// x = softcap tanh(x / softcap) for n scores.  `derivative` may be null.
template <class T>
void cap(T softcap, std::size_t n, T* x, T* derivative) {
  using Batch = simd::Batch<T>;
  const Batch most(softcap);
  for (std::size_t j = 0; j < n; j += lanes<T>) {
    const Batch u = Batch::load_aligned(x + j) / most;
    if (derivative != nullptr)
      (Batch(T(4)) * sigmoid_slope(Batch(T(2)) * u)).store_aligned(derivative + j);
    (most * xsimd::tanh(u)).store_aligned(x + j);
  }
}

// Adds the bias to the scores of row i and sets masked ones to -inf, up to the end of the last
// key's register.  Returns the place after the row's last key.
template <class T>
std::size_t mask_scores(const Attention<T>& p, std::size_t item, std::size_t i, const Block& b,
                        T* x) {
  constexpr T minus_infinity = -std::numeric_limits<T>::infinity();
  const std::size_t n = p.keys_of(i) - b.first;
  if (p.bias) {
    const T* const bias = p.bias.row(item, i);
    for (std::size_t j = 0; j < n; ++j)
      x[j] += bias[j];
  }
  if (p.allowed)
    select(p.allowed.row(item, i), n, x, T(1), minus_infinity);
  if (p.first)
    std::fill_n(x, p.first_of(item, i) - b.first, minus_infinity);
  fill_from(x, n, b.keys, minus_infinity);
  return n;
}

// The largest of n scores, padded with -inf; -inf if the row is masked completely, NaN if a score
// is NaN (which SIMD maxima may lose).
template <class T>
T largest(const T* x, std::size_t n) {
  using Batch = simd::Batch<T>;
  Batch most(-std::numeric_limits<T>::infinity());
  for (std::size_t j = 0; j < n; j += lanes<T>)
    most = xsimd::max(most, Batch::load_aligned(x + j));
  const T m = combine_lanes<T>(most, [](T a, T b) { return a < b ? b : a; });
  if (m == -std::numeric_limits<T>::infinity() && std::any_of(x, x + n, [](T v) { return v != v; }))
    return std::numeric_limits<T>::quiet_NaN();
  return m;
}

// exp(x) for x <= 0 or NaN, but 0 where it would be subnormal: without the steps for other x.
template <class T>
[[gnu::always_inline]] inline simd::Batch<T> exp_below_0(const simd::Batch<T>& x) {
  using Batch = simd::Batch<T>;
  const Batch least(std::is_same_v<T, float> ? T(-87) : T(-708));
  const auto small = x < least;
  const simd::Exponential<Batch> e(xsimd::select(small, least, x));
  return xsimd::select(small, Batch(0), xsimd::ldexp(Batch(1) + e.m, xsimd::to_int(e.k)));
}

// x = exp(x - largest) for the scores of all keys.  Returns the factor that normalises the weights,
// 1 / their sum; 0 for a row that is masked completely.
template <class T>
T exponentials(T* x, std::size_t keys) {
  using Batch = simd::Batch<T>;
  const T m = largest(x, keys);
  if (m == -std::numeric_limits<T>::infinity()) {
    std::fill(x, x + keys, T(0));
    return 0;
  }
  Batch sum(T(0));
  const Batch most(m);
  for (std::size_t j = 0; j < keys; j += lanes<T>) {
    const Batch e = exp_below_0<T>(Batch::load_aligned(x + j) - most);
    e.store_aligned(x + j);
    sum += e;
  }
  return 1 / add_lanes<T>(sum);
}

// A block's scores (rows, keys) of a packed kᵀ, or the same of the output's gradient and vᵀ.
template <class T>
void multiply_scores(const Block& b, T scale, const Matrices<const T>& q, std::size_t item,
                     const Panels<T>& kt, T* scores, std::size_t stride) {
  const Range keys{b.first, b.first + Panels<T>::size(1, b.keys)};  // with those of padding
  multiply(b.rows, scale, {q.row(item, b.begin), q.stride, 1}, kt.columns(keys), false, scores,
           stride);
}

template <class T>
void forward_block(const Attention<T>& p, std::size_t item, const Block& b, const Panels<T>& kt,
                   const Panels<T>& v, const Matrices<T>& out) {
  const std::size_t stride = scratch_stride<T>(p.s);
  T* const weights = scratch<T, struct Scores>(most_rows * stride);  // (rows, keys)
  T factor[most_rows];                                               // of each row
  if (p.t <= few_rows)
    gemm(false, true, b.rows, b.keys, p.d, p.scale, p.q.row(item, b.begin), p.q.stride,
         p.k.row(item, b.first), p.k.stride, T(0), weights, stride);
  else
    multiply_scores(b, p.scale, p.q, item, kt, weights, stride);
  for (std::size_t r = 0; r < b.rows; ++r) {
    T* const x = weights + r * stride;
    if (p.softcap != 0)
      cap<T>(p.softcap, b.keys, x, nullptr);
    const std::size_t n = mask_scores(p, item, b.begin + r, b, x);
    factor[r] = exponentials(x, b.keys);
    if (p.keep)
      select(p.keep.row(item, b.begin + r) + b.first, n, x, p.keep_scale, T(0));
    if constexpr (std::is_same_v<T, float>)
      if (p.autocast)
        rounded_to_bfloat16(b.keys, factor[r], x, x);
  }
  if (p.t <= few_rows)
    gemm(false, false, b.rows, p.dv, b.keys, T(1), weights, stride, p.v.row(item, b.first),
         p.v.stride, T(0), out.row(item, b.begin), out.stride);
  else
    multiply(b.rows, T(1), {weights, stride, 1}, v.rows({b.first, b.first + b.keys}), false,
             out.row(item, b.begin), out.stride);
  // Dividing after the product is less work, but the weights themselves are rounded.
  for (std::size_t r = 0; !p.autocast && r < b.rows; ++r) {
    T* const y = out.row(item, b.begin + r);
    for (std::size_t j = 0; j < p.dv; ++j)
      y[j] *= factor[r];
  }
}

// One row of weights w = softmax(x), from scores x and the gradient dw of the weights after
// dropout.  Then x holds the weights after dropout, and dw the scores' gradient, w (dw - sum w dw).
template <class T>
void backward_row(const Attention<T>& p, std::size_t item, std::size_t i, const Block& b, T* x,
                  T* dw) {
  using Batch = simd::Batch<T>;
  const bool* const keep = p.keep ? p.keep.row(item, i) + b.first : nullptr;
  const std::size_t n = mask_scores(p, item, i, b, x), keys = b.keys;
  const T m = largest(x, keys);
  if (m == -std::numeric_limits<T>::infinity()) {
    std::fill(x, x + keys, T(0));
    std::fill(dw, dw + keys, T(0));
    return;
  }
  if (keep != nullptr)
    select(keep, n, dw, p.keep_scale, T(0));
  fill_from(dw, n, keys, T(0));
  Batch sum(T(0)), inner(T(0));
  const Batch most(m);
  for (std::size_t j = 0; j < keys; j += lanes<T>) {
    const Batch e = exp_below_0<T>(Batch::load_aligned(x + j) - most);
    e.store_aligned(x + j);
    sum += e;
    inner += e * Batch::load_aligned(dw + j);
  }
  const T factor = 1 / add_lanes<T>(sum);
  const Batch factors(factor), mean(factor * add_lanes<T>(inner));
  for (std::size_t j = 0; j < keys; j += lanes<T>) {
    const Batch w = Batch::load_aligned(x + j) * factors;
    w.store_aligned(x + j);
    (w * (Batch::load_aligned(dw + j) - mean)).store_aligned(dw + j);
  }
  const bool nan = factor != factor;  // then all weights of the row are NaN, masked ones too
  if (nan)
    for (std::size_t j = 0; j < keys; ++j)
      if (j >= n || b.first + j < p.first_of(item, i) || (p.allowed && !p.allowed.row(item, i)[j]))
        dw[j] = 0;  // a masked score has no gradient
  if (keep != nullptr)
    select(keep, nan ? keys : n, x, p.keep_scale, T(0));
}

// Packed keys and values of an item.
template <class T>
struct PackedKeys {
  Panels<T> kt, vt, k;  // (D, S), (Dv, S), (S, D)
};

template <class T>
void backward_block(const Attention<T>& p, std::size_t item, const Block& b,
                    const PackedKeys<T>& packed, const Matrices<const T>& d_out,
                    const AttentionGradients<T>& g, bool first) {
  const std::size_t stride = scratch_stride<T>(p.s);
  const bool caps = p.softcap != 0;
  const T scale = p.autocast ? T(1) : p.scale;  // of dq and dk; d_scores are scaled, then rounded
  T* const weights =
      scratch<T, struct Scores>((caps ? 3 : 2) * most_rows * stride);  // (rows, keys)
  T* const d_scores = weights + most_rows * stride;                    // (rows, keys)
  T* const slopes = d_scores + most_rows * stride;                     // (rows, keys), if caps
  multiply_scores(b, p.scale, p.q, item, packed.kt, weights, stride);
  multiply_scores(b, T(1), d_out, item, packed.vt, d_scores, stride);
  for (std::size_t r = 0; r < b.rows; ++r) {
    T* const x = weights + r * stride;
    T* const dx = d_scores + r * stride;
    if (caps)
      cap(p.softcap, b.keys, x, slopes + r * stride);
    backward_row(p, item, b.begin + r, b, x, dx);
    if (g.bias)
      std::copy_n(dx, p.s, g.bias.row(item, b.begin + r));
    if (caps)
      std::transform(dx, dx + b.keys, slopes + r * stride, dx, std::multiplies<>());
    if constexpr (std::is_same_v<T, float>)
      if (p.autocast) {
        rounded_to_bfloat16(b.keys, T(1), x, x);
        rounded_to_bfloat16(b.keys, p.scale, dx, dx);
      }
  }
  T* const panels = scratch<T, struct PackedRows>(Panels<T>::size(b.rows, std::max(p.d, p.dv)));
  const auto packed_rows = [&](const Matrices<const T>& x, std::size_t width) {
    return pack(b.rows, width, {x.row(item, b.begin), x.stride, 1}, panels);
  };
  if (g.v)  // dv += weightsᵀ dy
    multiply(b.keys, T(1), {weights, 1, stride}, packed_rows(d_out, p.dv), !first || g.beta_v != 0,
             g.v.row(item, b.first), g.v.stride);
  if (g.q)  // dq = d_scores k * scale
    multiply(b.rows, scale, {d_scores, stride, 1}, packed.k.rows({b.first, b.first + b.keys}),
             g.beta_q != 0, g.q.row(item, b.begin), g.q.stride);
  if (g.k)  // dk += d_scoresᵀ q * scale
    multiply(b.keys, scale, {d_scores, 1, stride}, packed_rows(p.q, p.d), !first || g.beta_k != 0,
             g.k.row(item, b.first), g.k.stride);
}

template <class T>
void clear_rows(const Matrices<T>& x, T beta, std::size_t item, std::size_t begin, std::size_t end,
                std::size_t width) {
  if (x && beta == T(0))
    for (std::size_t i = begin; i < end; ++i)
      std::fill_n(x.row(item, i), width, T(0));
}

template <class T>
std::size_t blocks_of(const Attention<T>& p) {
  return (p.t + block_rows(p.t) - 1) / block_rows(p.t);
}

}  // namespace

template <class T>
void attention_forward(const Attention<T>& p, const Matrices<T>& out) {
  constexpr std::size_t least_work = 32'768;  // multiplications that are worth a thread
  constexpr std::size_t most_parts = 8;       // of fewer items; each part packs the keys again
  const std::size_t blocks = blocks_of(p), items = std::max<std::size_t>(p.items, 1);
  const std::size_t parts = std::clamp<std::size_t>(blocks / 4, 1, (most_parts - 1) / items + 1);
  const std::size_t work = p.t * p.s * (p.d + p.dv) / parts, size = Panels<T>::size(p.d, p.s);
  const auto forward = [&](std::size_t item, std::size_t part) {
    Panels<T> kt{}, v{};
    if (p.t > few_rows) {
      T* const memory = scratch<T, struct Keys>(size + Panels<T>::size(p.s, p.dv));
      kt = pack(p.d, p.s, {p.k.row(item, 0), 1, p.k.stride}, memory);
      v = pack(p.s, p.dv, {p.v.row(item, 0), p.v.stride, 1}, memory + size);
    }
    for (std::size_t b = part * blocks / parts; b < (part + 1) * blocks / parts; ++b)
      forward_block(p, item, block_of(p, item, b), kt, v, out);
  };
  parallel_for(p.items * parts,
               std::max<std::size_t>(1, least_work / std::max<std::size_t>(work, 1)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = begin; i < end; ++i)
                   forward(i / parts, i % parts);
               });
}

template <class T>
void attention_backward(const Attention<T>& p, const Matrices<const T>& d_out,
                        const AttentionGradients<T>& g) {
  const std::size_t blocks = blocks_of(p);
  parallel(p.items, [&](std::size_t item) {
    // From the last block back: its keys include those of all others, unless rows have a first key.
    const bool none = blocks == 0 || p.first;
    const std::size_t seen = none ? 0 : block_of(p, item, blocks - 1).keys;
    clear_rows(g.k, g.beta_k, item, seen, p.s, p.d);
    clear_rows(g.v, g.beta_v, item, seen, p.s, p.dv);
    const std::size_t size_k = Panels<T>::size(p.d, p.s), size_v = Panels<T>::size(p.dv, p.s);
    T* const memory = scratch<T, struct Keys>(size_k + size_v + Panels<T>::size(p.s, p.d));
    const PackedKeys<T> packed{
        pack(p.d, p.s, {p.k.row(item, 0), 1, p.k.stride}, memory),
        pack(p.dv, p.s, {p.v.row(item, 0), 1, p.v.stride}, memory + size_k),
        pack(p.s, p.d, {p.k.row(item, 0), p.k.stride, 1}, memory + size_k + size_v)};
    for (std::size_t b = blocks; b-- > 0;)
      backward_block(p, item, block_of(p, item, b), packed, d_out, g, b == blocks - 1 && !none);
  });
}

#define XGRAD_INSTANTIATE(T)                                                      \
  template void attention_forward(const Attention<T>&, const Matrices<T>&);       \
  template void attention_backward(const Attention<T>&, const Matrices<const T>&, \
                                   const AttentionGradients<T>&);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels
