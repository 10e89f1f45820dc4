#include <xgrad/pages/graph_differences.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/differences.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad::pages::detail {
namespace {

using xgrad::detail::Judgement;
using EngineVerdict = xgrad::detail::Verdict;
using Elements = std::span<const std::size_t>;

constexpr std::size_t each_up_to = 8;      // elements that are checked one by one
constexpr std::size_t most_suspects = 16;  // that a line along all of them leads to
constexpr double masked = -1e8;            // what is below is there to be ignored
constexpr double coarse = 0.1;             // rounding beside a gradient, for differences to tell
constexpr const char* odd_values =
    "there are NaN or infinite values, of which differences say nothing";

bool moves(double v) { return std::isfinite(v) && v >= masked; }

// Fixed weights between 0.1 and 4.7, as unequal as exponentially distributed numbers: were they
// equal, a gradient whose elements are permuted would pass.
double weight(std::size_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15U;  // splitmix64
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  const double uniform = static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
  return 0.1 - std::log(1 - 0.99 * uniform);
}

class Comparison {
 public:
  Comparison(const Numbers& gradient, const Numbers& x, const Precision& precision,
             const Measured& f)
      : gradient_(gradient), x_(x), precision_(precision), f_(f), here_(f.at(x)) {
    const double typical = xgrad::detail::typical_size(x);
    for (const double v : x)
      sizes_.push_back(v == 0 || !moves(v) ? (typical > 0 ? typical : 1) : std::abs(v));
    weights_ = xgrad::detail::nonzero(f.weights);
    for (const auto& [j, w] : weights_) {
      odd_ = odd_ || !std::isfinite(here_.at(j));
      total_ += std::abs(w * here_[j]);
    }
    double rounds = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      rounds += moves(x[i]) ? std::abs(gradient[i] * x[i]) : 0;
    for (const auto& [j, w] : weights_)
      all += std::abs(w);
    scales_.assign(here_.size(), all > 0 ? rounds / all : 0);
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
    Numbers u(x_.size());
    for (const std::size_t i : at)
      u[i] = one ? 1
                 : sizes_[i] * weight(i) *
                       (gradient_[i] > 0 || (gradient_[i] == 0 && i % 2 == 0) ? 1 : -1);
    Found found;
    double rounding = f_.slack, largest = 0;
    for (const std::size_t i : at) {
      found.analytic += u[i] * gradient_[i];
      rounding += std::abs(u[i]) * f_.rounding[i];
    }
    for (const double g : gradient_)
      largest = std::max(largest, std::abs(g));
    const double size = one ? sizes_[at[0]] : 1;
    auto limits = precision_.tolerance().scaled(std::abs(found.analytic), total_, size);
    if (sharp) {
      limits.rtol /= 10 * static_cast<double>(at.size());
      limits.atol = std::min(limits.atol, limits.rtol * std::abs(found.analytic));
    }
    const double error = rounding + (precision_.wide ? 1e-9 : 1e-4) * total_ / size;
    limits.atol += rounding + (precision_.exact ? 4e-15 * largest : 1e-6 * total_ / size);
    if (one && !precision_.exact)
      limits.atol += 1e-5 * largest;
    const auto point = [&](const xgrad::detail::LinePoint& p) {
      Numbers moved = x_;
      Generator generator(p.seed);
      for (std::size_t i = 0; i < u.size(); ++i)
        if (p.away > 0 && moves(x_[i]))
          moved[i] += p.away * sizes_[i] * (2 * generator.uniform_double() - 1);
      for (const std::size_t i : at)
        moved[i] += p.t * u[i];
      return f_.at(moved);
    };
    xgrad::detail::Differences differences({.at = point,
                                            .x = one ? x_[at[0]] : 0,
                                            .size = size,
                                            .here = here_,
                                            .scales = scales_,
                                            .unit = precision_.wide ? 0x1p-53 : 0x1p-24},
                                           limits);
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
  Numbers sizes_, here_, scales_;
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
