#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/pages/axis.hpp>
#include <xgrad/pages/picture.hpp>
#include <xgrad/pages/svg.hpp>

namespace xgrad::pages {
namespace {

// Told apart by people who see colours differently, too.  Okabe and Ito, 2008.
constexpr std::array<std::string_view, 7> palette{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000"};
// What tells apart more series than there are colours.
constexpr std::array<std::string_view, 3> dashes{"", "8 5", "2 5"};
constexpr double far = 1e5;  // in pixels: beyond all edges

struct Chart {
  const std::vector<Series>& series;
  const LineChartOptions& options;
  Axes axes = axes_of(series, options, static_cast<double>(options.width),
                      static_cast<double>(options.height));
  const Axis &x = axes.x, &y = axes.y;
  Svg svg{x.last, y.first};

  void draw_axes() {
    svg.include_left(-static_cast<double>(options.left));
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
    svg.text(x.last / 2, svg.bottom() + 18, options.x_label, "middle");
    if (!options.y_label.empty())
      svg.text_upwards(svg.left() - 18, y.first / 2, options.y_label, "middle");
  }

  /// The attributes that say which series it is.
  std::string look(std::size_t i) const {
    const std::size_t color = series[i].color.value_or(i), c = color % palette.size();
    return fmt::format(
        "stroke='{}' stroke-dasharray='{}' class='series-{}'{}", palette[c],
        dashes[color / palette.size() % dashes.size()], c,
        series[i].opacity < 1 ? fmt::format(" stroke-opacity='{:g}'", series[i].opacity) : "");
  }

  /// Strokes, and dots: these are strokes almost without length between round ends.
  void draw(std::size_t i, const std::string& strokes, const std::string& dots,
            const std::string& more = "", double least = 0) {
    const double thickness = std::max(series[i].thickness, least);
    svg.add("<path {} stroke-width='{:g}' d='{}'{}/>\n", look(i), thickness, strokes, more);
    if (!dots.empty())
      svg.add("<path {} stroke-width='{:g}' d='{}'/>\n", look(i), 3 * thickness, dots);
  }

  void line(std::size_t i) {
    const Series s = thinned(series[i], options.width, x.low, x.high);
    std::string strokes, dots, crosses;
    double last_cross = -far;
    bool in_line = false;  // whether the point before is where this one's stroke begins
    const auto shown = [&](std::size_t k) {
      return k < s.xs.size() && std::isfinite(s.xs[k]) && std::isfinite(s.ys[k]);
    };
    for (std::size_t k = 0; k < s.xs.size(); ++k) {
      const double at = x.place(s.xs[k]);
      if (shown(k)) {
        const double height = std::clamp(y.place(s.ys[k]), -far, far);
        strokes += fmt::format("{}{:.1f} {:.1f}", in_line ? " " : "M", at, height);
        if (s.dots || (!in_line && !shown(k + 1)))
          dots += fmt::format("M{:.1f} {:.1f}h.1", at, height);
        in_line = true;
        continue;
      }
      in_line = false;
      if (std::isfinite(at) && std::abs(at - last_cross) > 10) {
        crosses += fmt::format("M{:.1f} 3l8 8m-8 0l8-8", at - 4);
        last_cross = at;
      }
    }
    draw(i, strokes, dots, fmt::format(" data-line='{}'", i));
    if (!crosses.empty())
      svg.add("<path {} stroke-width='2' d='{}'/>\n", look(i), crosses);
  }

  /// In rows above the plot.
  void legend() {
    constexpr double swatch = 24, row = 22;
    std::vector<std::string> names;
    struct Place {
      double x = 0, y = 0;
    };
    std::vector<Place> places;
    Place next;
    for (std::size_t i = 0; i < series.size(); ++i) {
      const std::string& name = series[i].name;
      names.push_back(name.empty() || axes.missing[i] == 0
                          ? name
                          : fmt::format("{} ({} not finite)", name, axes.missing[i]));
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
      const std::string dot =
          series[i].dots ? fmt::format("M{:g} {:g}h.1", left + swatch / 2, middle) : "";
      // A faint line is hardly seen where it is as short.
      draw(i, fmt::format("M{:g} {:g}h{:g}", left, middle, swatch), dot, "",
           series[i].opacity < 1 ? 4 : 0);
      svg.text(left + swatch + 8, middle, names[i], "start", "fill='#222' class='ink'");
    }
  }
};

}  // namespace

std::string line_chart(const std::vector<Series>& series, const LineChartOptions& options) {
  Chart chart{series, options};
  Svg& svg = chart.svg;
  chart.draw_axes();
  svg.add("<g fill='none' stroke-linejoin='round' stroke-linecap='round'>\n");
  chart.legend();
  // What is in here is cut off at the plot's edges.  Scripts find the ends of the axes.
  svg.add(
      "<svg width='{0:g}' height='{1:g}' viewBox='0 0 {0:g} {1:g}' class='plot' "
      "data-x='{2} {3}' data-y='{4} {5}' data-log='{6}'>\n",
      chart.x.last, chart.y.first, chart.x.low, chart.x.high, chart.y.low, chart.y.high,
      chart.y.log ? "y" : "");
  for (std::size_t i = 0; i < series.size(); ++i)
    chart.line(i);
  svg.add("</svg>\n</g>\n");
  svg.title(options.title);
  return svg.str();
}

}  // namespace xgrad::pages
