// Stage 11.11: dropout on the weights of an attention.  One mistake, in the forward.
//
//   Each weight is 0 with probability p; its mean over many runs is what it is without dropout.
//   Draw from the default generator, as bernoulli() does, so that a run can be repeated.

#include "exercise.hpp"

using namespace exercise;

// (...) -> (...)
Tensor my_dropout(const Tensor& x, double p) {
  const Tensor keep = bernoulli(full_like(x, 1 - p));  // (...), 1 with probability 1 - p
  return x * keep;                                     // (...)
}

// x (B, T, C), weight (3C, C) -> the attention weights, (B, H, T, S)
Tensor attention_weights(const Inputs& in, double p) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);                         // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]);             // (B, H, T, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  return my_dropout(softmax(hide_future(scores), -1), p);                        // (B, H, T, S)
}
