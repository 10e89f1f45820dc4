// Stage 6: attention of ready-made ops.
//
//   softmax(q kᵀ / √D) v: each query takes a mean of the values, weighted by how well its key fits.

#include "exercise.hpp"

using namespace exercise;

// q (B, T, D), k (B, S, D), v (B, S, E) -> (B, T, E)
Tensor my_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const double root = std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor scores = todo();   // (B, T, S), divided by root
  const Tensor weights = todo();  // (B, T, S), each row sums to 1
  return todo();                  // (B, T, E)
}
