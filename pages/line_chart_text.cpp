#include <algorithm>
#include <cmath>
#include <string_view>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/pages/axis.hpp>
#include <xgrad/pages/picture.hpp>
#include <xgrad/pages/svg.hpp>

namespace xgrad::pages {
namespace {

/// A plot of characters.
struct TextPlot {
  std::size_t columns, rows;
  const Axis &x, &y;
  std::vector<std::string> lines = std::vector<std::string>(rows, std::string(columns, ' '));

  /// The row or column of a place, if there is one.
  static std::optional<std::size_t> nearest(double place, std::size_t count) {
    const double at = std::round(place);
    return at >= 0 && at < static_cast<double>(count) ? std::optional(static_cast<std::size_t>(at))
                                                      : std::nullopt;
  }
  void mark(double column, double value, char c) {
    const auto j = nearest(column, columns), i = nearest(y.place(value), rows);
    if (i && j)
      lines[*i][*j] = c;
  }
  /// A mark in each column from one point to the next, on the straight line between them.
  void draw(const Series& s, char c) {
    double from = 0, before = 0;
    bool joined = false;
    for (std::size_t k = 0; k < s.xs.size(); ++k) {
      const bool finite = std::isfinite(s.xs[k]) && std::isfinite(s.ys[k]);
      if (finite) {
        const double to = x.place(s.xs[k]);
        if (joined && to > from)
          for (double column = std::ceil(from); column < to; ++column)
            mark(column, before + (s.ys[k] - before) * (column - from) / (to - from), c);
        mark(to, s.ys[k], c);
        from = to;
        before = s.ys[k];
      }
      joined = finite;
    }
  }
};

}  // namespace

char letter(std::size_t series) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return series < letters.size() ? letters[series] : '#';
}

std::string line_chart_text(const std::vector<Series>& series, const LineChartOptions& options,
                            std::size_t columns, std::size_t rows) {
  check<ValueError>(columns >= 2 && rows >= 2 && columns <= 1000 && rows <= 1000,
                    "line_chart_text: {} columns and {} rows; 2 to 1000 can be drawn", columns,
                    rows);
  const Axes axes =
      axes_of(series, options, static_cast<double>(columns - 1), static_cast<double>(rows - 1));
  TextPlot plot{columns, rows, axes.x, axes.y};
  for (std::size_t i = 0; i < series.size(); ++i)
    plot.draw(thinned(series[i], columns, axes.x.low, axes.x.high), letter(i));

  std::vector<std::string> labels(rows);
  std::size_t widest = 0;
  for (const Tick& tick : axes.y.marks(2))
    if (const auto i = TextPlot::nearest(axes.y.place(tick.value), rows)) {
      labels[*i] = tick.text;
      widest = std::max(widest, tick.text.size());
    }
  std::string text = options.title.empty() ? "" : options.title + "\n";
  const auto line = [&](const std::string& label, const std::string& content) {
    text += fmt::format("{:>{}} {}", label, widest, content);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  for (std::size_t i = 0; i < rows; ++i)
    line(labels[i], (labels[i].empty() ? "|" : "+") + plot.lines[i]);
  std::string ruler(columns, '-'), below(columns + 12, ' ');
  std::size_t used = 0;
  for (const Tick& tick : axes.x.marks(12))
    if (const auto j = TextPlot::nearest(axes.x.place(tick.value), columns)) {
      const std::size_t begin = *j > tick.text.size() / 2 ? *j - tick.text.size() / 2 : 0;
      ruler[*j] = '+';
      if (begin >= used && begin + tick.text.size() <= below.size()) {
        below.replace(begin, tick.text.size(), tick.text);
        used = begin + tick.text.size() + 1;
      }
    }
  line("", "+" + ruler);
  line("", " " + below);
  return text;
}

}  // namespace xgrad::pages
