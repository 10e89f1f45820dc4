#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "runs.hpp"

namespace runs {
namespace {

using xgrad::viz::Series;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_finite(double y) { return std::isfinite(y); }

/// A series for each run that has it.
Curves curves_of(const std::vector<Run>& runs, Series Metrics::* which, const char* label) {
  Curves curves{.lines = {}, .options = {.x_label = "step", .y_label = label}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series series = runs[i].metrics.*which;
    if (series.xs.empty())
      continue;
    series.color = i;
    series.name = runs[i].name;
    // Equal curves cover each other: the first is thicker, so that it shows under the others.
    series.thickness = runs.size() > 1 && i == 0 ? 2.5 : 1;
    curves.lines.push_back(std::move(series));
  }
  return curves;
}

/// A limit beyond which a loss means that the run diverged.
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

std::string chart_html(const char* title, Curves curves) {
  if (curves.empty())
    return "";
  auto& options = curves.options;
  options.title = title;
  options.y_label = "";
  // Two charts fit side by side on a screen, and the text is readable on a telephone.
  options.width = 380;
  options.height = 200;
  options.left = 50;
  try {
    std::string html = xgrad::viz::chart_figure(curves.lines, options);
    if (!curves.cut.empty())
      html.insert(html.rfind("</figcaption>"),
                  "Beyond the picture: " + xgrad::viz::escaped(curves.cut));
    return html;
  } catch (const xgrad::ValueError&) {
    return fmt::format("<p class=\"soft\">{}: no axis has room for its numbers.</p>\n", title);
  }
}

// If the rates span decades, beside which the smaller could not be seen: draws their logarithms.
// The ends of a warmup or a decay do not count.
void use_decades(Curves& rates) {
  double low = infinity, high = 0;
  for (const Series& line : rates.lines) {
    std::vector<double> ys = line.ys;
    std::erase_if(ys, [](double y) { return !is_finite(y) || y <= 0; });
    if (ys.empty())
      continue;
    std::ranges::sort(ys);
    low = std::min(low, ys[ys.size() / 2]);
    high = std::max(high, ys.back());
  }
  rates.options.y_log = high >= 10 * low;
  rates.options.y_low =
      rates.options.y_log ? low / 10 : 0;  // from 0 a nearly constant rate is level
}

}  // namespace

bool Curves::empty() const {
  return std::ranges::all_of(
      lines, [](const Series& line) { return std::ranges::none_of(line.ys, is_finite); });
}

Curves loss_curves(const std::vector<Run>& runs) {
  Curves curves = curves_of(runs, &Metrics::loss, "loss");
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
    Series last = runs[i].metrics.final_validation;  // a run that was extended has several
    if (last.xs.size() > 1) {
      last.xs = {last.xs.back()};
      last.ys = {last.ys.back()};
    }
    add(std::move(last), "final validation", 3);
  }
  // The chart ends at the limit, if something exceeds it.
  const double limit = highest_sane(runs);
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

std::string charts_html(const std::vector<Run>& runs) {
  Curves rates = curves_of(runs, &Metrics::lr, "rate");
  use_decades(rates);
  return "<h2>Curves</h2>\n<div class=\"charts\">\n" + chart_html("Loss", loss_curves(runs)) +
         chart_html(rates.options.y_log ? "Learning rate, logarithmic" : "Learning rate", rates) +
         chart_html("Gradient norm, before clipping",
                    curves_of(runs, &Metrics::grad_norm, "norm")) +
         "</div>\n";
}

}  // namespace runs
