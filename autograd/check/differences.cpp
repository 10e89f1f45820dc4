#include "differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace xgrad::detail {
constexpr double ratio_of_steps = 1.0 / 3;
constexpr double unit = 0x1p-53;  // half a unit in the last place of 1

std::vector<std::pair<std::size_t, double>> nonzero(std::span<const double> weights) {
  std::vector<std::pair<std::size_t, double>> some;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (weights[j] != 0)
      some.emplace_back(j, weights[j]);
  return some;
}

double typical_size(std::span<const double> x) {
  for (const double most : {mask_size, std::numeric_limits<double>::max()}) {
    double size = 0, n = 0;  // (Squares of 1e200 overflow.)
    for (const double v : x)
      if (v != 0 && std::abs(v) <= most)
        size = std::hypot(size, v), ++n;
    if (n > 0)
      return size / std::sqrt(n);
  }
  return 0;
}

double size_among(double x, double typical) {
  const double own = std::abs(x), others = typical > 0 ? typical : 1;
  return own == 0 || own > 1e-3 * others ? std::max(own, others) : own;
}

Tolerance Tolerance::scaled(double largest, double values, double arguments) const {
  Tolerance result = *this;
  const double ratio = values / (arguments > 0 ? arguments : 1);
  if (largest < 10 * atol && atol <= Tolerance().atol)
    result.atol = std::min(atol, std::max(rtol * largest, ratio > 0 ? 1e-8 * ratio : 1e-14));
  result.atol = std::max({result.atol, 64 * unit * ratio, std::numeric_limits<double>::min()});
  return result;
}

Tolerance Tolerance::with_rounding_of(double largest) const {
  Tolerance result = *this;
  if (std::isfinite(largest))
    result.atol = std::max(result.atol, 1e-11 * largest);
  return result;
}

std::string Judgement::because() const {
  switch (reason) {
    case GradcheckReason::kink:
      return fmt::format(
          "a kink at the point: the slopes around it are {:.6g} and {:.6g}, and all between them "
          "is valid; move the input to check it",
          left, right);
    case GradcheckReason::truncation:
      return "steep: the differences of every two steps differ";
    case GradcheckReason::rounding:
      if (right > 0)
        return fmt::format("too small for differences: it is {:.2g}, and rounding may be {:.2g}",
                           left, right);
      return "no digit is left: rounding changes the function by more than its derivative does";
    case GradcheckReason::not_finite:
      return "the function is infinite or NaN there, or on both sides of it";
    default:
      return {};
  }
}

Differences::Differences(Line line) : line_(std::move(line)) {
  if (!(line_.size > 0))
    line_.size = 1;
  const double last = 128 * line_.unit * std::abs(line_.x);
  const bool second = line_.order == 2 || line_.unit > unit;
  const double from = second ? 0.1 * line_.size : 1e-2 * std::max(line_.size, 0.1);
  const double to =
      line_.unit > unit ? 1e-6 * line_.size : (second ? 1e-10 : 1e-11) * std::min(line_.size, 1.0);
  for (double h = std::isfinite(line_.x) ? from : 0; h > 0 && h >= std::max(to, last);
       h *= ratio_of_steps)
    sizes_.push_back(h);
  if (line_.order == 1 && line_.center.empty())
    line_.center = line_.at({});
}

Differences::Step Differences::step(double h, double jitter, std::uint64_t seed) {
  const auto rounded = [&](double t) {
    if (line_.x == 0 || !std::isfinite(line_.x))
      return t;
    const double moved = line_.x + t;
    return (line_.unit > unit ? static_cast<double>(static_cast<float>(moved)) : moved) - line_.x;
  };
  Step s{h, rounded(h), -rounded(-h), line_.center, {}, {}};
  if (line_.order == 2 || jitter > 0)
    s.center = line_.at({0, h, jitter, seed});
  s.above = line_.at({s.up, h, jitter, seed});
  s.below = line_.at({-s.down, h, jitter, seed});
  return s;
}

Differences::Slope Differences::slope(const Step& s, Weights weights) const {
  double whole = 0, up = 0, down = 0, noise = 0, own = 0;
  bool finite = true;
  for (const auto& [j, w] : weights) {
    const double y = s.center.at(j), above = s.above.at(j), below = s.below.at(j);
    finite = finite && !std::isnan(y);
    whole += w * difference(above, below);
    up += w * difference(above, y);
    down += w * difference(y, below);
    const double scale = j < line_.scales.size() ? line_.scales[j] : 0;
    const auto rounding = [&, w = w](double size) {
      return std::abs(w) * (2 * line_.unit * (std::isfinite(size) ? size : 0) + line_.noise / s.h);
    };
    const double size = std::max({std::abs(y), std::abs(above), std::abs(below)});
    noise += rounding(std::max(size, scale));
    own += rounding(above == y && y == below ? size : std::max(size, scale));
  }
  Slope r{s.h, whole / (s.up + s.down), down / s.down, up / s.up, noise / s.h};
  r.shown = own / s.h;
  for (const double change : {whole, up, down})
    r.change = std::max(r.change, std::isfinite(change) ? std::abs(change) : 0);
  r.finite = finite;
  r.usable = std::isfinite(r.central);
  if (!r.usable && (std::isfinite(up) || std::isfinite(down))) {  // at the edge of its domain
    r.central = std::isfinite(up) ? r.right : r.left;
    r.one_sided = true;
    r.usable = std::isfinite(r.central);
  }
  r.usable = r.usable && s.up > 0 && s.down > 0;
  return r;
}

double Differences::tolerance(double numeric) const {
  return tolerance_.atol + tolerance_.rtol * std::abs(numeric);
}

bool Differences::agrees(double analytic, const Slope& s) const {
  return s.usable && std::abs(analytic - s.central) <= tolerance(s.central);
}

const Differences::Step& Differences::compared(std::size_t k) {
  steps_.resize(sizes_.size());
  if (!steps_[k])
    steps_[k] = step(sizes_[k]);
  return *steps_[k];
}

// Whether rounding alone may change a function by this much: intermediates of size 1 (as the sum of
// a softmax whose logarithm is 1e-11) lose that much.
bool Differences::lost(double change, Weights weights) const {
  double sum = 0;
  for (const auto& [j, w] : weights)
    sum += std::abs(w);
  return line_.order == 1 && change <= 64 * line_.unit * sum;
}

// Whether steps near eps agree with each other but not with this larger one: the function bends in
// between.
bool Differences::bends_within(const Slope& s, Weights weights) {
  if (!first_ || s.h < 10 * first_->h)
    return false;
  const double near = 3 * tolerance(s.central);
  const Slope at_eps = slope(*first_, weights);
  const double apart = std::abs(at_eps.central - s.central);
  if (!at_eps.usable || at_eps.error > near || apart <= near ||
      (std::abs(s.right - s.left) < apart && lost(apart * first_->h, weights)))
    return false;
  for (std::size_t k = 1; k < sizes_.size(); ++k)
    if (sizes_[k] <= first_->h)
      return std::abs(slope(compared(k), weights).central - at_eps.central) <= near &&
             std::abs(slope(compared(k - 1), weights).central - at_eps.central) <= near;
  return false;
}

Judgement Differences::judge(Weights weights, double analytic, const Tolerance& tolerance) {
  tolerance_ = tolerance;
  Judgement found = first(weights, analytic);
  if (found.verdict != Verdict::right) {
    const double apart = std::abs(analytic - found.numeric);
    if (!tolerance.eps_alone && found.reason != GradcheckReason::not_finite)
      found = refined(weights, analytic);
    else if (std::isfinite(found.numeric))
      found.verdict = apart <= tolerance.atol ? Verdict::right : Verdict::wrong;
    found.refined = true;
  }
  const double size = std::max(std::abs(analytic), std::abs(found.numeric));
  if (found.verdict == Verdict::right && size > 0 && 10 * tolerance.rounding > size)
    return {Verdict::unchecked, GradcheckReason::rounding, found.numeric, size, tolerance.rounding};
  return found;
}

// By the step of eps alone: unchecked if that does not agree.
Judgement Differences::first(Weights weights, double analytic) {
  Judgement result{.verdict = Verdict::unchecked, .reason = GradcheckReason::unknown};
  if (!std::isfinite(line_.x))  // it cannot be moved
    return analytic == 0 ? Judgement{.numeric = 0} : no_slope;
  if (line_.order == 2)
    return result;
  if (!first_)
    first_ = step(tolerance_.eps);
  const Slope s = slope(*first_, weights);
  result.numeric = s.central;
  if (!s.finite)
    return no_slope;
  const bool moved = std::abs(first_->up + first_->down - 2 * first_->h) <= 0.2 * first_->h;
  if (moved && !s.one_sided && agrees(analytic, s) && s.error <= tolerance(s.central))
    return {.numeric = s.central};
  return result;
}

// Compares steps, the largest first, until neighbours agree with the analytic derivative.
Judgement Differences::refined(Weights weights, double analytic) {
  std::vector<Slope> slopes;
  bool smooth = false;  // a slope was seen that is equal on both sides and not the analytic one
  bool moved = false;   // larger steps changed the value: smaller ones are rounding
  for (std::size_t k = 0; k < sizes_.size(); ++k) {
    if (const Slope s = slope(compared(k), weights); s.usable)
      slopes.push_back(s);
    const std::size_t n = slopes.size();
    if (n < 3)
      continue;
    const Slope &before = slopes[n - 3], &s = slopes[n - 2], &after = slopes[n - 1];
    const double near = 3 * tolerance(s.central);
    moved = moved || before.change > 0;
    const bool steady = std::abs(s.central - before.central) <= near &&
                        std::abs(s.central - after.central) <= near &&
                        (analytic == 0 && !moved ? s.shown : s.error) <= near;
    smooth = smooth || (steady && !agrees(analytic, s) &&
                        std::abs(s.right - s.left) <= 0.1 * std::abs(s.central));
    // (Steps smaller than the rounding of cancelling terms give 0.)
    const bool unseen = smooth && s.central == 0;
    if (agrees(analytic, s) && steady && !unseen && !bends_within(s, weights))
      return {.numeric = s.central};
  }
  if (slopes.size() < 4)
    return slopes.empty() && !sizes_.empty() ? no_slope : no_digit;
  // The plateau: steps whose neighbours differ least.
  const auto spread = [&](std::size_t k) {
    double most = slopes[k].error;
    for (const std::size_t other : {k - 1, k + 1, k + 2})
      most = std::max(most, std::abs(slopes[k].central - slopes[other].central));
    return most;
  };
  const auto rises = [&](std::size_t k) {  // steadily, as where the function is steep
    for (std::size_t other = k; other <= k + 2; ++other)
      if (!(slopes[other].central / slopes[other - 1].central > 1.3))
        return false;
    return true;
  };
  // If smaller steps differ by rounding alone, on both sides, there is no bend nearby.
  const auto stays = [&](std::size_t k) {
    const auto gap = [](const Slope& s) { return std::abs(s.right - s.left); };
    const Slope& at = slopes[k];
    return std::all_of(slopes.begin() + static_cast<std::ptrdiff_t>(k), slopes.end(),
                       [&](const Slope& s) {
                         const double near = 10 * (s.error + at.error) + 10 * tolerance(at.central);
                         return std::abs(s.central - at.central) <= near &&
                                (s.one_sided || gap(s) <= 1.5 * gap(at) + 2 * near);
                       });
  };
  std::size_t best = 1;
  const double first = spread(1);
  double least = INFINITY, last = first;
  for (std::size_t k = 1; k + 2 < slopes.size(); ++k) {
    last = spread(k);
    if (last < least && !rises(k) && stays(k)) {
      least = last;
      best = k;
    }
  }
  const double numeric = slopes[best].central;
  if (const auto found = kink(slopes, analytic))
    return *found;
  const bool known = std::isfinite(analytic)
                         ? std::abs(analytic - numeric) > 3 * least + tolerance(numeric)
                         : least <= 0.1 * std::abs(numeric) + tolerance_.atol;
  if (!known) {
    const bool rounds = (last > first && std::isfinite(least) && !rises(slopes.size() - 3)) ||
                        least <= 2 * slopes[best].error;
    return rounds ? no_digit : Judgement{Verdict::unchecked, GradcheckReason::truncation};
  }
  // Within the smallest step it would change by more than its range.  Either the function is
  // steep, as sin(1e16), where the last digit may be a period, or its range is the rounding of a
  // constant, as of the sum of a layer norm, and the derivative is 0: of numbers up to 1e6 the
  // latter.  Or products of such numbers overflow.
  const Slope& smallest = slopes.back();
  const double range = std::ranges::max(slopes, {}, &Slope::change).change;
  const bool steep = range > 0 && 100 * std::abs(analytic) * smallest.h > range &&
                     100 * smallest.error * smallest.h > range;
  if (range > 1e150 || (steep && !tolerance_.finds_steep_ops && !lost(1e-4 * range, weights)))
    return no_digit;
  if (!std::isfinite(analytic)) {
    const auto& [left, right] = std::pair(slopes[best].left, slopes[best].right);
    const bool cusp = std::abs(right - left) >
                      std::max({std::abs(left), std::abs(right), 3 * tolerance(numeric)});
    return {slopes[best].one_sided || cusp ? Verdict::unchecked : Verdict::wrong,
            GradcheckReason::not_finite, numeric};
  }
  const double apart = std::abs(analytic - numeric);
  double h = slopes[best].h, largest = h;  // the smallest and the largest conclusive step
  for (std::size_t k = best; k + 2 < slopes.size(); ++k)
    if (std::abs(slopes[k].central - numeric) + slopes[k].error <= 0.02 * apart)
      h = slopes[k].h;
  for (const Slope& s : slopes)
    if (std::abs(s.central - numeric) <= 0.1 * apart)
      largest = std::max(largest, s.h);
  const bool rounded = lost(apart * largest, weights);
  if (rounded && range == 0)  // flat, and too small a change would be lost
    return no_digit;
  if (const auto found = kinks_nearby(weights, h, analytic, numeric))
    return *found;
  // (If the change is far smaller still, the numbers themselves are far smaller than 1.)
  if (rounded && !lost(1e5 * apart * largest, weights))
    return {Verdict::wrong, GradcheckReason::rounding, numeric};
  return {Verdict::wrong, steep ? GradcheckReason::truncation : GradcheckReason::unknown, numeric};
}

// The slopes on both sides differ, by as much for smaller steps, or by more, as at a jump; the
// analytic one is between them.
std::optional<Judgement> Differences::kink(const std::vector<Slope>& slopes,
                                           double analytic) const {
  const auto gap = [&](std::size_t k) { return slopes[k].right - slopes[k].left; };
  const auto grows = [&](std::size_t k, double times) {
    const double ratio = gap(k) / gap(k - 1) / times;
    return ratio > 0.8 && ratio < 1.25;
  };
  const auto seen = [&](std::size_t k, double size) {
    return !slopes[k].one_sided && 20 * slopes[k].error <= size;
  };
  for (std::size_t k = slopes.size(); k-- > 2;) {
    const Slope& s = slopes[k];
    const double size = std::abs(gap(k));
    if (k + 1 == slopes.size() && size > std::abs(s.central) && seen(k, size) &&
        grows(k, 1 / ratio_of_steps) && grows(k - 1, 1 / ratio_of_steps))
      return Judgement{Verdict::unchecked, GradcheckReason::truncation};  // within the last step
    if (!seen(k, size) || size <= 3 * tolerance(s.central) ||
        !((grows(k, 1) && grows(k - 1, 1)) ||
          (grows(k, 1 / ratio_of_steps) && grows(k - 1, 1 / ratio_of_steps))))
      continue;
    for (std::size_t smaller = k + 1; smaller < slopes.size(); ++smaller)
      if (seen(smaller, size) && std::abs(gap(smaller)) < 0.5 * size)
        return {};  // it is not at the point
    const auto [low, high] = std::minmax(s.left, s.right);
    const double near = tolerance(s.central) + (line_.order == 2 ? size : 1e-3 * size);
    if (!std::isfinite(analytic) || (analytic >= low - near && analytic <= high + near))
      return Judgement{Verdict::unchecked, GradcheckReason::kink, s.central, s.left, s.right};
    return {};
  }
  return {};
}

// Whether derivatives at nearby points differ however near the points are, as at a tie, and the
// analytic derivative is among them.  If there are more than two, it may lie between: an op takes
// one side of each kink, and the sum of these choices need not occur nearby.
std::optional<Judgement> Differences::kinks_nearby(Weights weights, double h, double analytic,
                                                   double numeric) {
  constexpr std::uint64_t samples = 24;
  double spread = 0;
  Judgement found{Verdict::unchecked, GradcheckReason::kink, numeric};
  for (const double far : {100.0, 20.0}) {
    std::vector<double> nearby{numeric};
    for (std::uint64_t seed = 1; seed <= samples; ++seed)
      if (const Slope s = slope(step(h, far * h / line_.size, seed), weights);
          s.usable && std::abs(s.right - s.left) <= 0.5 * std::abs(analytic - numeric))
        nearby.push_back(s.central);  // (otherwise the switch is within the step)
    const auto [low, high] = std::ranges::minmax(nearby);
    const double width = high - low, middle = (low + high) / 2;
    const bool two = std::ranges::all_of(std::span(nearby).subspan(1), [&](double slope) {
      return std::abs(slope - middle) > 0.45 * width;
    });
    const double near = tolerance(numeric) + (two ? 1e-3 : 0.75) * width;
    if (analytic < low - near || analytic > high + near || width < 0.6 * spread)
      return {};
    spread = width;
    found.left = low;
    found.right = high;
  }
  return found;
}

}  // namespace xgrad::detail
