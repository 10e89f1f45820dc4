#pragma once
// Numbers for people, and what others read as well.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <xgrad/io/json.hpp>

namespace runs {

/// "1,115,394"; what is no whole number of things has four digits.
std::string format_count(double n);
/// The same of other numbers, and with what they count: "1 step", "1,000 steps".
template <class N>
std::string format_count(N n, std::string_view one = "") {
  const std::string number = format_count(static_cast<double>(n));
  return one.empty() ? number : fmt::format("{} {}{}", number, one, n == 1 ? "" : "s");
}
/// Three digits, a prefix and a unit: "58.2 MB", "41.3k tok/s" of " tok/s".
std::string format_si(double x, std::string_view unit);
/// "45s", "1m12s", "2h05m", "3d04h".
std::string format_duration(double seconds);
/// A text as it is, printable; all else as JSON.
std::string format_value(const xgrad::io::Json& value);

/// A file of at most a megabyte, or the first of a larger one.  FileError if it cannot be read.
std::string read_small_file(const std::string& path);
/// The JSON object that a text is, or a small file holds, such as config.json; null if it is none,
/// or no such file is there.  FileError if the file cannot be read.
xgrad::io::Json parse_object(std::string_view text);
xgrad::io::Json read_object(const std::string& path);
/// The text under a key; empty without one.
std::string text_in(const xgrad::io::Json& json, const char* key);

}  // namespace runs
