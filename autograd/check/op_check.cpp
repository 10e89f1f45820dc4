#include <xgrad/autograd/check/op_check.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/isolated_op.hpp>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {
namespace {

using detail::elements;
using detail::IsolatedOp;
using Event = Trace::Event;
using OpVerdict = OpCheck::Verdict;

// sum(v * (a - b)).
double weighted_difference(const std::vector<double>& v, const std::vector<double>& a,
                           const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < v.size(); ++j)
    sum += v[j] * detail::difference(a.at(j), b.at(j));
  return sum;
}

// What rounding one number does to a central difference.
double noise(double value, double eps) {
  return std::isfinite(value) ? std::abs(value) * 0x1p-53 / eps : 0;
}

// Derivatives of an op by differences, at the inputs it ran on, for one cotangent v.
class OpDifferences {
 public:
  OpDifferences(const IsolatedOp& op, const Tensor& v, double eps)
      : op_(op), v_(elements(v)), eps_(eps), here_(op.forward(still())) {}

  const std::vector<double>& here() const { return here_; }

  // How far rounding may carry the derivatives.
  double blur() const {
    double sum = 0;
    for (std::size_t j = 0; j < v_.size(); ++j)
      sum += std::abs(v_[j]) * noise(here_.at(j), eps_);
    return sum;
  }

  struct Derivative {
    double central = 0, left = 0, right = 0;
  };
  // Of <v, forward> by one element of a source.  None if that is too large to move.
  std::optional<Derivative> first(std::size_t source, std::size_t at) const {
    const auto moved = [&](double by) {
      auto moves = still();
      add(moves, source, at, by);
      return op_.forward(moves);
    };
    const double x = op_.source(source).data<double>()[at];
    const double up = std::isfinite(x) ? (x + eps_) - x : eps_;  // the way that it really moves
    const double down = std::isfinite(x) ? x - (x - eps_) : eps_;
    if (up == 0 || down == 0)
      return std::nullopt;
    const auto above = moved(eps_), below = moved(-eps_);
    return Derivative{weighted_difference(v_, above, below) / (up + down),
                      weighted_difference(v_, here_, below) / down,
                      weighted_difference(v_, above, here_) / up};
  }

  // Of the sources' gradients along a direction u, by one element of a source.  None where the
  // function is not smooth: steps of two sizes disagree.
  std::optional<double> second(const std::vector<std::vector<double>>& u, std::size_t source,
                               std::size_t at) const {
    const auto slope = [&](double by) {
      const auto moved = [&](double along) {
        auto moves = u;
        for (auto& move : moves)
          for (double& d : move)
            d *= along;
        add(moves, source, at, by);
        return op_.forward(moves);
      };
      return weighted_difference(v_, moved(wide), moved(-wide)) / (2 * wide);
    };
    const auto with_step = [&](double step) { return (slope(step) - slope(-step)) / (2 * step); };
    const double once = with_step(wide), twice = with_step(2 * wide);
    if (!(std::abs(once - twice) <= 1e-5 + 1e-3 * std::abs(once)))
      return std::nullopt;
    return once;
  }
  // Of the outputs along a direction u: the gradient by the cotangent.
  std::vector<double> along(const std::vector<std::vector<double>>& u) const {
    auto forth = u, back = u;
    for (std::size_t k = 0; k < u.size(); ++k)
      for (std::size_t j = 0; j < u[k].size(); ++j) {
        forth[k][j] *= eps_;
        back[k][j] *= -eps_;
      }
    auto a = op_.forward(forth);
    const auto b = op_.forward(back);
    for (std::size_t j = 0; j < a.size(); ++j)
      a[j] = detail::difference(a[j], b[j]) / (2 * eps_);
    return a;
  }

 private:
  static constexpr double wide = 1e-4;  // a good step for second differences

  std::vector<std::vector<double>> still() const {
    return std::vector<std::vector<double>>(op_.sources());
  }
  void add(std::vector<std::vector<double>>& moves, std::size_t source, std::size_t at,
           double by) const {
    moves[source].resize(op_.source(source).numel());
    moves[source][at] += by;
  }

  const IsolatedOp& op_;
  std::vector<double> v_;
  double eps_;
  std::vector<double> here_;
};

// Gathers what differs, element by element.
class Judge {
 public:
  Judge(OpCheck& check, const ExplainOptions& options, double blur = 0)
      : check_(check), options_(options), blur_(blur) {}

  void element(std::size_t input, const Shape& shape, std::size_t at, double analytic,
               double numeric) {
    const double distance = std::abs(analytic - numeric);
    const bool fine = distance <= options_.atol + blur_ + options_.rtol * std::abs(numeric);
    largest_ = std::max({largest_, std::abs(analytic), std::abs(numeric)});
    double error = distance / std::max(1.0, std::abs(numeric));
    if (std::isnan(error))
      error = INFINITY;
    check_.worst_error = std::max(check_.worst_error, error);
    ++check_.checked;
    if (fine)
      return;
    if (check_.disagree++ == 0 || error > worst_) {
      worst_ = error;
      check_.input = input;
      check_.index = position(shape, at);
      check_.analytic = analytic;
      check_.numeric = numeric;
    }
  }
  // Whether rounding hides what was to be seen.
  bool blind() const { return blur_ > options_.atol && blur_ > 0.1 * largest_; }

 private:
  OpCheck& check_;
  const ExplainOptions& options_;
  double blur_, worst_ = 0, largest_ = 0;
};

// A random cotangent: 0 for outputs that are infinite because an input is, and for those so large
// (of a mask of -1e9, say) that differences tell nothing of them, if there are others.
Tensor cotangent(const IsolatedOp& op, const Tensor& output, const ExplainOptions& options,
                 Generator& generator) {
  const Tensor v =
      where(op.infinite_by_inputs(), 0, detail::random_signed(output.shape(), generator));
  const Mask large =
      (abs(output.detach()) * (0x1p-53 / options.eps) > options.rtol) & isfinite(output.detach());
  return all(large) ? v : where(large, 0, v);
}

std::vector<double> or_zeros(const Tensor& gradient, std::size_t n) {
  return gradient.defined() ? elements(gradient) : std::vector<double>(n);
}

// All positions, or `most` of them, spread evenly.
std::vector<std::size_t> chosen(std::size_t n, std::size_t most) {
  std::vector<std::size_t> at;
  const std::size_t count = std::min(n, most);
  for (std::size_t i = 0; i < count; ++i)
    at.push_back(i * n / count);
  return at;
}

std::string mismatch(const OpCheck& check, const char* what) {
  return fmt::format(
      "{}: d / d input {} {} at ({}): analytic {:.9g}, numeric {:.9g}; {} of {} elements disagree",
      what, check.input, to_string(check.inputs[check.input]), fmt::join(check.index, ", "),
      check.analytic, check.numeric, check.disagree, check.checked);
}

class OpChecker {
 public:
  OpChecker(const Event& event, OpCheck& check, const ExplainOptions& options)
      : event_(event),
        check_(check),
        options_(options),
        generator_(options.seed),
        op_(event),
        v_(cotangent(op_, event.output, options, generator_)),
        numeric_(op_, v_, options.eps) {}

  void run() {
    if (numeric_.here() != elements(event_.output) && !has_nan()) {
      wrong(
          "its forward, run again on the same inputs, gives another value; it must be a function "
          "of its inputs alone");
      return;
    }
    if (v_.numel() > 0 && !any(v_ != 0)) {
      check_.verdict = OpVerdict::unchecked;
      check_.message = "all its outputs are infinite, as its inputs are";
      return;
    }
    check_.verdict = OpVerdict::right;
    const auto ordinary = gradients(false);
    if (check_.verdict != OpVerdict::right || !first_order(ordinary))
      return;
    const auto recorded = gradients(true);
    if (check_.verdict == OpVerdict::right)
      readings_agree(ordinary, recorded);
    if (check_.verdict == OpVerdict::right && options_.second_order)
      second_order();
  }

 private:
  bool has_nan() const {
    return std::ranges::any_of(elements(event_.output), [](double y) { return std::isnan(y); });
  }

  void wrong(std::string why) {
    check_.verdict = OpVerdict::wrong;
    check_.message = std::move(why);
  }

  std::vector<Tensor> gradients(bool create_graph) {
    const char* const reading = create_graph ? "its backward under create_graph" : "its backward";
    try {
      const auto result = op_.gradients(v_, create_graph);
      if (result.hooked && check_.message.empty())
        check_.message = "a hook on its output changes the gradient that it is given";
      return result.of_sources;
    } catch (const GraphError& error) {
      check_.verdict = OpVerdict::unchecked;
      check_.message = error.what();
    } catch (const std::exception& error) {
      wrong(fmt::format("{} throws: {}", reading, error.what()));
    }
    return {};
  }

  bool first_order(const std::vector<Tensor>& gradients) {
    Judge judge(check_, options_, numeric_.blur());
    std::string reason;
    bool unmoved = false;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const auto analytic = or_zeros(gradients[k], numel(shape));
      std::vector<double> mine, true_ones;
      const std::size_t before = check_.disagree;
      for (const std::size_t at : chosen(numel(shape), options_.max_elements)) {
        const auto d = numeric_.first(k, at);
        unmoved = unmoved || !d;
        if (!d)
          continue;
        // At a kink (relu at 0) the derivatives from both sides differ: all between them is right.
        const auto [low, high] = std::minmax(d->left, d->right);
        const bool kink = high - low > options_.atol + options_.rtol * std::abs(d->central);
        check_.kinks += kink ? 1 : 0;
        mine.push_back(analytic[at]);
        true_ones.push_back(kink ? std::clamp(analytic[at], low, high) : d->central);
        judge.element(op_.input(k), shape, at, mine.back(), true_ones.back());
      }
      if (reason.empty() && check_.disagree > before)
        reason = reason_of(gradients[k], mine, true_ones, shape);
    }
    if (check_.disagree > 0)
      wrong(mismatch(check_, "its backward is wrong") + reason);
    if (check_.disagree == 0 && (judge.blind() || (unmoved && check_.checked == 0))) {
      check_.verdict = OpVerdict::unchecked;
      check_.message = "its numbers are so large that finite differences tell nothing";
    }
    return check_.verdict == OpVerdict::right;
  }

  // In words how a wrong gradient differs from the right one, if that is simple.
  static std::string reason_of(const Tensor& gradient, const std::vector<double>& analytic,
                               const std::vector<double>& numeric, const Shape& shape) {
    if (!gradient.defined())
      return "; the backward adds none for this input";
    if (std::cmp_not_equal(analytic.size(), numel(shape)))
      return {};
    const std::string words = detail::relation(analytic, numeric, shape, 1e-3);
    return words.empty() ? words : fmt::format("; the analytic one {}", words);
  }

  void readings_agree(const std::vector<Tensor>& ordinary, const std::vector<Tensor>& recorded) {
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const auto a = or_zeros(recorded[k], numel(shape)), b = or_zeros(ordinary[k], numel(shape));
      OpCheck found = check_;
      found.checked = found.disagree = 0;
      Judge judge(found, options_);
      for (std::size_t at = 0; at < a.size(); ++at)
        if (a[at] != b[at])
          judge.element(op_.input(k), shape, at, a[at], b[at]);
      if (found.disagree > 0) {
        found.checked = a.size();
        check_ = found;
        wrong(mismatch(check_,
                       "its backward under create_graph differs from the ordinary one, which is "
                       "the numeric one here"));
        return;
      }
    }
  }

  void second_order() {
    Tensor v = v_.detach().requires_grad_();
    std::vector<std::vector<double>> u;
    Tensor number;
    const auto gradients = op_.gradients(v, true).of_sources;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Tensor& source = op_.source(k);
      const Tensor weights = detail::random_signed(source.shape(), generator_);
      u.push_back(elements(weights));
      if (gradients[k].defined()) {
        const Tensor part = sum(gradients[k] * weights);
        number = number.defined() ? number + part : part;
      }
    }
    const auto analytic = op_.second_gradients(number, v);
    OpCheck found = check_;
    found.disagree = 0;
    Judge judge(found, options_);
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const auto values = or_zeros(analytic[k], numel(shape));
      for (const std::size_t at : chosen(numel(shape), options_.max_elements))
        if (const auto numeric = numeric_.second(u, k, at))
          judge.element(op_.input(k), shape, at, values[at], *numeric);
    }
    const bool by_source = found.disagree > 0;
    bool all_move = true;  // (what is masked, by -1e9, say, need not)
    for (std::size_t k = 0; k < op_.sources(); ++k)
      for (const double x : elements(op_.source(k)))
        all_move = all_move && (x < -1e8 || noise(x, options_.eps) <= options_.rtol);
    const auto along = numeric_.along(u);
    const auto by_cotangent = or_zeros(analytic.back(), along.size());
    for (std::size_t at = 0; at < along.size() && all_move && !by_source; ++at)
      if (v_.data<double>()[at] != 0)
        judge.element(0, event_.output.shape(), at, by_cotangent[at], along[at]);
    check_ = found;
    if (by_source)
      wrong(mismatch(check_, "the gradient of its gradient is wrong"));
    else if (check_.disagree > 0)
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
  Tensor v_;
  OpDifferences numeric_;
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
  OpChecker(event, check, options).run();
  const auto op = std::make_shared<const IsolatedOp>(event);
  check.alone = [op](const std::vector<Tensor>& in) { return op->replay(in); };
  for (std::size_t k = 0; k < op->sources(); ++k)
    check.leaves.push_back(op->source(k).detach().requires_grad_());
  return check;
}

}  // namespace xgrad
