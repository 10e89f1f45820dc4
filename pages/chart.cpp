#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>
#include <xgrad/pages/axis.hpp>
#include <xgrad/pages/svg.hpp>

#include "assets.hpp"

namespace xgrad::pages {
namespace {

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values)
    text += std::isfinite(value) ? fmt::format("{},", value) : "null,";
  if (!text.empty())
    text.pop_back();
  return "[" + text + "]";
}

constexpr std::size_t most_values = 30'000;

Series points_at(const Series& series, const std::set<double>& places) {
  Series result = series;
  result.xs.clear();
  result.ys.clear();
  for (std::size_t i = 0; i < series.xs.size(); ++i)
    if (std::isfinite(series.xs[i]) && places.contains(series.xs[i])) {
      result.xs.push_back(series.xs[i]);
      result.ys.push_back(series.ys[i]);
    }
  return result;
}

std::string quoted(const std::string& text) {
  return io::format_json(io::Json(text), io::InvalidUtf8::replaced);
}

}  // namespace

std::string chart_figure(const std::vector<Series>& series, const LineChartOptions& options) {
  const std::string svg = line_chart(series, options);
  const Axes axes = axes_of(series, options, 1, 1);
  // The points that the picture shows, and where that is not too much, all values there.
  std::vector<Series> shown;
  std::set<double> places;
  for (const Series& s : series) {
    shown.push_back(thinned(s, options.width, axes.x.low, axes.x.high));
    std::ranges::copy_if(shown.back().xs, std::inserter(places, places.end()),
                         [](double x) { return std::isfinite(x); });
  }
  if (places.size() * series.size() <= most_values)
    for (std::size_t i = 0; i < series.size(); ++i)
      shown[i] = points_at(series[i], places);
  std::string data;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Series& s = shown[i];
    data += fmt::format(R"({}{{"name":{},"color":{},"opacity":{},"dots":{},"xs":{},"ys":{}}})",
                        i == 0 ? "" : ",", quoted(s.name), s.color.value_or(i), s.opacity, s.dots,
                        numbers(s.xs), numbers(s.ys));
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

}  // namespace xgrad::pages
