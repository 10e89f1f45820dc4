#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "runs.hpp"

namespace runs {
namespace {

using xgrad::pages::Series;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_finite(double y) { return std::isfinite(y); }

/// A series of each run that has it, and as `weight` says its smoothed form before it.
Curves curves_of(const std::vector<Run>& runs, double weight, Raw raw,
                 const std::function<Series(const Run&)>& series_of, const char* label) {
  Curves curves{.lines = {}, .options = {.x_label = "step", .y_label = label}};
  std::vector<Series> lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series series = series_of(runs[i]);
    if (series.xs.empty())
      continue;
    series.color = i;
    series.name = runs[i].name;
    // Curves that agree cover each other: the first is thick, so that it shows under the others.
    series.thickness = runs.size() > 1 && i == 0 ? 5 : 1.5;
    lines.push_back(weight > 0 ? xgrad::pages::smoothed(series, weight) : series);
    if (weight > 0 && raw == Raw::faint) {
      series.thickness = 1;
      series.opacity = 0.35;
      series.name = "";
      curves.lines.push_back(std::move(series));
    }
  }
  std::ranges::move(lines, std::back_inserter(curves.lines));
  return curves;
}

/// Ends the chart there, if something goes beyond.
Curves cut_off(Curves curves, const std::vector<Run>& runs, double limit) {
  std::vector<double> most(runs.size(), -infinity);
  for (const Series& line : curves.lines)
    for (const double y : line.ys)
      most[*line.color] = std::max(most[*line.color], std::isfinite(y) ? y : -infinity);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (most[i] > limit && limit > 0) {
      curves.options.y_high = limit;
      curves.cut +=
          fmt::format("{}{} up to {:.3g}", curves.cut.empty() ? "" : ", ", runs[i].name, most[i]);
    }
  return curves;
}

/// Far above nearly all: five times what 99 of 100 are below.
double usual_limit(const Curves& curves) {
  std::vector<double> all;
  for (const Series& line : curves.lines)
    std::ranges::copy_if(line.ys, std::back_inserter(all), is_finite);
  if (all.empty())
    return infinity;
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(all.size() * 99 / 100);
  std::nth_element(all.begin(), at, all.end());
  return *std::max_element(at, all.end()) > 5 * *at ? 1.5 * *at : infinity;
}

/// Losses far above those that runs begin with are of runs that diverged.
double highest_sane(const std::vector<Run>& runs) {
  std::vector<double> firsts;
  for (const Run& run : runs) {
    const auto first = std::ranges::find_if(run.metrics.loss.ys, is_finite);
    if (first != run.metrics.loss.ys.end() && *first > 0)
      firsts.push_back(*first);
  }
  if (firsts.empty())
    return infinity;
  const double ten_times = 10 * std::ranges::min(firsts);
  std::erase_if(firsts, [&](double first) { return first > ten_times; });
  return 1.5 * std::ranges::max(firsts);
}

Curves speed_curves(const std::vector<Run>& runs, double weight, Raw raw) {
  const bool known =
      std::ranges::all_of(runs, [](const Run& run) { return tokens_per_step(run).has_value(); });
  const auto speed_of = [&](const Run& run) {
    Series speed = run.metrics.ms;
    const double in_step = known ? *tokens_per_step(run) : 1;
    for (double& y : speed.ys)
      y = y > 0 ? 1000 * in_step / y : std::numeric_limits<double>::quiet_NaN();
    return speed;
  };
  Curves curves = curves_of(runs, weight, raw, speed_of, known ? "tokens/s" : "steps/s");
  return cut_off(curves, runs, usual_limit(curves));
}

/// Of one run, under names that say what they are.
void rename(Curves& curves, const Run& run, bool smooth) {
  if (curves.cut.starts_with(run.name))
    curves.cut.erase(0, run.name.size() + 1);
  const std::string each = curves.options.y_label == "loss" ? "training" : curves.options.y_label;
  for (Series& line : curves.lines) {
    line.name = line.name.ends_with(", final validation") ? "final validation"
                : line.dots                               ? "validation"
                : line.opacity < 1                        ? "each step"
                : smooth                                  ? "smoothed"
                                                          : each;
    line.color = line.dots ? 1 : 0;
  }
}

std::string chart_html(const char* title, Curves curves) {
  if (curves.empty())
    return "";
  auto& options = curves.options;
  options.title = title;
  options.y_label = "";
  // Two stand beside each other on a screen, and on a telephone its text can be read.
  options.width = 380;
  options.height = 200;
  options.left = 50;
  try {
    std::string html = xgrad::pages::chart_figure(curves.lines, options);
    if (!curves.cut.empty())
      html.insert(html.rfind("</figcaption>"),
                  "Beyond the picture: " + xgrad::pages::escaped(curves.cut));
    return html;
  } catch (const xgrad::ValueError&) {
    return fmt::format("<p class=\"soft\">{}: no axis has room for its numbers.</p>\n", title);
  }
}

}  // namespace

bool Curves::empty() const {
  return std::ranges::all_of(
      lines, [](const Series& line) { return std::ranges::none_of(line.ys, is_finite); });
}

Curves loss_curves(const std::vector<Run>& runs, double weight, Raw raw) {
  Curves curves = curves_of(
      runs, weight, raw, [](const Run& run) { return run.metrics.loss; }, "loss");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto add = [&](Series series, const char* what, double thickness) {
      if (series.xs.empty())
        return;
      series.name = fmt::format("{}, {}", runs[i].name, what);
      series.color = i;
      series.dots = true;
      series.thickness = thickness;
      curves.lines.push_back(std::move(series));
    };
    add(runs[i].metrics.validation, "validation", 1.5);
    add(runs[i].metrics.final_validation, "final validation", 3);
  }
  return cut_off(std::move(curves), runs, highest_sane(runs));
}

Curves grad_norm_curves(const std::vector<Run>& runs, double weight, Raw raw) {
  Curves curves = curves_of(
      runs, weight, raw, [](const Run& run) { return run.metrics.grad_norm; }, "gradient norm");
  return cut_off(curves, runs, usual_limit(curves));
}

std::string charts_html(const std::vector<Run>& runs, double weight, Raw raw) {
  const auto chart = [&](const char* title, Curves curves, double smooth) {
    if (raw == Raw::faint && runs.size() == 1)
      rename(curves, runs[0], smooth > 0);
    return chart_html(title, std::move(curves));
  };
  const auto lr = curves_of(
      runs, 0, Raw::hidden, [](const Run& run) { return run.metrics.lr; }, "learning rate");
  const Curves speed = speed_curves(runs, weight, raw);
  return "<h2>Curves</h2>\n<div class=\"charts\">\n" +
         chart(raw == Raw::hidden && weight > 0 ? "Loss, smoothed, and validation" : "Loss",
               loss_curves(runs, weight, raw), weight) +
         chart("Learning rate", lr, 0) +
         chart("Gradient norm", grad_norm_curves(runs, weight, raw), weight) +
         chart(speed.options.y_label == "tokens/s" ? "Tokens per second" : "Steps per second",
               speed, weight) +
         "</div>\n";
}

double usual_weight(const std::vector<Run>& runs) {
  std::size_t longest = 0;
  for (const Run& run : runs)
    longest = std::max(longest, run.metrics.loss.ys.size());
  return longest <= 100 ? 0 : 1 - 50.0 / static_cast<double>(longest);
}

}  // namespace runs
