#pragma once
// Pictures as SVG text.  They have no style sheets and no ids, so that one HTML page can contain
// several, and a white background of their own, so that they are readable anywhere.  Classes mark
// background, ink, grid and series: a page's style sheet (viz/page.css) colours these, light or
// dark.

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace xgrad::viz {

constexpr double font_size = 13;

/// The characters of a text in UTF-8; U+FFFD for invalid bytes.
std::u32string characters(std::string_view text);
/// A text for XML: escapes & < > ', and replaces characters that XML lacks by U+FFFD.
std::string escaped(std::string_view text);
/// The approximate width of a text: fonts differ.
double text_width(std::string_view text);

/// A picture around a plot from (0, 0), at the top left, to (width, height), in pixels; it grows to
/// hold all that is added.
struct Svg {
  Svg(double width, double height) : right(width), bottom(height) {}

  /// Adds markup as it is; attributes are in single quotes.
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body), format, std::forward<Args>(args)...);
  }
  /// Text with its middle line at y, and its start, middle or end (`anchor`) at x.
  void text(double x, double y, std::string_view text, std::string_view anchor = "start",
            std::string_view attributes = "");
  /// Text that reads upwards, with its middle line at x.
  void text_upwards(double x, double y, std::string_view text, std::string_view anchor);
  /// Adds a title above everything else.
  void title(std::string_view text);
  /// The whole picture, for a page or a file.
  std::string str() const;

  double left = 0, top = 0, right, bottom;
  std::string body;
};

/// Writes a picture; the file appears complete or not at all.  ValueError unless the path ends in
/// .svg, FileError if it cannot be written.
void save_svg(const std::string& path, std::string_view svg);

}  // namespace xgrad::viz
