#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/pages/axis.hpp>

namespace xgrad::pages {

void Axis::include(double v) {
  low = std::min(low, v);
  high = std::max(high, v);
}

double Axis::scaled(double v) const { return log ? std::log10(v) : v; }

double Axis::place(double v) const {
  return first + (scaled(v) - scaled(low)) / (scaled(high) - scaled(low)) * (last - first);
}

void Axis::widen(double share) {
  if (log) {
    const double factor = high > low ? std::pow(high / low, share) : 2;
    low /= factor;
    high *= factor;
  } else {
    const double room = high > low ? (high - low) * share : std::max(std::abs(low) * 0.1, 0.5);
    low -= room;
    high += room;
  }
}

void Axis::check_length(const char* name) const {
  const double length = scaled(high) - scaled(low);
  check<ValueError>(std::isnormal(length), "line_chart: no {} axis can be drawn from {} to {}",
                    name, low, high);
}

std::vector<Tick> Axis::marks(double apart) const {
  const auto about = static_cast<std::size_t>(std::abs(last - first) / apart);
  return log ? log_ticks(low, high, about) : ticks(low, high, about);
}

Axes axes_of(const std::vector<Series>& series, const LineChartOptions& options, double width,
             double height) {
  Axes axes{
      .x = {.last = width}, .y = {.first = height, .last = 0, .log = options.log_y}, .missing = {}};
  Axis &x = axes.x, &y = axes.y;
  for (const Series& s : series) {
    check<ValueError>(s.xs.size() == s.ys.size(), "line_chart: '{}' has {} xs and {} ys", s.name,
                      s.xs.size(), s.ys.size());
    axes.missing.push_back(0);
    for (std::size_t i = 0; i < s.xs.size(); ++i) {
      if (std::isfinite(s.xs[i]))
        x.include(s.xs[i]);
      if (!std::isfinite(s.xs[i]) || !std::isfinite(s.ys[i])) {
        ++axes.missing.back();
        continue;
      }
      if (options.log_y && s.ys[i] <= 0)
        fail<ValueError>("line_chart: '{}' at x = {} is {}, which has no logarithm", s.name,
                         s.xs[i], s.ys[i]);
      y.include(s.ys[i]);
    }
  }
  check<ValueError>(y.low <= y.high, "line_chart: there is no finite point");
  if (x.low == x.high)
    x.widen(0);
  const auto set_ends = [&] {
    y.low = options.y_low.value_or(y.low);
    y.high = options.y_high.value_or(y.high);
  };
  set_ends();
  const bool both = options.y_low && options.y_high;
  const bool good = (both ? y.low < y.high : y.low <= y.high) && (!y.log || y.low > 0);
  if (!good || !std::isfinite(y.low) || !std::isfinite(y.high))
    fail<ValueError>("line_chart: the vertical axis goes from {} to {}", y.low, y.high);
  y.widen(0.05);
  set_ends();
  x.check_length("horizontal");
  y.check_length("vertical");
  return axes;
}

}  // namespace xgrad::pages
