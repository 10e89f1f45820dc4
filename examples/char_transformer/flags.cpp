#include "flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace char_transformer {
namespace {

[[noreturn]] void refuse(const std::string& flag, const std::string& rule,
                         const std::string& given) {
  throw CLI::ValidationError(flag, fmt::format("'{}' is not {}", given, rule));
}

template <class T>
std::string to_string(const Range<T>& range) {
  const char* const kind = std::integral<T> ? "a whole number" : "a number";
  if (!range.open_low && !range.open_high)
    return fmt::format("{} from {} to {}", kind, range.low, range.high);
  return fmt::format("{} {} {} and {} {}", kind, range.open_low ? "above" : "at least", range.low,
                     range.open_high ? "below" : "at most", range.high);
}

// CLI11's own conversion would take 010 for eight and 0x10 for sixteen.
template <class T>
T read_number(const std::string& flag, const Range<T>& range, const std::string& given) {
  T value{};
  const char* const end = given.data() + given.size();
  const auto [stop, error] = std::from_chars(given.data(), end, value);
  const bool above = range.open_low ? value > range.low : value >= range.low;
  const bool below = range.open_high ? value < range.high : value <= range.high;
  if (error != std::errc() || stop != end || !above || !below)
    refuse(flag, to_string(range), given);
  return value;
}

}  // namespace

Flags& Flags::group(std::string name) {
  group_ = std::move(name);
  return *this;
}

CLI::Option* Flags::add(const std::string& flag, const char* type, const std::string& help,
                        std::function<void(const std::string&)> read) {
  return app_.add_option_function<std::string>(flag, read, help)
      ->type_name(type)
      ->group(group_)
      ->take_last();
}

CLI::Option* Flags::path(const std::string& flag, std::string& target, const char* type,
                         const std::string& help) {
  return add(flag, type, help, [&target, flag](const std::string& given) {
    if (given.empty())
      refuse(flag, "a path", given);
    target = given;
  });
}

CLI::Option* Flags::text(const std::string& flag, std::string& target, const char* type,
                         const std::string& help) {
  return add(flag, type, help, [&target](const std::string& given) { target = given; });
}

CLI::Option* Flags::choice(const std::string& flag, std::string& target,
                           const std::vector<std::string>& choices, const std::string& help) {
  return add(flag, "NAME", help, [&target, flag, choices](const std::string& given) {
    if (std::find(choices.begin(), choices.end(), given) == choices.end())
      refuse(flag, fmt::format("one of {}", fmt::join(choices, ", ")), given);
    target = given;
  });
}

CLI::Option* Flags::boolean(const std::string& flag, bool& target, const std::string& help) {
  return add(flag, "BOOL", help,
             [&target, flag](const std::string& given) {
               const bool yes = given.empty() || given == "true" || given == "True";
               if (!yes && given != "false" && given != "False")
                 refuse(flag, "true or false", given);
               target = yes;
             })
      ->expected(0, 1);
}

CLI::Option* Flags::number(const std::string& flag, std::size_t& target, Range<std::size_t> range,
                           const std::string& help) {
  return add(flag, "N", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

CLI::Option* Flags::number(const std::string& flag, double& target, Range<double> range,
                           const std::string& help) {
  return add(flag, "X", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

CLI::Option* Flags::number(const std::string& flag, std::optional<std::size_t>& target,
                           Range<std::size_t> range, const std::string& help) {
  return add(flag, "N", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

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

std::string nearest(std::string_view written, const std::vector<std::string>& names) {
  return *std::min_element(names.begin(), names.end(),
                           [&](const std::string& a, const std::string& b) {
                             return edit_distance(written, a) < edit_distance(written, b);
                           });
}

}  // namespace char_transformer
