#include "format.hpp"

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/error.hpp>

namespace runs {

std::string format_count(std::size_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, 1, ',');
  return text;
}

std::string format_count(double n) {
  const bool whole = n >= 0 && n < 1e15 && n == std::floor(n);
  return whole ? format_count(static_cast<std::size_t>(n)) : fmt::format("{:.4g}", n);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e15))
    return fmt::format("{:.4g} s", seconds);
  const auto s = static_cast<unsigned long>(std::lround(seconds));
  if (s == 0)
    return "less than 1 s";
  if (s < 60)
    return fmt::format("{} s", s);
  if (s < 3600)
    return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string format_number(const std::optional<double>& x) {
  return x ? fmt::format("{:.5g}", *x) : "-";
}

std::string format_value(const xgrad::io::Json& value) {
  const auto* const text = value.as<std::string>();
  return text != nullptr ? xgrad::printable(*text)
                         : xgrad::io::format_json(value, xgrad::io::InvalidUtf8::replaced);
}

}  // namespace runs
