#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/picture.hpp>
#include <xgrad/io/svg.hpp>
#include <xgrad/io/ticks.hpp>

namespace xgrad::io {
namespace {

// Told apart by people who see colours differently, too.  Okabe and Ito, 2008.
constexpr std::array<std::string_view, 7> palette{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000"};
// What tells apart more series than there are colours.
constexpr std::array<std::string_view, 3> dashes{"", "8 5", "2 5"};
constexpr double far = 1e5;  // in pixels: beyond all edges

struct Point {
  double x, y;
};

/// A direction of the chart: from numbers to pixels.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double first = 0, last = 1;  ///< the pixels of the ends
  bool log = false;

  void include(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  double scaled(double v) const { return log ? std::log10(v) : v; }
  double pixel(double v) const {
    return first + (scaled(v) - scaled(low)) / (scaled(high) - scaled(low)) * (last - first);
  }
  /// Some room at both ends, and a length where there is none.
  void widen(double share) {
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
  /// Pixels are computed from the length, which must be a number that can be divided by.
  void check_length(const char* name) const {
    const double length = scaled(high) - scaled(low);
    check<ValueError>(std::isnormal(length), "line_chart: no {} axis can be drawn from {} to {}",
                      name, low, high);
  }
  std::vector<Tick> marks(double apart) const {
    const auto about = static_cast<std::size_t>(std::abs(last - first) / apart);
    return log ? log_ticks(low, high, about) : ticks(low, high, about);
  }
};

/// Of points that follow one another in one column of pixels, the first, the last, the highest and
/// the lowest: the line looks the same, however many there were.
std::vector<Point> thinned(const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (auto begin = points.begin(), end = begin; begin != points.end(); begin = end) {
    end = std::find_if(begin, points.end(),
                       [&](Point p) { return std::floor(p.x) != std::floor(begin->x); });
    auto [low, high] = std::minmax_element(begin, end, [](Point a, Point b) { return a.y < b.y; });
    std::array four{begin, std::min(low, high), std::max(low, high), end - 1};
    for (std::size_t i = 0; i < four.size(); ++i)
      if (i == 0 || four[i] != four[i - 1])
        kept.push_back(*four[i]);
  }
  return kept;
}

struct Chart {
  const std::vector<Series>& series;
  const LineChartOptions& options;
  Axis x = {.last = static_cast<double>(options.width)};
  Axis y = {.first = static_cast<double>(options.height), .last = 0, .log = options.log_y};
  std::vector<std::size_t> missing = {};  ///< how many points of each series are not finite
  Svg svg{x.last, y.first};

  void find_ranges() {
    for (const Series& s : series) {
      check<ValueError>(s.xs.size() == s.ys.size(), "line_chart: '{}' has {} xs and {} ys", s.name,
                        s.xs.size(), s.ys.size());
      missing.push_back(0);
      for (std::size_t i = 0; i < s.xs.size(); ++i) {
        if (std::isfinite(s.xs[i]))
          x.include(s.xs[i]);
        if (!std::isfinite(s.xs[i]) || !std::isfinite(s.ys[i])) {
          ++missing.back();
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
  }

  void axes() {
    for (const Tick& mark : y.marks(50)) {
      svg.add("<path stroke='#e4e4e4' d='M0 {:.1f}h{:g}'/>\n", y.pixel(mark.value), x.last);
      svg.text(-8, y.pixel(mark.value), mark.text, "end");
    }
    for (const Tick& mark : x.marks(90)) {
      svg.add("<path stroke='#e4e4e4' d='M{:.1f} 0v{:g}'/>\n", x.pixel(mark.value), y.first);
      svg.text(x.pixel(mark.value), y.first + 16, mark.text, "middle");
    }
    svg.add("<path stroke='#222' fill='none' d='M0 0v{:g}h{:g}'/>\n", y.first, x.last);
    svg.text(x.last / 2, svg.bottom() + 18, options.x_label, "middle");
    if (!options.y_label.empty())
      svg.text_upwards(svg.left() - 18, y.first / 2, options.y_label, "middle");
  }

  /// The attributes that say which series it is.
  std::string look(std::size_t i) const {
    const std::size_t color = series[i].color.value_or(i);
    return fmt::format("stroke='{}' stroke-dasharray='{}'", palette[color % palette.size()],
                       dashes[color / palette.size() % dashes.size()]);
  }

  /// Strokes, and dots: these are strokes almost without length between round ends.
  void draw(std::size_t i, const std::string& strokes, const std::string& dots) {
    const double thickness = series[i].thickness;
    svg.add("<path {} stroke-width='{:g}' d='{}'/>\n", look(i), thickness, strokes);
    if (!dots.empty())
      svg.add("<path {} stroke-width='{:g}' d='{}'/>\n", look(i), 3 * thickness, dots);
  }

  void line(std::size_t i) {
    const Series& s = series[i];
    std::string strokes, dots, crosses;
    std::vector<Point> points;  // since the last that was not finite
    const auto finish = [&] {
      const std::vector<Point> few = thinned(points);
      for (std::size_t k = 0; k < few.size(); ++k) {
        strokes += fmt::format("{}{:.1f} {:.1f}", k == 0 ? "M" : " ", few[k].x, few[k].y);
        if (s.dots || few.size() == 1)
          dots += fmt::format("M{:.1f} {:.1f}h.1", few[k].x, few[k].y);
      }
      points.clear();
    };
    double last_cross = -far;
    for (std::size_t k = 0; k < s.xs.size(); ++k) {
      const double at = x.pixel(s.xs[k]);
      if (std::isfinite(at) && std::isfinite(s.ys[k])) {
        points.push_back({at, std::clamp(y.pixel(s.ys[k]), -far, far)});
        continue;
      }
      finish();
      if (std::isfinite(at) && std::abs(at - last_cross) > 10) {
        crosses += fmt::format("M{:.1f} 3l8 8m-8 0l8-8", at - 4);
        last_cross = at;
      }
    }
    finish();
    draw(i, strokes, dots);
    if (!crosses.empty())
      svg.add("<path {} stroke-width='2' d='{}'/>\n", look(i), crosses);
  }

  /// In rows above the plot.
  void legend() {
    constexpr double swatch = 24, row = 22;
    std::vector<std::string> names;
    std::vector<Point> places;
    Point next{0, 0};
    for (std::size_t i = 0; i < series.size(); ++i) {
      const std::string& name = series[i].name;
      names.push_back(missing[i] == 0 ? name : fmt::format("{} ({} not finite)", name, missing[i]));
      const double wide = names[i].empty() ? 0 : swatch + 8 + text_width(names[i]) + 16;
      if (next.x > 0 && next.x + wide > x.last)
        next = {0, next.y + row};
      places.push_back(next);
      next.x += wide;
    }
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (names[i].empty())
        continue;
      const double left = places[i].x, middle = places[i].y - next.y - row;
      draw(i, fmt::format("M{:g} {:g}h{:g}", left, middle, swatch),
           series[i].dots ? fmt::format("M{:g} {:g}h.1", left + swatch / 2, middle) : "");
      svg.text(left + swatch + 8, middle, names[i], "start", "fill='#222'");
    }
  }
};

}  // namespace

std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options) {
  Chart chart{series, options};
  Svg& svg = chart.svg;
  chart.find_ranges();
  chart.axes();
  svg.add("<g fill='none' stroke-linejoin='round' stroke-linecap='round'>\n");
  chart.legend();
  // What is in here is cut off at the plot's edges.
  svg.add("<svg width='{0:g}' height='{1:g}' viewBox='0 0 {0:g} {1:g}'>\n", chart.x.last,
          chart.y.first);
  for (std::size_t i = 0; i < series.size(); ++i)
    chart.line(i);
  svg.add("</svg>\n</g>\n");
  svg.title(options.title);
  return svg.str();
}

}  // namespace xgrad::io
