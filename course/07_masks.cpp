// Stage 7: masks.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// x (T, D): queries, keys and values at once
Tensor scores_of(const Tensor& x) {
  return matmul(x, transpose(x, -2, -1)) / std::sqrt(static_cast<double>(x.size(-1)));
}
Tensor causal(const Tensor& x) {
  const Mask future = nn::future(x.size(-2), x.size(-2));
  return matmul(softmax(masked_fill(scores_of(x), future, -INFINITY), -1), x);
}
Tensor masked_too_late(const Tensor& x) {
  const Mask future = nn::future(x.size(-2), x.size(-2));
  return matmul(masked_fill(softmax(scores_of(x), -1), future, 0), x);
}

}  // namespace

int main() {
  manual_seed(1337);
  const Tensor x = randn({4, 3}, DType::float64);

  // True where a key is later than the query: what must not be seen.
  fmt::print("{}\n\n", nn::future(4, 4));

  // exp(-inf) is 0, and the others share what is left.
  const Tensor hidden = masked_fill(scores_of(x), nn::future(4, 4), -INFINITY);
  fmt::print("{}\n\n", softmax(hidden, -1));

  // Does a position see what comes after it?
  fmt::print("{}\n\n", check_causal(causal, x).message);

  // Hidden after softmax, it is too late: what a row is divided by holds the future.
  fmt::print("{}\n", check_causal(masked_too_late, x).message);
}
