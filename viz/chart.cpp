#include "chart.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include "../autograd/fail.hpp"
#include "assets.hpp"

namespace xgrad::viz {

namespace {

// Distinguishable with colour blindness, too.  Okabe and Ito, 2008.
constexpr std::array<std::string_view, 7> palette{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000"};
// Dashes distinguish more series than there are colours.
constexpr std::array<std::string_view, 3> dashes{"", "8 5", "2 5"};
constexpr double far = 1e5;  // in pixels: beyond all edges

bool finite_at(const Series& s, std::size_t k) {
  return std::isfinite(s.xs[k]) && std::isfinite(s.ys[k]);
}

/// Maps numbers to positions.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double first = 0, last = 1;  ///< positions of the ends, in pixels or characters
  bool log = false;            ///< `low` and `high` are logarithms

  void include(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  double scaled(double v) const { return log ? std::log10(std::max(v, 0.0)) : v; }
  double place(double v) const { return first + (scaled(v) - low) / (high - low) * (last - first); }
  /// Adds some room at both ends, and a length if it is zero.
  void widen(double share) {
    const double alone = std::abs(low) > 1e-300 ? std::abs(low) * 0.1 : 0.5;
    const double room = high > low ? (high - low) * share : alone;
    low -= room;
    high += room;
  }
  /// Positions are quotients by the length, so it must be a normal number.
  void check_length(const char* name) const {
    check<ValueError>(std::isnormal(high - low),
                      "line_chart: no {} axis can be drawn from {} to {}", name, low, high);
  }
  /// Round numbers at least this far apart.
  std::vector<Tick> marks(double apart) const {
    const auto most = static_cast<std::size_t>(std::abs(last - first) / apart);
    std::vector<Tick> all;
    const double step =
        std::ceil((high - low) / static_cast<double>(std::max<std::size_t>(most, 1)));
    for (double power = std::ceil(low / step) * step; log && power <= high; power += step)
      all.push_back({std::pow(10, power), fmt::format("1e{:g}", power)});
    return log ? all : ticks(low, high, most);
  }
};

/// Axes for all points, from (0, height) at their lowest to (width, 0).
struct Axes {
  Axis x, y;
  std::vector<std::size_t> missing = {};  ///< number of points of each series that are not finite

  Axes(const std::vector<Series>& series, const LineChartOptions& options, double width,
       double height)
      : x{.last = width}, y{.first = height, .last = 0, .log = options.y_log} {
    for (const Series& s : series) {
      check<ValueError>(s.xs.size() == s.ys.size(), "line_chart: '{}' has {} xs and {} ys", s.name,
                        s.xs.size(), s.ys.size());
      missing.push_back(0);
      for (std::size_t i = 0; i < s.xs.size(); ++i) {
        if (std::isfinite(s.xs[i]))
          x.include(s.xs[i]);
        if (!finite_at(s, i))
          ++missing.back();
        else if (const double v = y.scaled(s.ys[i]); std::isfinite(v))
          y.include(v);
      }
    }
    check<ValueError>(y.low <= y.high, "line_chart: there is no finite point");
    if (x.low == x.high)
      x.widen(0);
    const auto set_ends = [&] {
      y.low = options.y_low ? y.scaled(*options.y_low) : y.low;
      y.high = options.y_high ? y.scaled(*options.y_high) : y.high;
    };
    set_ends();
    const bool good = options.y_low && options.y_high ? y.low < y.high : y.low <= y.high;
    if (!good || !std::isfinite(y.low) || !std::isfinite(y.high))
      fail<ValueError>("line_chart: the vertical axis goes from {} to {}", y.low, y.high);
    y.widen(0.05);
    set_ends();
    x.check_length("horizontal");
    y.check_length("vertical");
  }
};

struct Chart {
  const std::vector<Series>& series;
  const LineChartOptions& options;
  Axes axes{series, options, static_cast<double>(options.width),
            static_cast<double>(options.height)};
  const Axis &x = axes.x, &y = axes.y;
  Svg svg{x.last, y.first};

  void draw_axes() {
    svg.left = -static_cast<double>(options.left);
    for (const Tick& mark : y.marks(50)) {
      svg.add("<path stroke='#e4e4e4' class='grid' d='M0 {:.1f}h{:g}'/>\n", y.place(mark.value),
              x.last);
      svg.text(-8, y.place(mark.value), mark.text, "end");
    }
    for (const Tick& mark : x.marks(90)) {
      svg.add("<path stroke='#e4e4e4' class='grid' d='M{:.1f} 0v{:g}'/>\n", x.place(mark.value),
              y.first);
      svg.text(x.place(mark.value), y.first + 16, mark.text, "middle");
    }
    svg.add("<path stroke='#222' class='axis' fill='none' d='M0 0v{:g}h{:g}'/>\n", y.first, x.last);
    svg.text(x.last / 2, svg.bottom + 18, options.x_label, "middle");
    svg.text_upwards(svg.left - 18, y.first / 2, options.y_label, "middle");
  }

  /// The attributes that distinguish the series.
  std::string look(std::size_t i) const {
    const std::size_t color = series[i].color.value_or(i), c = color % palette.size();
    return fmt::format("stroke='{}' stroke-dasharray='{}' class='series-{}'", palette[c],
                       dashes[color / palette.size() % dashes.size()], c);
  }

  /// Strokes and dots; a dot is a stroke of almost no length with round ends.
  void draw(std::size_t i, const std::string& strokes, const std::string& dots,
            const std::string& more = "") {
    const double thickness = series[i].thickness;
    svg.add("<path {} stroke-width='{:g}' d='{}'{}/>\n", look(i), thickness, strokes, more);
    if (!dots.empty())
      svg.add("<path {} stroke-width='{:g}' d='{}'/>\n", look(i), 3 * thickness, dots);
  }

  void line(std::size_t i) {
    const Series& s = series[i];
    std::string strokes, dots, crosses;
    double last_cross = -far;
    bool in_line = false;  // whether the stroke begins at the point before
    for (std::size_t k = 0; k < s.xs.size(); ++k) {
      const double at = x.place(s.xs[k]);
      if (finite_at(s, k)) {
        const double height = std::clamp(y.place(s.ys[k]), -far, far);
        strokes += fmt::format("{}{:.1f} {:.1f}", in_line ? " " : "M", at, height);
        if (s.dots || (!in_line && (k + 1 == s.xs.size() || !finite_at(s, k + 1))))
          dots += fmt::format("M{:.1f} {:.1f}h.1", at, height);
      } else if (std::isfinite(at) && std::abs(at - last_cross) > 10) {
        crosses += fmt::format("M{:.1f} 3l8 8m-8 0l8-8", at - 4);
        last_cross = at;
      }
      in_line = finite_at(s, k);
    }
    draw(i, strokes, dots, fmt::format(" data-line='{}'", i));
    if (!crosses.empty())
      svg.add("<path {} stroke-width='2' d='{}'/>\n", look(i), crosses);
  }

  /// In rows above the plot.
  void legend() {
    constexpr double swatch = 24, row = 22;
    std::vector<std::string> names;
    std::vector<std::pair<double, double>> places;
    double at = 0, line = 0;
    for (std::size_t i = 0; i < series.size(); ++i) {
      names.push_back(series[i].name);
      if (!names[i].empty() && axes.missing[i] > 0)
        names[i] += fmt::format(" ({} not finite)", axes.missing[i]);
      const double wide = names[i].empty() ? 0 : swatch + 8 + text_width(names[i]) + 16;
      if (at > 0 && at + wide > x.last) {
        at = 0;
        line += row;
      }
      places.emplace_back(at, line);
      at += wide;
    }
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (names[i].empty())
        continue;
      const double left = places[i].first, middle = places[i].second - line - row;
      const std::string dot =
          series[i].dots ? fmt::format("M{:g} {:g}h.1", left + swatch / 2, middle) : "";
      draw(i, fmt::format("M{:g} {:g}h{:g}", left, middle, swatch), dot);
      svg.text(left + swatch + 8, middle, names[i], "start", "fill='#222' class='ink'");
    }
  }
};

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values)
    texts.push_back(std::isfinite(value) ? fmt::format("{}", value) : "null");
  return fmt::format("[{}]", fmt::join(texts, ","));
}

}  // namespace

std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options) {
  Chart chart{series, options};
  Svg& svg = chart.svg;
  chart.draw_axes();
  svg.add("<g fill='none' stroke-linejoin='round' stroke-linecap='round'>\n");
  chart.legend();
  // Lines in this group are clipped above and below the plot; dots and lines at its sides are
  // whole.  Scripts read the ends of the axes.
  constexpr double margin = 8;
  svg.add(
      "<svg x='{0:g}' width='{1:g}' height='{2:g}' viewBox='{0:g} 0 {1:g} {2:g}' class='plot' "
      "data-width='{3:g}' data-x='{4} {5}' data-y='{6} {7}'{8}>\n",
      -margin, chart.x.last + 2 * margin, chart.y.first, chart.x.last, chart.x.low, chart.x.high,
      chart.y.low, chart.y.high, chart.y.log ? " data-log='y'" : "");
  for (std::size_t i = 0; i < series.size(); ++i)
    chart.line(i);
  svg.add("</svg>\n</g>\n");
  svg.title(options.title);
  return svg.str();
}

std::string chart_figure(const std::vector<Series>& series, const LineChartOptions& options) {
  const std::string svg = line_chart(series, options);
  const auto quoted = [](const std::string& text) {
    return io::format_json(io::Json(text), io::InvalidUtf8::replaced);
  };
  std::string data;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Series& s = series[i];
    data +=
        fmt::format(R"({}{{"name":{},"color":{},"dots":{},"xs":{},"ys":{}}})", i == 0 ? "" : ",",
                    quoted(s.name), s.color.value_or(i), s.dots, numbers(s.xs), numbers(s.ys));
  }
  data = fmt::format(R"({{"x":{},"series":[{}]}})", quoted(options.x_label), data);
  return fmt::format(
      "<figure class=\"chart\" role=\"group\" aria-label='{}' data-chart='{}'>\n{}<figcaption "
      "class=\"soft\"></figcaption>\n"
      "</figure>\n",
      escaped(options.title), escaped(data), svg);
}

Page with_charts(Page page) {
  page.styles.push_back(detail::chart_css);
  page.scripts.push_back(detail::chart_js);
  return page;
}

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

}  // namespace xgrad::viz
