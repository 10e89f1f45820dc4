#include "gradcheck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include "../engine.hpp"
#include "../ops.hpp"
#include "../trace.hpp"
#include "op_check.hpp"
#include "probe.hpp"
#include "same_draws.hpp"

namespace xgrad {

using namespace detail;

namespace {

using Pairs = std::vector<std::vector<JudgedPair>>;  // by output and leaf

constexpr std::size_t most_judged = 16;   // wrong elements of a pair; beyond that eps alone decides
constexpr std::size_t most_listed = 100;  // unchecked ones of a pair

// Thrown to end a check before there is anything to compare.
struct Refusal {
  GradcheckReason reason;
  std::string explanation;
};

void check_unchanged(const Snapshot& snapshot, const char* who) {
  if (const std::string changes = snapshot.changes(who); !changes.empty())
    throw Refusal{GradcheckReason::inputs_modified, changes};
}

constexpr const char* repeat =
    "the function must give the same result every time (does it draw random numbers?)";

Tolerance tolerance_of(const GradcheckOptions& options) {
  return {.eps = options.eps, .atol = options.atol, .rtol = options.rtol};
}

// ---- the analytic Jacobian ----

// The Jacobian by backward passes, through two graphs.
class Analytic {
 public:
  Analytic(const CheckedFunction& f, const Snapshot& snapshot, const GradcheckOptions& options)
      : f_(f), options_(options) {
    {
      const Trace trace;
      outputs_ = f.with_graph();
      for (const Trace::Event& event : trace.events())
        if (event.output.requires_grad())
          made_.insert_or_assign(event.output.identity().node.get(), elements(event.output));
      cast_ = float32_op(trace.events(), false);
      shapes_ = shapes_of(outputs_);
      check_unchanged(snapshot, "the function");
      again_ = f.with_graph();  // traced: observers change checkpoint()'s order of sums
    }
    f.check_shapes(again_, shapes_);
    if (const std::string differs = two_results(outputs_, again_); !differs.empty())
      throw Refusal{GradcheckReason::nondeterministic, differs};
    values_ = f.values();
    f.check_shapes(values_, shapes_);
  }

  const std::vector<Shape>& shapes() const { return shapes_; }
  // The first op that makes a float32 Tensor; empty if there is none.
  const std::string& cast() const { return cast_; }
  // The size of the numbers that round in each element of the outputs: the sum of |d element / d
  // value * value| over all values that lead to it.
  const Doubles& scales() const { return scales_; }

  // d outputs[i] / d leaves for a cotangent; undefined without a path in the graph.
  std::vector<Tensor> rows(std::size_t i, const Tensor& cotangent,
                           const OnGradient& on_gradient = {}) const {
    return gradients({outputs_[i]}, f_.tensors(), {cotangent}, {.retain_graph = true}, on_gradient);
  }

  // The Jacobian of every output by every leaf; computed twice.
  Pairs jacobians() {
    const auto& leaves = f_.leaves();
    Pairs found(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t m = outputs_[i].numel();
      for (const CheckedLeaf& leaf : leaves) {
        const Shape shape{m, leaf.x.numel()};
        found[i].push_back({empty_array<double>(shape), empty_array<double>(shape)});
        std::fill_n(found[i].back().analytic.data(), found[i].back().analytic.size(), 0.0);
      }
      for (std::size_t j = 0; j < m; ++j) {
        const Tensor e = one_hot(outputs_[i], j);
        double& scale = scales_.emplace_back();
        const auto first = rows(i, e, [&](const Node& node, const Tensor& gradient) {
          steepest_ = std::max(steepest_, scale_of(elements(gradient)));
          if (const auto made = made_.find(&node);
              made != made_.end() && std::ssize(made->second) == gradient.numel())
            add_sizes(scale, elements(gradient), made->second);
        });
        // Runs the same graph once more, to detect a formula that a run changes, and every row
        // through the graph of another call.
        if (j == 0)
          compare(first, rows(i, e), i, j);
        compare(first, gradients({again_[i]}, f_.tensors(), {e}, {.retain_graph = true}), i, j);
        for (std::size_t k = 0; k < leaves.size(); ++k)
          if (first[k].defined()) {
            found[i][k].reached = true;
            add_sizes(scale, elements(first[k]), elements(leaves[k].x));
            std::copy_n(first[k].data<double>(), first[k].numel(),
                        found[i][k].analytic.data() + j * first[k].numel());
          }
      }
    }
    return found;
  }

  // Fast mode: the second graph must give the same products.
  void check_again(const std::vector<Tensor>& v,
                   const std::vector<std::vector<Tensor>>& rows) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      compare(rows[i], gradients({again_[i]}, f_.tensors(), {v[i]}, {.retain_graph = true}), i, {});
  }

  // A zero cotangent must give zero.  The Jacobian shows values that are not finite.
  void check_zero() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto zero = rows(i, zeros_like(outputs_[i]));
      for (std::size_t k = 0; k < zero.size(); ++k)
        for (Size a = 0; zero[k].defined() && a < zero[k].numel(); ++a)
          if (const double g = zero[k].data<double>()[a]; g != 0 && std::isfinite(g))
            throw Refusal{
                GradcheckReason::not_linear,
                fmt::format("a zero cotangent for {} gives {:.6g} for {}: a backward "
                            "formula does not multiply by its cotangent",
                            f_.output_name(i), g, at(f_.leaves()[k].name, a, zero[k].shape()))};
    }
  }

  // The gradient for a random cotangent must be the sum of the Jacobian's rows with these weights:
  // unit vectors alone would not tell g from g * g.
  void check_linear(const Pairs& pairs, Generator& generator) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor v = random_signed(shapes_[i], generator);
      const auto all = rows(i, v);
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!all[k].defined())
          continue;
        const std::size_t m = v.numel(), n = all[k].numel();
        auto limits = Tolerance{.atol = options_.atol, .rtol = options_.rtol}.scaled(
            INFINITY, scale_of(scales_), typical_size(elements(f_.leaves()[k].x)));
        limits.atol = std::max(limits.atol, 1e-14 * steepest_);  // products that may cancel
        for (std::size_t a = 0; a < n; ++a) {
          double sum = 0, size = 0;
          for (std::size_t j = 0; j < m; ++j) {
            const double term = v.data<double>()[j] * pairs[i][k].analytic.data()[j * n + a];
            sum += term;
            size += std::abs(term);
          }
          const double g = all[k].data<double>()[a];
          if (std::abs(g - sum) > limits.atol + limits.rtol * size)
            throw Refusal{
                GradcheckReason::not_linear,
                fmt::format("the gradient is not linear in the cotangent: a random one for {} "
                            "gives {:.6g} for {}, the same sum of unit vectors gives {:.6g}",
                            f_.output_name(i), g, at(f_.leaves()[k].name, a, all[k].shape()), sum)};
        }
      }
    }
  }

  // Outputs that differ without a graph suggest another gradient under create_graph.
  std::optional<Refusal> differs_under_create_graph() const {
    const double rounding = 1e-12 * scale_of(scales_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto a = elements(outputs_[i]), b = elements(values_[i]);
      for (std::size_t j = 0; j < a.size(); ++j)
        if (std::abs(a[j] - b[j]) >
            std::max(rounding, 1e-10 * scale_of(b)) + options_.rtol * std::abs(b[j]))
          return Refusal{GradcheckReason::unknown,
                         fmt::format("{} is {:.9g} under create_graph and {:.9g} without: a "
                                     "backward formula gives different gradients",
                                     at(f_.output_name(i), j, shapes_[i]), a[j], b[j])};
    }
    return {};
  }

 private:
  // Two gradients of output i, or of its element j, must be equal.
  void compare(const std::vector<Tensor>& first, const std::vector<Tensor>& second, std::size_t i,
               std::optional<std::size_t> j) const {
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (!first[k].defined() || !second[k].defined()) {
        if (first[k].defined() != second[k].defined())
          throw Refusal{GradcheckReason::nondeterministic,
                        fmt::format("the graph leads to {} in one of two calls only: {}",
                                    f_.leaves()[k].name, repeat)};
        continue;
      }
      if (const auto a = first_difference(first[k], second[k]))
        throw Refusal{
            GradcheckReason::nondeterministic,
            fmt::format("two runs gave the gradients {:.17g} and {:.17g} of {} for {}: {}",
                        first[k].data<double>()[*a], second[k].data<double>()[*a],
                        j ? at(f_.output_name(i), *j, shapes_[i]) : f_.output_name(i),
                        at(f_.leaves()[k].name, *a, first[k].shape()), repeat)};
    }
  }

  const CheckedFunction& f_;
  const GradcheckOptions& options_;
  std::vector<Tensor> outputs_, again_, values_;  // of two graphs, and of none
  std::vector<Shape> shapes_;
  std::string cast_;
  std::unordered_map<const Node*, Doubles> made_;  // the outputs of ops
  Doubles scales_;
  double steepest_ = 0;  // the largest gradient of a value
};

// ---- the check ----

class Check {
 public:
  Check(const CheckedFunction& f, const std::vector<Tensor>& inputs,
        const GradcheckOptions& options)
      : f_(f), inputs_(inputs), options_(options), snapshot_(inputs, options.names) {
    reset();
  }

  GradcheckReport run() {
    try {
      try {
        if (options_.fast_mode && !fast()) {
          reset();
          report_.notes.push_back(
              "fast mode found a disagreement, or too little to tell; this is the full mode's "
              "report");
        }
        if (!report_.fast_mode)
          full();
        name_cast();
      } catch (...) {
        // A change of the inputs explains any later failure.
        check_unchanged(snapshot_, "the function, or its backward,");
        throw;
      }
    } catch (const Refusal& refusal) {
      refuse(refusal);
      if (refusal.reason == GradcheckReason::nondeterministic)
        if (const std::string wrong = special_places(f_, options_).wrong; !wrong.empty())
          report_.explanation += "; " + wrong;
    } catch (const BackwardError& error) {
      refuse({error.reason, fmt::format("a backward formula failed: {}", error.what())});
    }
    sum_up(report_, f_.caller(), options_.strict);
    count_zeros();
    return std::move(report_);
  }

 private:
  // d output i's element j / d leaf k's element a.
  struct Place {
    std::size_t i, k, j, a;
  };

  void reset() {
    report_ = {.eps = options_.eps, .atol = options_.atol, .rtol = options_.rtol};
    pairs_.clear();
  }

  void refuse(const Refusal& refusal) {
    report_.reason = refusal.reason;
    report_.explanation = refusal.explanation;
  }

  // ---- every element ----

  void full() {
    const std::optional<Refusal> refusal = compare();
    if (!refusal && wrong_)
      mark_unchecked();
    add_pairs();
    if (refusal)
      refuse(*refusal);
  }

  // Names a cast, behind which the step of eps changes few digits.  It is a failure if an element
  // disagrees; else a remark, because larger steps have shown the gradient to be right to rtol.
  void name_cast() {
    if (report_.reason != GradcheckReason::none)
      return;
    if (refined_ && cast_.empty()) {  // a loop may round inside
      const Trace trace;
      f_.with_graph();
      cast_ = float32_op(trace.events(), true);
    }
    if (!cast_.empty()) {
      report_.explanation =
          fmt::format("float32 rounding: {}: compute in the inputs' dtype", cast_);
      if (std::ranges::any_of(report_.pairs, &GradcheckPair::disagree))
        report_.reason = GradcheckReason::float32_rounding;
    }
  }

  // Fills in the pairs.  A refusal is reported after the Jacobian, which shows the effect.
  std::optional<Refusal> compare() {
    std::optional<Refusal> refusal;
    Doubles scales;  // of all elements of all outputs
    {
      Analytic analytic(f_, snapshot_, options_);
      cast_ = analytic.cast();
      shapes_ = analytic.shapes();
      pairs_ = analytic.jacobians();
      scales = analytic.scales();
      Generator generator(options_.seed);
      try {
        refusal = analytic.differs_under_create_graph();
        analytic.check_zero();
        analytic.check_linear(pairs_, generator);
      } catch (const Refusal& found) {
        refusal = found;
      }
    }  // the graphs are gone
    check_unchanged(snapshot_, "the backward");
    const Probe probe = f_.probe(shapes_, std::move(scales));
    const Doubles half = at_half(probe);
    for (std::size_t k = 0; k < f_.leaves().size(); ++k)
      judge(probe, half, k);
    return refusal;
  }

  // The outputs with all leaves' elements at 0.5; empty if no output is infinite, or if f rejects
  // 0.5.  An infinite output that is finite there depends on its arguments.
  static Doubles at_half(const Probe& probe) {
    if (std::ranges::none_of(probe.center, [](double y) { return std::isinf(y); }))
      return {};
    Point half;
    for (const Leaf& leaf : probe.leaves)
      half.emplace_back(leaf.values.size(), 0.5);
    try {
      return probe.at(std::move(half), 0);
    } catch (const Error&) {
      return {};
    }
  }

  // Fills in the numeric Jacobians in a leaf, column by column.
  void judge(const Probe& probe, const Doubles& half, std::size_t k) {
    const std::size_t n = probe.leaves[k].values.size();
    const Tolerance base = tolerance_of(options_);
    std::vector<Place> rows;  // of each element of the outputs
    std::vector<Claim> claims;
    Doubles in_row;  // the largest derivative of it
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      JudgedPair& pair = pairs_[i][k];
      const std::size_t m = numel(shapes_[i]);
      const auto scales = std::span(probe.scales).subspan(rows.size(), m);
      pair.largest = scale_of({pair.analytic.data(), pair.analytic.size()});
      pair.tolerance = base.scaled(pair.largest, scale_of(scales), probe.leaves[k].typical)
                           .with_rounding_of(pair.largest);
      pair.verdicts.resize(pair.analytic.size());
      for (std::size_t j = 0; j < m; ++j) {
        claims.push_back({{{rows.size(), 1.0}}, {pair.analytic.data() + j * n, n}});
        rows.push_back({i, k, j, 0});
        in_row.push_back(scale_of(claims.back().gradient));
      }
    }
    const auto limits = [&](std::size_t row, Elements at,
                            const Direction& axis) -> std::optional<Tolerance> {
      const JudgedPair& pair = pairs_[rows[row].i][k];
      const double analytic = claims[row].gradient[at[0]];
      const bool by_arguments = row < half.size() && std::isfinite(half[row]);
      if (std::isinf(probe.center[row]) && analytic != 0 &&
          (!std::isfinite(analytic) || f_.is_second() || by_arguments))
        return {};
      Tolerance some =
          base.scaled(pair.largest, probe.scales[row], axis.size).with_rounding_of(in_row[row]);
      some.eps_alone = (std::isfinite(analytic) ? pair.wrong : pair.nan) >= most_judged;
      some.finds_steep_ops = true;
      return some;
    };
    check_claims(probe, k, claims, {.tolerance = limits}, [&](const Finding& found) {
      Place at = rows[found.claim];
      at.a = found.element;
      JudgedPair& pair = pairs_[at.i][k];
      const std::size_t e = at.j * n + at.a;
      pair.verdicts[e] = found.verdict;
      pair.numeric.data()[e] = found.numeric;
      refined_ = refined_ || found.refined;
      if (found.verdict == Verdict::wrong) {
        wrong_ = true;
        ++(std::isfinite(found.analytic) ? pair.wrong : pair.nan);
        if (found.reason == GradcheckReason::rounding)
          pair.rounded.insert(e);
        // (Where eps alone decides, they are as those before.)
        if (found.reason == GradcheckReason::truncation || pair.steep.size() >= most_judged)
          pair.steep.insert(e);
      }
      if (found.verdict == Verdict::unchecked)
        add_unchecked(at, found.reason, found.because());
    });
  }

  void add_unchecked(const Place& at, GradcheckReason reason, const std::string& because) {
    const CheckedLeaf& leaf = f_.leaves()[at.k];
    const Shape &of = shapes_[at.i], &in = leaf.x.shape();
    JudgedPair& pair = pairs_[at.i][at.k];
    const std::size_t element = at.j * numel(in) + at.a;
    pair.verdicts[element] = Verdict::unchecked;
    pair.numeric.data()[element] = NAN;
    const auto same = [&](const GradcheckUnchecked& u) {
      return u.output == at.i && u.input == leaf.position;
    };
    if (static_cast<std::size_t>(std::ranges::count_if(report_.unchecked_elements, same)) <
        most_listed)
      report_.unchecked_elements.push_back(
          {at.i, leaf.position, position(of, at.j), position(in, at.a), reason,
           fmt::format("d {} {} / d {} {}: {}", f_.output_name(at.i), place(at.j, of), leaf.name,
                       place(at.a, in), because)});
  }

  void add_pairs() {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      if (std::ranges::none_of(pairs_[i], &JudgedPair::reached))
        report_.notes.push_back(fmt::format(
            "no graph leads from {} to any input that requires a gradient", f_.output_name(i)));
      for (std::size_t k = 0; k < f_.leaves().size(); ++k)
        report_.pairs.push_back(
            summarized(f_, i, shapes_[i], f_.leaves()[k], std::move(pairs_[i][k])));
    }
  }

  // ---- right ops with a wrong sum ----

  template <class Visit>
  void each_wrong(const Visit& visit) {
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      for (std::size_t k = 0; k < f_.leaves().size(); ++k) {
        JudgedPair& pair = pairs_[i][k];
        const auto n = static_cast<std::size_t>(f_.leaves()[k].x.numel());
        for (std::size_t e = 0; e < pair.verdicts.size(); ++e)
          if (pair.verdicts[e] == Verdict::wrong)
            visit(Place{i, k, e / n, e % n}, pair, e);
      }
  }

  // Whether some output has no slope along an element.
  bool no_slope_along(const Place& at) const {
    if (f_.is_second())  // first derivatives' formulas are not the user's
      return true;
    const auto n = static_cast<std::size_t>(f_.leaves()[at.k].x.numel());
    for (const auto& row : pairs_)
      for (std::size_t e = at.a; e < row[at.k].verdicts.size(); e += n)
        if (row[at.k].verdicts[e] == Verdict::unchecked)
          return true;
    return false;
  }

  // Differences below the rounding of the gradient's terms are right.  Whether others are left.
  bool mark_rounded() {
    GradientTerms terms(f_);
    std::map<std::pair<std::size_t, std::size_t>, Doubles> rounding;  // of outputs' elements
    bool wrong = false;
    each_wrong([&](const Place& at, JudgedPair& pair, std::size_t element) {
      Doubles& of = rounding[{at.i, at.j}];
      if (of.empty()) {
        const Tensor& y = terms.outputs()[at.i];
        terms.gradients({y}, {one_hot(y, at.j)});
        for (std::size_t k = 0; k < f_.leaves().size(); ++k)
          of.push_back(terms.rounding(k));
      }
      if (std::abs(pair.analytic.data()[element] - pair.numeric.data()[element]) <= of[at.k])
        pair.verdicts[element] = Verdict::right;
      else
        wrong = true;
    });
    return wrong;
  }

  // If all ops are right, some elements that look wrong are unchecked: NaN from an infinite slope
  // of an op, along an element where an output has no slope either; numbers that rounding may hide;
  // and gradients that are right at nearby points, because ops take one side each of their kinks.
  // A wrong op is named.
  void mark_unchecked() {
    if (!mark_rounded())
      return;
    const SpecialPlaces places = special_places(f_, options_);
    for (auto& row : pairs_)
      for (JudgedPair& pair : row)
        pair.wrong_op = places.wrong;
    if (!places.wrong.empty())
      return;
    bool finite = false;
    std::vector<Place> excused;
    each_wrong([&](const Place& at, JudgedPair& pair, std::size_t element) {
      if (places.steep && pair.steep.contains(element))
        return add_unchecked(at, no_digit.reason, no_digit.because());
      if (places.ops > 1 && pair.rounded.contains(element))  // for a single op this proves nothing
        return add_unchecked(at, GradcheckReason::rounding,
                             "each op is right, and numbers of size 1 on the way lose as much");
      if (std::isfinite(pair.analytic.data()[element])) {
        finite = true;
        return;
      }
      pair.infinite = places.infinite;
      if (!places.infinite.empty() && no_slope_along(at))
        excused.push_back(at);
    });
    for (const Place& at : excused)
      add_unchecked(at, GradcheckReason::not_finite,
                    fmt::format("infinite or NaN, as {}, has an infinite or NaN slope here",
                                places.infinite));
    if (!finite || !places.kink)
      return;
    Probe probe = f_.probe(shapes_);
    for (Leaf& leaf : probe.leaves)
      leaf.even_out();
    const LinePoint jittered{.jitter = 1e-3, .seed = options_.seed + 1};
    const Moved moved(f_.leaves(), probe.moved({Point(probe.leaves.size())}, jittered));
    Check nearby(f_, inputs_, options_);
    nearby.compare();
    each_wrong([&](const Place& at, JudgedPair&, std::size_t element) {
      if (nearby.pairs_[at.i][at.k].verdicts[element] == Verdict::right)
        add_unchecked(at, GradcheckReason::kink,
                      "a kink within the function: nearby, its gradient is right");
    });
  }

  // ---- products of random vectors ----

  // A random vector of length 1; 0 where x is not finite, because that cannot be moved.
  static Doubles random_direction(const Tensor& x, Generator& generator) {
    Doubles u = elements(x);
    double squares = 0;
    for (double& e : u) {
      e = std::isfinite(e) ? generator.normal() : 0;
      squares += e * e;
    }
    for (double& e : u)
      e /= squares > 0 ? std::sqrt(squares) : 1;
    return u;
  }

  // Whether each product is right by the step of eps.
  bool fast() {
    Generator generator(options_.seed);
    std::vector<Tensor> v;
    std::vector<std::vector<Tensor>> rows;
    {
      const Analytic analytic(f_, snapshot_, options_);
      cast_ = analytic.cast();
      shapes_ = analytic.shapes();
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        const Tensor y = zeros(shapes_[i], DType::float64);
        v.push_back(like(y, random_direction(y, generator)));
        rows.push_back(analytic.rows(i, v[i]));
      }
      if (analytic.differs_under_create_graph())
        return false;
      analytic.check_zero();
      analytic.check_again(v, rows);
    }
    check_unchanged(snapshot_, "the backward");
    pairs_.resize(shapes_.size());
    const Probe probe = f_.probe(shapes_);
    for (std::size_t k = 0; k < f_.leaves().size(); ++k) {
      const CheckedLeaf& leaf = f_.leaves()[k];
      Direction direction{Point(probe.leaves.size())};
      const Doubles u = direction.by[k] = random_direction(leaf.x, generator);
      const Doubles moved = really_moved(leaf.x, u, options_.eps);
      for (std::size_t a = 0; a < moved.size(); ++a) {
        const auto flows = [&](const auto& row) {
          return row[k].defined() && row[k].template data<double>()[a] != 0;
        };
        if (std::abs(moved[a] - u[a]) > 0.2 * std::abs(u[a]) ||
            (!std::isfinite(probe.leaves[k].values[a]) && std::ranges::any_of(rows, flows)))
          return false;
      }
      Differences differences(probe.line(direction));
      for (std::size_t i = 0, offset = 0; i < shapes_.size(); offset += numel(shapes_[i++])) {
        std::vector<std::pair<std::size_t, double>> weights;
        for (Size j = 0; j < v[i].numel(); ++j)
          weights.emplace_back(offset + j, v[i].data<double>()[j]);
        JudgedPair pair{
            empty_array<double>(Shape{1, 1}), empty_array<double>(Shape{1, 1}), {Verdict::right}};
        pair.reached = rows[i][k].defined();
        const double analytic = dot(or_zeros(rows[i][k], moved.size()), moved);
        const auto values = std::span(probe.center).subspan(offset, numel(shapes_[i]));
        Tolerance limits = tolerance_of(options_).scaled(std::abs(analytic), scale_of(values),
                                                         probe.leaves[k].typical);
        limits.eps_alone = true;
        const Judgement found = differences.judge(weights, analytic, limits);
        if (found.refined)
          return false;
        pair.analytic.data()[0] = analytic;
        pair.numeric.data()[0] = found.numeric;
        pairs_[i].push_back(std::move(pair));
      }
    }
    add_pairs();
    report_.fast_mode = true;
    return true;
  }

  // ---- zeros ----

  // For each leaf, whether a random cotangent's gradient is not 0, up to rounding.
  std::vector<bool> nonzero(Generator& generator) const {
    std::vector<bool> found;
    GradientTerms terms(f_);
    std::vector<Tensor> cotangents;
    for (const Tensor& y : terms.outputs())
      cotangents.push_back(random_signed(y.shape(), generator));
    terms.gradients(terms.outputs(), cotangents);
    for (std::size_t k = 0; k < f_.leaves().size(); ++k)
      found.push_back(!terms.is_zero(k));
    return found;
  }

  // The same if leaf k is normal.
  std::vector<bool> nonzero_where(std::size_t k, std::uint64_t seed) const {
    Generator generator(seed);
    const Tensor& x = f_.leaves()[k].x;
    Doubles normal = elements(randn(x.shape(), generator, DType::float64));
    for (std::size_t i = 0; i < normal.size(); ++i)
      if (const double own = x.data<double>()[i]; !std::isfinite(own))
        normal[i] = own;  // a mask's -inf stays
    Point there(f_.leaves().size());
    there[k] = std::move(normal);
    const Moved moved(f_.leaves(), std::move(there));
    try {
      return nonzero(generator);
    } catch (const std::exception&) {  // f does not accept such values
      return std::vector<bool>(f_.leaves().size());
    }
  }

  // Counts the zeros of each input.  A Jacobian of zeros would agree with a constant function:
  // looks for a point where it is not zero, and names that in the message.
  void count_zeros() {
    constexpr std::uint64_t last_seed = 3;
    const auto all_zero = [](const GradcheckZeros& z) {
      return z.elements > 0 && z.zeros == z.elements;
    };
    const auto open = [&](const GradcheckZeros& z) { return all_zero(z) && z.nonzero_at.empty(); };
    const auto& leaves = f_.leaves();
    Generator generator(options_.seed);
    const std::vector<bool> here =
        report_.ok ? nonzero(generator) : std::vector<bool>(leaves.size(), true);
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      GradcheckZeros z{leaves[k].position, leaves[k].name};
      for (GradcheckPair& pair : report_.pairs)
        if (pair.input == z.input) {
          if (!here[k])
            pair.zeros = pair.elements - pair.unchecked;
          z.zeros += pair.zeros;
          z.elements += pair.elements;
        }
      report_.zeros.push_back(std::move(z));
    }
    if (!report_.ok)
      return;
    for (std::uint64_t seed = 1; seed <= last_seed; ++seed)
      for (std::size_t k = 0; k < leaves.size(); ++k) {
        if (std::ranges::none_of(report_.zeros, open))
          break;
        const auto nonzero = nonzero_where(k, seed);
        for (std::size_t other = 0; other < leaves.size(); ++other)
          if (nonzero[other] && open(report_.zeros[other]))
            report_.zeros[other].nonzero_at =
                fmt::format("{} = randn({}) from seed {}", leaves[k].name,
                            fmt::join(leaves[k].x.shape(), ", "), seed);
      }
    std::map<std::string, std::vector<std::string>> by_point;
    for (const GradcheckZeros& z : report_.zeros)
      if (all_zero(z))
        by_point[z.nonzero_at].push_back(
            report_.fast_mode
                ? z.input_name
                : fmt::format("{} ({} of {} elements)", z.input_name, z.zeros, z.elements));
    // The second derivative of a linear function is expected to be 0.
    if (f_.is_second())
      by_point.erase("");
    for (const auto& [point, names] : by_point)
      report_.message += fmt::format(
          "; but the Jacobian in {} is 0, which proves little: {}", fmt::join(names, ", "),
          point.empty()
              ? fmt::format("it stays 0 with randn in any one input, seeds 1 to {}; a mask or a "
                            "selection may hide it",
                            last_seed)
              : fmt::format("at {} it is not, check there", point));
  }

  const CheckedFunction& f_;
  const std::vector<Tensor>& inputs_;
  const GradcheckOptions& options_;
  const ModeGuard mode_{{true, nullptr}};  // a Snapshot's ops are not the user's
  const Snapshot snapshot_;
  GradcheckReport report_;
  std::vector<Shape> shapes_;
  Pairs pairs_;
  bool wrong_ = false;    // an element is wrong
  std::string cast_;      // an op that rounds to float32
  bool refined_ = false;  // the step of eps decided nothing for an element
};

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  const SameDraws draws;
  const TensorFunction same = draws.of(f);
  GradcheckReport report =
      Check(checked_function("gradcheck", same, inputs, options), inputs, options).run();
  if (report.ok || report.disagree > 0)
    add_hidden(report, same, inputs);
  return report;
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options) {
  const SameDraws draws;
  const Snapshot before(inputs, options.names);
  const ModeGuard mode({true, nullptr});
  const CheckedFunction first = checked_function("gradgradcheck", draws.of(f), inputs, options);
  std::vector<Tensor> all = inputs;
  GradcheckOptions named = options;
  const CheckedFunction second = gradient_of(first, all, named);
  before.changes();  // run() reports them
  return Check(second, all, named).run();
}

}  // namespace xgrad
