// Stage 9: one step of Adam.
//
//   m = β1 m + (1 - β1) g      v = β2 v + (1 - β2) g²
//   p = p - lr m̂ / (√v̂ + eps),  m̂ = m / (1 - β1^t),  v̂ = v / (1 - β2^t)
//
// lr, beta1, beta2 and eps are those of exercise.hpp.

#include "exercise.hpp"

using namespace exercise;

// Parameter and means before step t = 1, 2, ..., and the gradient g -> the same after it.
Adam my_adam(const Adam& a, const Tensor& g, int t) {
  const Tensor m = todo();
  const Tensor v = todo();
  const Tensor p = todo();
  return {p, m, v};
}
