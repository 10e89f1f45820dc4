#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include "../autograd/check/describe.hpp"
#include "../autograd/fail.hpp"
#include "chart.hpp"

namespace xgrad::viz {
namespace {

using Rgb = std::array<double, 3>;
constexpr std::array anchors{Rgb{68, 1, 84},    Rgb{71, 44, 122},  Rgb{59, 81, 139},
                             Rgb{44, 113, 142}, Rgb{33, 144, 141}, Rgb{39, 173, 129},
                             Rgb{92, 200, 99},  Rgb{170, 220, 50}, Rgb{253, 231, 37}};

std::vector<std::string> labels_of(const char* what, const std::vector<std::string>& given,
                                   std::size_t n) {
  check<ValueError>(given.empty() || given.size() == n, "heat_map: {} labels for {} {}",
                    given.size(), n, what);
  std::vector<std::string> labels = given;
  for (std::size_t i = labels.size(); i < n; ++i)
    labels.push_back(std::to_string(i));
  return labels;
}

/// The contents of both forms.
struct Map {
  std::size_t rows, columns;
  std::vector<double> values;
  std::vector<std::string> row_labels, column_labels;
  double low = 0, high = 0;

  Map(const Tensor& tensor, const HeatMapOptions& options) {
    check<ShapeError>(tensor.dim() == 2 && tensor.numel() > 0,
                      "heat_map: values have shape {}; they must be (rows, columns), not empty",
                      to_string(tensor.shape()));
    rows = tensor.size(0);
    columns = tensor.size(1);
    values = xgrad::detail::elements(tensor);
    row_labels = labels_of("rows", options.rows, rows);
    column_labels = labels_of("columns", options.columns, columns);

    const ValueSummary extremes = summarize(tensor);
    low = options.low.value_or(extremes.min);
    high = options.high.value_or(extremes.max);
    const bool ordered = !options.low || !options.high || low < high;
    if (!ordered || !std::isfinite(high - low))
      fail<ValueError>(
          "heat_map: the scale goes from {} to {}; low must be below high, and both finite", low,
          high);
    high = std::max(low, high);
  }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
  /// The position of a finite value on the scale, 0 to 1.
  double place(double value) const {
    return high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) : 0.5;
  }
};

constexpr double gap = 10;
constexpr std::size_t most_cells = std::size_t{1} << 20;

double widest(const std::vector<std::string>& labels) {
  return text_width(std::ranges::max(labels, {}, text_width));
}

/// The step between labels of `needed` pixels: 1, 2, 5, 10, 20, ...
std::size_t label_step(double needed, double cell) {
  std::size_t step = 1;
  for (std::size_t k = 0; static_cast<double>(step) * cell < needed; ++k)
    step = k % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

/// A map whose cells begin at (0, 0).
struct Drawing {
  const Map& map;
  double cell, width = static_cast<double>(map.columns) * cell,
               height = static_cast<double>(map.rows) * cell;
  Svg svg{width, height};

  double middle(std::size_t k) const { return (static_cast<double>(k) + 0.5) * cell; }

  /// A path for each colour, of strokes one cell thick; neighbours of one colour are one stroke.
  void cells() {
    constexpr double levels = 255;
    std::map<std::string, std::string> strokes;
    std::string crosses;
    const auto color = [&](std::size_t i, std::size_t j) {
      const double v = map.at(i, j);
      return std::isfinite(v) ? viridis(std::round(map.place(v) * levels) / levels) : "#ddd";
    };
    for (std::size_t i = 0; i < map.rows; ++i)
      for (std::size_t j = 0, end = 0; j < map.columns; j = end) {
        const std::string same = color(i, j);
        for (end = j; end < map.columns && color(i, end) == same; ++end)
          if (!std::isfinite(map.at(i, end)))
            crosses += fmt::format("M{} {}l1 1m-1 0l1-1", end, i);
        strokes[same] += fmt::format("M{} {}.5h{}", j, i, end - j);
      }
    svg.add("<g transform='scale({:g})'>\n<g shape-rendering='crispEdges'>\n", cell);
    for (const auto& [stroke, path] : strokes)
      svg.add("<path stroke='{}' d='{}'/>\n", stroke, path);
    svg.add("</g>\n<path stroke='#999' stroke-width='{:g}' d='{}'/>\n</g>\n", 1 / cell, crosses);
  }

  /// Writes numbers with three digits of the scale's larger end, if they fit.
  void numbers() {
    const double most = std::max(std::abs(map.low), std::abs(map.high));
    const int digits = most > 0 ? static_cast<int>(std::floor(std::log10(most))) : 0;
    std::vector<std::string> texts;
    for (const double value : map.values)
      texts.push_back(digits < -3 || digits > 5
                          ? fmt::format("{:.1e}", value)
                          : fmt::format("{:.{}f}", value, std::clamp(2 - digits, 0, 4)));
    const double size = std::min(font_size, (cell - 4) / widest(texts) * font_size);
    if (size < 8)
      return;
    svg.add("<g font-size='{:.3g}'>\n", size);
    for (std::size_t k = 0; k < texts.size(); ++k) {
      const bool dark = std::isfinite(map.values[k]) && map.place(map.values[k]) < 0.6;
      svg.text(middle(k % map.columns), middle(k / map.columns), texts[k], "middle",
               dark ? "fill='#fff'" : "fill='#222'");
    }
    svg.add("</g>\n");
  }

  /// Writes each label, or as many as fit; words wider than a cell are vertical.
  void labels(bool words) {
    const double line = 1.3 * font_size, across = widest(map.column_labels) + gap;
    for (std::size_t i = 0; i < map.rows; i += label_step(line, cell))
      svg.text(-gap, middle(i), map.row_labels[i], "end");
    const bool upwards = words && across > cell;
    for (std::size_t j = 0; j < map.columns; j += label_step(upwards ? line : across, cell))
      if (upwards)
        svg.text_upwards(middle(j), height + gap, map.column_labels[j], "end");
      else
        svg.text(middle(j), height + gap + font_size / 2, map.column_labels[j], "middle");
  }

  void scale() {
    constexpr std::size_t steps = 64;
    const double x = width + 24, thickness = 16, length = std::max(height, 80.0);
    svg.add("<g shape-rendering='crispEdges' stroke-width='{}'>\n", thickness);
    for (std::size_t k = 0; k < steps; ++k) {
      const double t = static_cast<double>(k) / (steps - 1);
      svg.add("<path stroke='{}' d='M{:g} {:.2f}V0'/>\n", viridis(t), x + thickness / 2,
              length * static_cast<double>(steps - k) / steps);
    }
    svg.add("</g>\n");
    std::vector<Tick> marks = ticks(map.low, map.high, static_cast<std::size_t>(length / 50));
    if (marks.size() < 2 && map.high > map.low)
      marks = {{map.low, fmt::format("{:.3g}", map.low)},
               {map.high, fmt::format("{:.3g}", map.high)}};
    for (const Tick& mark : marks) {
      const double y = (1 - map.place(mark.value)) * length;
      svg.add("<path stroke='#222' class='axis' d='M{:g} {:.1f}h4'/>\n", x + thickness, y);
      svg.text(x + thickness + 8, y, mark.text);
    }
    if (const auto n =
            std::ranges::count_if(map.values, [](double v) { return !std::isfinite(v); });
        n > 0) {
      const double y = length + 2 * font_size;
      svg.add("<path stroke='#ddd' stroke-width='{2:g}' d='M{0:g} {1:g}h{2:g}'/>\n", x, y,
              thickness);
      svg.add("<path stroke='#999' d='M{0:g} {1:g}l{2:g} {2:g}m-{2:g} 0l{2:g}-{2:g}'/>\n", x,
              y - thickness / 2, thickness);
      svg.text(x + thickness + 8, y, fmt::format("{} not finite", n));
    }
  }
};

}  // namespace

std::string viridis(double t) {
  constexpr std::size_t steps = anchors.size() - 1;
  const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * steps;
  const std::size_t i = std::min(static_cast<std::size_t>(place), steps - 1);
  const double share = place - static_cast<double>(i);
  std::string color = "#";
  for (std::size_t k = 0; k < 3; ++k)
    color += fmt::format("{:02x}", std::lround(std::lerp(anchors[i][k], anchors[i + 1][k], share)));
  return color;
}

std::string heat_map(const Tensor& values, const HeatMapOptions& options) {
  const Map map(values, options);
  check<ValueError>(map.values.size() <= most_cells,
                    "heat_map: {} by {} cells are more than {}; show a part of them", map.rows,
                    map.columns, most_cells);
  const std::size_t suits = std::clamp<std::size_t>(480 / std::max(map.rows, map.columns), 1, 60);
  Drawing drawing{map, static_cast<double>(options.cell != 0 ? options.cell : suits)};
  Svg& svg = drawing.svg;
  drawing.cells();
  if (options.numbers)
    drawing.numbers();
  drawing.labels(!options.columns.empty());
  svg.text(drawing.width / 2, svg.bottom + 1.2 * font_size, options.x_label, "middle");
  svg.text_upwards(svg.left - 1.2 * font_size, drawing.height / 2, options.y_label, "middle");
  drawing.scale();
  svg.title(options.title);
  return svg.str();
}

std::string heat_map_text(const Tensor& values, const HeatMapOptions& options) {
  const Map map(values, options);
  constexpr std::string_view shades = " .:-=+*#%@";
  const auto length = [](const std::string& label) { return characters(label).size(); };
  const auto padded = [&](const std::string& label, std::size_t to) {
    return std::string(to - std::min(to, length(label)), ' ') + label;
  };
  const std::size_t margin = length(std::ranges::max(map.row_labels, {}, length));
  const std::size_t step = (length(std::ranges::max(map.column_labels, {}, length)) + 2) / 2;

  std::string text = options.title.empty() ? "" : options.title + "\n";
  std::string heading;
  for (std::size_t j = 0, used = 0; j < map.columns; j += step) {
    const std::string label = padded(map.column_labels[j], 2);  // right-aligned
    heading += std::string(2 * j - used, ' ') + label;
    used = 2 * j + length(label);
  }
  text += std::string(margin + 2, ' ') + heading + "\n";
  for (std::size_t i = 0; i < map.rows; ++i) {
    text += padded(map.row_labels[i], margin) + " |";
    for (std::size_t j = 0; j < map.columns; ++j) {
      const double value = map.at(i, j);
      const double level = std::isfinite(value) ? map.place(value) * shades.size() : 0;
      const std::size_t shade = std::min(static_cast<std::size_t>(level), shades.size() - 1);
      text += std::string(2, std::isfinite(value) ? shades[shade] : '?');
    }
    text += "|\n";
  }
  return text + fmt::format("from \"{}\" for {:.4g} to \"{}\" for {:.4g}\n", shades.front(),
                            map.low, shades.back(), map.high);
}

}  // namespace xgrad::viz
