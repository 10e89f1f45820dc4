// What is drawn of many points, and round numbers along an axis.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/pages/chart.hpp>

namespace xgrad::pages {

Series smoothed(const Series& series, double weight) {
  check<ValueError>(weight >= 0 && weight < 1, "smoothed: weight is {}; it must be in [0, 1)",
                    weight);
  Series result = series;
  double mean = 0, rest = 1;  // rest is weight to the power of the points so far
  for (double& y : result.ys) {
    if (!std::isfinite(y))
      continue;
    mean = weight * mean + (1 - weight) * y;
    rest *= weight;
    y = mean / (1 - rest);
  }
  return result;
}

Series thinned(const Series& series, std::size_t columns, double low, double high) {
  const std::vector<double>&xs = series.xs, &ys = series.ys;
  Series result = series;
  result.xs.clear();
  result.ys.clear();
  // Which points may stand for one another: those of one column that are finite, or are not.
  const auto place = [&](std::size_t i) {
    const double at = (xs[i] - low) / (high - low) * static_cast<double>(columns);
    return std::isfinite(xs[i]) ? std::pair(std::floor(at), std::isfinite(ys[i]))
                                : std::pair(-1.0, false);
  };
  for (std::size_t begin = 0, end = 0; begin < xs.size(); begin = end) {
    const auto here = place(begin);
    std::size_t least = begin, most = begin;
    for (end = begin; end < xs.size() && place(end) == here; ++end) {
      if (ys[end] < ys[least])
        least = end;
      if (ys[end] > ys[most])
        most = end;
    }
    std::array kept{begin, std::min(least, most), std::max(least, most), end - 1};
    if (!here.second)
      kept = {begin, begin, begin, std::isfinite(xs[begin]) ? end - 1 : begin};
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (k == 0 || kept[k] != kept[k - 1]) {
        result.xs.push_back(xs[kept[k]]);
        result.ys.push_back(ys[kept[k]]);
      }
  }
  return result;
}

constexpr std::size_t most_ticks = 1000;

std::vector<Tick> ticks(double low, double high, std::size_t about) {
  const double rough =
      (high - low) / static_cast<double>(std::clamp<std::size_t>(about, 1, most_ticks));
  // Between ends that are nearly the same, doubles are too far apart to count along; a step between
  // the largest may be infinite.
  const double least = std::max({1e-12 * std::abs(low), 1e-12 * std::abs(high), 1e-300});
  if (!(rough > least && rough < 1e307))
    return {{low, fmt::format("{:.4g}", low)}};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double parts = rough / power;  // 1 to 10
  const double step = power * (parts < 1.5 ? 1 : parts < 3.5 ? 2 : parts < 7.5 ? 5 : 10);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  const bool plain = std::max(std::abs(low), std::abs(high)) < 1e7 && decimals <= 5;
  std::vector<Tick> all;
  // An end that is a multiple counts although rounding may have put it just outside.
  const double last = std::floor(high / step + 1e-9);
  for (double k = std::ceil(low / step - 1e-9); k <= last; ++k) {
    const double value = k == 0 ? 0 : k * step;
    all.push_back(
        {value, plain ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.6g}", value)});
  }
  return all;
}

}  // namespace xgrad::pages
