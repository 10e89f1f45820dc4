// Stage 6: attention in six lines.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// q (T, D), k (S, D), v (S, E) -> (T, E)
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const double root = std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / root;
  const Tensor weights = softmax(scores, -1);
  return matmul(weights, v);
}

}  // namespace

int main() {
  // Three positions, each with a key and a value; one query, that looks like the second key.
  const Tensor k = tensor({{2, 0}, {0, 2}, {-2, 0}});
  const Tensor v = tensor({{10, 0}, {20, 1}, {30, 2}});
  const Tensor q = tensor({{0, 2}});
  const Tensor scores = matmul(q, k.t()) / std::sqrt(2.0);
  fmt::print("scores  {}\nweights {}\nresult  {}\n\n", scores, softmax(scores, -1),
             attention(q, k, v));

  // Between two keys it takes half of each value.
  fmt::print("between {}\n\n", attention(tensor({{9, 9}}), k, v));

  // Why √D: the more channels, the larger scores are, and the harder softmax chooses.
  manual_seed(1337);
  for (const std::size_t d : {4, 64, 1024}) {
    const Tensor a = randn({64, d}), b = randn({8, d});
    const Tensor plain = matmul(a, b.t());
    fmt::print("D = {:<5} largest weight {:.2f}, with √D {:.2f}\n", d,
               mean(amax(softmax(plain, -1), {-1})).item(),
               mean(amax(softmax(plain / std::sqrt(static_cast<double>(d)), -1), {-1})).item());
  }
  fmt::print("\n");

  // The library's, which keeps neither scores nor weights, gives the same.
  const Tensor x = randn({5, 8});
  fmt::print("as the library's: {}\n",
             allclose(attention(x, x, x), scaled_dot_product_attention(x, x, x), 1e-4, 1e-6));
}
