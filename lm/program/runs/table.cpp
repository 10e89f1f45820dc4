#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "format.hpp"
#include "runs.hpp"

namespace runs {
namespace {

std::string number(double x) { return fmt::format("{:.5g}", x); }
std::string last_of(const xgrad::viz::Series& series) {
  return series.ys.empty() ? "-" : number(series.ys.back());
}
std::string or_none(const std::string& text) { return text.empty() ? "-" : text; }

/// The index of the lowest validation loss; none if no loss is finite.
std::optional<std::size_t> best_at(const Run& run) {
  const std::vector<double>& losses = run.metrics.validation.ys;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i]) && (!best || losses[i] < losses[*best]))
      best = i;
  return best;
}

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

double sum(const std::vector<double>& of) { return std::accumulate(of.begin(), of.end(), 0.0); }

/// The same names in the same order for every run.
std::vector<std::pair<const char*, std::string>> facts_of(const Run& run) {
  const Metrics& m = run.metrics;
  const double made = m.loss.xs.back() + 1;
  const auto planned = run.config.number("max_iters");
  const std::optional<std::size_t> best = best_at(run);
  // The last finite losses: a twentieth of all, at most a hundred.
  std::vector<double> last;
  for (std::size_t i = m.loss.ys.size();
       i-- > 0 && last.size() < std::clamp<std::size_t>(m.loss.ys.size() / 20, 1, 100);)
    if (std::isfinite(m.loss.ys[i]))
      last.push_back(m.loss.ys[i]);
  const auto infinite =
      std::ranges::count_if(m.loss.ys, [](double y) { return !std::isfinite(y); });
  std::vector<double> times = m.ms.ys;
  std::erase_if(times, [](double ms) { return !std::isfinite(ms) || ms <= 0; });
  const bool timed = !times.empty();
  const double ms = timed ? median(times) : 0;
  const auto batch = run.config.number("batch_size"), block = run.config.number("block_size");
  const double tokens = batch.value_or(0) * block.value_or(0) *
                        run.config.number("gradient_accumulation_steps").value_or(1);
  return {{"steps",
           format_count(made) +
               (planned && *planned != made ? fmt::format(" of {}", format_count(*planned)) : "")},
          {"best validation loss", best ? number(m.validation.ys[*best]) : "-"},
          {"  after", best ? format_count(m.validation.xs[*best], "step") : "-"},
          {"last validation loss", last_of(m.validation)},
          {"  both estimated over", or_none(m.validation_over)},
          {"final validation loss", last_of(m.final_validation)},
          {"  over", or_none(m.final_validation_over)},
          {"  bits per byte", last_of(m.bits_per_byte)},
          {"training loss", number(sum(last) / static_cast<double>(last.size()))},  // NaN: none
          {"  mean of the last", last.size() > 1 ? format_count(last.size(), "step") : "-"},
          {"losses not finite", infinite == 0 ? "-" : format_count(infinite)},
          {"tokens/s", timed && tokens > 0 ? format_count(std::round(1000 * tokens / ms)) : "-"},
          {"ms/step, median", timed ? format_count(ms < 1000 ? ms : std::round(ms)) : "-"},
          {"time of all steps", timed ? format_duration(sum(times) / 1000) : "-"}};
}

/// Marks the lowest of comparable losses with a star.
void mark_lowest(const std::vector<Run>& runs, Row& row) {
  std::vector<std::pair<double, std::size_t>> losses;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const auto at = best_at(runs[i])) {
      losses.emplace_back(runs[i].metrics.validation.ys[*at], i);
      const Run& first = runs[losses[0].second];
      if (runs[i].metrics.validation_over != first.metrics.validation_over ||
          runs[i].config.number("vocab_size") != first.config.number("vocab_size"))
        return;
    }
  for (const auto& [loss, i] : losses)
    if (runs.size() > 1 && loss == std::ranges::min(losses).first)
      row.values[i] += " *";
}

}  // namespace

std::vector<Row> table(const std::vector<Run>& runs) {
  std::vector<Row> rows;
  for (const Run& run : runs) {
    const auto facts = facts_of(run);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (i == rows.size())
        rows.push_back({facts[i].first, {}});
      rows[i].values.push_back(facts[i].second);
    }
  }
  mark_lowest(runs, rows.at(1));
  std::erase_if(rows, [](const Row& row) {
    return std::ranges::all_of(row.values, [](const std::string& value) { return value == "-"; });
  });
  std::vector<std::string> keys;  // of all configurations, in order of appearance
  for (const Run& run : runs)
    if (const auto* const entries = run.config.as<xgrad::io::JsonObject>())
      for (const auto& [key, value] : *entries)
        if (std::ranges::find(keys, key) == keys.end())
          keys.push_back(key);
  for (const std::string& key : keys) {
    Row row{xgrad::printable_name(key), {}};
    for (const Run& run : runs) {
      const xgrad::io::Json* const value = run.config.find(key);
      row.values.push_back(value == nullptr ? "-" : format_value(*value));
    }
    if (std::ranges::count(row.values, row.values[0]) != std::ssize(row.values))
      rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace runs
