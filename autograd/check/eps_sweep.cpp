#include <algorithm>
#include <cmath>
#include <iterator>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/check/probe.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {
namespace {

constexpr double agreement = 1e-3;     // GradcheckOptions' rtol: below it, differences agree
constexpr double float64_best = 1e-6;  // a smooth function reaches this easily

// What the curve's shape says.
std::string read(const EpsSweep& sweep) {
  const auto& points = sweep.points;
  const EpsSweep::Point& best = sweep.best();
  if (!std::ranges::all_of(points, [](const auto& p) { return std::isfinite(p.error); }) &&
      !(best.error <= agreement))
    return "not finite: the function, or its gradient, is NaN or infinite";
  double largest = 0, smallest = INFINITY;
  for (const auto& p : points)
    if (p.eps <= 1e-3 && p.eps >= 1e-8) {
      largest = std::max(largest, p.error);
      smallest = std::min(smallest, p.error);
    }
  if (best.error > agreement && largest <= 3 * smallest)
    return fmt::format(
        "flat: no eps agrees, the error stays near {:.2g}: the gradient is wrong, or there is a "
        "kink at the point itself",
        smallest);
  const double last = points.back().error;
  if (best.eps >= 1e-4 && last > 100 * best.error && last > 0.01)
    return fmt::format(
        "rounding wins from eps {:.0e} on, far too early for float64: the function computes in "
        "float32 inside, or large values cancel",
        best.eps);
  // From disagreement to agreement in one step: eps^2 alone would fall by 100 only.
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    if (points[i].error > 1e-2 && points[i + 1].error < 1e-4 * points[i].error &&
        points[i].eps < 1e-2)
      return fmt::format(
          "a kink between {:.0e} and {:.0e} from the point: smaller differences agree",
          points[i + 1].eps, points[i].eps);
  if (best.error <= float64_best)
    return fmt::format(
        "right: the error falls as eps^2, rises as 1 / eps, and is {:.2g} at eps {:.0e}",
        best.error, best.eps);
  return fmt::format("the smallest error is {:.2g}, at eps {:.0e}", best.error, best.eps);
}

}  // namespace

const EpsSweep::Point& EpsSweep::best() const {
  check<ValueError>(!points.empty(), "EpsSweep: no points");
  const auto key = [](const Point& p) { return std::isfinite(p.error) ? p.error : INFINITY; };
  return *std::ranges::min_element(points, {}, key);
}

std::string EpsSweep::table() const {
  std::size_t width = 5;
  for (const Point& p : points)
    width = std::max(width, p.input.size());
  std::string text =
      fmt::format("{:<7} {:>8}  {:<{}}  1e-16 ... 1\n", "eps", "error", "worst", width);
  for (const Point& p : points) {
    // Three signs for each factor of ten above 1e-16.
    const double decades = p.error > 0 ? std::clamp(std::log10(p.error) + 16, 0.0, 18.0) : 0;
    const auto length = std::isfinite(p.error) ? static_cast<std::size_t>(3 * decades) : 0;
    text += fmt::format("{:<7.0e} {:>8.1e}  {:<{}}  |{}{}\n", p.eps, p.error, p.input, width,
                        std::string(length, '#'), &p == &best() ? "  <- smallest" : "");
  }
  return text + reading + "\n";
}

EpsSweep eps_sweep(const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options) {
  using namespace detail;
  const SameDraws draws;
  const Snapshot before(inputs, options.names);
  const CheckedFunction checked = checked_function("eps_sweep", draws.of(f), inputs, options);
  const ModeGuard mode({true, nullptr});
  Generator generator(options.seed);
  std::vector<Tensor> v, analytic;
  Numbers weights;
  EpsSweep sweep;
  {
    const auto outputs = checked.with_graph();
    sweep.reading = before.changes();
    if (sweep.reading.empty())
      sweep.reading = two_results(outputs, checked.with_graph());
    if (!sweep.reading.empty())
      return sweep;
    for (const Tensor& y : outputs) {
      v.push_back(random_signed(y.shape(), generator));
      std::ranges::copy(elements(v.back()), std::back_inserter(weights));
    }
    analytic = gradients(outputs, checked.tensors(), v, {});
  }
  const Probe probe = checked.probe(shapes_of(v));
  // Every element moves by about eps, so that a kink near any of them is met.
  std::vector<Direction> directions;
  for (std::size_t k = 0; k < probe.leaves.size(); ++k) {
    Numbers u = elements(random_signed(checked.leaves()[k].x.shape(), generator));
    for (std::size_t i = 0; i < u.size(); ++i)
      if (!std::isfinite(probe.leaves[k].values[i]))
        u[i] = 0;
    directions.push_back({Point(probe.leaves.size())});
    directions[k].by[k] = std::move(u);
  }
  const auto gradient = [&](std::size_t k) {
    return or_zeros(analytic[k], probe.leaves[k].values.size());
  };
  bool seen = false;  // beside rounding
  for (int digits = 1; digits <= 10; ++digits) {
    EpsSweep::Point point{std::pow(10.0, -digits), -1, ""};
    for (std::size_t k = 0; k < directions.size(); ++k) {
      const Line line = probe.line(directions[k]);
      const Numbers above = line.at({.t = point.eps}), below = line.at({.t = -point.eps});
      double numeric = 0, rounding = 0;
      for (std::size_t j = 0; j < above.size(); ++j) {
        numeric += weights[j] * difference(above[j], below[j]) / (2 * point.eps);
        rounding += 0x1p-53 * std::abs(weights[j]) * (std::abs(above[j]) + std::abs(below[j]));
      }
      const Numbers moved = really_moved(checked.leaves()[k].x, directions[k].by[k], point.eps);
      const double exact = dot(gradient(k), moved);
      const double size = std::max(std::abs(exact), 1e-3 * std::abs(numeric));
      const double error = exact == numeric ? 0 : std::abs(exact - numeric) / size;
      seen = seen || !(std::max(size, std::abs(exact - numeric)) <= rounding / point.eps);
      if (!(error <= point.error)) {
        point.error = error;
        point.input = checked.leaves()[k].name;
      }
      if (std::isnan(error))
        break;
    }
    sweep.points.push_back(point);
  }
  sweep.reading = seen
                      ? read(sweep)
                      : "no digit is left: rounding changes the function by more than any eps does";
  // Steps of one size may be too large for all elements, as of log at 1e-12.
  if (sweep.reading.starts_with("flat"))
    if (const GradcheckReport report = gradcheck(f, inputs, options);
        report && report.unchecked == 0)
      sweep.reading = fmt::format(
          "right: no eps agrees, but steps of the sizes of the elements do, largest error {:.2g}",
          report.worst_error);
  return sweep;
}

}  // namespace xgrad
