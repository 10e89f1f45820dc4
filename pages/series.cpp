#include <algorithm>
#include <array>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/pages/series.hpp>

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
  const auto keep = [&](std::size_t i) {
    result.xs.push_back(xs[i]);
    result.ys.push_back(ys[i]);
  };
  /// Which points may stand for one another.
  struct Place {
    double column;
    bool finite;
    bool operator==(const Place&) const = default;
  };
  const auto place = [&](std::size_t i) -> Place {
    if (!std::isfinite(xs[i]))
      return {-1, false};
    const double at = (xs[i] - low) / (high - low) * static_cast<double>(columns);
    return {std::floor(at), std::isfinite(ys[i])};
  };
  for (std::size_t begin = 0, end = 0; begin < xs.size(); begin = end) {
    const Place here = place(begin);
    std::size_t least = begin, most = begin;
    for (end = begin; end < xs.size() && place(end) == here; ++end) {
      if (ys[end] < ys[least])
        least = end;
      if (ys[end] > ys[most])
        most = end;
    }
    std::array kept{begin, std::min(least, most), std::max(least, most), end - 1};
    if (!here.finite)
      kept = {begin, begin, begin, std::isfinite(xs[begin]) ? end - 1 : begin};
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (k == 0 || kept[k] != kept[k - 1])
        keep(kept[k]);
  }
  return result;
}

}  // namespace xgrad::pages
