#include <png.h>

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/canvas.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/font.hpp>

namespace xgrad::io {
namespace {

constexpr std::size_t most_pixels = 16384;

bool finite(Point p) { return std::isfinite(p.x) && std::isfinite(p.y); }

/// How far a place is from the segment from a to b.
double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  const double along = (p.x - a.x) * dx + (p.y - a.y) * dy;
  const double t = length2 > 0 ? std::clamp(along / length2, 0.0, 1.0) : 0;
  return std::hypot(p.x - (a.x + t * dx), p.y - (a.y + t * dy));
}

/// Pixels, as a half-open range, that [low, high] touches within [0, size).
std::pair<std::size_t, std::size_t> touched(double low, double high, std::size_t size) {
  const auto limit = static_cast<double>(size);
  return {static_cast<std::size_t>(std::clamp(std::floor(low), 0.0, limit)),
          static_cast<std::size_t>(std::clamp(std::ceil(high), 0.0, limit))};
}

std::int64_t offset(Align align, std::size_t size) {
  const auto n = static_cast<std::int64_t>(size);
  return align == Align::begin ? 0 : align == Align::middle ? -(n / 2) : -n;
}

/// Calls dot(x, y) for each black dot of a text, counted from its top left corner.
template <class F>
void for_each_dot(std::string_view text, const F& dot) {
  std::int64_t left = 0;
  for (const char32_t character : characters(text)) {
    for (std::size_t y = 0; y < glyph_height; ++y)
      for (std::size_t x = 0; x < glyph_width; ++x)
        if (glyph_dot(character, x, y))
          dot(left + static_cast<std::int64_t>(x), static_cast<std::int64_t>(y));
    left += glyph_width + 1;
  }
}

}  // namespace

std::size_t text_width(std::string_view text, std::size_t scale) {
  const std::size_t n = characters(text).size();
  return n == 0 ? 0 : (n * (glyph_width + 1) - 1) * scale;
}

Canvas::Canvas(std::size_t width, std::size_t height, Color background)
    : width_(width), height_(height) {
  check<ValueError>(std::min(width, height) >= 1 && std::max(width, height) <= most_pixels,
                    "picture: {} by {} pixels; each side must be 1 to {}", width, height,
                    most_pixels);
  rgb_.resize(3 * width * height);
  rectangle(0, 0, width, height, background);
}

Color Canvas::at(std::size_t x, std::size_t y) const {
  const std::uint8_t* const p = &rgb_[3 * (y * width_ + x)];
  return {p[0], p[1], p[2]};
}

void Canvas::blend(std::size_t x, std::size_t y, Color color, double share) {
  std::uint8_t* const p = pixel(x, y);
  const std::uint8_t parts[] = {color.red, color.green, color.blue};
  for (std::size_t i = 0; i < 3; ++i)
    p[i] = static_cast<std::uint8_t>(std::lround(p[i] + (parts[i] - p[i]) * share));
}

void Canvas::rectangle(std::int64_t x, std::int64_t y, std::size_t width, std::size_t height,
                       Color color) {
  const auto limited = [](std::int64_t v, std::size_t size) {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(v, 0, static_cast<std::int64_t>(size)));
  };
  const std::size_t right = limited(x + static_cast<std::int64_t>(width), width_);
  const std::size_t bottom = limited(y + static_cast<std::int64_t>(height), height_);
  for (std::size_t j = limited(y, height_); j < bottom; ++j)
    for (std::size_t i = limited(x, width_); i < right; ++i)
      blend(i, j, color, 1);
}

void Canvas::line(std::span<const Point> points, double thickness, Color color) {
  line(points, thickness, color, {0, 0},
       {static_cast<double>(width_), static_cast<double>(height_)});
}

// Each pixel takes the share of its nearest segment, once: where segments overlap, nothing is drawn
// twice.
void Canvas::line(std::span<const Point> points, double thickness, Color color, Point low,
                  Point high) {
  std::vector<float> shares(width_ * height_, 0.0F);
  const double radius = thickness / 2, reach = radius + 1;
  const auto segment = [&](Point a, Point b) {
    const auto [left, right] = touched(std::max(std::min(a.x, b.x) - reach, low.x),
                                       std::min(std::max(a.x, b.x) + reach, high.x), width_);
    const auto [top, bottom] = touched(std::max(std::min(a.y, b.y) - reach, low.y),
                                       std::min(std::max(a.y, b.y) + reach, high.y), height_);
    for (std::size_t y = top; y < bottom; ++y)
      for (std::size_t x = left; x < right; ++x) {
        const Point center{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
        const double share = std::clamp(radius + 0.5 - distance(center, a, b), 0.0, 1.0);
        float& most = shares[y * width_ + x];
        most = std::max(most, static_cast<float>(share));
      }
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool joined = i > 0 && finite(points[i - 1]);
    const bool goes_on = i + 1 < points.size() && finite(points[i + 1]);
    if (finite(points[i]) && joined)
      segment(points[i - 1], points[i]);
    else if (finite(points[i]) && !goes_on)
      segment(points[i], points[i]);
  }
  for (std::size_t y = 0; y < height_; ++y)
    for (std::size_t x = 0; x < width_; ++x)
      if (shares[y * width_ + x] > 0)
        blend(x, y, color, static_cast<double>(shares[y * width_ + x]));
}

void Canvas::text(std::int64_t x, std::int64_t y, std::string_view text, Color color,
                  std::size_t scale, Align across, Align down) {
  const auto unit = static_cast<std::int64_t>(scale);
  const std::int64_t left = x + offset(across, text_width(text, scale));
  const std::int64_t top = y + offset(down, glyph_ascent * scale);
  for_each_dot(text, [&](std::int64_t i, std::int64_t j) {
    rectangle(left + i * unit, top + j * unit, scale, scale, color);
  });
}

void Canvas::text_upwards(std::int64_t x, std::int64_t y, std::string_view text, Color color,
                          std::size_t scale, Align along) {
  const auto unit = static_cast<std::int64_t>(scale);
  const std::int64_t bottom = y - offset(along, text_width(text, scale));
  for_each_dot(text, [&](std::int64_t i, std::int64_t j) {
    rectangle(x + j * unit, bottom - (i + 1) * unit, scale, scale, color);
  });
}

std::vector<std::uint8_t> Canvas::png() const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> bytes;
  const auto write = [&](void* to, png_alloc_size_t& size) {
    if (png_image_write_to_memory(&image, to, &size, 0, rgb_.data(), 0, nullptr) == 0)
      fail<Error>("picture: {} by {} pixels cannot be made a PNG: {}", width_, height_,
                  static_cast<const char*>(image.message));
  };
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  bytes.resize(size);
  write(bytes.data(), size);
  bytes.resize(size);
  return bytes;
}

void Canvas::save(const std::string& path) const {
  const std::vector<std::uint8_t> bytes = png();
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace xgrad::io
