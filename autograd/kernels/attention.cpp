#include "attention.hpp"
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include "../buffer.hpp"
#include "../per_thread.hpp"
#include "gemm.hpp"
#include "lines.hpp"
#include "parallel.hpp"

namespace xgrad::kernels {
namespace {

// Rows of weights that are computed together: they stay in the cache between two products, and a
// causal mask lets a block skip the keys that none of its rows sees.
constexpr std::size_t block_rows = 32;

template <class T>
constexpr std::size_t lanes = simd::Batch<T>::size;

template <class T, class E>
constexpr bool rounds = !std::is_same_v<E, T>;

template <class T>
constexpr std::size_t whole_lanes(std::size_t n) {
  return (n + lanes<T> - 1) / lanes<T> * lanes<T>;
}

// The distance between rows of scratch: whole registers, and no power of two, for which all rows
// would compete for the same cache lines.
template <class T>
std::size_t scratch_stride(std::size_t s) {
  return whole_lanes<T>(s) + lanes<T>;
}

// This thread's memory, reused for its next item.
template <class T>
T* scratch(std::size_t n) {
  auto& memory = detail::per_thread<std::vector<T, Allocator<T>>, struct AttentionScores>();
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

// x[n ... end) = value; x is aligned and has room for whole registers.
template <class T>
void fill_from(T* x, std::size_t n, std::size_t end, T value) {
  using Batch = simd::Batch<T>;
  std::size_t j = n / lanes<T> * lanes<T>;
  if (j < n) {
    SomeLanes<T>::first(n - j)(Batch::load_aligned(x + j), Batch(value)).store_aligned(x + j);
    j += lanes<T>;
  }
  for (; j < end; j += lanes<T>)
    Batch(value).store_aligned(x + j);
}

// A block of queries, rows begin ... begin + rows - 1, and the keys that any of them may attend to:
// `keys` of them, from the least first key of its rows on.  Scores and weights of a block begin at
// that key.
struct Block {
  std::size_t begin, rows, first, keys;
};
template <class T, class E>
Block block_of(const Attention<T, E>& p, std::size_t item, std::size_t index) {
  const std::size_t begin = index * block_rows, rows = std::min(block_rows, p.t - begin);
  const std::size_t end = p.keys_of(begin + rows - 1);
  std::size_t first = p.first ? end : 0;
  for (std::size_t i = begin; first > 0 && i < begin + rows; ++i)
    first = std::min(first, p.first_of(item, i));
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
template <class T, class E>
std::size_t mask_scores(const Attention<T, E>& p, std::size_t item, std::size_t i, const Block& b,
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
    const Batch e = exp(Batch::load_aligned(x + j) - most);
    e.store_aligned(x + j);
    sum += e;
  }
  return 1 / add_lanes<T>(sum);
}

// scores (rows, keys) = q kᵀ * scale
template <class T, class E>
void multiply_scores(const Attention<T, E>& p, std::size_t item, const Block& b, T* scores,
                     std::size_t stride) {
  gemm(false, true, b.rows, b.keys, p.d, rounds<T, E> ? T(1) : p.scale, p.q.row(item, b.begin),
       p.q.stride, p.k.row(item, b.first), p.k.stride, T(0), scores, stride);
  for (std::size_t r = 0; rounds<T, E> && r < b.rows; ++r)
    for (std::size_t j = 0; j < b.keys; ++j)
      scores[r * stride + j] *= p.scale;
}

// Weights or gradients of scores (rows, keys) as a product's operand: x itself, or rounded to
// bfloat16 in the first or the second half of other scratch memory.
template <class E, class T>
const E* operand(const T* x, const Block& b, std::size_t stride, std::size_t half = 0) {
  if constexpr (std::is_same_v<E, T>) {
    return x;
  } else {
    E* const rounded = scratch<E>(2 * block_rows * stride) + half * block_rows * stride;
    for (std::size_t r = 0; r < b.rows; ++r)
      to_bfloat16(b.keys, x + r * stride, rounded + r * stride);
    return rounded;
  }
}

template <class T, class E>
void forward_block(const Attention<T, E>& p, std::size_t item, const Block& b,
                   const Matrices<T>& out) {
  const std::size_t stride = scratch_stride<T>(p.s);
  T* const weights = scratch<T>(block_rows * stride);  // (rows, keys)
  T factor[block_rows];                                // of each row
  multiply_scores(p, item, b, weights, stride);
  for (std::size_t r = 0; r < b.rows; ++r) {
    T* const x = weights + r * stride;
    if (p.softcap != 0)
      cap<T>(p.softcap, b.keys, x, nullptr);
    const std::size_t n = mask_scores(p, item, b.begin + r, b, x);
    factor[r] = exponentials(x, b.keys);
    if (p.keep)
      select(p.keep.row(item, b.begin + r) + b.first, n, x, p.keep_scale, T(0));
    for (std::size_t j = 0; rounds<T, E> && j < b.keys; ++j)
      x[j] *= factor[r];
  }
  gemm(false, false, b.rows, p.dv, b.keys, T(1), operand<E>(weights, b, stride), stride,
       p.v.row(item, b.first), p.v.stride, T(0), out.row(item, b.begin), out.stride);
  // Dividing after the product is less work, but the weights themselves are rounded.
  for (std::size_t r = 0; !rounds<T, E> && r < b.rows; ++r) {
    T* const y = out.row(item, b.begin + r);
    for (std::size_t j = 0; j < p.dv; ++j)
      y[j] *= factor[r];
  }
}

// One row of weights w = softmax(x), from scores x and the gradient dw of the weights after
// dropout.  Then x holds the weights after dropout, and dw the scores' gradient, w (dw - sum w dw).
template <class T, class E>
void backward_row(const Attention<T, E>& p, std::size_t item, std::size_t i, const Block& b, T* x,
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
    const Batch e = exp(Batch::load_aligned(x + j) - most);
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

template <class T, class E>
void backward_block(const Attention<T, E>& p, std::size_t item, const Block& b,
                    const Matrices<const E>& d_out, const AttentionGradients<T>& g, bool first) {
  const std::size_t stride = scratch_stride<T>(p.s);
  const bool caps = p.softcap != 0;
  const T scale = rounds<T, E> ? T(1) : p.scale;  // of dq and dk; what is rounded is scaled before
  T* const weights = scratch<T>((caps ? 3 : 2) * block_rows * stride);  // (rows, keys)
  T* const d_scores = weights + block_rows * stride;                    // (rows, keys)
  T* const slopes = d_scores + block_rows * stride;                     // (rows, keys), if it caps
  const E* const dy = d_out.row(item, b.begin);                         // (rows, Dv)
  multiply_scores(p, item, b, weights, stride);
  gemm(false, true, b.rows, b.keys, p.dv, T(1), dy, d_out.stride, p.v.row(item, b.first),
       p.v.stride, T(0), d_scores, stride);
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
    for (std::size_t j = 0; rounds<T, E> && j < b.keys; ++j)
      dx[j] *= p.scale;
  }
  const E* const w = operand<E>(weights, b, stride);
  const E* const ds = operand<E>(d_scores, b, stride, 1);
  if (g.v)  // dv += weightsᵀ dy
    gemm(true, false, b.keys, p.dv, b.rows, T(1), w, stride, dy, d_out.stride,
         first ? g.beta_v : T(1), g.v.row(item, b.first), g.v.stride);
  if (g.q)  // dq = d_scores k * scale
    gemm(false, false, b.rows, p.d, b.keys, scale, ds, stride, p.k.row(item, b.first), p.k.stride,
         g.beta_q, g.q.row(item, b.begin), g.q.stride);
  if (g.k)  // dk += d_scoresᵀ q * scale
    gemm(true, false, b.keys, p.d, b.rows, scale, ds, stride, p.q.row(item, b.begin), p.q.stride,
         first ? g.beta_k : T(1), g.k.row(item, b.first), g.k.stride);
}

template <class T>
void clear_rows(const Matrices<T>& x, T beta, std::size_t item, std::size_t begin, std::size_t end,
                std::size_t width) {
  if (x && beta == T(0))
    for (std::size_t i = begin; i < end; ++i)
      std::fill_n(x.row(item, i), width, T(0));
}

template <class T, class E>
std::size_t blocks_of(const Attention<T, E>& p) {
  return (p.t + block_rows - 1) / block_rows;
}

}  // namespace

template <class T, class E>
void attention_forward(const Attention<T, E>& p, const Matrices<T>& out) {
  constexpr std::size_t least_work = 32'768;  // multiplications that are worth a thread
  const std::size_t blocks = blocks_of(p);
  const std::size_t work = std::min(block_rows, p.t) * p.s * (p.d + p.dv);
  parallel_for(p.items * blocks,
               std::max<std::size_t>(1, least_work / std::max<std::size_t>(work, 1)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = begin; i < end; ++i)
                   forward_block(p, i / blocks, block_of(p, i / blocks, i % blocks), out);
               });
}

template <class T, class E>
void attention_backward(const Attention<T, E>& p, const Matrices<const E>& d_out,
                        const AttentionGradients<T>& g) {
  const std::size_t blocks = blocks_of(p);
  parallel(p.items, [&](std::size_t item) {
    // From the last block back: its keys include those of all others, unless rows have a first key.
    const bool none = blocks == 0 || p.first;
    const std::size_t seen = none ? 0 : block_of(p, item, blocks - 1).keys;
    clear_rows(g.k, g.beta_k, item, seen, p.s, p.d);
    clear_rows(g.v, g.beta_v, item, seen, p.s, p.dv);
    for (std::size_t b = blocks; b-- > 0;)
      backward_block(p, item, block_of(p, item, b), d_out, g, b == blocks - 1 && !none);
  });
}

#define XGRAD_INSTANTIATE(T, E)                                                      \
  template void attention_forward(const Attention<T, E>&, const Matrices<T>&);       \
  template void attention_backward(const Attention<T, E>&, const Matrices<const E>&, \
                                   const AttentionGradients<T>&);
XGRAD_INSTANTIATE(float, float)
XGRAD_INSTANTIATE(float, std::uint16_t)
XGRAD_INSTANTIATE(double, double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels
