#pragma once
// The curves of runs: what is drawn, by plot_losses, compare and reports alike.

#include <optional>
#include <string>
#include <vector>
#include <xgrad/pages/chart.hpp>

#include "run.hpp"

namespace runs {

/// Lines, and where their chart is cut off.
struct Curves {
  std::vector<xgrad::pages::Series> lines;
  xgrad::pages::LineChartOptions options;
  std::string cut = {};  ///< "b up to 1e+09", if something is beyond the chart; printable
  /// Whether there is anything to draw.
  bool empty() const;
};

enum class Raw { hidden, faint };
/// Training losses, smoothed (xgrad::pages::smoothed) if `weight` is above 0, and beside them as they
/// are, if those are not hidden; validation losses, with dots.  A run's lines have one colour.  A
/// run that diverged does not flatten the others: the chart ends at 1.5 times the highest loss that
/// a run began with, of those within ten times the lowest of these.
Curves loss_curves(const std::vector<Run>& runs, double weight, Raw raw);

/// The learning rate, the norm of the gradient, characters per second (or steps, where nobody knows
/// how many characters a step has).  Smoothed as above; what is far above nearly all is cut off.
Curves lr_curves(const std::vector<Run>& runs);
Curves grad_norm_curves(const std::vector<Run>& runs, double weight, Raw raw);
Curves speed_curves(const std::vector<Run>& runs, double weight, Raw raw);

/// A weight that suits the longest of the runs: an average over about a fiftieth of its steps; 0
/// for a hundred steps or fewer.
double usual_weight(const std::vector<Run>& runs);

}  // namespace runs
