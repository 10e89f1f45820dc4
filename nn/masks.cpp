#include <xgrad/nn/masks.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

Mask future(Size queries, Size keys) { return triu(zeros({queries, keys}) == 0, 1); }

Mask sliding_window(Size queries, Size keys, Size window, Size offset) {
  check<ValueError>(window > 0, "sliding_window: window is {}; it must be at least 1", window);
  check<ValueError>(offset > -(Size{1} << 60) && offset < Size{1} << 60,
                    "sliding_window: offset is {}", offset);
  const Mask all = zeros({queries, keys}) == 0;
  const Size width = std::min(window, std::abs(offset) + queries);
  return tril(all, offset) & ~tril(all, offset - width);  // offset: the diagonal of own keys
}

Tensor alibi_bias(Size heads, Size queries, Size keys, Size offset, DType dtype) {
  check<ValueError>(heads >= 0, "alibi_bias: heads is {}; it must not be negative", heads);
  const auto power = static_cast<Size>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  for (Size h = 0; h < heads; ++h) {
    const Size step = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;  // of 2 power
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(step) / static_cast<double>(power)));
  }
  const auto first = static_cast<double>(offset);
  const Tensor position = first + arange(0, static_cast<double>(queries), 1, DType::float64);
  const Tensor key = arange(0, static_cast<double>(keys), 1, DType::float64);
  const Tensor distance = abs(unsqueeze(position, 1) - key);  // (T, S)
  return to(Tensor(std::move(slopes), {heads, 1, 1}) * -distance, dtype);
}

}  // namespace xgrad::nn
