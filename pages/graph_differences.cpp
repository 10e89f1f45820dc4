#include <xgrad/pages/graph_differences.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <xgrad/autograd/check/gradcheck_function.hpp>

namespace xgrad::pages::detail {
namespace {

constexpr std::size_t each_up_to = 8;  // elements that are checked one by one
constexpr double masked = -1e8;        // what is below is there to be ignored
constexpr const char* odd_values =
    "there are NaN or infinite values, of which differences say nothing";
constexpr double coarse = 0.1;  // rounding beside a gradient, for differences to tell

bool all_finite(const Numbers& x) {
  return std::ranges::all_of(x, [](double v) { return std::isfinite(v); });
}

bool moves(double v) { return std::isfinite(v) && v >= masked; }

// How large each element is.  One that is 0 has the size that others have; one that stays has none.
Numbers sizes_of(const Numbers& x) {
  double logs = 0, n = 0;
  for (const double v : x)
    if (moves(v) && v != 0) {
      logs += std::log(std::abs(v));
      ++n;
    }
  const double typical = n == 0 ? 1 : std::exp(logs / n);
  Numbers sizes;
  for (const double v : x)
    sizes.push_back(!moves(v) ? 0 : v == 0 ? typical : std::abs(v));
  return sizes;
}

// Fixed weights between 0.1 and 4.7, as unequal as exponentially distributed numbers: were they
// equal, a gradient whose elements are permuted would pass.
double weight(std::size_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15U;  // splitmix64
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  const double uniform = static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
  return 0.1 - std::log(1 - 0.99 * uniform);
}

struct Slopes {
  double analytic = 0, central = 0, left = 0, right = 0;
  double error = 0;  // that rounding may make: in the differences, and in a right gradient

  double scale() const { return std::max(std::abs(analytic), std::abs(central)); }
  double gap() const { return std::abs(right - left); }
  bool flat() const { return analytic == 0 && central == 0 && left == 0 && right == 0; }
};

enum class Judgement { right, at_kink, wrong, at_kinks, bends, too_coarse, not_finite };

class Comparison {
 public:
  Comparison(const Numbers& gradient, const Numbers& x, const Precision& precision,
             const Measured& f)
      : gradient_(gradient),
        x_(x),
        precision_(precision),
        f_(f),
        sizes_(sizes_of(x)),
        here_(f.at(x)),
        each_(x.size() <= each_up_to) {
    for (const double g : gradient)
      largest_ = std::max(largest_, std::abs(g));
  }

  GraphCheck run() {
    const std::size_t n = x_.size();
    if (std::ranges::none_of(x_, moves))
      return {.message = "all its elements are infinite or below -1e8, as masked scores are"};
    for (std::size_t j = 0; j < here_.size(); ++j)
      if (f_.weights.at(j) != 0 && !std::isfinite(here_[j]))
        return {.message = odd_values};
    for (std::size_t i = 0; each_ && i < n; ++i) {
      Numbers u(n);
      u[i] = 1;
      if (moves(x_[i])) {
        along(u);
      } else {
        check_.analytic.push_back(gradient_[i]);
        check_.numeric.push_back(std::numeric_limits<double>::quiet_NaN());
      }
    }
    if (!each_) {
      Numbers u(n);
      for (std::size_t i = 0; i < n; ++i)
        u[i] = weight(i) * (gradient_[i] > 0 || (gradient_[i] == 0 && i % 2 == 0) ? 1 : -1);
      along(u);
    }
    if (any_wrong_) {
      check_.verdict = GraphCheck::Verdict::wrong;
      return check_;
    }
    if (!unknown_.empty())
      return {.message = unknown_, .at_kink = check_.at_kink};
    check_.verdict = GraphCheck::Verdict::right;
    if (flat_ && std::ranges::any_of(f_.weights, [](double w) { return w != 0; }))
      check_.message = "the function does not change at all within the step";
    if (check_.message.empty() && !std::ranges::all_of(x_, moves))
      check_.message = "what is infinite or below -1e8 was left as it is";
    return check_;
  }

 private:
  void along(const Numbers& u) {
    Slopes slopes;
    const Judgement judgement = examine(u, slopes);
    check_.analytic.push_back(slopes.analytic);
    check_.numeric.push_back(slopes.central);
    flat_ = flat_ && slopes.flat();
    any_wrong_ = any_wrong_ || judgement == Judgement::wrong;
    if (judgement == Judgement::at_kink)
      check_.message = "at a kink, where any slope between those of both sides is right";
    if (unknown_.empty())
      unknown_ = reason(judgement, slopes);
  }

  static std::string reason(Judgement judgement, const Slopes& slopes) {
    if (judgement == Judgement::too_coarse)
      return fmt::format("too small for differences: it is {:.2g}, and rounding may be {:.2g}",
                         slopes.scale(), slopes.error);
    if (judgement == Judgement::bends)
      return "differences of smaller steps differ: the function bends or jumps within the step";
    if (judgement == Judgement::at_kinks)
      return "at kinks of some elements, of which differences of all together tell nothing";
    if (judgement == Judgement::not_finite)
      return odd_values;
    return {};
  }

  // The steps to try: what is right by any is right.  Otherwise the last that tells decides.
  Judgement examine(const Numbers& u, Slopes& shown) {
    Judgement found = Judgement::too_coarse;
    bool told = false;
    const auto attempt = [&](auto&& step_of) {
      if (told && found == Judgement::right)
        return;
      Slopes slopes;
      const Judgement judgement = judge(scaled(u, step_of), slopes);
      const bool tells = judgement != Judgement::too_coarse && judgement != Judgement::not_finite;
      if (tells || !told) {
        found = judgement;
        shown = slopes;
      }
      told = told || tells;
    };
    if (!precision_.wide) {
      // As far as the result changes by a thousandth.
      const auto far = [](double size) { return 1e-2 * std::max(1e-3, size); };
      const double change =
          std::abs(slopes_along(scaled(u, far)).analytic) * root_mean_square(scaled(u, far));
      const double share = std::clamp(1e-3 * total(here_) / std::max(change, 1e-30), 1e-2, 1.0);
      attempt([&](double size) { return share * far(size); });
      return found;
    }
    attempt([](double size) { return 1e-6 * std::max(1.0, size); });
    // A function of small numbers may bend within that, and one of large ones.
    if (std::ranges::any_of(sizes_, [](double s) { return s > 0 && (s < 0.1 || s > 10); }))
      attempt([](double size) { return 1e-5 * std::min(1.0, size); });
    if (!told)
      attempt([](double size) { return 1e-4 * std::max(1.0, size); });
    return found;
  }

  Judgement judge(const Numbers& step, Slopes& slopes) {
    slopes = slopes_along(step);
    if (!std::isfinite(slopes.central))
      return Judgement::not_finite;
    if (slopes.flat())
      return Judgement::right;
    if (!tells(slopes))
      return Judgement::too_coarse;
    check_.at_kink = check_.at_kink || breaks(slopes);
    if (agrees(slopes))
      return Judgement::right;
    const Slopes third = slopes_along(times(step, 0.3)), tenth = slopes_along(times(step, 0.1));
    if (tells(tenth) && agrees(tenth))
      return Judgement::right;
    const bool stays = tenth.gap() > 0.5 * slopes.gap();
    if (between(slopes)) {
      if (stays && between(tenth))
        return Judgement::at_kink;
      if (stays || !(tenth.error < coarse * slopes.gap()))
        return Judgement::bends;
    }
    // Kinks of elements with weights of both signs: their sum may be beyond both slopes.
    if (!each_ && breaks(slopes) && stays)
      return Judgement::at_kinks;
    // A wrong gradient is as far from differences whatever the step.
    const double off = std::abs(slopes.analytic - slopes.central);
    // (Sums of products in float32 lose by the size of what cancels in them.)
    const double size = root_mean_square(x_);
    const double lost = precision_.exact || size == 0 ? 0 : 1e-6 * total(here_) / size;
    if (off <= lost) {
      slopes.error += lost;
      return Judgement::too_coarse;
    }
    const bool steady = std::abs(third.central - slopes.central) <= 0.1 * off &&
                        std::abs(tenth.central - slopes.central) <= 0.1 * off;
    return steady ? Judgement::wrong : Judgement::bends;
  }

  // (An element that is small beside others need not be told from 0.)
  bool tells(const Slopes& s) const {
    return s.error <= coarse * std::max(s.scale(), each_ ? 1e-3 * largest_ : 0.0);
  }
  double tolerance(const Slopes& s) const { return precision_.tolerance() * s.scale() + s.error; }
  bool agrees(const Slopes& s) const { return std::abs(s.analytic - s.central) <= tolerance(s); }
  // At a kink the slopes to both sides differ ...
  bool breaks(const Slopes& s) const { return s.gap() > 10 * tolerance(s); }
  // ... and all between them is right.
  bool between(const Slopes& s) const {
    const auto [low, high] = std::minmax(s.left, s.right);
    const double near = tolerance(s);
    return breaks(s) && s.analytic >= low - near && s.analytic <= high + near;
  }

  Slopes slopes_along(const Numbers& step) const {
    const double h = root_mean_square(step);
    Numbers up = x_, down = x_;
    double analytic = 0, rounding = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step[i] == 0)
        continue;
      up[i] = rounded(x_[i] + step[i]);
      down[i] = rounded(x_[i] - step[i]);
      analytic += gradient_[i] * (up[i] - down[i]);  // the way that it really moves
      rounding += f_.rounding[i] * std::abs(step[i]);
    }
    const Numbers above = f_.at(up), below = f_.at(down);
    const double size = std::max({total(here_), total(above), total(below)});
    const double of_others = each_ ? (precision_.exact ? 4e-15 : 1e-2 * precision_.tolerance()) : 0;
    // (What is smaller than the last may have become 0 on the way.)
    return {.analytic = analytic / (2 * h),
            .central = weighted(above, below) / (2 * h),
            .left = weighted(here_, below) / h,
            .right = weighted(above, here_) / h,
            .error = 16 * precision_.unit() * size / h + rounding / h + f_.slack +
                     of_others * largest_ + (precision_.exact ? 1e-290 : 1e-30)};
  }

  double rounded(double v) const {
    return precision_.wide ? v : static_cast<double>(static_cast<float>(v));
  }

  template <class F>
  Numbers scaled(const Numbers& u, const F& step_of) const {
    Numbers step(u.size());
    for (std::size_t i = 0; i < u.size(); ++i)
      step[i] = sizes_[i] == 0 ? 0 : u[i] * step_of(sizes_[i]);
    return step;
  }

  static Numbers times(Numbers x, double factor) {
    for (double& v : x)
      v *= factor;
    return x;
  }

  // Of those that are not 0.
  static double root_mean_square(const Numbers& x) {
    double sum = 0, n = 0;
    for (const double v : x) {
      sum += v * v;
      n += v == 0 ? 0 : 1;
    }
    return std::sqrt(sum / std::max(1.0, n));
  }

  double weighted(const Numbers& a, const Numbers& b) const {
    double sum = 0;
    for (std::size_t j = 0; j < f_.weights.size(); ++j)
      if (f_.weights[j] != 0)
        sum += f_.weights[j] * xgrad::detail::difference(a.at(j), b.at(j));
    return sum;
  }
  double total(const Numbers& values) const {
    double sum = 0;
    for (std::size_t j = 0; j < f_.weights.size(); ++j)
      sum += std::isfinite(values.at(j)) ? std::abs(f_.weights[j] * values[j]) : 0;
    return sum;
  }

  const Numbers& gradient_;
  const Numbers& x_;
  Precision precision_;
  const Measured& f_;
  Numbers sizes_, here_;
  bool each_;
  double largest_ = 0;
  GraphCheck check_;
  bool any_wrong_ = false, flat_ = true;
  std::string unknown_;  // why an element is
};

}  // namespace

std::size_t runs_for(std::size_t n) { return 1 + 2 * (n <= each_up_to ? n : 1); }

GraphCheck compare(const Numbers& gradient, const Numbers& x, const Precision& precision,
                   const Measured& f) {
  if (x.empty())
    return {.message = "it has no elements"};
  const bool has_nan = std::ranges::any_of(x, [](double v) { return std::isnan(v); });
  if (has_nan || !all_finite(gradient) || !all_finite(f.weights))
    return {.message = odd_values};
  return Comparison(gradient, x, precision, f).run();
}

}  // namespace xgrad::pages::detail
