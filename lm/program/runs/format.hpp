#pragma once
// Formats numbers for people, and parses small files.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <xgrad/io/json.hpp>

namespace runs {

/// "1,115,394"; a fraction has four digits.
std::string format_count(double n);
/// The same for other types, with a unit: "1 step", "1,000 steps".
template <class N>
std::string format_count(N n, std::string_view one = "") {
  const std::string number = format_count(static_cast<double>(n));
  return one.empty() ? number : fmt::format("{} {}{}", number, one, n == 1 ? "" : "s");
}
/// Three digits, a prefix and a unit: "58.2 MB", "41.3k tok/s" of " tok/s".
std::string format_si(double x, std::string_view unit);
/// "45s", "1m12s", "2h05m", "3d04h".
std::string format_duration(double seconds);
/// A string as it is, printable; everything else as JSON.
std::string format_value(const xgrad::io::Json& value);

/// A file, up to its first megabyte.  FileError if it cannot be read.
std::string read_small_file(const std::string& path);
/// The JSON object in a text or in a small file such as config.json; null if it is no object, or
/// the file does not exist.  FileError if the file cannot be read.
xgrad::io::Json parse_object(std::string_view text);
xgrad::io::Json read_object(const std::string& path);
/// The string under a key; empty without one.
std::string text_in(const xgrad::io::Json& json, const char* key);

}  // namespace runs
