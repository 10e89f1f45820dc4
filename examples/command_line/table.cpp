#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace command_line {
namespace {

/// The number of letters to insert, remove, change or swap with their neighbour that make b of a.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distance[i][j] is that of the first i letters of a and the first j of b.
  std::vector<std::vector<std::size_t>> distance(a.size() + 1,
                                                 std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      const std::size_t change = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({change, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

/// No name is as long as half of this, so nothing longer is near one.
constexpr std::size_t longest_near = 100;

}  // namespace

std::string suggestion(std::string_view written, const std::vector<std::string>& names) {
  if (written.size() > longest_near)
    return "";
  const std::string_view letters =
      written.substr(std::min(written.find_first_not_of('-'), written.size()));
  const auto wrong = [&](const std::string& name) {
    const bool part = letters.size() > 2 && name.find(letters) != std::string::npos;
    return part ? 0 : edit_distance(written, name);
  };
  const std::string& name = *std::ranges::min_element(names, {}, wrong);
  return wrong(name) <= std::max<std::size_t>(1, letters.size() / 3)
             ? fmt::format("; did you mean {}?", name)
             : "";
}

std::string long_name(const Row& row) { return row.flag.substr(row.flag.find(',') + 1); }

std::string short_name(const Row& row) {
  return row.flag.find(',') == std::string::npos ? "" : row.flag.substr(0, row.flag.find(','));
}

}  // namespace command_line
