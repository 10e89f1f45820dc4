#include <utf8.h>

#include <algorithm>
#include <cmath>
#include "../autograd/fail.hpp"
#include "../io/file.hpp"
#include "svg.hpp"

namespace xgrad::viz {

/// The offset of a text's start from its anchor.
static double offset(std::string_view anchor, double width) {
  return anchor == "start" ? 0 : anchor == "middle" ? -width / 2 : -width;
}

std::u32string characters(std::string_view text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  std::u32string all;
  utf8::utf8to32(valid.begin(), valid.end(), std::back_inserter(all));
  return all;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char32_t c : characters(text)) {
    const bool control = c < U' ' && c != U'\t' && c != U'\n' && c != U'\r';
    if (std::u32string_view(U"&<>'").find(c) != std::u32string_view::npos)
      result += fmt::format("&#{};", static_cast<unsigned>(c));
    else
      utf8::append(control || c == U'\uFFFE' || c == U'\uFFFF' ? U'\uFFFD' : c,
                   std::back_inserter(result));
  }
  return result;
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char32_t c : characters(text))
    width += c < U'\u1100' ? 0.6 : 1;  // from there on most are Asian and square
  return width * font_size;
}

void Svg::text(double x, double y, std::string_view text, std::string_view anchor,
               std::string_view attributes) {
  if (text.empty())
    return;
  const double width = text_width(text), begin = x + offset(anchor, width), half = font_size / 2;
  left = std::min(left, begin);
  right = std::max(right, begin + width);
  top = std::min(top, y - half);
  bottom = std::max(bottom, y + half);
  add("<text x='{:g}' y='{:g}' dy='.35em' text-anchor='{}' {}>{}</text>\n", x, y, anchor,
      attributes, escaped(text));
}

void Svg::text_upwards(double x, double y, std::string_view text, std::string_view anchor) {
  if (text.empty())
    return;
  const double width = text_width(text), end = y - offset(anchor, width), half = font_size / 2;
  left = std::min(left, x - half);
  right = std::max(right, x + half);
  top = std::min(top, end - width);
  bottom = std::max(bottom, end);
  add("<text transform='translate({:g} {:g}) rotate(-90)' dy='.35em' text-anchor='{}'>{}</text>\n",
      x, y, anchor, escaped(text));
}

void Svg::title(std::string_view words) {
  constexpr double larger = 1.25, bold = 1.1;
  if (words.empty())
    return;
  right = std::max(right, larger * bold * text_width(words));
  text(0, top - 18, words, "start",
       fmt::format("font-size='{:g}' font-weight='600'", larger * font_size));
}

std::string Svg::str() const {
  constexpr double margin = 14;
  const double width = std::ceil(right - left + 2 * margin);
  const double height = std::ceil(bottom - top + 2 * margin);
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{2:g}' height='{3:g}' "
      "viewBox='{0:g} {1:g} {2:g} {3:g}' style='max-width:100%;height:auto' "
      "font-family='system-ui,sans-serif' font-size='{4:g}' fill='#222' class='picture'>\n"
      "<rect class='paper' x='{0:g}' y='{1:g}' width='{2:g}' height='{3:g}' "
      "fill='#fff'/>\n{5}</svg>\n",
      left - margin, top - margin, width, height, font_size, body);
}

void save_svg(const std::string& path, std::string_view svg) {
  check<ValueError>(path.ends_with(".svg"), "{}: pictures are SVG; use a name that ends in .svg",
                    path);
  io::write_file(path, svg);
}

}  // namespace xgrad::viz
