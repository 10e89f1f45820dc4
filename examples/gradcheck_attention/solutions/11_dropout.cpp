// Solution 11: 1 / (1 - p) was missing.
//
//   Each weight is 0 with probability p; its mean over many runs is what it is without dropout.
//
// It said: the factor 1 / (1 - p) is missing

#include <xgrad/autograd/check/function_checks.hpp>

#include "../exercises/exercise.hpp"

using namespace exercise;

namespace {

// (...) -> (...)
Tensor my_dropout(const Tensor& x, double p) {
  const Tensor keep = bernoulli(full_like(x, 1 - p));  // (...), 1 with probability 1 - p
  return x * keep / (1 - p);                           // (...)
}

// x (B, T, C), weight (3C, C) -> the attention weights, (B, H, T, S)
Tensor attention_weights(const Inputs& in, double p) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);                         // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]);             // (B, H, T, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  return my_dropout(softmax(hide_future(scores), -1), p);                        // (B, H, T, S)
}

}  // namespace

int main() {
  const Inputs in = inputs();
  return report(
      check_dropout_mean([&] { return attention_weights(in, 0.2); }, attention_weights(in, 0)));
}

// hint 1: Without dropout each row of the weights sums to 1.  And with it, on average?
//
// hint 2: A kept weight makes up for those that are dropped.
