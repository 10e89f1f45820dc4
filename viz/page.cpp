#include "page.hpp"

#include <fmt/format.h>

#include "../autograd/fail.hpp"
#include "../io/file.hpp"
#include "assets.hpp"
#include "svg.hpp"

namespace xgrad::viz {

std::string to_html(const Page& page) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}",
      escaped(page.title), detail::page_css);
  for (const std::string_view style : page.styles)
    html += style;
  html +=
      fmt::format("</style>\n</head>\n<body>\n<h1>{}</h1>\n{}\n", escaped(page.title), page.body);
  html += "<script type=\"application/json\" id=\"data\">";
  for (const char c : io::format_json(page.data, io::InvalidUtf8::replaced))
    c == '<' ? html += "\\u003c" : html += c;  // no text can end the element or begin a comment
  html += fmt::format("</script>\n<script>\n{}", detail::page_js);
  for (const std::string_view script : page.scripts)
    html += script;
  html += "</script>\n</body>\n</html>\n";
  if (html.size() > page.max_bytes)
    fail<PageTooLarge>("the page would have {:.1f} MB, above .max_bytes ({:.1f} MB): {}",
                       static_cast<double>(html.size()) / 1e6,
                       static_cast<double>(page.max_bytes) / 1e6, page.smaller);
  return html;
}

void check_page_name(const std::string& path) {
  if (!path.ends_with(".html"))
    fail<ValueError>("{}: a page's name ends in .html", printable_name(path));
}

void save(const std::string& path, const Page& page) {
  check_page_name(path);
  io::write_file(path, to_html(page));
}

}  // namespace xgrad::viz
