#pragma once
// Numbers of runs for people.

#include <cstddef>
#include <optional>
#include <string>
#include <xgrad/io/json.hpp>

namespace runs {

/// "1,115,394".
std::string format_count(std::size_t n);
/// The same; what is no whole number of things, or too large for one, with four digits.
std::string format_count(double n);
/// "1 step", "1,000 steps".
template <class N>
std::string format_count(N n, const char* one, const char* many) {
  return format_count(n) + " " + (n == 1 ? one : many);
}
/// "less than 1 s", "42 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double seconds);
/// With five digits, or "-" for none.
std::string format_number(const std::optional<double>& x);
/// A text as it is, printable; all else as JSON.
std::string format_value(const xgrad::io::Json& value);

}  // namespace runs
