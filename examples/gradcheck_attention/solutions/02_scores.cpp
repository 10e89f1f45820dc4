// Solution 02: the two factors of the gradient of k were in the wrong order.
//
//   scores_ts = Σ_d q_td k_sd, the product of q with k transposed.
//
// It said: my_scores in attn: its backward is wrong: d / d input 1
// It said: the analytic one is the other transposed

#include <span>
#include <xgrad/autograd/check/explain.hpp>

#include "../exercises/exercise.hpp"

using namespace exercise;

namespace {

// q (B, H, T, D), k (B, H, S, D) -> (B, H, T, S)
Tensor my_scores(const Tensor& q, const Tensor& k) {
  const auto forward = [](std::span<const Tensor> in) {
    return matmul(in[0], transpose(in[1], -2, -1));
  };
  const auto backward = [q = Saved(q), k = Saved(k)](Sink& sink) {
    const Tensor g = sink.gradient();                       // (B, H, T, S)
    sink.add(0, matmul(g, k.tensor()));                     // that of q, (B, H, T, D)
    sink.add(1, matmul(transpose(g, -2, -1), q.tensor()));  // that of k, (B, H, S, D)
  };
  return record("my_scores", {q, k}, forward, backward);
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);         // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                        // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                        // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                        // (B, H, S, D)
  const Tensor scores = my_scores(q, k) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = softmax(hide_future(scores), -1);       // (B, H, T, S)
  return merge_heads(matmul(weights, v)) + in[2];                // (B, T, C)
}

}  // namespace

int main() { return report(explain_gradient(attention, inputs())); }

// hint 1: Write the letters under each factor.  Here S = T = D, so a wrong shape fits; with S = 4
// it would not.
//
// hint 2: The gradient of k_sd is Σ_t g_ts q_td: s comes first, so g is what is transposed.
