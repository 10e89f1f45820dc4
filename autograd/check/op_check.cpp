#include <xgrad/autograd/check/op_check.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/isolated_op.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {
namespace {

using detail::elements;
using detail::IsolatedOp;
using detail::Judgement;
using detail::LinePoint;
using Event = Trace::Event;
using OpVerdict = OpCheck::Verdict;
using Moves = std::vector<std::vector<double>>;  // of each source; empty for one that stays

constexpr std::size_t most_suspects = 64;
constexpr double masked = 1e8;

// Far larger than the others, as a mask's -1e9: it moves alone.
bool is_masked(double x, double typical) { return std::abs(x) > std::max(masked, 1e5 * typical); }

// Outputs beside which the others are rounding (of a mask of -1e9, say): they are checked alone.
Mask large_outputs(const Tensor& output) {
  const double others = detail::typical_size(elements(output));
  return isfinite(output.detach()) &
         (abs(output.detach()) > (others > 0 ? std::max(masked, 1e5 * others) : INFINITY));
}

// A random cotangent of the large outputs or of all others; 0 where there is no derivative.
Tensor cotangent(const IsolatedOp& op, const Tensor& output, bool large, Generator& generator) {
  const Mask outputs = large_outputs(output);
  return where(op.without_derivative() | (large ? ~outputs : outputs), 0,
               detail::random_signed(output.shape(), generator));
}

std::vector<double> or_zeros(const Tensor& gradient, std::size_t n) {
  return gradient.defined() ? elements(gradient) : std::vector<double>(n);
}

std::string mismatch(const OpCheck& check, const char* what) {
  return fmt::format(
      "{}: d / d input {} {} at ({}): analytic {:.9g}, numeric {:.9g}; {} of {} elements disagree",
      what, check.input, to_string(check.inputs[check.input]), fmt::join(check.index, ", "),
      check.analytic, check.numeric, check.disagree, check.checked);
}

class OpChecker {
 public:
  OpChecker(const Event& event, OpCheck& check, const ExplainOptions& options, bool large)
      : event_(event),
        check_(check),
        options_(options),
        generator_(options.seed),
        op_(event),
        cotangent_(cotangent(op_, event.output, large, generator_)),
        v_(elements(cotangent_)),
        here_(op_.forward(Moves(op_.sources()))) {
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const auto x = elements(op_.source(k));
      const double typical = detail::typical_size(x), size = typical > 0 ? typical : 1;
      typical_.push_back(size);
      sizes_.emplace_back();
      w_.push_back(elements(detail::random_signed(op_.source(k).shape(), generator_)));
      for (std::size_t i = 0; i < x.size(); ++i) {
        sizes_[k].push_back(detail::size_beside(x[i], typical));
        w_[k][i] *= is_masked(x[i], size) ? 0 : sizes_[k][i];
      }
    }
    for (std::size_t j = 0; j < v_.size(); ++j)
      if (v_[j] != 0 && std::isfinite(here_.at(j)))
        scale_ += std::abs(v_[j] * here_[j]);
  }

  void run() {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (!std::ranges::equal(here_, elements(event_.output), same))
      return wrong(
          "its forward, run again on the same inputs, gives another value; it must be a function "
          "of its inputs alone");
    if (!v_.empty() && std::ranges::all_of(v_, [](double v) { return v == 0; })) {
      check_.verdict = OpVerdict::unchecked;
      check_.infinite = true;
      check_.message = "all its outputs are infinite or NaN, as its inputs make them";
      return;
    }
    check_.verdict = OpVerdict::right;
    const auto ordinary = gradients(false), again = gradients(false);
    if (check_.verdict != OpVerdict::right)
      return;
    const auto equal = [](const Tensor& a, const Tensor& b) {
      return a.defined() && b.defined() ? !detail::first_difference(a, b)
                                        : a.defined() == b.defined();
    };
    if (!std::ranges::equal(ordinary, again, equal))
      return wrong(
          "two runs of its backward give different gradients: does it draw random numbers, or keep "
          "state?");
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const auto x = elements(op_.source(k)), g = or_zeros(ordinary[k], x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        if (const double part = std::abs(g[i] * x[i]); std::isfinite(part))
          scale_ += part;
    }
    double weights = 0;
    for (const double v : v_)
      weights += std::abs(v);
    scales_.assign(v_.size(), weights > 0 ? scale_ / weights : 0);
    if (!first_order(ordinary))
      return;
    const auto recorded = gradients(true);
    if (check_.verdict == OpVerdict::right)
      readings_agree(ordinary, recorded);
    if (check_.verdict == OpVerdict::right && options_.second_order)
      second_order();
  }

 private:
  using Elements = std::span<const std::size_t>;

  void wrong(std::string why) {
    check_.verdict = OpVerdict::wrong;
    check_.message = std::move(why);
  }

  // What f makes of the op's backward; a verdict if it throws.
  template <class F>
  auto attempt(const char* what, const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const GraphError& error) {
      check_.verdict = OpVerdict::unchecked;
      check_.message = error.what();
    } catch (const std::exception& error) {
      wrong(fmt::format("{} throws: {}", what, error.what()));
    }
    return {};
  }
  std::vector<Tensor> gradients(bool create_graph) {
    return attempt(create_graph ? "its backward under create_graph" : "its backward", [&] {
      const auto result = op_.gradients(cotangent_, create_graph);
      check_.hooked = check_.hooked || result.hooked;
      return result.of_sources;
    });
  }

  // ---- lines through the inputs ----

  // A line along one element of a source, or along a random direction in several.
  struct Direction {
    std::size_t source;
    std::vector<double> u;
    double x = 0, size = 1;
  };
  Direction direction(std::size_t k, Elements at) const {
    const auto x = elements(op_.source(k));
    Direction d{k, std::vector<double>(x.size())};
    Generator generator(options_.seed + at.size());
    if (at.size() == 1)
      return d.u[at[0]] = 1, d.x = x[at[0]], d.size = sizes_[k][at[0]], d;
    for (const std::size_t i : at)
      if (const double sign = generator.uniform_double() < 0.5 ? -1 : 1;
          !is_masked(x[i], typical_[k]))
        d.u[i] = sign * sizes_[k][i] * (0.5 + generator.uniform_double());
    return d;
  }

  static void add(std::vector<double>& to, const std::vector<double>& direction, double by) {
    to.resize(direction.size());
    for (std::size_t i = 0; i < direction.size(); ++i)
      to[i] += by * direction[i];
  }
  Moves moves(const Direction& d, const LinePoint& point) const {
    Moves result(op_.sources());
    Generator generator(point.seed);
    for (std::size_t k = 0; k < result.size() && point.away > 0; ++k)
      for (Size i = 0; i < op_.source(k).numel(); ++i)
        result[k].push_back(point.away * sizes_[k][i] * (2 * generator.uniform_double() - 1));
    add(result[d.source], d.u, point.t);
    return result;
  }
  // The derivative of <v, outputs> along w.
  double slope(const Direction& d, const LinePoint& point) const {
    const double step = point.h / d.size;
    Moves up = moves(d, point), down = up;
    for (std::size_t k = 0; k < up.size(); ++k) {
      add(up[k], w_[k], step);
      add(down[k], w_[k], -step);
    }
    const auto above = op_.forward(up), below = op_.forward(down);
    double sum = 0;
    for (std::size_t j = 0; j < v_.size(); ++j)
      if (v_[j] != 0)
        sum += v_[j] * detail::difference(above.at(j), below.at(j));
    return sum / (2 * step);
  }

  detail::Tolerance tolerance(const std::vector<double>& analytic, double arguments) const {
    return detail::Tolerance{.eps = options_.eps, .atol = options_.atol, .rtol = options_.rtol}
        .scaled(detail::scale_of(analytic), scale_, arguments)
        .beside(detail::scale_of(analytic));
  }

  // 0 times infinity, where some outputs are left out.
  bool odd(double analytic) const { return left_out_ && !std::isfinite(analytic); }
  const Judgement no_slope{detail::Verdict::unchecked, GradcheckReason::not_finite};

  // The verdict on the gradient of a source along these elements.
  Judgement judge(int order, std::size_t k, Elements at,
                  const std::vector<double>& analytic) const {
    if (at.size() == 1 && odd(analytic[at[0]]))
      return no_slope;
    const Direction d = direction(k, at);
    double along = 0;
    for (std::size_t i = 0; i < d.u.size(); ++i)
      along += d.u[i] == 0 ? 0 : d.u[i] * analytic[i];
    auto limits = tolerance(analytic, typical_[k]);
    if (at.size() > 1)
      limits.atol *= typical_[k];
    if (order == 1)
      return detail::Differences(
                 {.at = [&](const LinePoint& p) { return op_.forward(moves(d, p)); },
                  .x = d.x,
                  .size = d.size,
                  .here = here_,
                  .scales = scales_},
                 limits)
          .judge(detail::nonzero(v_), along);
    const std::pair<std::size_t, double> one{0, 1.0};
    return detail::Differences({.at = [&](const LinePoint& p) { return std::vector{slope(d, p)}; },
                                .x = d.x,
                                .size = d.size,
                                .order = 2,
                                .noise = 0x1p-53 * scale_ * d.size},
                               limits)
        .judge({&one, 1}, along);
  }

  void suspects(int order, std::size_t k, Elements at, const std::vector<double>& analytic,
                std::vector<std::size_t>& found) const {
    detail::suspects(
        [&](Elements some) {
          return judge(order, k, some, analytic).verdict == detail::Verdict::right;
        },
        at, most_suspects, found);
  }

  // ---- verdicts ----

  void count(std::size_t input, const Shape& shape, std::size_t at, double analytic,
             const Judgement& found) {
    if (found.verdict == detail::Verdict::unchecked) {
      check_.infinite = check_.infinite || found.reason == GradcheckReason::not_finite ||
                        !std::isfinite(analytic);
      if (check_.unchecked++ == 0)
        because_ = found.because();
      return;
    }
    double error = std::abs(analytic - found.numeric) / std::max(1.0, std::abs(found.numeric));
    if (std::isnan(error))
      error = INFINITY;
    check_.worst_error = std::max(check_.worst_error, error);
    if (found.verdict == detail::Verdict::right)
      return;
    if (check_.disagree++ == 0 || error > worst_) {
      worst_ = error;
      check_.input = input;
      check_.index = position(shape, at);
      check_.analytic = analytic;
      check_.numeric = found.numeric;
    }
  }

  bool first_order(const std::vector<Tensor>& gradients) {
    std::string reason;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const std::size_t n = numel(shape), most = std::min(n, options_.max_elements);
      const auto analytic = or_zeros(gradients[k], n);
      std::vector<std::size_t> chosen, others;  // the chosen are spread evenly
      for (std::size_t i = 0; i < n; ++i)
        (chosen.size() < most && i == chosen.size() * n / most ? chosen : others).push_back(i);
      suspects(1, k, others, analytic, chosen);
      auto numeric = analytic;
      const std::size_t before = check_.disagree;
      for (const std::size_t at : chosen) {
        const Judgement found = judge(1, k, {&at, 1}, analytic);
        ++check_.checked;
        count(op_.input(k), shape, at, analytic[at], found);
        if (found.verdict == detail::Verdict::wrong)
          numeric[at] = found.numeric;
      }
      if (reason.empty() && check_.disagree > before)
        reason = gradients[k].defined()
                     ? reason_of(analytic, numeric, shape, most < n)
                     : fmt::format("; it adds no gradient for input {}", op_.input(k));
    }
    if (check_.disagree > 0)
      wrong(mismatch(check_, "its backward is wrong") + reason);
    else if (check_.unchecked > 0)
      set_unchecked(check_.unchecked == check_.checked);
    return check_.verdict == OpVerdict::right;
  }

  void set_unchecked(bool all) {
    if (all)
      check_.verdict = OpVerdict::unchecked;
    check_.message = all ? because_
                         : fmt::format("{} of {} elements unchecked: {}", check_.unchecked,
                                       check_.checked, because_);
  }

  // In words how a wrong gradient differs from the right one, if that is simple.
  static std::string reason_of(const std::vector<double>& analytic,
                               const std::vector<double>& numeric, const Shape& shape,
                               bool sampled) {
    const std::string words = sampled ? "" : detail::relation(analytic, numeric, shape, 1e-3);
    return words.empty() ? words : fmt::format("; the analytic one {}", words);
  }

  void readings_agree(const std::vector<Tensor>& ordinary, const std::vector<Tensor>& recorded) {
    const OpCheck before = check_;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const auto a = or_zeros(recorded[k], numel(shape)), b = or_zeros(ordinary[k], numel(shape));
      const auto limits = tolerance(b, typical_[k]);
      for (std::size_t at = 0; at < a.size(); ++at)
        if (a[at] != b[at] && !(std::isnan(a[at]) && std::isnan(b[at])) &&
            !(std::abs(a[at] - b[at]) <= limits.atol + limits.rtol * std::abs(b[at])))
          count(op_.input(k), shape, at, a[at],
                {.verdict = detail::Verdict::wrong, .numeric = b[at]});
      if (check_.disagree > before.disagree) {
        check_.checked = a.size();
        return wrong(
            mismatch(check_,
                     "its backward under create_graph differs from the ordinary one, which "
                     "is the numeric one here"));
      }
    }
  }

  // The gradients, by the sources and by the cotangent, of the backward's sum along w; the same of
  // numbers that differ in their last digits shows what rounding makes of them.
  std::vector<Tensor> second_gradients(double last_digits) {
    Generator generator(options_.seed);
    const auto rounded = [&](std::vector<double> some, const Tensor& like) {
      for (double& x : some)
        x *= 1 + last_digits * (2 * generator.uniform_double() - 1);
      return Tensor(std::move(some), Dims(like.shape()));
    };
    return attempt("the backward of its backward", [&] {
      const Tensor v = rounded(v_, cotangent_).requires_grad_();
      Tensor number;
      const auto gradients = op_.gradients(v, true).of_sources;
      for (std::size_t k = 0; k < op_.sources(); ++k)
        if (gradients[k].defined()) {
          const Tensor part = sum(gradients[k] * rounded(w_[k], op_.source(k)));
          number = number.defined() ? number + part : part;
        }
      return op_.second_gradients(number, v);
    });
  }

  void second_order() {
    const auto analytic = second_gradients(0);
    if (check_.verdict != OpVerdict::right)
      return;
    std::vector<Tensor> rounded;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const auto values = or_zeros(analytic[k], numel(shape));
      std::vector<std::size_t> all(values.size()), found;
      check_.checked += values.size();
      std::iota(all.begin(), all.end(), std::size_t{0});
      suspects(2, k, all, values, found);
      if (!found.empty() && rounded.empty())
        rounded = second_gradients(0x1p-48);
      for (const std::size_t at : found) {
        const Judgement judgement = judge(2, k, {&at, 1}, values);
        const double noise = std::abs(or_zeros(rounded[k], values.size())[at] - values[at]);
        if (!(std::abs(values[at] - judgement.numeric) <= 4 * noise))
          count(op_.input(k), shape, at, values[at], judgement);
      }
    }
    if (check_.disagree > 0)
      return wrong(mismatch(check_, "the gradient of its gradient is wrong"));
    if (check_.unchecked > 0)
      set_unchecked(false);
    by_cotangent(or_zeros(analytic.back(), v_.size()));
  }

  // The backward is linear in the cotangent: its derivative is that of the outputs along w.
  void by_cotangent(const std::vector<double>& analytic) {
    detail::Differences along(
        {.at =
             [&](const LinePoint& p) {
               Moves all = moves({0, std::vector<double>(op_.source(0).numel())}, p);
               for (std::size_t k = 0; k < all.size(); ++k)
                 add(all[k], w_[k], p.t);
               return op_.forward(all);
             },
         .here = here_,
         .scales = scales_},
        tolerance(analytic, 1));
    check_.checked += v_.size();
    for (std::size_t j = 0; j < v_.size(); ++j)
      if (v_[j] != 0)
        count(0, event_.output.shape(), j, analytic[j],
              odd(analytic[j]) ? no_slope : along.judge(j, analytic[j]));
    if (check_.disagree > 0)
      wrong(
          fmt::format("its backward is not differentiable by the gradient it is given, at ({}): "
                      "analytic {:.9g}, numeric {:.9g}",
                      fmt::join(check_.index, ", "), check_.analytic, check_.numeric));
  }

  const Event& event_;
  OpCheck& check_;
  const ExplainOptions& options_;
  Generator generator_;
  IsolatedOp op_;
  Tensor cotangent_;
  std::vector<double> v_, here_, typical_, scales_;
  Moves sizes_;  // of each element: its source's, if it is not far below that
  Moves w_;      // a direction in all sources, of these sizes
  bool left_out_ = any(op_.without_derivative());  // some outputs have no derivative
  double scale_ = 0;                               // sum |v * outputs|, |gradients * inputs|
  double worst_ = 0;
  std::string because_;  // the first that is unchecked
};

}  // namespace

OpCheck detail::check_op(const Event& event, std::size_t number, const ExplainOptions& options) {
  OpCheck check;
  check.number = number;
  check.op = event.op;
  check.scope = event.scope;
  bool single = event.output.dtype() == DType::float32;
  for (const Tensor& x : event.inputs) {
    check.defined.push_back(x.defined());
    check.inputs.push_back(x.defined() ? x.shape() : Shape());
    single = single || (x.defined() && x.dtype() == DType::float32);
  }
  check.output = event.output.shape();
  if (!event.output.requires_grad())
    return check;
  if (single) {
    check.verdict = OpVerdict::unchecked;
    check.message = "it computes in float32, which is too coarse for finite differences";
    return check;
  }
  OpChecker(event, check, options, false).run();
  if (check.verdict == OpVerdict::right && any(large_outputs(event.output))) {
    OpCheck of_large = check;
    OpChecker(event, of_large, options, true).run();
    if (of_large.verdict == OpVerdict::wrong)  // what is unchecked may be the others' rounding
      check = of_large;
  }
  const auto op = std::make_shared<const IsolatedOp>(event);
  check.alone = [op](const std::vector<Tensor>& in) { return op->replay(in); };
  for (std::size_t k = 0; k < op->sources(); ++k)
    check.leaves.push_back(op->source(k).detach().requires_grad_());
  return check;
}

}  // namespace xgrad
