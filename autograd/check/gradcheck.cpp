#include <xgrad/autograd/check/gradcheck.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <xgrad/autograd/check/gradcheck_analytic.hpp>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/check/special_places.hpp>
#include <xgrad/autograd/check/untracked.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

using namespace detail;

namespace {

GradcheckReport report_for(const GradcheckOptions& options) {
  GradcheckReport report;
  report.eps = options.eps, report.atol = options.atol, report.rtol = options.rtol;
  return report;
}

// ---- the two modes ----

constexpr std::size_t most_judged = 16;   // wrong elements of a pair; more are wrong by eps alone
constexpr std::size_t most_listed = 100;  // unchecked ones of a pair

using Pairs = std::vector<std::vector<JudgedPair>>;

// d output i's element j / d leaf k's element a.
struct Place {
  std::size_t i, k, j, a;
};

void leave_out(GradcheckReport& report, const CheckedFunction& f, JudgedPair& pair, const Place& at,
               const Shape& shape, GradcheckReason reason, const std::string& because) {
  const CheckedLeaf& leaf = f.leaves()[at.k];
  const std::size_t element = at.j * leaf.x.numel() + at.a;
  pair.verdicts[element] = Verdict::unchecked;
  pair.numeric.data()[element] = NAN;
  const auto same = [&](const GradcheckUnchecked& u) {
    return u.output == at.i && u.input == leaf.position;
  };
  if (static_cast<std::size_t>(std::ranges::count_if(report.left_out, same)) < most_listed)
    report.left_out.push_back(
        {at.i, leaf.position, position(shape, at.j), position(leaf.x.shape(), at.a), reason,
         fmt::format("d {} {} / d {} {}: {}", f.output_name(at.i), place(at.j, shape), leaf.name,
                     place(at.a, leaf.x.shape()), because)});
}

// Fills in the numeric Jacobians in a leaf, column by column.
void judge(GradcheckReport& report, const CheckedFunction& f, std::size_t k, Pairs& pairs,
           const std::vector<Shape>& shapes, const std::vector<double>& scales,
           const GradcheckOptions& options) {
  const CheckedLeaf& leaf = f.leaves()[k];
  const double typical = typical_size(elements(leaf.x));
  const std::vector<double> here = f.moved(leaf, {}, shapes, [](Nudge&) {});
  const bool any_infinite = std::ranges::any_of(here, [](double y) { return std::isinf(y); });
  const bool second = std::string_view(f.caller()) == "gradgradcheck";
  const std::vector<double> half = any_infinite ? f.at_half(shapes) : std::vector<double>();
  const std::size_t n = leaf.x.numel();
  std::vector<std::size_t> offsets;
  const Tolerance base{.eps = options.eps, .atol = options.atol, .rtol = options.rtol};
  std::vector<double> in_row;  // the largest of the same element of an output
  for (std::size_t i = 0, offset = 0; i < shapes.size(); offset += numel(shapes[i++])) {
    offsets.push_back(offset);
    JudgedPair& pair = pairs[i][k];
    const std::size_t m = numel(shapes[i]);
    pair.largest = scale_of({pair.analytic.data(), pair.analytic.size()});
    pair.tolerance =
        base.scaled(pair.largest, scale_of(std::span(scales).subspan(offset, m)), typical)
            .beside(pair.largest);
    for (std::size_t j = 0; j < m; ++j)
      in_row.push_back(scale_of({pair.analytic.data() + j * n, n}));
    pair.verdicts.resize(pair.analytic.size());
  }
  for (std::size_t a = 0; a < n; ++a) {
    const double x = leaf.x.data<double>()[a], size = size_beside(x, typical);
    Differences differences({.at =
                                 [&, a](const LinePoint& point) {
                                   return f.moved(leaf, point, shapes, [&](Nudge& nudge) {
                                     nudge.set(a, nudge.before(a) + point.t);
                                   });
                                 },
                             .x = x,
                             .size = size,
                             .here = here,
                             .scales = scales},
                            {.eps = options.eps});
    std::vector<Judgement> column(here.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      JudgedPair& pair = pairs[i][k];
      for (std::size_t j = 0, m = numel(shapes[i]); j < m; ++j) {
        const double analytic = pair.analytic.data()[j * n + a];
        const std::size_t at = offsets[i] + j;
        const Tolerance tolerance = base.scaled(pair.largest, scales[at], size).beside(in_row[at]);
        differences.set_tolerance(tolerance);
        const std::pair<std::size_t, double> one{at, 1.0};
        Judgement& found = column[at] = differences.first({&one, 1}, analytic);
        if (std::isinf(here[at]) && analytic != 0 &&
            (!std::isfinite(analytic) || second || (at < half.size() && std::isfinite(half[at])))) {
          found = {Verdict::unchecked, GradcheckReason::not_finite};
        } else if (found.verdict != Verdict::right) {
          std::size_t& wrong = std::isfinite(analytic) ? pair.wrong : pair.nan;
          pair.refined = true;
          if (wrong < most_judged)
            found = differences.judge({&one, 1}, analytic);
          else if (std::isfinite(found.numeric))
            found.verdict = std::abs(analytic - found.numeric) <= tolerance.atol ? Verdict::right
                                                                                 : Verdict::wrong;
          wrong += found.verdict == Verdict::wrong ? 1 : 0;
        }
      }
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (std::size_t j = 0, m = numel(shapes[i]); j < m; ++j) {
        const Judgement& found = column[offsets[i] + j];
        pairs[i][k].verdicts[j * n + a] = found.verdict;
        pairs[i][k].numeric.data()[j * n + a] = found.numeric;
        if (found.verdict == Verdict::wrong && found.reason == GradcheckReason::rounding)
          pairs[i][k].rounded.insert(j * n + a);
        if (found.verdict == Verdict::unchecked)
          leave_out(report, f, pairs[i][k], {i, k, j, a}, shapes[i], found.reason, found.because());
      }
  }
}

void add_pairs(GradcheckReport& report, const CheckedFunction& f, Pairs&& pairs,
               const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (std::ranges::none_of(pairs[i], &JudgedPair::reached))
      report.notes.push_back(fmt::format(
          "no graph leads from {} to any input that requires a gradient", f.output_name(i)));
    for (std::size_t k = 0; k < f.leaves().size(); ++k)
      report.pairs.push_back(summarized(f, i, shapes[i], f.leaves()[k], std::move(pairs[i][k])));
  }
}

struct Compared {
  Pairs pairs;
  std::vector<Shape> shapes;
  std::optional<Refusal> refusal;

  template <class Pred>
  bool any(const Pred& pred) const {
    return std::ranges::any_of(pairs,
                               [&](const auto& row) { return std::ranges::any_of(row, pred); });
  }
};

Compared compared(GradcheckReport& report, const CheckedFunction& f, const Snapshot& snapshot,
                  const GradcheckOptions& options) {
  Compared found;
  std::vector<double> scales;  // of all elements of all outputs
  {
    Analytic analytic(f, snapshot, options);
    found.shapes = analytic.shapes();
    found.pairs = analytic.jacobians();
    scales = analytic.scales();
    Generator generator(options.seed);
    try {  // reported after the Jacobian, which shows the effect
      found.refusal = analytic.other_reading();
      analytic.check_zero();
      analytic.check_linear(found.pairs, generator);
    } catch (const Refusal& refusal) {
      found.refusal = refusal;
    }
  }  // the graphs are gone, so leaves change in place
  check_unchanged(snapshot, "the backward");
  for (std::size_t k = 0; k < f.leaves().size(); ++k)
    judge(report, f, k, found.pairs, found.shapes, scales, options);
  return found;
}

// Where all ops are right, and one has an infinite slope, NaN is no mistake if an output is odd
// along that element, too; nor is what rounding may hide, or what is right nearby, as the sum of
// sides that ops take at their kinks.  Where an op is wrong, it is named.
void excuse(GradcheckReport& report, const CheckedFunction& f, const std::vector<Tensor>& inputs,
            Compared& here, const GradcheckOptions& options) {
  const SpecialPlaces places = special_places(f, options);
  for (auto& row : here.pairs)
    for (JudgedPair& pair : row)
      pair.wrong_op = places.wrong;
  if (!places.wrong.empty())
    return;
  const auto all = [&](const auto& visit) {
    for (std::size_t i = 0; i < here.shapes.size(); ++i)
      for (std::size_t k = 0; k < f.leaves().size(); ++k) {
        JudgedPair& pair = here.pairs[i][k];
        const auto n = static_cast<std::size_t>(f.leaves()[k].x.numel());
        for (std::size_t e = 0; e < pair.verdicts.size(); ++e)
          if (pair.verdicts[e] == Verdict::wrong)
            visit(Place{i, k, e / n, e % n}, pair, e);
      }
  };
  const bool second = std::string_view(f.caller()) == "gradgradcheck";
  const auto odd = [&](const Place& at) {
    if (second)  // the formulas of first derivatives are not the user's
      return true;
    for (const auto& row : here.pairs)
      for (std::size_t e = at.a, n = f.leaves()[at.k].x.numel(); e < row[at.k].verdicts.size();
           e += n)
        if (row[at.k].verdicts[e] == Verdict::unchecked)
          return true;
    return false;
  };
  bool finite = false;
  std::vector<std::pair<Place, std::size_t>> excused;
  all([&](const Place& at, JudgedPair& pair, std::size_t element) {
    const bool nan = !std::isfinite(pair.analytic.data()[element]);
    if (places.ops > 1 && pair.rounded.contains(element))  // one alone is checked no better
      return leave_out(report, f, pair, at, here.shapes[at.i], GradcheckReason::rounding,
                       "each op is right, and numbers of size 1 on the way lose as much");
    finite = finite || !nan;
    if (nan)
      pair.infinite = places.infinite;
    if (nan && !places.infinite.empty() && odd(at))
      excused.emplace_back(at, element);
  });
  for (const auto& [at, element] : excused)
    leave_out(
        report, f, here.pairs[at.i][at.k], at, here.shapes[at.i], GradcheckReason::not_finite,
        fmt::format("infinite or NaN, as {}, has an infinite or NaN slope here", places.infinite));
  if (!finite || !places.kink)
    return;
  GradcheckReport scratch;
  const auto away = moved_away(f.leaves(), 1e-3, options.seed + 1);
  const Compared nearby = compared(scratch, f, Snapshot(inputs, options.names), options);
  all([&](const Place& at, JudgedPair& pair, std::size_t element) {
    if (nearby.pairs[at.i][at.k].verdicts[element] == Verdict::right)
      leave_out(report, f, pair, at, here.shapes[at.i], GradcheckReason::kink,
                "a kink within the function: nearby, its gradient is right");
  });
}

void run_full(GradcheckReport& report, const CheckedFunction& f, const std::vector<Tensor>& inputs,
              const Snapshot& snapshot, const GradcheckOptions& options) {
  Compared found = compared(report, f, snapshot, options);
  const auto is_wrong = [](const JudgedPair& pair) { return pair.wrong + pair.nan > 0; };
  if (found.any(is_wrong) && !found.refusal)
    excuse(report, f, inputs, found, options);
  const std::string cast = found.any(&JudgedPair::refined) ? float32_op(f) : "";
  add_pairs(report, f, std::move(found.pairs), found.shapes);
  const bool wrong =
      std::ranges::any_of(report.pairs, [](const GradcheckPair& p) { return p.disagree > 0; });
  if (found.refusal) {
    report.reason = found.refusal->reason;
    report.explanation = found.refusal->explanation;
  } else if (!cast.empty()) {
    report.explanation = fmt::format("float32 rounding: {}: compute in the inputs' dtype", cast);
    if (wrong)
      report.reason = GradcheckReason::float32_rounding;
  }
}

// Whether each product is right by the step of eps.
bool run_fast(GradcheckReport& report, const CheckedFunction& f, const Snapshot& snapshot,
              const GradcheckOptions& options) {
  Generator generator(options.seed);
  std::vector<Tensor> v;
  std::vector<std::vector<Tensor>> rows;
  std::vector<Shape> shapes;
  {
    const Analytic analytic(f, snapshot, options);
    shapes = analytic.shapes();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      v.push_back(random_direction(zeros(shapes[i], DType::float64), generator));
      rows.push_back(analytic.rows(i, v[i]));
    }
    if (analytic.other_reading())
      return false;
    analytic.check_zero();
    analytic.check_again(v, rows);
  }
  check_unchanged(snapshot, "the backward");
  Pairs pairs(shapes.size());
  for (std::size_t k = 0; k < f.leaves().size(); ++k) {
    const CheckedLeaf& leaf = f.leaves()[k];
    const Tensor u = random_direction(leaf.x, generator);
    const std::vector<double> moved = really_moved(leaf.x, u, options.eps);
    for (std::size_t a = 0; a < moved.size(); ++a) {
      const double x = leaf.x.data<double>()[a], by = u.data<double>()[a];
      const auto flows = [&](const auto& row) {
        return row[k].defined() && row[k].template data<double>()[a] != 0;
      };
      if (std::abs(moved[a] - by) > 0.2 * std::abs(by) ||
          (!std::isfinite(x) && std::ranges::any_of(rows, flows)))
        return false;
    }
    const std::vector<double> here = f.moved(leaf, {}, shapes, [](Nudge&) {});
    Differences differences({.at =
                                 [&](const LinePoint& point) {
                                   return f.moved(leaf, point, shapes,
                                                  [&](Nudge& nudge) { nudge.move(u, point.t); });
                                 },
                             .here = here},
                            {.eps = options.eps});
    for (std::size_t i = 0, offset = 0; i < shapes.size(); offset += numel(shapes[i++])) {
      std::vector<std::pair<std::size_t, double>> weights;
      for (Size j = 0; j < v[i].numel(); ++j)
        weights.emplace_back(offset + j, v[i].data<double>()[j]);
      JudgedPair pair{
          empty_array<double>(Shape{1, 1}), empty_array<double>(Shape{1, 1}), {Verdict::right}};
      pair.reached = rows[i][k].defined();
      const double analytic = pair.reached ? dot(rows[i][k], moved) : 0;
      differences.set_tolerance(
          Tolerance{.eps = options.eps, .atol = options.atol, .rtol = options.rtol}.scaled(
              std::abs(analytic), scale_of(std::span(here).subspan(offset, numel(shapes[i]))),
              typical_size(elements(leaf.x))));
      const Judgement found = differences.first(weights, analytic);
      if (found.verdict != Verdict::right)
        return false;
      pair.analytic.data()[0] = analytic;
      pair.numeric.data()[0] = found.numeric;
      pairs[i].push_back(std::move(pair));
    }
  }
  add_pairs(report, f, std::move(pairs), shapes);
  report.fast_mode = true;
  return true;
}

GradcheckReport run(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                    const GradcheckOptions& options) {
  const ModeGuard mode({true, nullptr});
  const Snapshot snapshot(inputs, options.names);
  GradcheckReport report = report_for(options);
  try {
    try {
      if (options.fast_mode && !run_fast(report, f, snapshot, options)) {
        report = report_for(options);
        report.notes.push_back(
            "fast mode found a disagreement, or too little to tell; this is the full mode's "
            "report");
      }
      if (!report.fast_mode)
        run_full(report, f, inputs, snapshot, options);
    } catch (...) {
      // If it did, that is why the rest failed.
      check_unchanged(snapshot, "the function, or its backward,");
      throw;
    }
  } catch (const Refusal& refusal) {
    report.reason = refusal.reason;
    report.explanation = refusal.explanation;
    if (refusal.reason == GradcheckReason::nondeterministic)
      if (const std::string wrong = special_places(f, options).wrong; !wrong.empty())
        report.explanation += "; " + wrong;
  } catch (const BackwardError& error) {
    report.reason = error.reason;
    report.explanation = fmt::format("a backward formula failed: {}", error.what());
  }
  sum_up(report, f.caller(), options.strict);
  count_zeros(report, f);
  return report;
}

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  const SameDraws draws;
  const TensorFunction same = draws.of(f);
  GradcheckReport report =
      run(checked_function("gradcheck", same, inputs, options), inputs, options);
  if (report.ok || report.disagree > 0)
    add_hidden(report, same, inputs);
  return report;
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options) {
  const SameDraws draws;
  const Snapshot before(inputs, options.names);
  const TensorFunction same = draws.of(f);
  const CheckedFunction first = checked_function("gradgradcheck", same, inputs, options);
  auto leaves = first.leaves();
  const std::vector<Tensor>& xs = first.tensors();
  std::vector<Tensor> cotangents, all = inputs;
  std::vector<std::string> output_names;
  for (const CheckedLeaf& leaf : leaves)
    output_names.push_back("gradient of " + leaf.name);
  GradcheckOptions named = options;
  Generator generator(options.seed);
  {
    const ModeGuard mode({true, nullptr});
    const auto outputs = first.with_graph();
    before.changes();  // run() will say them
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Tensor v = random_signed(outputs[i].shape(), generator);
      v.requires_grad_();
      cotangents.push_back(v);
      all.push_back(v);
      const std::string name = outputs.size() == 1 ? "cotangent" : fmt::format("cotangent {}", i);
      leaves.push_back({all.size() - 1, name, v});
      if (!named.names.empty())
        named.names.push_back(name);
    }
  }
  // Differences are taken of the ordinary gradient: so the gradient under create_graph is checked
  // against it, where an op has one of its own.
  const auto call = [&](bool with_graph) {
    auto result = gradients(same(inputs), xs, cotangents, {.create_graph = with_graph});
    for (std::size_t k = 0; k < xs.size(); ++k)
      if (!result[k].defined())
        result[k] = zeros_like(xs[k]);
    return result;
  };
  return run({"gradgradcheck", call, std::move(leaves), std::move(output_names)}, all, named);
}

}  // namespace xgrad
