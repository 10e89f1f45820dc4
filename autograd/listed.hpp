#pragma once
// Lists of names in messages.  Not in headers for users: it includes fmt.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace xgrad {

/// "a, b, c"; of more than a hundred names the first, and how many more there are.
inline std::string listed(const std::vector<std::string>& names, const char* between = ", ") {
  constexpr std::size_t most = 100;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i > 0 ? between : "") + names[i];
  return names.size() <= most ? text : fmt::format("{} and {} more", text, names.size() - most);
}

}  // namespace xgrad
