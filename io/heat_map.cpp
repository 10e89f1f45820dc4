#include <algorithm>
#include <cmath>
#include <string_view>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/font.hpp>
#include <xgrad/io/picture.hpp>
#include <xgrad/io/ticks.hpp>

namespace xgrad::io {

Color viridis(double t) {
  static constexpr Color anchors[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                                      {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                                      {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};
  constexpr std::size_t steps = std::size(anchors) - 1;
  const double place = std::clamp(t, 0.0, 1.0) * steps;
  const std::size_t i = std::min(static_cast<std::size_t>(place), steps - 1);
  const double share = place - static_cast<double>(i);
  const auto mixed = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * share));
  };
  const Color a = anchors[i], b = anchors[i + 1];
  return {mixed(a.red, b.red), mixed(a.green, b.green), mixed(a.blue, b.blue)};
}

namespace {

constexpr Color white{255, 255, 255}, ink{40, 40, 40}, grey{200, 200, 200};

std::vector<std::string> labels_of(const char* what, const std::vector<std::string>& given,
                                   std::size_t n) {
  check<ValueError>(given.empty() || given.size() == n, "heat_map: {} labels for {} {}",
                    given.size(), n, what);
  std::vector<std::string> labels = given;
  for (std::size_t i = labels.size(); i < n; ++i)
    labels.push_back(std::to_string(i));
  return labels;
}

/// What both forms show.
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
    const Tensor wide = tensor.detach().to(DType::float64);
    values.assign(wide.data<double>(), wide.data<double>() + wide.numel());
    row_labels = labels_of("rows", options.rows, rows);
    column_labels = labels_of("columns", options.columns, columns);

    std::vector<double> finite = values;
    std::erase_if(finite, [](double v) { return !std::isfinite(v); });
    if (!finite.empty()) {
      low = std::ranges::min(finite);
      high = std::ranges::max(finite);
    }
    low = options.low.value_or(low);
    high = options.high.value_or(high);
    const bool ordered = !options.low || !options.high || low < high;
    if (!ordered || !std::isfinite(low) || !std::isfinite(high))
      fail<ValueError>("heat_map: the scale goes from {} to {}", low, high);
    high = std::max(low, high);
  }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
  /// Where on the scale a finite value is, 0 to 1.
  double place(double value) const {
    return high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) : 0.5;
  }
};

std::size_t widest(const std::vector<std::string>& labels, std::size_t scale) {
  std::size_t most = 0;
  for (const std::string& label : labels)
    most = std::max(most, text_width(label, scale));
  return most;
}

/// Draws a map with the cells' top left corner at (left, top).
struct Drawing {
  const Map& map;
  std::size_t cell, left, top;

  std::int64_t x(std::size_t column) const {
    return static_cast<std::int64_t>(left + column * cell);
  }
  std::int64_t y(std::size_t row) const { return static_cast<std::int64_t>(top + row * cell); }
  std::int64_t half() const { return static_cast<std::int64_t>(cell / 2); }

  void cells(Canvas& canvas) const {
    for (std::size_t i = 0; i < map.rows; ++i)
      for (std::size_t j = 0; j < map.columns; ++j) {
        const double value = map.at(i, j);
        canvas.rectangle(x(j), y(i), cell, cell,
                         std::isfinite(value) ? viridis(map.place(value)) : grey);
      }
  }

  /// As large as all of them fit, or not at all.
  void numbers(Canvas& canvas) const {
    std::vector<std::string> texts;
    for (const double value : map.values)
      texts.push_back(fmt::format("{:.2f}", value));
    std::size_t scale = 2;
    while (scale > 0 && widest(texts, scale) + 6 > cell)
      --scale;
    for (std::size_t k = 0; scale > 0 && k < texts.size(); ++k) {
      const double value = map.values[k];
      const bool dark = std::isfinite(value) && map.place(value) < 0.6;
      canvas.text(x(k % map.columns) + half(), y(k / map.columns) + half(), texts[k],
                  dark ? white : ink, scale, Align::middle, Align::middle);
    }
  }

  /// Each label, or as many as there is room for.
  void labels(Canvas& canvas) const {
    const std::size_t row_step = (glyph_height * 2 + cell - 1) / cell;
    for (std::size_t i = 0; i < map.rows; i += row_step)
      canvas.text(x(0) - 10, y(i) + half(), map.row_labels[i], ink, 2, Align::end, Align::middle);
    const std::size_t column_step = (widest(map.column_labels, 2) + 14 + cell - 1) / cell;
    for (std::size_t j = 0; j < map.columns; j += column_step)
      canvas.text(x(j) + half(), y(map.rows) + 10, map.column_labels[j], ink, 2, Align::middle);
  }

  void scale(Canvas& canvas, const std::vector<Tick>& marks) const {
    const std::size_t height = map.rows * cell, width = 18;
    const std::int64_t bar = x(map.columns) + 24;
    for (std::size_t k = 0; k < height; ++k) {
      const double t = 1 - (static_cast<double>(k) + 0.5) / static_cast<double>(height);
      canvas.rectangle(bar, y(0) + static_cast<std::int64_t>(k), width, 1, viridis(t));
    }
    for (const Tick& mark : marks) {
      const double down = (1 - map.place(mark.value)) * static_cast<double>(height - 1);
      const std::int64_t at = y(0) + std::llround(down);
      canvas.rectangle(bar + static_cast<std::int64_t>(width), at, 5, 1, ink);
      canvas.text(bar + static_cast<std::int64_t>(width) + 10, at, mark.text, ink, 2, Align::begin,
                  Align::middle);
    }
  }
};

}  // namespace

void heat_map(const Tensor& values, const std::string& path, const HeatMapOptions& options) {
  const Map map(values, options);
  constexpr std::size_t side = 480, largest = 60;
  const std::size_t suits = side / std::max(map.rows, map.columns);
  const std::size_t cell =
      options.cell != 0 ? options.cell : std::clamp<std::size_t>(suits, 1, largest);
  check<ValueError>(cell <= 1024 && std::max(map.rows, map.columns) <= 16384 / cell,
                    "heat_map: {} by {} cells of {} pixels are too many", map.rows, map.columns,
                    cell);
  std::vector<Tick> marks =
      ticks(map.low, map.high, std::max<std::size_t>(map.rows * cell / 70, 1));
  if (marks.size() < 2 && map.high > map.low)
    marks = {{map.low, fmt::format("{:.3g}", map.low)},
             {map.high, fmt::format("{:.3g}", map.high)}};
  std::vector<std::string> mark_texts;
  for (const Tick& mark : marks)
    mark_texts.push_back(mark.text);

  const std::size_t left = 20 + widest(map.row_labels, 2) + 10,
                    top = options.title.empty() ? 20 : 56;
  const std::size_t width = left + map.columns * cell + 24 + 18 + 10 + widest(mark_texts, 2) + 20;
  const std::size_t height = top + map.rows * cell + 10 + 2 * glyph_height + 16;
  Canvas canvas(std::max(width, text_width(options.title) + 40), height, white);
  canvas.text(20, 20, options.title, ink);
  const Drawing drawing{map, cell, left, top};
  drawing.cells(canvas);
  if (options.numbers)
    drawing.numbers(canvas);
  drawing.labels(canvas);
  drawing.scale(canvas, marks);
  canvas.save(path);
}

std::string heat_map_text(const Tensor& values, const HeatMapOptions& options) {
  const Map map(values, options);
  constexpr std::string_view shades = " .:-=+*#%@";
  const auto length = [](const std::string& label) { return characters(label).size(); };
  const auto padded = [&](const std::string& label, std::size_t to) {
    return std::string(to - std::min(to, length(label)), ' ') + label;
  };
  std::size_t margin = 0, step = 1;
  for (const std::string& label : map.row_labels)
    margin = std::max(margin, length(label));
  for (const std::string& label : map.column_labels)
    step = std::max(step, (length(label) + 2) / 2);

  std::string text = options.title.empty() ? "" : options.title + "\n";
  std::string heading;
  for (std::size_t j = 0, used = 0; j < map.columns; j += step) {
    const std::string label = padded(map.column_labels[j], 2);  // a single character: on the right
    heading += std::string(2 * j - used, ' ') + label;
    used = 2 * j + length(label);
  }
  text += std::string(margin + 2, ' ') + heading + "\n";
  for (std::size_t i = 0; i < map.rows; ++i) {
    text += padded(map.row_labels[i], margin) + " |";
    for (std::size_t j = 0; j < map.columns; ++j) {
      const double value = map.at(i, j), level = map.place(value) * shades.size();
      const std::size_t shade = std::min(static_cast<std::size_t>(level), shades.size() - 1);
      text += std::string(2, std::isfinite(value) ? shades[shade] : '?');
    }
    text += "|\n";
  }
  return text + fmt::format("from \"{}\" for {:.4g} to \"{}\" for {:.4g}\n", shades.front(),
                            map.low, shades.back(), map.high);
}

}  // namespace xgrad::io
