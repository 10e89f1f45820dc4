#pragma once
// A page: one self-contained HTML file, whose content security policy forbids any access to the
// network.

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>
#include "../autograd/error.hpp"
#include "../io/json.hpp"

namespace xgrad::viz {

struct Page {
  std::string title;                           ///< any text
  std::string body;                            ///< HTML; texts in it are escaped (viz/svg.hpp)
  io::Json data = {};                          ///< available to scripts as `data`
  std::vector<std::string_view> scripts = {};  ///< after page.js, in this order
  std::vector<std::string_view> styles = {};   ///< after page.css
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();  ///< of the file
  std::string_view smaller = {};  ///< how to make it smaller, for the message
};

/// A page that would have more than max_bytes.
struct PageTooLarge : ValueError {
  using ValueError::ValueError;
};

/// The file's contents.  Texts in `data` that are not UTF-8 get U+FFFD.  PageTooLarge.
std::string to_html(const Page& page);

/// Writes the page; the file appears complete or not at all.  FileError if it cannot be written,
/// PageTooLarge, ValueError unless the path ends in .html.
void save(const std::string& path, const Page& page);
/// ValueError unless the path ends in .html.
void check_page_name(const std::string& path);

}  // namespace xgrad::viz
