#include <xgrad/nn/rotary_embedding.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

RotaryEmbedding::RotaryEmbedding(Size head_dim, const Indices& positions,
                                 const RotaryOptions& options)
    : pairs_(options.pairs) {
  check<ValueError>(head_dim >= 0 && head_dim % 2 == 0,
                    "RotaryEmbedding: head_dim {} is odd or negative", head_dim);
  check<ValueError>(options.theta > 0 && options.factor > 0 && std::isfinite(1 / options.factor),
                    "RotaryEmbedding: theta {} and factor {} must be positive", options.theta,
                    options.factor);
  check<ValueError>(options.low_freq_factor < options.high_freq_factor,
                    "RotaryEmbedding: low_freq_factor {} is not below high_freq_factor {}",
                    options.low_freq_factor, options.high_freq_factor);
  const auto pairs = static_cast<std::size_t>(head_dim / 2);
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const double share = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double frequency = std::pow(options.theta, -share);
    double kept = 0;  // how much of it is not divided
    if (options.original_max_position_embeddings > 0) {
      const double turns = static_cast<double>(options.original_max_position_embeddings) *
                           frequency / (2 * std::numbers::pi);
      kept = std::clamp(
          (turns - options.low_freq_factor) / (options.high_freq_factor - options.low_freq_factor),
          0.0, 1.0);
    }
    frequencies[i] = frequency * (kept + (1 - kept) / options.factor);
  }
  Shape shape = positions.shape();
  shape.push_back(pairs);
  auto cos = empty_array<double>(shape), sin = empty_array<double>(shape);
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const double angle = static_cast<double>(positions.data()[i / pairs]) * frequencies[i % pairs];
    cos.data()[i] = std::cos(angle);
    sin.data()[i] = std::sin(angle);
  }
  cos_ = Tensor(std::move(cos));
  sin_ = Tensor(std::move(sin));
}

Tensor RotaryEmbedding::operator()(const Tensor& x) const {
  const Size pairs = cos_.size(-1);
  const Shape expected = x.dim() == 0 ? Shape() : Shape(x.shape().begin(), x.shape().end() - 1);
  const Shape positions(cos_.shape().begin(), cos_.shape().end() - 1);
  if (x.dim() == 0 || x.size(-1) != 2 * pairs || positions.size() > expected.size() ||
      broadcast_shapes(expected, positions, "RotaryEmbedding") != expected)
    fail<ShapeError>("RotaryEmbedding: x {} is not (..., T, {}) of positions {}",
                     to_string(x.shape()), 2 * pairs, to_string(positions));
  const Tensor cos = to(cos_, x.dtype()), sin = to(sin_, x.dtype());
  const auto rotated = [&](const Tensor& a, const Tensor& b, const auto& join) {
    return join({a * cos - b * sin, b * cos + a * sin});
  };
  if (pairs_ == RotaryPairs::half)
    return rotated(narrow(x, -1, 0, pairs), narrow(x, -1, pairs, pairs),
                   [](const std::vector<Tensor>& both) { return cat(both, -1); });
  Shape split = expected;  // (..., T, D / 2, 2)
  split.push_back(static_cast<std::size_t>(pairs));
  split.push_back(2);
  const Tensor both = reshape(x, split);
  return rotated(select(both, -1, 0), select(both, -1, 1), [&](const std::vector<Tensor>& pair) {
    return reshape(stack(pair, -1), x.shape());
  });
}

}  // namespace xgrad::nn
