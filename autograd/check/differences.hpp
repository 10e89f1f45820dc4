#pragma once
// The engine of finite differences: decides whether a number is the derivative of a function.
//
// gradcheck(), gradgradcheck(), explain_gradient() and the graph page use it, and through them
// nn::check_layer() and the course.  Its verdicts: right, wrong (because), unchecked (because).
//
// - A first step of eps is nearly always enough, as in torch.autograd.gradcheck.
// - If it disagrees, or rounding hides its result, steps from a hundredth of the argument down to
//   its last digits are compared.  A derivative is known if differences of neighbouring steps
//   agree: larger steps suffer from the function's curvature, smaller ones from its rounding.
// - A point is a kink if the slopes on both sides, or the slopes at nearby points, differ however
//   small the step is.  A gradient between the slopes is unchecked, one beyond them wrong.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "gradcheck.hpp"

namespace xgrad::detail {

struct Tolerance {
  double eps = 1e-6;   ///< the first step
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric|
  double rtol = 1e-3;
  /// Rounding may change a difference by so much: a derivative below ten times this is unchecked.
  double rounding = 0;
  bool eps_alone = false;  ///< the step of eps decides, by atol if need be
  /// The caller looks for ops that run through their whole range within the smallest step.  Where
  /// no op does, a function that changes by its rounding alone is constant.
  bool finds_steep_ops = false;

  /// The same for a gradient whose largest element is `largest`: near atol or below, atol becomes
  /// rtol * largest, but at least the rounding of values / arguments.
  Tolerance scaled(double largest, double values, double arguments) const;
  /// The same next to a derivative this large, 1e-11 of which may be rounding.
  Tolerance with_rounding_of(double largest) const;
};

/// A point of a line, x + t.
struct LinePoint {
  double t = 0;
  double h = 0;            ///< the step; a function that is itself a difference uses it, too
  double jitter = 0;       ///< all arguments are moved by up to this times their sizes, ...
  std::uint64_t seed = 0;  ///< ... in a random direction of this seed
};

/// A function of one number with several values.
struct Line {
  std::function<std::vector<double>(const LinePoint&)> at;
  double x = 0;                     ///< the argument, which becomes x + t; 0 along a direction
  double size = 1;                  ///< the argument's own or typical size
  std::vector<double> center = {};  ///< the values at x, if known
  /// The size of the numbers that round in each value, where that size exceeds the value.
  std::vector<double> scales = {};
  int order = 1;          ///< 2 if the function is itself a difference
  double noise = 0;       ///< rounding of its values, times h
  double unit = 0x1p-53;  ///< half a unit in the last place of 1, in its precision
};

enum class Verdict { right, wrong, unchecked };

struct Judgement {
  Verdict verdict = Verdict::right;
  /// A wrong verdict has not_finite, unknown, rounding (intermediates of size 1 may lose as much)
  /// or truncation (constant up to rounding, if no op is steep); an unchecked one kink, truncation
  /// (steep within every step), rounding (no digit left) or not_finite.
  GradcheckReason reason = GradcheckReason::none;
  double numeric = std::numeric_limits<double>::quiet_NaN();
  double left = 0, right = 0;  ///< the slopes at a kink; or a small derivative, and its rounding
  bool refined = false;        ///< the step of eps decided nothing
  /// "a kink at the point: ...", for unchecked.
  std::string because() const;
};

inline constexpr Judgement no_slope{Verdict::unchecked, GradcheckReason::not_finite};
inline constexpr Judgement no_digit{Verdict::unchecked, GradcheckReason::rounding};

/// Differences of a function along a line.  Its values are computed when they are first needed.
class Differences {
 public:
  using Weights = std::span<const std::pair<std::size_t, double>>;  ///< (value, weight)

  explicit Differences(Line line);
  /// Is `analytic` the derivative of the sum of weights * values?  An infinity that does
  /// not change is a constant.
  Judgement judge(Weights weights, double analytic, const Tolerance& tolerance);

 private:
  struct Step {
    double h = 0, up = 0, down = 0;  // after rounding
    std::vector<double> center, above, below;
  };
  struct Slope {
    double h = 0, central = 0, left = 0, right = 0;
    double error = 0;   // possible rounding error
    double shown = 0;   // the same for values that change
    double change = 0;  // the largest change of a value
    bool usable = false, one_sided = false, finite = true;
  };

  Step step(double h, double jitter = 0, std::uint64_t seed = 0);
  const Step& compared(std::size_t k);
  Judgement first(Weights weights, double analytic);
  Judgement refined(Weights weights, double analytic);
  Slope slope(const Step& step, Weights weights) const;
  bool lost(double change, Weights weights) const;
  bool bends_within(const Slope& slope, Weights weights);
  bool agrees(double analytic, const Slope& slope) const;
  double tolerance(double numeric) const;
  std::optional<Judgement> kink(const std::vector<Slope>& slopes, double analytic) const;
  std::optional<Judgement> kinks_nearby(Weights weights, double h, double analytic, double numeric);

  Line line_;
  Tolerance tolerance_ = {};
  std::optional<Step> first_;
  std::vector<double> sizes_;  // of the compared steps, falling
  std::vector<std::optional<Step>> steps_;
};

/// a - b, where equal infinities (masked elements) differ by 0.
inline double difference(double a, double b) { return a == b ? 0 : a - b; }
/// (value, weight) of the weights that are not 0.
std::vector<std::pair<std::size_t, double>> nonzero(std::span<const double> weights);
/// A larger magnitude is a mask's, as -1e9, unless other elements are as large.
inline constexpr double mask_size = 1e8;
/// The root mean square of the elements that are neither 0 nor, if others exist, a mask's; 0 if
/// there are none.
double typical_size(std::span<const double> x);
/// The size of an argument among others: their typical size, or its own if that is far smaller.
double size_among(double x, double typical);

}  // namespace xgrad::detail
