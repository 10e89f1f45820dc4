#include <xgrad/nn/masks.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

Mask future(std::size_t queries, std::size_t keys) { return triu(zeros({queries, keys}) == 0, 1); }

Mask sliding_window(std::size_t queries, std::size_t keys, std::size_t window, std::size_t offset) {
  check<ValueError>(window > 0, "sliding_window: window is 0");
  check<ValueError>(offset < std::size_t{1} << 60, "sliding_window: offset is {}", offset);
  const Mask all = zeros({queries, keys}) == 0;
  const auto own = static_cast<std::int64_t>(offset);  // the diagonal of the queries' own keys
  const auto width = static_cast<std::int64_t>(std::min(window, offset + queries));
  return tril(all, own) & ~tril(all, own - width);
}

Tensor alibi_bias(std::size_t heads, std::size_t queries, std::size_t keys, std::size_t offset,
                  DType dtype) {
  const std::size_t power = std::bit_floor(heads);
  std::vector<double> slopes;
  for (std::size_t h = 0; h < heads; ++h) {
    const std::size_t step = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;  // of 2 power
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(step) / static_cast<double>(power)));
  }
  const auto first = static_cast<double>(offset);
  const Tensor position = first + arange(0, static_cast<double>(queries), 1, DType::float64);
  const Tensor key = arange(0, static_cast<double>(keys), 1, DType::float64);
  const Tensor distance = abs(unsqueeze(position, 1) - key);  // (T, S)
  return to(Tensor(std::move(slopes), {heads, 1, 1}) * -distance, dtype);
}

}  // namespace xgrad::nn
