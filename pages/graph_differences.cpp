#include <xgrad/pages/graph_differences.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <xgrad/autograd/check/describe.hpp>

namespace xgrad::pages::detail {
namespace {

using xgrad::detail::Elements, xgrad::detail::Judgement;
using EngineVerdict = xgrad::detail::Verdict;

constexpr std::size_t each_up_to = 8;      // elements that are checked one by one
constexpr std::size_t most_suspects = 16;  // that a line along all of them leads to
constexpr double coarse = 0.1;             // rounding beside a gradient, for differences to tell
constexpr const char* odd_values =
    "there are NaN or infinite values, of which differences say nothing";

// A masked score is there to be ignored.
bool moves(double v) { return std::isfinite(v) && v >= -xgrad::detail::mask_size; }

class Comparison {
 public:
  Comparison(const Numbers& gradient, const Numbers& x, const Precision& precision,
             const Measured& f)
      : gradient_(gradient),
        x_(x),
        precision_(precision),
        f_(f),
        probe_{.leaves = {xgrad::detail::Leaf(x)},
               .at = [&f, &x](xgrad::detail::Point to,
                              double) { return f.at(to[0].empty() ? x : to[0]); },
               .here = f.at(x),
               .unit = precision.wide ? 0x1p-53 : 0x1p-24},
        weights_(xgrad::detail::nonzero(f.weights)) {
    double rounds = 0, all = 0;
    for (const auto& [j, w] : weights_) {
      odd_ = odd_ || !std::isfinite(probe_.here.at(j));
      total_ += std::abs(w * probe_.here[j]);
      all += std::abs(w);
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      rounds += moves(x[i]) ? std::abs(gradient[i] * x[i]) : 0;
    probe_.scales.assign(probe_.here.size(), all > 0 ? rounds / all : 0);
  }

  GraphCheck run() {
    std::vector<std::size_t> moving;
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (moves(x_[i]))
        moving.push_back(i);
    if (moving.empty())
      return {.message = "all its elements are infinite or below -1e8, as masked scores are"};
    if (odd_)
      return {.message = odd_values};
    if (x_.size() > each_up_to) {
      add(moving);
    } else {
      for (std::size_t i = 0; i < x_.size(); ++i)
        if (moves(x_[i])) {
          add({&i, 1});
        } else {
          check_.analytic.push_back(gradient_[i]);
          check_.numeric.push_back(std::numeric_limits<double>::quiet_NaN());
        }
    }
    if (any_wrong_) {
      check_.verdict = GraphCheck::Verdict::wrong;
      return check_;
    }
    if (!unknown_.empty())
      return {.message = unknown_};
    check_.verdict = GraphCheck::Verdict::right;
    if (flat_ && !weights_.empty())
      check_.message = "the function does not change at all within the step";
    else if (moving.size() < x_.size())
      check_.message = "what is infinite or below -1e8 was left as it is";
    return check_;
  }

 private:
  // The verdict along one element, or along a direction in several.
  struct Found : Judgement {
    double analytic = 0;
    std::string unknown = {};
  };
  // A sharp one sees one wrong element of many.
  Found judge(Elements at, bool sharp = false) const {
    const bool one = at.size() == 1;
    const auto direction = one ? probe_.axis(0, at[0]) : probe_.along(0, at, gradient_);
    const Numbers& u = direction.by[0];
    Found found;
    found.analytic = xgrad::detail::dot(gradient_, u);
    double rounding = f_.slack;
    for (const std::size_t i : at)
      rounding += std::abs(u[i]) * f_.rounding[i];
    const double largest = xgrad::detail::scale_of(gradient_), size = direction.size;
    auto limits = precision_.tolerance().scaled(std::abs(found.analytic), total_, size);
    if (sharp) {
      limits.rtol /= 10 * static_cast<double>(at.size());
      limits.atol = std::min(limits.atol, limits.rtol * std::abs(found.analytic));
    }
    const double error = rounding + (precision_.wide ? 1e-9 : 1e-4) * total_ / size;
    limits.atol += rounding + (precision_.exact ? 4e-15 * largest : 1e-6 * total_ / size);
    if (one && !precision_.exact)
      limits.atol += 1e-5 * largest;
    xgrad::detail::Differences differences(probe_.line(direction), limits);
    static_cast<Judgement&>(found) = differences.judge(weights_, found.analytic);
    if (found.verdict == EngineVerdict::unchecked)
      found.unknown = found.because();
    const double scale = std::max(std::abs(found.analytic), std::abs(found.numeric));
    if (found.verdict == EngineVerdict::right && scale > 0 &&
        error > coarse * std::max(scale, one ? 1e-3 * largest : 0)) {
      found.verdict = EngineVerdict::unchecked;
      found.unknown = fmt::format(
          "too small for differences: it is {:.2g}, and rounding may be {:.2g}", scale, error);
    }
    return found;
  }

  void add(Elements at) {
    bool sharp = at.size() > 1 && precision_.exact;
    Found found = judge(at, sharp);
    if (sharp && found.verdict != EngineVerdict::right) {
      const EngineVerdict first = std::exchange(found, judge(at)).verdict;
      sharp = found.verdict == EngineVerdict::right && first == EngineVerdict::wrong;
    } else {
      sharp = false;
    }
    // Kinks of several elements may look like a mistake: each of them is asked.
    if ((found.verdict == EngineVerdict::wrong && at.size() > 1) || sharp) {
      std::vector<std::size_t> suspects;
      xgrad::detail::suspects(
          [&](Elements some) { return judge(some, sharp).verdict == EngineVerdict::right; }, at,
          most_suspects, suspects);
      bool wrong = suspects.empty() && !sharp;
      for (const std::size_t& i : suspects) {
        const Found single = judge({&i, 1});
        wrong = wrong || single.verdict == EngineVerdict::wrong;
        if (!single.unknown.empty())
          found.unknown = single.unknown;
      }
      if (wrong)
        found.verdict = EngineVerdict::wrong;
      else if (!sharp)
        found.verdict = EngineVerdict::unchecked;
    }
    check_.analytic.push_back(found.analytic);
    check_.numeric.push_back(found.numeric);
    flat_ = flat_ && found.analytic == 0 && found.numeric == 0;
    any_wrong_ = any_wrong_ || found.verdict == EngineVerdict::wrong;
    if (unknown_.empty() && found.verdict == EngineVerdict::unchecked)
      unknown_ = found.unknown;
  }

  const Numbers& gradient_;
  const Numbers& x_;
  Precision precision_;
  const Measured& f_;
  xgrad::detail::Probe probe_;
  std::vector<std::pair<std::size_t, double>> weights_;
  double total_ = 0;  // sum |weights * values|
  GraphCheck check_;
  bool odd_ = false, any_wrong_ = false, flat_ = true;
  std::string unknown_;  // why an element is
};

}  // namespace

std::size_t runs_for(std::size_t n) { return 1 + 2 * (n <= each_up_to ? n : 1); }

GraphCheck compare(const Numbers& gradient, const Numbers& x, const Precision& precision,
                   const Measured& f) {
  if (x.empty())
    return {.message = "it has no elements"};
  const auto finite = [](double v) { return std::isfinite(v); };
  if (std::ranges::any_of(x, [](double v) { return std::isnan(v); }) ||
      !std::ranges::all_of(gradient, finite) || !std::ranges::all_of(f.weights, finite))
    return {.message = odd_values};
  return Comparison(gradient, x, precision, f).run();
}

}  // namespace xgrad::pages::detail
