#pragma once
// How .cpp files of this project raise errors.  Not in headers for users: it includes fmt.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include "error.hpp"

namespace xgrad {

/// Throws E with a formatted message.
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws E with a formatted message unless the condition holds.  The arguments are always
/// evaluated: keep them cheap.
template <class E, class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    throw E(fmt::format(format, std::forward<Args>(args)...));
}

/// ValueError naming the caller if a std::function is empty.
template <class F>
void check_function(const F& f, const char* caller) {
  check<ValueError>(f != nullptr, "{}: the function is empty", caller);
}

/// "1 element", "3 elements".
inline std::string counted(std::size_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

/// "a, b, c"; beyond a hundred names, the first hundred and the number of the others.
inline std::string listed(const std::vector<std::string>& names, const char* between = ", ") {
  constexpr std::size_t most = 100;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i > 0 ? between : "") + names[i];
  return names.size() <= most ? text : fmt::format("{} and {} more", text, names.size() - most);
}

/// The rows of a table, in columns that are as wide as their longest text.  `alignments` has '<' or
/// '>' for each column but the last, which is not padded.
std::string in_columns(const std::vector<std::vector<std::string>>& rows, const char* alignments);

}  // namespace xgrad
