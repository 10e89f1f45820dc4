#include <xgrad/nn/sampling.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {
namespace {

// A logit of what is not drawn.
constexpr float never = -std::numeric_limits<float>::infinity();

// softmax, in place.
void to_probabilities(std::span<float> row) {
  const float largest = std::ranges::max(row);
  float sum = 0;
  for (float& v : row)
    sum += v = std::exp(v - largest);
  for (float& v : row)
    v /= sum;
}

void keep_top_k(std::span<float> row, std::size_t k) {
  if (k >= row.size())
    return;
  std::vector<float> sorted(row.begin(), row.end());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::ranges::nth_element(sorted, at, std::greater<>());
  for (float& v : row)
    if (v < *at)
      v = never;
}

void keep_top_p(std::span<float> row, double top_p) {
  if (top_p == 1)  // a sum of floats may be 1 before the last of them
    return;
  std::vector<float> p(row.begin(), row.end());
  to_probabilities(p);
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return p[i]; });
  double before = 0;
  for (const std::size_t i : order) {
    if (before >= top_p)
      row[i] = never;
    before += p[i];
  }
}

void keep_min_p(std::span<float> row, double min_p) {
  const float largest = std::ranges::max(row);
  for (float& v : row)
    if (std::exp(v - largest) < min_p)
      v = never;
}

// Logits to probabilities, in place.
void filter(std::span<float> row, const GenerateOptions& options) {
  const auto temperature =
      static_cast<float>(std::min(options.temperature, double{std::numeric_limits<float>::max()}));
  const auto likeliest = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
  // So small a temperature that float32 does not hold the quotient is as good as 0.
  if (temperature == 0 || !std::isfinite(row[likeliest] / temperature)) {
    std::ranges::fill(row, 0.F);
    row[likeliest] = 1;
    return;
  }
  for (float& v : row)
    v /= temperature;
  if (options.top_k.has_value())
    keep_top_k(row, static_cast<std::size_t>(*options.top_k));
  keep_top_p(row, options.top_p);
  keep_min_p(row, options.min_p);
  to_probabilities(row);
}

}  // namespace

void check_sampling(const GenerateOptions& options) {
  check<ValueError>(options.temperature >= 0 && std::isfinite(options.temperature),
                    "generate: temperature is {}; it must be 0 or above", options.temperature);
  check<ValueError>(options.top_k.value_or(1) > 0, "generate: top_k is {}, which leaves no token",
                    options.top_k.value_or(1));
  check<ValueError>(options.top_p > 0 && options.top_p <= 1,
                    "generate: top_p is {}; it must be above 0 and at most 1", options.top_p);
  check<ValueError>(options.min_p >= 0 && options.min_p <= 1,
                    "generate: min_p is {}; it must be from 0 to 1", options.min_p);
}

Tensor next_token_probabilities(const Tensor& logits, const GenerateOptions& options) {
  check_sampling(options);
  check<ShapeError>(logits.dim() > 0 && logits.size(-1) > 0,
                    "next_token_probabilities: logits are {}; they must be (..., V) with V above 0",
                    to_string(logits.shape()));
  const NoGrad no_grad;
  Tensor values = logits.to(DType::float32);
  if (!all(isfinite(values))) {
    check<ValueError>(all(isfinite(logits)), "generate: the model's logits are not finite");
    values =
        (logits - amax(logits, {-1}, true)).to(DType::float32);  // beyond float32, but for that
  }
  auto result = empty_array<float>(values.shape());
  std::copy_n(values.data<float>(), values.numel(), result.data());
  const std::size_t V = values.shape().back();
  for (std::size_t begin = 0; begin < result.size(); begin += V)
    filter({result.data() + begin, V}, options);
  return Tensor(std::move(result));
}

}  // namespace xgrad::nn
