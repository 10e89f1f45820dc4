#pragma once
// Scaled dot-product attention of many heads, forward and backward.  Letters as in ops.hpp: T
// queries, S keys and values, D channels of a query or key, Dv of a value.
//
// Only a block of rows of a head's weights (T, S) exists at a time, in a thread's scratch memory:
// the backward computes them again from q and k.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xgrad::kernels {

/// One matrix for each item (one head of one sequence): row i of item n begins at data + offsets[n]
/// + i * stride.  Interleaved heads of one array need no copies.
template <class E>
struct Matrices {
  E* data = nullptr;  ///< null: absent
  std::size_t stride = 0;
  std::vector<std::size_t> offsets = {};

  explicit operator bool() const { return data != nullptr; }
  E* row(std::size_t item, std::size_t i) const { return data + offsets[item] + i * stride; }
};

/// softmax(q kᵀ * scale + bias) v for each item, with weights dropped where `keep` is false.  With
/// a softcap c, c tanh(q kᵀ * scale / c) stands in place of q kᵀ * scale.
template <class T>
struct Attention {
  std::size_t items, t, s, d, dv;
  T scale;
  bool causal;                              ///< row i sees keys 0 ... i + causal_offset
  Matrices<const T> q, k, v;                ///< (T, D), (S, D), (S, Dv)
  Matrices<const T> bias;                   ///< (T, S), added to the scores
  Matrices<const bool> allowed;             ///< (T, S), false where a score is masked
  Matrices<const bool> keep;                ///< (T, S), false where dropout sets a weight to zero
  T keep_scale = 1;                         ///< the factor of the kept weights
  std::ptrdiff_t causal_offset = 0;         ///< from -T to S
  Matrices<const std::int64_t> first = {};  ///< (1, T), the first key that each row sees
  T softcap = 0;                            ///< 0: none
  bool autocast = false;  ///< the weights and the scores' gradients are rounded to bfloat16

  std::size_t keys_of(std::size_t i) const {  ///< the number of keys that row i sees
    const auto all = static_cast<std::ptrdiff_t>(s), row = static_cast<std::ptrdiff_t>(i);
    return causal ? static_cast<std::size_t>(std::clamp(causal_offset + row + 1, {}, all)) : s;
  }
  std::size_t first_of(std::size_t item, std::size_t i) const {  ///< at most keys_of(i)
    const auto last = static_cast<std::int64_t>(keys_of(i));
    return first ? static_cast<std::size_t>(std::clamp(first.row(item, 0)[i], {}, last)) : 0;
  }
};

/// out (T, Dv).  A row that is masked completely is zero.
template <class T>
void attention_forward(const Attention<T>& attention, const Matrices<T>& out);

/// Buffers of gradients: gradient + beta * old content.  Absent if not needed.
template <class T>
struct AttentionGradients {
  Matrices<T> q, k, v;
  T beta_q = 0, beta_k = 0, beta_v = 0;
  Matrices<T> bias;  ///< with beta 0; not of a causal attention
};

/// The gradients, given the gradient of the output.
template <class T>
void attention_backward(const Attention<T>& attention, const Matrices<const T>& d_out,
                        const AttentionGradients<T>& gradients);

}  // namespace xgrad::kernels
