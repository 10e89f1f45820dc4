#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

/// Where the validation loss was lowest; none without one that is finite.
std::optional<std::size_t> best_at(const Run& run) {
  const std::vector<double>& losses = run.metrics.validation.ys;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i]) && !(best && losses[*best] <= losses[i]))
      best = i;
  return best;
}

std::optional<double> best_of(const Run& run) {
  const auto at = best_at(run);
  return at ? std::optional(run.metrics.validation.ys[*at]) : std::nullopt;
}

std::string last_of(const xgrad::pages::Series& series) {
  return format_number(series.ys.empty() ? std::nullopt : std::optional(series.ys.back()));
}

/// The last training losses that are finite: a twentieth of all, at most a hundred.
std::vector<double> last_losses(const Run& run) {
  const std::vector<double>& losses = run.metrics.loss.ys;
  const std::size_t wanted = std::clamp<std::size_t>(losses.size() / 20, 1, 100);
  std::vector<double> last;
  for (std::size_t i = losses.size(); i-- > 0 && last.size() < wanted;)
    if (std::isfinite(losses[i]))
      last.push_back(losses[i]);
  return last;
}

/// Milliseconds of the steps that say them.
std::vector<double> times_of(const Run& run) {
  std::vector<double> times = run.metrics.ms.ys;
  std::erase_if(times, [](double ms) { return !std::isfinite(ms) || ms <= 0; });
  return times;
}

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

double sum(const std::vector<double>& of) { return std::accumulate(of.begin(), of.end(), 0.0); }

bool differ(const std::vector<std::string>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end();
}

/// The keys of all configurations, in the order in which they come.
std::vector<std::string> config_keys(const std::vector<Run>& runs) {
  std::vector<std::string> keys;
  for (const Run& run : runs)
    if (const auto* const entries = run.config.as<xgrad::io::JsonObject>())
      for (const auto& [key, value] : *entries)
        if (std::ranges::find(keys, key) == keys.end())
          keys.push_back(key);
  return keys;
}

}  // namespace

std::vector<Row> table(const std::vector<Run>& runs) {
  std::vector<Row> rows;
  const auto add = [&](std::string name, const std::function<std::string(const Run&)>& value_of) {
    Row row{std::move(name), {}};
    std::ranges::transform(runs, std::back_inserter(row.values), value_of);
    if (std::ranges::any_of(row.values, [](const std::string& value) { return value != "-"; }))
      rows.push_back(std::move(row));
  };
  const auto over = [](const std::string& text) { return text.empty() ? "-" : text; };

  double lowest = std::numeric_limits<double>::infinity();
  std::vector<std::string> kinds;  // losses of one kind compare
  for (const Run& run : runs) {
    lowest = std::min(lowest, best_of(run).value_or(lowest));
    if (!run.metrics.validation.xs.empty())
      kinds.push_back(run.metrics.validation_over);
  }
  const bool alike = !differ(kinds);

  add("steps", [](const Run& run) {
    const double made = run.metrics.loss.xs.back() + 1;
    const auto planned = run.config.number("max_iters");
    return format_count(made) +
           (planned && *planned != made ? " of " + format_count(*planned) : "");
  });
  add("best validation loss", [&](const Run& run) {
    const auto best = best_of(run);
    return format_number(best) + (alike && runs.size() > 1 && best == lowest ? " *" : "");
  });
  add("  after", [](const Run& run) {
    const auto at = best_at(run);
    return at ? format_count(run.metrics.validation.xs[*at] + 1, "step", "steps") : "-";
  });
  add("last validation loss", [](const Run& run) { return last_of(run.metrics.validation); });
  add("  both estimated over", [&](const Run& run) { return over(run.metrics.validation_over); });
  add("final validation loss",
      [](const Run& run) { return last_of(run.metrics.final_validation); });
  add("  over", [&](const Run& run) { return over(run.metrics.final_validation_over); });
  add("training loss", [](const Run& run) {
    const std::vector<double> last = last_losses(run);
    return format_number(sum(last) / static_cast<double>(last.size()));  // NaN of none
  });
  add("  mean of the last", [](const Run& run) {
    const auto n = last_losses(run).size();
    return n > 1 ? format_count(n, "step", "steps") : "-";
  });
  add("losses not finite", [](const Run& run) {
    const auto n =
        std::ranges::count_if(run.metrics.loss.ys, [](double y) { return !std::isfinite(y); });
    return n == 0 ? "-" : format_count(static_cast<std::size_t>(n));
  });
  add("tokens/s", [](const Run& run) {
    const auto times = times_of(run);
    const auto tokens = tokens_per_step(run);
    return times.empty() || !tokens ? "-"
                                    : format_count(std::round(1000 * *tokens / median(times)));
  });
  add("ms/step, median", [](const Run& run) {
    const auto times = times_of(run);
    return times.empty() ? "-" : fmt::format("{:.3g}", median(times));
  });
  add("time of all steps", [](const Run& run) {
    const auto times = times_of(run);
    return times.empty() ? "-" : format_duration(sum(times) / 1000);
  });
  add("parameters",
      [](const Run& run) { return run.parameters ? format_count(*run.parameters) : "-"; });
  for (const std::string& key : config_keys(runs)) {
    Row row{xgrad::printable_name(key), {}};
    for (const Run& run : runs) {
      const xgrad::io::Json* const value = run.config.find(key);
      row.values.push_back(value == nullptr ? "-" : format_value(*value));
    }
    if (differ(row.values))
      rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace runs
