// Stage 7: causal attention: position t sees positions 0 ... t and none after it.

#include "exercise.hpp"

using namespace exercise;

// q, k, v (B, T, D) -> (B, T, D)
Tensor my_causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const double root = std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / root;      // (B, T, T)
  const Mask future = nn::future(q.size(-2), k.size(-2));            // (T, T), true: later
  const Tensor hidden = todo();                                      // (B, T, T)
  return matmul(softmax(hidden, -1), v);                             // (B, T, D)
}
