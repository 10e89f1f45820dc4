#include "format.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>

namespace runs {
namespace {

using xgrad::io::Json;
using R = MetricsRow;
using Member = std::variant<double R::*, std::optional<double> R::*, std::string R::*>;

/// In the order of the file.
constexpr std::pair<const char*, Member> row_entries[] = {
    {"step", &R::step},
    {"loss", &R::loss},
    {"lr", &R::lr},
    {"grad_norm", &R::grad_norm},
    {"ms", &R::ms},
    {"val_loss_before", &R::val_loss_before},
    {"changes", &R::changes},
    {"val_loss", &R::val_loss},
    {"val_loss_over", &R::val_loss_over},
    {"final_val_loss", &R::final_val_loss},
    {"final_val_loss_over", &R::final_val_loss_over},
    {"bits_per_byte", &R::bits_per_byte}};

/// A value as JSON; empty for one that is missing.
std::string written(const std::string& text) {
  return text.empty() ? "" : xgrad::io::format_json(text, xgrad::io::InvalidUtf8::replaced);
}
std::string written(const std::optional<double>& x) {
  return !x ? "" : std::isfinite(*x) ? fmt::format("{:.9g}", *x) : "null";
}

void assign(std::string& text, const Json& json) {
  if (const auto* const given = json.as<std::string>())
    text = *given;
}
bool is_number(const Json& json) { return json.number() || json.as<std::nullptr_t>() != nullptr; }
template <class Number>
void assign(Number& x, const Json& json) {
  if (is_number(json))
    x = json.number().value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::string format_count(double n) {
  if (!(n >= 0 && n < 1e15 && n == std::floor(n)))
    return fmt::format("{:.4g}", n);
  std::string text = fmt::format("{:.0f}", n);
  for (std::size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, 1, ',');
  return text;
}

std::string format_si(double x, std::string_view unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; prefix < 5 && x >= 999.5; ++prefix)
    x /= 1000;
  return fmt::format("{:.3g}{}{}{}", x, unit.starts_with(' ') ? "" : " ", prefixes[prefix], unit);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9))
    return fmt::format("{:.4g}s", seconds);
  const auto s = static_cast<unsigned long>(std::lround(seconds));
  if (s < 60)
    return fmt::format("{}s", s);
  if (s < 3600)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  return s < 48 * 3600UL ? fmt::format("{}h{:02}m", s / 3600, s / 60 % 60)
                         : fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string format_value(const Json& value) {
  if (const auto* const x = value.as<double>())
    return fmt::format("{:.15g}", *x);  // hides the last digits of rounding
  const auto* const text = value.as<std::string>();
  return text != nullptr ? xgrad::printable(*text)
                         : xgrad::io::format_json(value, xgrad::io::InvalidUtf8::replaced);
}

std::string read_small_file(const std::string& path) {
  const xgrad::io::ReadFile file(path);
  std::string text(std::min<std::uint64_t>(file.size(), 1 << 20), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

Json parse_object(std::string_view text) {
  try {
    Json json = xgrad::io::parse_json(text);
    return json.as<xgrad::io::JsonObject>() != nullptr ? json : nullptr;
  } catch (const xgrad::ValueError&) {
    return nullptr;
  }
}

Json read_object(const std::string& path) {
  std::error_code unknown;
  const bool missing = !std::filesystem::exists(path, unknown) && !unknown;
  return missing ? nullptr : parse_object(read_small_file(path));
}

std::string text_in(const Json& json, const char* key) {
  const auto* const text = json.find<std::string>(key);
  return text == nullptr ? "" : *text;
}

std::string format_row(const MetricsRow& row) {
  std::vector<std::string> entries;
  for (const auto& [key, member] : row_entries)
    if (const auto text = std::visit([&](auto m) { return written(row.*m); }, member);
        !text.empty())
      entries.push_back(fmt::format("\"{}\": {}", key, text));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::optional<MetricsRow> read_row(const Json& json) {
  const Json* const loss = json.find("loss");
  if (!json.number("step") || loss == nullptr || !is_number(*loss))
    return std::nullopt;
  MetricsRow row;
  for (const auto& [key, member] : row_entries)
    if (const Json* const value = json.find(key))
      std::visit([&](auto m) { assign(row.*m, *value); }, member);
  return row;
}

}  // namespace runs
