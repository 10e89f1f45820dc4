// The kinds of values that flags take.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "command_line.hpp"
#include "table.hpp"

namespace command_line {
namespace {

using xgrad::io::Json;

[[noreturn]] void refuse(const std::string& flag, const std::string& rule,
                         const std::string& given) {
  throw BadValue(fmt::format("{}: '{}' is not {}", flag, given, rule));
}

template <class T>
std::string to_string(const Range<T>& range) {
  const char* const kind = std::integral<T> ? "a whole number" : "a number";
  if (!range.open_low && !range.open_high)
    return fmt::format("{} from {} to {}", kind, range.low, range.high);
  return fmt::format("{} {} {} and {} {}", kind, range.open_low ? "above" : "at least", range.low,
                     range.open_high ? "below" : "at most", range.high);
}

// Reads a number from the start of a text; returns where it ends.
template <class T>
const char* parse(const char* from, const char* end, T& value) {
#ifndef __cpp_lib_to_chars  // libc++'s reads no floating-point numbers; strtod() takes more
  if constexpr (std::is_floating_point_v<T>) {
    const std::string_view text(from, end);
    if (text.find_first_not_of("0123456789.eE+-") != text.npos || text.starts_with('+'))
      return from;
    char* stop = nullptr;
    value = std::strtod(from, &stop);
    return stop;
  } else
#endif
  {
    const auto [stop, error] = std::from_chars(from, end, value);
    return error == std::errc() ? stop : from;
  }
}

// CLI11's own conversion would take 010 for eight and 0x10 for sixteen.
template <class T>
T read_number(const std::string& flag, const Range<T>& range, const std::string& given) {
  T value{};
  const char* const end = given.data() + given.size();
  const char* const stop = parse(given.data(), end, value);
  if (given.empty() || stop != end || !range.contains(value))
    refuse(flag, to_string(range), given);
  return value;
}

// ---- JSON values as the text of a flag ----

bool text_of_string(const Json& value, std::string& text) {
  const auto* const string = value.as<std::string>();
  if (string != nullptr)
    text = *string;
  return string != nullptr && string->find('\0') == std::string::npos;  // as in arguments
}

bool text_of_bool(const Json& value, std::string& text) {
  const bool* const truth = value.as<bool>();
  if (truth != nullptr)
    text = *truth ? "true" : "false";
  return truth != nullptr;
}

bool text_of_integer(const Json& value, std::string& text) {
  const auto* const count = value.as<std::uint64_t>();
  if (count != nullptr)
    text = fmt::format("{}", *count);
  return count != nullptr;
}

bool text_of_number(const Json& value, std::string& text) {
  const std::optional<double> number = value.number();
  if (number)
    text = fmt::format("{}", *number);
  return number.has_value();
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Takes one of the choices.
auto one_of(const std::string& flag, std::string& target, const std::vector<std::string>& choices,
            const std::string& rule) {
  return [&target, flag, choices, rule](const std::string& given) {
    if (std::ranges::count(choices, given) == 0)
      refuse(flag, rule, given);
    target = given;
  };
}

// A number in a range, for a T or an optional one.  What nobody could give stands for none.
template <class T, class Target>
Row number_row(const std::string& flag, Target& target, Range<T> range, const std::string& help) {
  return {.flag = flag,
          .type = std::integral<T> ? "N" : "X",
          .help = help,
          .rule = to_string(range),
          .text_of = std::integral<T> ? text_of_integer : text_of_number,
          .read = [&target, flag,
                   range](const std::string& given) { target = read_number(flag, range, given); },
          .write =
              [&target, range] {
                const std::optional<T> value = target;
                return value && range.contains(*value) ? Json(*value) : Json(nullptr);
              }};
}

}  // namespace

void Flags::path(const std::string& flag, std::string& target, const char* type,
                 const std::string& help) {
  add({.flag = flag,
       .type = type,
       .help = help,
       .rule = "a path",
       .completes = type == std::string_view("DIR") ? Completes::folders : Completes::files,
       .text_of = text_of_string,
       .read =
           [&target, flag](const std::string& given) {
             if (given.empty())
               refuse(flag, "a path", given);
             target = given;
           },
       .write = [&target] { return or_null(target); }});
}

void Flags::text(const std::string& flag, std::string& target, const char* type,
                 const std::string& help) {
  add({.flag = flag,
       .type = type,
       .help = help,
       .rule = "a text",
       .text_of = text_of_string,
       .read = [&target](const std::string& given) { target = given; },
       .write = [&target] { return Json(target); }});
}

void Flags::optional_text(const std::string& flag, std::optional<std::string>& target,
                          const char* type, const std::string& help) {
  const bool path = std::string_view(type).find("FILE") != std::string_view::npos;
  add({.flag = flag,
       .type = type,
       .help = help,
       .rule = "a text",
       .optional_value = true,
       .completes = path ? Completes::files : Completes::nothing,
       .text_of = text_of_string,
       .read = [&target](const std::string& given) { target = given; },
       .write = [&target] { return target ? Json(*target) : Json(nullptr); }});
}

void Flags::choice(const std::string& flag, std::string& target,
                   const std::vector<std::string>& choices, const std::string& help) {
  const std::string rule = fmt::format("one of {}", fmt::join(choices, ", "));
  add({.flag = flag,
       .type = "NAME",
       .help = help,
       .rule = rule,
       .completes = Completes::words,
       .words = choices,
       .text_of = text_of_string,
       .read = one_of(flag, target, choices, rule),
       .write = [&target] { return Json(target); }});
}

void Flags::boolean(const std::string& flag, bool& target, const std::string& help) {
  add({.flag = flag,
       .type = "BOOL",
       .help = help,
       .rule = "true or false",
       .optional_value = true,
       .completes = Completes::words,
       .words = {"true", "false"},
       .text_of = text_of_bool,
       .read =
           [&target, flag](const std::string& given) {
             const bool yes = given.empty() || given == "true" || given == "True";
             if (!yes && given != "false" && given != "False")
               refuse(flag, "true or false", given);
             target = yes;
           },
       .write = [&target] { return Json(target); }});
}

void Flags::number(const std::string& flag, std::size_t& target, Range<std::size_t> range,
                   const std::string& help) {
  add(number_row(flag, target, range, help));
}

void Flags::number(const std::string& flag, double& target, Range<double> range,
                   const std::string& help) {
  add(number_row(flag, target, range, help));
}

void Flags::number(const std::string& flag, std::optional<std::size_t>& target,
                   Range<std::size_t> range, const std::string& help) {
  add(number_row(flag, target, range, help));
}

void Flags::argument(const std::string& name, std::string& target,
                     const std::vector<std::string>& choices, const std::string& help) {
  const std::string rule = fmt::format("one of {}", fmt::join(choices, ", "));
  add({.flag = name,
       .help = help,
       .rule = rule,
       .required = true,
       .completes = Completes::words,
       .words = choices,
       .read = one_of(name, target, choices, rule)});
}

}  // namespace command_line
