#include "op_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <numeric>
#include "../engine.hpp"
#include "../fail.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "describe.hpp"

namespace xgrad::detail {
namespace {

// While it lives, a hook replaces all hooks of a Tensor.
class HookGuard {
 public:
  HookGuard(const Tensor& x, Node::Hook hook)
      : x_(x), before_(std::exchange(x.identity().node->hooks, {})) {
    x_.register_hook(std::move(hook));
  }
  HookGuard(const HookGuard&) = delete;
  HookGuard& operator=(const HookGuard&) = delete;
  ~HookGuard() { x_.identity().node->hooks = std::move(before_); }

 private:
  Tensor x_;
  std::vector<std::pair<std::size_t, Node::Hook>> before_;
};

using Event = Trace::Event;
using OpVerdict = OpCheck::Verdict;

// Outputs beside which the others are rounding (of a mask of -1e9, say): they are checked alone.
Mask large_outputs(const Tensor& output) {
  const double others = typical_size(elements(output));
  return isfinite(output.detach()) &
         (abs(output.detach()) > (others > 0 ? std::max(mask_size, 1e5 * others) : INFINITY));
}

// A random cotangent of the large outputs or of all others; 0 where there is no derivative.
Tensor random_cotangent(const RecordedOp& op, const Tensor& output, bool large,
                        Generator& generator) {
  const Mask outputs = large_outputs(output);
  return where(op.without_derivative() | (large ? ~outputs : outputs), 0,
               random_signed(output.shape(), generator));
}

class OpChecker {
 public:
  OpChecker(const Event& event, OpCheck& check, Findings& found, const ExplainOptions& options,
            bool large)
      : event_(event),
        check_(check),
        found_(found),
        options_(options),
        generator_(options.seed),
        op_(event),
        probe_(op_.probe()),
        cotangent_(random_cotangent(op_, event.output, large, generator_)),
        v_(elements(cotangent_)),
        weights_(nonzero(v_)) {
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      w_.push_back(elements(random_signed(op_.source(k).shape(), generator_)));
      for (std::size_t i = 0; i < w_[k].size(); ++i)
        w_[k][i] *= probe_.leaves[k].sizes[i];
    }
    add_sizes(scale_, v_, probe_.center);
  }

  void run() {
    check_readings();
    check_.disagree = found_.disagree;
    check_.unchecked = found_.unchecked;
    check_.infinite = found_.infinite;
    check_.steep = found_.steep;
    check_.worst_error = found_.worst_error;
    if (check_.verdict == OpVerdict::right && found_.unchecked > 0)
      check_.message = fmt::format("{} of {} elements unchecked: {}", found_.unchecked,
                                   check_.checked, found_.because);
  }

 private:
  void check_readings() {
    if (!close(probe_.center, elements(event_.output), 0))
      return wrong(
          "its forward, run again on the same inputs, gives another value; it must be a function "
          "of its inputs alone");
    if (!v_.empty() && weights_.empty()) {
      found_.infinite = true;
      return unchecked("all its outputs are infinite or NaN, as its inputs make them");
    }
    check_.verdict = OpVerdict::right;
    const auto ordinary = gradients(false), again = gradients(false);
    if (check_.verdict != OpVerdict::right)
      return;
    const auto equal = [](const Tensor& a, const Tensor& b) {
      return a.defined() && b.defined() ? !first_difference(a, b) : a.defined() == b.defined();
    };
    if (!std::ranges::equal(ordinary, again, equal))
      return wrong(
          "two runs of its backward give different gradients: does it draw random numbers, or keep "
          "state?");
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Doubles& x = probe_.leaves[k].values;
      add_sizes(scale_, or_zeros(ordinary[k], x.size()), x);
    }
    double weights = 0;
    for (const auto& [j, v] : weights_)
      weights += std::abs(v);
    probe_.scales.assign(v_.size(), weights > 0 ? scale_ / weights : 0);
    first_order(ordinary);
    if (check_.verdict != OpVerdict::right)
      return;
    const auto recorded = gradients(true);
    if (check_.verdict == OpVerdict::right)
      compare_with_create_graph(ordinary, recorded);
    if (check_.verdict == OpVerdict::right && options_.second_order)
      second_order();
  }

  void wrong(std::string why) {
    check_.verdict = OpVerdict::wrong;
    check_.message = std::move(why);
  }
  void unchecked(std::string why) {
    check_.verdict = OpVerdict::unchecked;
    check_.message = std::move(why);
  }

  // Calls f, which runs the op's backward; a verdict if it throws.
  template <class F>
  auto attempt(const char* what, const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const GraphError& error) {
      unchecked(error.what());
    } catch (const std::exception& error) {
      wrong(fmt::format("{} throws: {}", what, error.what()));
    }
    return {};
  }
  std::vector<Tensor> gradients(bool create_graph) {
    return attempt(create_graph ? "its backward under create_graph" : "its backward", [&] {
      check_.hooked = check_.hooked || op_.hooked(cotangent_);
      return op_.gradients(cotangent_, create_graph);
    });
  }

  // ---- verdicts ----

  Tolerance tolerance(std::span<const double> analytic, double arguments) const {
    return Tolerance{.eps = options_.eps, .atol = options_.atol, .rtol = options_.rtol}
        .scaled(scale_of(analytic), scale_, arguments)
        .with_rounding_of(scale_of(analytic));
  }

  // 0 times infinity, where some outputs are left out.
  bool has_no_slope(double analytic) const { return no_derivative_ && !std::isfinite(analytic); }

  // Checks the gradient of a source: of the weighted sum of a probe's outputs.
  void check_source(const Probe& probe, const Claim& claim, std::size_t k, std::size_t one_by_one,
                    const auto& tell) const {
    const auto analytic = claim.gradient;
    const double typical = probe.leaves[k].typical;
    const auto limits = [&](std::size_t, Elements at, const Direction&) {
      auto some = std::optional(tolerance(analytic, typical));
      if (at.size() > 1)
        some->atol *= typical;
      else if (has_no_slope(analytic[at[0]]))
        some.reset();
      return some;
    };
    check_claims(probe, k, {&claim, 1}, {.tolerance = limits, .one_by_one = one_by_one}, tell);
  }

  // Tells of the worst element.
  void wrong_at(std::size_t input, const Shape& shape, const std::string& what,
                const std::string& rest) {
    check_.input = input;
    check_.index = position(shape, found_.worst.element);
    check_.analytic = found_.worst.analytic;
    check_.numeric = found_.worst.numeric;
    wrong(fmt::format("{} at ({}): analytic {:.9g}, numeric {:.9g}{}", what,
                      fmt::join(check_.index, ", "), check_.analytic, check_.numeric, rest));
  }
  void wrong_source(const char* what, const std::string& reason = {}) {
    const std::size_t input = op_.input(found_.worst.leaf);
    const Shape& shape = check_.inputs[input];
    wrong_at(
        input, shape, fmt::format("{}: d / d input {} {}", what, input, to_string(shape)),
        fmt::format("; {} of {} elements disagree{}", found_.disagree, check_.checked, reason));
  }

  void first_order(const std::vector<Tensor>& gradients) {
    std::string reason;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Shape& shape = op_.source(k).shape();
      const Doubles analytic = or_zeros(gradients[k], numel(shape));
      Doubles numeric = analytic;
      const std::size_t before = found_.disagree;
      check_source(probe_, {weights_, analytic}, k, options_.max_elements,
                   [&](const Finding& found) {
                     found_.add(found);
                     ++check_.checked;
                     if (found.verdict == Verdict::wrong)
                       numeric[found.element] = found.numeric;
                   });
      if (!reason.empty() || found_.disagree == before)
        continue;
      if (!gradients[k].defined())
        reason = fmt::format("; it adds no gradient for input {}", op_.input(k));
      else if (const auto how = relation(analytic, numeric, shape, 1e-3);
               analytic.size() <= options_.max_elements && !how.empty())
        reason = fmt::format("; the analytic one {}", how);
    }
    if (found_.disagree > 0)
      wrong_source("its backward is wrong", reason);
    else if (found_.unchecked > 0 && found_.unchecked == check_.checked)
      unchecked(found_.because);
  }

  void compare_with_create_graph(const std::vector<Tensor>& ordinary,
                                 const std::vector<Tensor>& recorded) {
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Doubles a = or_zeros(recorded[k], op_.source(k).numel()),
                    b = or_zeros(ordinary[k], a.size());
      const auto limits = tolerance(b, probe_.leaves[k].typical);
      for (std::size_t at = 0; at < a.size(); ++at)
        if (a[at] != b[at] && !(std::isnan(a[at]) && std::isnan(b[at])) &&
            !(std::abs(a[at] - b[at]) <= limits.atol + limits.rtol * std::abs(b[at])))
          found_.add({{.verdict = Verdict::wrong, .numeric = b[at]}, k, 0, at, a[at]});
      if (found_.disagree > 0) {
        check_.checked = a.size();
        return wrong_source(
            "its backward under create_graph differs from the ordinary one, which is the numeric "
            "one here");
      }
    }
  }

  // The gradients of the backward's sum along w, by the sources and by the cotangent.  Changes in
  // their last digits show the effect of rounding.
  std::vector<Tensor> second_gradients(double last_digits) {
    Generator generator(options_.seed);
    const auto rounded = [&](Doubles some, const Tensor& x) {
      for (double& e : some)
        e *= 1 + last_digits * (2 * generator.uniform_double() - 1);
      return like(x, std::move(some));
    };
    return attempt("the backward of its backward", [&] {
      const Tensor v = rounded(v_, cotangent_).requires_grad_();
      Tensor number;
      const auto gradients = op_.gradients(v, true);
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
    const Probe slope = slope_along(probe_, weights_, w_, scale_);
    std::vector<Tensor> rounded;
    for (std::size_t k = 0; k < op_.sources(); ++k) {
      const Doubles values = or_zeros(analytic[k], op_.source(k).numel());
      check_.checked += values.size();
      check_source(slope, {{{0, 1.0}}, values}, k, 0, [&](const Finding& found) {
        if (rounded.empty())
          rounded = second_gradients(0x1p-48);
        const double noise =
            std::abs(or_zeros(rounded[k], values.size())[found.element] - found.analytic);
        if (!(std::abs(found.analytic - found.numeric) <= 4 * noise))
          found_.add(found);
      });
    }
    if (found_.disagree > 0)
      return wrong_source("the gradient of its gradient is wrong");
    by_cotangent(or_zeros(analytic.back(), v_.size()));
  }

  // The backward is linear in the cotangent: its derivative is that of the outputs along w.
  void by_cotangent(const Doubles& analytic) {
    Differences along(probe_.line({w_}));
    const Tolerance limits = tolerance(analytic, 1);
    check_.checked += v_.size();
    for (const auto& [j, v] : weights_) {
      const std::pair<std::size_t, double> one{j, 1.0};
      found_.add(
          {has_no_slope(analytic[j]) ? no_slope : along.judge({&one, 1}, analytic[j], limits), 0, 0,
           j, analytic[j]});
    }
    if (found_.disagree > 0)
      wrong_at(0, event_.output.shape(),
               "its backward is not differentiable by the gradient it is given,", "");
  }

  const Event& event_;
  OpCheck& check_;
  Findings& found_;
  const ExplainOptions& options_;
  Generator generator_;
  const RecordedOp op_;
  Probe probe_;
  Tensor cotangent_;
  Doubles v_;
  std::vector<std::pair<std::size_t, double>> weights_;  // of v, without zeros
  Point w_;  // a direction in all sources, by their sizes
  bool no_derivative_ = any(op_.without_derivative());  // for some outputs
  double scale_ = 0;                                    // sum |v * outputs|, |gradients * inputs|
};

}  // namespace

RecordedOp::RecordedOp(const Trace::Event& event) : event_(event) {
  for (std::size_t i = 0; i < event.inputs.size(); ++i) {
    const Tensor& x = event.inputs[i];
    if (!x.defined() || !x.requires_grad())
      continue;
    const auto same = std::ranges::find_if(sources_, [&](const auto& inputs) {
      return event.inputs[inputs[0]].identity().node == x.identity().node;
    });
    if (same != sources_.end()) {
      same->push_back(i);
    } else {
      sources_.push_back({i});
      leaves_.push_back(x.detach().requires_grad_());
    }
  }
}

std::vector<Tensor> RecordedOp::inputs_with(const std::vector<Tensor>& values) const {
  std::vector<Tensor> inputs = event_.inputs;
  for (std::size_t k = 0; k < sources(); ++k)
    for (const std::size_t i : sources_[k])
      inputs[i] = values[k];
  return inputs;
}

Tensor RecordedOp::replay(const std::vector<Tensor>& values) const {
  const std::shared_ptr<Node>& node = event_.output.identity().node;
  return record(event_.op, inputs_with(values), event_.forward,
                [node](Context& ctx) {
                  check<GraphError>(node->backward(ctx),
                                    "the graph behind '{}' was freed: keep it with retain_graph",
                                    node->op);
                },
                {.broadcasts = node->broadcasts, .saves_output = node->output != nullptr});
}

std::vector<Tensor> RecordedOp::gradients(const Tensor& cotangent, bool create_graph) const {
  return partial_gradients({replay(leaves_)}, leaves_, {cotangent},
                           {.create_graph = create_graph, .retain_graph = create_graph});
}

bool RecordedOp::hooked(const Tensor& cotangent) const {
  Tensor g = cotangent;
  const auto hooks = event_.output.identity().node->hooks;  // a copy: a hook may remove itself
  for (const auto& [id, hook] : hooks)
    if (const Tensor replacement = hook(g); replacement.defined())
      g = replacement;
  return elements(g) != elements(cotangent);
}

std::vector<Tensor> RecordedOp::second_gradients(const Tensor& number,
                                                 const Tensor& cotangent) const {
  if (!number.defined() || !number.requires_grad())
    return std::vector<Tensor>(sources() + 1);
  // A graph leads to the sources through saved inputs, and to the leaves of a replay through its
  // saved output.  A source's gradient is not passed on, because one source may be computed from
  // another.
  std::vector<Tensor> targets = leaves_, through_inputs(sources());
  targets.push_back(cotangent);
  std::vector<std::unique_ptr<HookGuard>> hooks;
  for (std::size_t k = 0; k < sources(); ++k) {
    targets.push_back(source(k));
    hooks.push_back(std::make_unique<HookGuard>(source(k), [&through_inputs, k](const Tensor& g) {
      through_inputs[k] = g;
      return zeros_like(g);
    }));
  }
  auto result = grad({number}, targets, {.retain_graph = true, .allow_unused = true});
  result.resize(sources() + 1);
  for (std::size_t k = 0; k < sources(); ++k)
    if (const Tensor& g = through_inputs[k]; g.defined())
      result[k] = result[k].defined() ? result[k] + g : g;
  return result;
}

Probe RecordedOp::probe() const {
  Probe probe{.at = [this](Point point, double) {
    std::vector<Tensor> values;
    for (std::size_t k = 0; k < sources(); ++k)
      values.push_back(point[k].empty() ? source(k).detach()
                                        : like(source(k), std::move(point[k])));
    return elements(event_.forward(inputs_with(values)));
  }};
  for (std::size_t k = 0; k < sources(); ++k)
    probe.leaves.emplace_back(elements(source(k)));
  probe.center = probe.at(Point(sources()), 0);
  return probe;
}

Mask RecordedOp::without_derivative() const {
  const ModeGuard plain({false, nullptr});
  const Tensor y = event_.output.detach();
  const Mask infinities = infinite(y), nan = ~isfinite(y) & ~infinities;
  if (!any(infinities))
    return nan;
  std::vector<Tensor> half;
  for (const Tensor& x : event_.inputs)
    half.push_back(x.defined() ? full_like(x.detach(), 0.5) : x);
  try {
    return nan | (infinities & ~infinite(event_.forward(half)));
  } catch (const std::exception&) {
    return nan;  // it rejects such inputs
  }
}

// ---- checking one op ----

OpCheck check_op(const Event& event, std::size_t number, const ExplainOptions& options) {
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
  Findings found;
  OpChecker(event, check, found, options, false).run();
  if (check.verdict == OpVerdict::right && any(large_outputs(event.output))) {
    OpCheck of_large = check;
    OpChecker(event, of_large, found, options, true).run();
    if (of_large.verdict == OpVerdict::wrong)  // what is unchecked may be the others' rounding
      check = of_large;
  }
  const auto op = std::make_shared<const RecordedOp>(event);
  check.leaves = op->leaves();
  check.alone = [op, no_derivative = op->without_derivative()](const std::vector<Tensor>& in) {
    const Tensor y = op->replay(in);
    return any(no_derivative) ? where(no_derivative, 0, y) : y;
  };
  return check;
}

// ---- all ops of a run ----

// Whether outputs bend at the point: along some direction the change of slope does not fall with
// the step, as for relu at 0 and the maximum of equal numbers.
static bool at_kink(Probe probe) {
  for (std::size_t k = 0; k < probe.leaves.size(); ++k) {
    probe.leaves[k].even_out();
    std::vector<std::size_t> all(probe.leaves[k].values.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const Line line = probe.line(probe.along(k, all));
    const auto bend = [&](double h) {
      Doubles up = line.at({.t = h});
      const Doubles down = line.at({.t = -h});
      for (std::size_t j = 0; j < up.size(); ++j)
        up[j] = std::abs((up[j] - probe.center[j]) + (down[j] - probe.center[j]));
      return up;
    };
    const Doubles far = bend(1e-3), near = bend(1e-5);
    for (std::size_t j = 0; j < near.size(); ++j)
      if (near[j] > std::max(1e-3 * far[j], 1e-12 * std::abs(probe.center[j])))
        return true;
  }
  return false;
}

SpecialPlaces special_places(const CheckedFunction& f, const GradcheckOptions& options) {
  SpecialPlaces found;
  const Trace trace;
  f.with_graph();
  const ModeGuard unobserved({true, nullptr});
  std::size_t number = 0;
  for (const Event& event : trace.events()) {
    const OpCheck op =
        check_op(event, ++number, {.eps = options.eps, .atol = options.atol, .rtol = options.rtol});
    if (op.verdict == OpVerdict::wrong) {
      found.wrong = fmt::format("op {}, {}: {}", number, in_scope(op), op.message);
      return found;
    }
    found.steep = found.steep || op.steep;
    if (op.infinite && found.infinite.empty())
      found.infinite = fmt::format("op {}, {}", number, op.op);
    found.kink = found.kink || (event.output.requires_grad() && at_kink(RecordedOp(event).probe()));
  }
  found.ops = number;
  return found;
}

GradientTerms::GradientTerms(const CheckedFunction& f) : f_(f) {
  const Trace trace;
  outputs_ = f.with_graph();
  for (const Event& event : trace.events())
    if (event.output.requires_grad())
      made_.insert_or_assign(event.output.identity().node.get(), event.output);
}

std::vector<Tensor> GradientTerms::gradients(const std::vector<Tensor>& outputs,
                                             const std::vector<Tensor>& cotangents) {
  sizes_.clear();
  last_ = detail::gradients(outputs, f_.tensors(), cotangents, {.retain_graph = true},
                            [&](const Node& node, const Tensor& gradient) {
                              sizes_[&node] = scale_of(elements(gradient));
                            });
  return last_;
}

double GradientTerms::rounding(std::size_t k) {
  double largest = 0;
  for (const auto& [node, size] : sizes_) {
    const auto made = made_.find(node);
    if (made == made_.end() || size == 0)
      continue;
    const auto [way, is_new] = ways_.try_emplace(node, f_.leaves().size());
    if (is_new) {
      Generator generator(0);
      const Tensor& y = made->second;
      const Tensor v = like(y, elements(random_signed(y.shape(), generator)));
      try {
        const auto found = detail::gradients({y}, f_.tensors(), {v}, {.retain_graph = true});
        for (std::size_t leaf = 0; leaf < found.size(); ++leaf)
          way->second[leaf] = scale_of(or_zeros(found[leaf], 0));
      } catch (const std::exception&) {  // a formula that takes some cotangents alone
      }
    }
    if (const double term = size * way->second[k]; std::isfinite(term))
      largest = std::max(largest, term);
  }
  return 64 * 0x1p-53 * largest;
}

bool GradientTerms::is_zero(std::size_t k) {
  const double size = scale_of(or_zeros(last_[k], 0));
  const auto steeper = [&](const auto& of) { return of.second > 1e9 * size; };
  return size == 0 || (std::ranges::any_of(sizes_, steeper) && size <= rounding(k));
}

std::string float32_op(const std::vector<Trace::Event>& events, bool loops_too) {
  const auto is_float = [](double v) { return static_cast<double>(static_cast<float>(v)) == v; };
  // Whether it has more digits than a round number.
  const auto is_long = [](double v) {
    int exponent = 0;
    const double digits = std::ldexp(std::frexp(v, &exponent), 17);
    return std::isfinite(v) && digits != std::rint(digits);
  };
  const auto all_float = [&](const Tensor& x) {
    return std::ranges::all_of(elements(x), is_float);
  };
  const auto rounds = [&](const Tensor& y, const std::vector<Tensor>& inputs) {
    return std::ranges::any_of(elements(y), is_long) && all_float(y) &&
           !std::ranges::all_of(inputs,
                                [&](const Tensor& x) { return !x.defined() || all_float(x); });
  };
  // Whether the op rounds nearby inputs, too: 1 / 1e-10 happens to be a float32.
  const auto rounds_nearby = [&](const Trace::Event& e) {
    const ModeGuard plain({false, nullptr});
    std::vector<Tensor> inputs;
    double factor = 1;
    for (const Tensor& x : e.inputs)
      inputs.push_back(x.defined() ? x.detach() * (factor += 1.23456789e-7) : x);
    return rounds(e.forward(inputs), inputs);
  };
  for (const Trace::Event& e : events) {
    if (!e.output.requires_grad())
      continue;
    const bool single = e.output.dtype() == DType::float32;
    if (single || (loops_too && rounds(e.output, e.inputs) && rounds_nearby(e)))
      return fmt::format("op '{}'{} {} of shape {}", e.op, e.scope.empty() ? "" : " in " + e.scope,
                         single ? "makes a float32 Tensor" : "rounds to float32 inside: its output",
                         to_string(e.output.shape()));
  }
  return {};
}

}  // namespace xgrad::detail
