// Round numbers along an axis.

#include <algorithm>
#include <cmath>
#include "chart.hpp"

namespace xgrad::pages {

constexpr std::size_t most_ticks = 1000;

std::vector<Tick> ticks(double low, double high, std::size_t about) {
  const double rough =
      (high - low) / static_cast<double>(std::clamp<std::size_t>(about, 1, most_ticks));
  // Between nearly equal ends, doubles are too coarse for counting; a step between the largest may
  // be infinite.
  const double least = std::max({1e-12 * std::abs(low), 1e-12 * std::abs(high), 1e-300});
  if (!(rough > least && rough < 1e307))
    return {{low, fmt::format("{:.4g}", low)}};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double parts = rough / power;  // 1 to 10
  const double step = power * (parts < 1.5 ? 1 : parts < 3.5 ? 2 : parts < 7.5 ? 5 : 10);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  const bool plain = std::max(std::abs(low), std::abs(high)) < 1e7 && decimals <= 5;
  std::vector<Tick> all;
  // An end that is a multiple counts, even if rounding put it just outside.
  const double last = std::floor(high / step + 1e-9);
  for (double k = std::ceil(low / step - 1e-9); k <= last; ++k) {
    const double value = k == 0 ? 0 : k * step;
    all.push_back(
        {value, plain ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.6g}", value)});
  }
  return all;
}

}  // namespace xgrad::pages
