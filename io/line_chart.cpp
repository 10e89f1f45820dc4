#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/font.hpp>
#include <xgrad/io/picture.hpp>
#include <xgrad/io/ticks.hpp>

namespace xgrad::io {
namespace {

constexpr Color white{255, 255, 255}, ink{40, 40, 40}, pale{228, 228, 228};
// Told apart by people who see colours differently, too.  Okabe and Ito, 2008.
constexpr Color colors[] = {{0, 114, 178}, {213, 94, 0},   {0, 158, 115}, {204, 121, 167},
                            {230, 159, 0}, {86, 180, 233}, {0, 0, 0}};
constexpr std::size_t line_height = 26, swatch = 30;

std::int64_t whole(double v) { return std::llround(v); }

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
  std::vector<Tick> marks() const {
    const auto about = static_cast<std::size_t>(std::abs(last - first) / 90);
    return log ? log_ticks(low, high, about) : ticks(low, high, about);
  }
};

class Chart {
 public:
  Chart(const std::vector<Series>& series, const LineChartOptions& options)
      : series_(series), options_(options), canvas_(options.width, options.height, white) {
    find_ranges();
    place();
  }

  const Canvas& drawn() {
    axes();
    for (std::size_t i = 0; i < series_.size(); ++i)
      canvas_.line(points(series_[i]), series_[i].thickness, color(i), {x_.first, y_.last},
                   {x_.last, y_.first});
    legend();
    return canvas_;
  }

 private:
  static Color color(std::size_t i) { return colors[i % std::size(colors)]; }

  void find_ranges() {
    y_.log = options_.log_y;
    for (const Series& s : series_) {
      check<ValueError>(s.xs.size() == s.ys.size(), "line_chart: '{}' has {} xs and {} ys", s.name,
                        s.xs.size(), s.ys.size());
      for (std::size_t i = 0; i < s.xs.size(); ++i) {
        if (!std::isfinite(s.xs[i]) || !std::isfinite(s.ys[i]))
          continue;
        if (options_.log_y && s.ys[i] <= 0)
          fail<ValueError>("line_chart: '{}' at x = {} is {}, which has no logarithm", s.name,
                           s.xs[i], s.ys[i]);
        x_.include(s.xs[i]);
        y_.include(s.ys[i]);
      }
    }
    check<ValueError>(x_.low <= x_.high, "line_chart: there is no finite point");
    if (x_.low == x_.high)
      x_.widen(0);
    y_.widen(0.05);
    y_.low = options_.y_low.value_or(y_.low);
    y_.high = options_.y_high.value_or(y_.high);
    const bool good = y_.low < y_.high && (!y_.log || y_.low > 0);
    if (!good || !std::isfinite(y_.low) || !std::isfinite(y_.high))
      fail<ValueError>("line_chart: the vertical axis goes from {} to {}", y_.low, y_.high);
  }

  /// The plot is what titles, labels and ticks leave.
  void place() {
    const auto width = static_cast<double>(options_.width);
    const auto height = static_cast<double>(options_.height);
    y_.last = options_.title.empty() ? 24 : 60;
    y_.first = height - (options_.x_label.empty() ? 46 : 78);
    std::size_t widest = 0;
    for (const Tick& mark : y_.marks())
      widest = std::max(widest, text_width(mark.text));
    x_.first = static_cast<double>(widest + (options_.y_label.empty() ? 30 : 62));
    x_.last = width - 30;
    if (x_.last - x_.first < 100 || y_.first - y_.last < 100)
      fail<ValueError>("line_chart: {} by {} pixels leave no room for the lines", options_.width,
                       options_.height);
  }

  void axes() {
    const std::int64_t left = whole(x_.first), right = whole(x_.last), top = whole(y_.last),
                       bottom = whole(y_.first);
    const auto across = static_cast<std::size_t>(right - left);
    const auto down = static_cast<std::size_t>(bottom - top);
    for (const Tick& mark : y_.marks()) {
      const std::int64_t y = whole(y_.pixel(mark.value));
      canvas_.rectangle(left, y, across, 1, pale);
      canvas_.text(left - 10, y, mark.text, ink, 2, Align::end, Align::middle);
    }
    for (const Tick& mark : x_.marks()) {
      const std::int64_t x = whole(x_.pixel(mark.value));
      canvas_.rectangle(x, top, 1, down, pale);
      canvas_.text(x, bottom + 12, mark.text, ink, 2, Align::middle);
    }
    canvas_.rectangle(left, top, 2, down, ink);
    canvas_.rectangle(left, bottom, across, 2, ink);
    canvas_.text((left + right) / 2, 22, options_.title, ink, 2, Align::middle);
    canvas_.text((left + right) / 2, bottom + 46, options_.x_label, ink, 2, Align::middle);
    canvas_.text_upwards(16, (top + bottom) / 2, options_.y_label, ink);
  }

  std::vector<Point> points(const Series& s) const {
    std::vector<Point> all;
    for (std::size_t i = 0; i < s.xs.size(); ++i)
      all.push_back({x_.pixel(s.xs[i]), y_.pixel(s.ys[i])});
    return all;
  }

  /// In the corner where the fewest points are.
  void legend() {
    std::size_t widest = 0, named = 0;
    for (const Series& s : series_) {
      widest = std::max(widest, text_width(s.name));
      named += !s.name.empty();
    }
    if (named == 0)
      return;
    const std::size_t width = swatch + 30 + widest, height = series_.size() * line_height + 10;
    const double w = static_cast<double>(width) + 14, h = static_cast<double>(height) + 14;
    const std::array<Point, 4> corners{Point{x_.last - w, y_.last + 14},
                                       {x_.first + 14, y_.last + 14},
                                       {x_.last - w, y_.first - h},
                                       {x_.first + 14, y_.first - h}};
    const Point best = *std::ranges::min_element(corners, {}, [&](const Point& corner) {
      std::size_t inside = 0;
      for (const Series& s : series_)
        for (const Point& p : points(s))
          inside +=
              p.x > corner.x - 6 && p.x < corner.x + w && p.y > corner.y - 6 && p.y < corner.y + h;
      return inside;
    });
    const std::int64_t left = whole(best.x), top = whole(best.y);
    canvas_.rectangle(left, top, width, height, {170, 170, 170});
    canvas_.rectangle(left + 1, top + 1, width - 2, height - 2, white);
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const std::int64_t y = top + static_cast<std::int64_t>(5 + i * line_height + line_height / 2);
      const std::array<Point, 2> sample{
          Point{best.x + 12, static_cast<double>(y)},
          Point{best.x + 12 + static_cast<double>(swatch), static_cast<double>(y)}};
      canvas_.line(sample, series_[i].thickness, color(i));
      canvas_.text(left + static_cast<std::int64_t>(swatch) + 20, y, series_[i].name, ink, 2,
                   Align::begin, Align::middle);
    }
  }

  const std::vector<Series>& series_;
  const LineChartOptions& options_;
  Canvas canvas_;
  Axis x_, y_;
};

}  // namespace

void line_chart(const std::vector<Series>& series, const std::string& path,
                const LineChartOptions& options) {
  Chart(series, options).drawn().save(path);
}

}  // namespace xgrad::io
