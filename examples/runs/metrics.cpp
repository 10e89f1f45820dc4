#include "metrics.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <xgrad/autograd/error.hpp>

#include "json_lines.hpp"

namespace runs {
namespace {

/// Many times what is needed.  A file that is no metrics file may be one line of gigabytes.
constexpr std::size_t longest_row = 65536;

std::optional<double> value_of(const xgrad::io::Json& row, const char* key) {
  const xgrad::io::Json* const value = row.find(key);
  if (value == nullptr)
    return std::nullopt;
  if (value->as<std::nullptr_t>() != nullptr)
    return std::numeric_limits<double>::quiet_NaN();
  return value->number();
}

}  // namespace

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::size_t bad = 0, first_bad = 0;
  for_each_line(path, longest_row, [&](std::size_t number, const xgrad::io::Json& row) {
    const auto step = row.number("step");
    const auto add = [&](xgrad::pages::Series& series, const char* key) {
      const auto value = value_of(row, key);
      if (!step || !value)
        return false;
      series.xs.push_back(*step);
      series.ys.push_back(*value);
      return true;
    };
    if (!add(metrics.loss, "loss")) {
      if (bad++ == 0)
        first_bad = number;
      return;
    }
    const auto note = [&](std::string& text, const char* key) {
      if (const auto* const found = row.find<std::string>(key))
        text = xgrad::printable_name(*found);
    };
    add(metrics.validation, "val_loss");
    add(metrics.final_validation, "final_val_loss");
    note(metrics.validation_over, "val_loss_over");
    if (const auto* const changes = row.find<std::string>("changes"))
      metrics.changes.push_back(
          fmt::format("from step {:.0f} on: {}", *step, xgrad::printable_name(*changes)));
    note(metrics.final_validation_over, "final_val_loss_over");
    add(metrics.lr, "lr");
    add(metrics.grad_norm, "grad_norm");
    add(metrics.ms, "ms");
  });
  constexpr std::string_view row = "a JSON object with the numbers \"step\" and \"loss\"";
  if (metrics.loss.xs.empty())
    throw xgrad::FileError(bad == 0 ? fmt::format("{}: it has no lines", path)
                                    : fmt::format("{}: line {} is not {}", path, first_bad, row));
  if (bad == 1)
    metrics.left_out = fmt::format("line {} is not {}, and is left out", first_bad, row);
  else if (bad > 1)
    metrics.left_out = fmt::format(
        "{} lines, the first of them line {}, are not {}, and are left out", bad, first_bad, row);
  return metrics;
}

}  // namespace runs
