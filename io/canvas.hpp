#pragma once
// A picture in memory: coloured pixels, what can be drawn on them, and writing them as a PNG.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::io {

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Color&, const Color&) = default;
};

/// A place in a picture, in pixels from its top left corner.
struct Point {
  double x = 0, y = 0;
};

/// Where a text stands from its anchor, in both directions alike.
enum class Align { begin, middle, end };

/// What is drawn beyond the edges is cut off.
class Canvas {
 public:
  /// ValueError unless both sides are 1 to 16384.
  Canvas(std::size_t width, std::size_t height, Color background = {255, 255, 255});

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  Color at(std::size_t x, std::size_t y) const;

  void rectangle(std::int64_t x, std::int64_t y, std::size_t width, std::size_t height,
                 Color color);
  /// A line through the points, with smooth edges and round corners, where inside the rectangle
  /// from `low` to `high`.  A point that is not finite interrupts it; one between two of those is a
  /// dot.
  void line(std::span<const Point> points, double thickness, Color color, Point low, Point high);
  void line(std::span<const Point> points, double thickness, Color color);
  /// Horizontal text whose box is placed at (x, y) as `across` and `down` say; each dot of the font
  /// is scale by scale pixels.
  void text(std::int64_t x, std::int64_t y, std::string_view text, Color color,
            std::size_t scale = 2, Align across = Align::begin, Align down = Align::begin);
  /// The same, turned to read upwards: `across` is along the text.
  void text_upwards(std::int64_t x, std::int64_t y, std::string_view text, Color color,
                    std::size_t scale = 2, Align along = Align::middle);

  /// The file's bytes.
  std::vector<std::uint8_t> png() const;
  /// Writes them; the file appears complete or not at all.  FileError if it cannot be written.
  void save(const std::string& path) const;

 private:
  std::uint8_t* pixel(std::size_t x, std::size_t y) { return &rgb_[3 * (y * width_ + x)]; }
  void blend(std::size_t x, std::size_t y, Color color, double share);

  std::size_t width_, height_;
  std::vector<std::uint8_t> rgb_;
};

/// The width of a text in pixels.  Its height is that of capitals, glyph_ascent * scale.
std::size_t text_width(std::string_view text, std::size_t scale = 2);

}  // namespace xgrad::io
