// Reasons for a wrong Jacobian, a GradcheckReport's contents as numbers, text and map, and sweeps.

#include "probe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include "../fail.hpp"
#include "same_draws.hpp"

namespace xgrad::detail {
namespace {

using Reason = GradcheckReason;

struct Finding {
  Reason reason;
  std::string text;
};
using Maybe = std::optional<Finding>;

template <class... Args>
Finding finding(Reason reason, fmt::format_string<Args...> text, Args&&... args) {
  return {reason, fmt::format(text, std::forward<Args>(args)...)};
}

constexpr std::size_t most_named = 4;  // elements in a list

// Names sizes in the shapes that equal c, 1 / c, c^2 or 1 / c^2.
std::string counts_like(double c, const GradcheckPair& pair) {
  std::vector<std::string> found;
  const auto compare = [&](const std::string& what, std::size_t size) {
    const double s = static_cast<double>(size), r = std::abs(c);
    const auto is = [](double a, double b) { return std::abs(a - b) <= 1e-5 * b; };
    if (size > 1 && (is(r, s) || is(1 / r, s) || is(r * r, s) || is(1 / (r * r), s)))
      found.push_back(fmt::format("{} is {}", what, size));
  };
  const auto shape = [&](const std::string& name, const Shape& sizes) {
    for (std::size_t d = 0; d < sizes.size(); ++d)
      compare(fmt::format("dimension {} of {}", d, name), sizes[d]);
    if (sizes.size() > 1)
      compare("the number of elements of " + name, numel(sizes));
  };
  shape(pair.output_name, pair.output_shape);
  shape(pair.input_name, pair.input_shape);
  return found.empty() ? "" : fmt::format(" ({})", fmt::join(found, "; "));
}

// ---- the numbers ----

struct Jacobians {
  Jacobians(const GradcheckPair& of, const JudgedPair& judged)
      : pair(of),
        tolerance(judged.tolerance),
        m(of.analytic.size(0)),
        n(of.analytic.size(1)),
        a(of.analytic.data<double>(), m * n),
        b(of.numeric.data<double>(), m * n) {
    for (std::size_t i = 0; i < m * n; ++i)
      if (judged.verdicts[i] == Verdict::wrong)
        wrong.push_back(i);
  }

  // (An unchecked element, NaN, agrees with anything.)
  bool close(double x, double y) const {
    return std::isnan(y) || std::abs(x - y) <= tolerance.atol + tolerance.rtol * std::abs(y);
  }

  // A(i) = B(to(i)) for all elements i.
  template <class F>
  bool permuted(const F& to) const {
    for (std::size_t i = 0; i < m * n; ++i)
      if (!close(a[i], b[to(i)]))
        return false;
    return true;
  }

  // c, if A = c B in all elements, or in all that disagree; and the number of elements that show
  // it.
  struct Ratio {
    double c;
    std::size_t elements;
  };
  std::optional<Ratio> ratio(bool everywhere) const {
    std::vector<std::size_t> over = wrong;
    if (everywhere) {
      over.resize(m * n);
      std::iota(over.begin(), over.end(), std::size_t{0});
    }
    double ab = 0, bb = 0;
    std::size_t significant = 0;
    std::erase_if(over, [&](std::size_t i) { return std::isnan(b[i]); });
    for (const std::size_t i : over) {
      ab += a[i] * b[i];
      bb += b[i] * b[i];
      significant += std::abs(b[i]) > 100 * tolerance.atol ? 1 : 0;
    }
    if (bb == 0 || significant == 0 || ab == 0)
      return {};
    const double c = ab / bb;
    if (!std::ranges::all_of(over, [&](std::size_t i) {
          return std::abs(a[i] - c * b[i]) <=
                 tolerance.atol * std::max(1.0, std::abs(c)) + tolerance.rtol * std::abs(c * b[i]);
        }))
      return {};
    return Ratio{c, significant};
  }

  // The columns and rows with wrong elements: "3 of 12 elements of input 0: (0, 1), ..."
  std::string pattern() const {
    std::vector<bool> rows(m), columns(n);
    bool diagonal = m == n;
    for (const std::size_t i : wrong) {
      rows[i / n] = columns[i % n] = true;
      diagonal = diagonal && i / n == i % n;
    }
    if (diagonal && wrong.size() > 1)
      return fmt::format("all that disagree are on the diagonal, {} of {}", wrong.size(), m);
    return fmt::format("wrong are {}; and {}", list(columns, pair.input_name, pair.input_shape),
                       list(rows, pair.output_name, pair.output_shape));
  }

  static std::string list(const std::vector<bool>& marked, const std::string& name,
                          const Shape& shape) {
    const auto count = static_cast<std::size_t>(std::ranges::count(marked, true));
    if (count == marked.size())
      return fmt::format("all {} elements of {}", count, name);
    std::string text;
    std::size_t named = 0;
    for (std::size_t i = 0; i < marked.size() && named < most_named; ++i)
      if (marked[i])
        text += (named++ > 0 ? ", " : "") + place(i, shape);
    return fmt::format("{} of {} elements of {}: {}{}", count, marked.size(), name, text,
                       count > named ? ", ..." : "");
  }

  const GradcheckPair& pair;
  const Tolerance& tolerance;
  std::size_t m, n;
  std::span<const double> a, b;
  std::vector<std::size_t> wrong;
};

Maybe absent(const Jacobians& numbers, const GradcheckPair& pair, const JudgedPair& judged) {
  if (!std::ranges::all_of(numbers.wrong, [&](std::size_t i) { return numbers.a[i] == 0; }))
    return {};
  if (!judged.reached && judged.wrong_op.find("adds no gradient") != std::string::npos)
    return finding(Reason::absent, "no gradient of {} arrives at {}: {}", pair.output_name,
                   pair.input_name, judged.wrong_op);
  if (!judged.reached)
    return finding(Reason::absent,
                   "no gradient: the graph of {} does not lead to {}, though its value depends on "
                   "it: is there a detach(), a NoGrad, or a Tensor made from another's numbers?",
                   pair.output_name, pair.input_name);
  if (std::ranges::all_of(numbers.a, [](double a) { return a == 0; }))
    return finding(Reason::absent, "the gradient of {} is zero everywhere: {}", pair.input_name,
                   judged.wrong_op.empty()
                       ? "a backward formula adds nothing for it, or a path to it is detached"
                       : judged.wrong_op);
  return finding(Reason::absent, "the gradient is zero where it should not be: {}",
                 numbers.pattern());
}

Maybe spurious(const Jacobians& numbers) {
  const auto flat = [&](std::size_t i) { return std::abs(numbers.b[i]) <= numbers.tolerance.atol; };
  if (!std::ranges::all_of(numbers.wrong, flat))
    return {};
  return finding(Reason::spurious,
                 "a gradient where the function does not change: it does not use these elements, "
                 "goes in steps (a round, a comparison), or is constant, as the sum of a softmax: "
                 "{}",
                 numbers.pattern());
}

Maybe factor(const Jacobians& numbers, const GradcheckPair& pair, bool everywhere) {
  const auto r = numbers.ratio(everywhere);
  if (!r)
    return {};
  const std::string where =
      everywhere ? "" : fmt::format(" in those that disagree ({})", numbers.pattern());
  if (std::abs(r->c + 1) < 1e-3)
    return everywhere || r->elements > 1
               ? Maybe(finding(Reason::wrong_sign, "wrong sign: analytic = -numeric{}", where))
               : std::nullopt;
  const std::string name = number_name(r->c);
  if (r->elements < 2 && (name.empty() || !everywhere))
    return {};  // one number is always a multiple of another
  const std::string number = fmt::format("{:.6g}", r->c), inverse = number_name(1 / r->c);
  std::string named;
  if (!name.empty() && name != number)
    named = name.starts_with(number + " = ") ? "; " + name : fmt::format("; {} = {}", number, name);
  return finding(
      Reason::wrong_factor,
      "a missing factor: analytic = {} × numeric{}{}{}: multiply the gradient by {}", number, where,
      named, counts_like(r->c, pair),
      inverse.empty() ? fmt::format("{:.6g}", 1 / r->c) : inverse.substr(0, inverse.find(' ')));
}

// The index of element `flat` if the last two dimensions are mistaken for swapped: memory holds
// (..., q, p) instead of (..., p, q).
std::size_t swapped(std::size_t flat, const Shape& shape) {
  const std::size_t p = shape[shape.size() - 2], q = shape.back();
  const std::size_t matrix = flat / (p * q), at = flat % (p * q);
  return matrix * p * q + (at % p) * q + at / p;
}

Maybe transposed(const Jacobians& numbers, const GradcheckPair& pair) {
  const std::size_t m = numbers.m, n = numbers.n;
  if (pair.input_shape.size() >= 2 &&
      numbers.permuted([&](std::size_t i) { return i / n * n + swapped(i % n, pair.input_shape); }))
    return finding(
        Reason::transposed,
        "the gradient of {} {} is transposed in its last two dimensions: transpose(-2, -1)",
        pair.input_name, to_string(pair.input_shape));
  if (pair.output_shape.size() >= 2 && numbers.permuted([&](std::size_t i) {
        return swapped(i / n, pair.output_shape) * n + i % n;
      }))
    return finding(
        Reason::transposed,
        "the backward takes the cotangent of {} {} transposed in its last two dimensions",
        pair.output_name, to_string(pair.output_shape));
  if (m == n && numbers.permuted([&](std::size_t i) { return i % n * n + i / n; }))
    return finding(
        Reason::transposed,
        "the Jacobian is transposed: the backward computes J v where it should compute Jᵀ v");
  return {};
}

void explain(GradcheckPair& pair, const JudgedPair& judged) {
  const Jacobians numbers(pair, judged);
  // The surest reasons come first, and a special case (no gradient at all) before the general one
  // (a wrong factor).
  Maybe found;
  const auto otherwise = [&found](const auto& test) { found = found ? found : test(); };
  if (!std::ranges::all_of(numbers.a, [](double a) { return std::isfinite(a); }))
    found =
        judged.infinite.empty()
            ? finding(Reason::not_finite,
                      "the function is finite, its analytic gradient is not: a formula divides by "
                      "zero, or multiplies zero by infinity")
            : finding(Reason::not_finite,
                      "the function is smooth, its analytic gradient is NaN or infinite: {}, has "
                      "an infinite or NaN slope here, and zero times that is NaN: where() of its "
                      "result comes too late; make its input safe first, where(mask, x, 1)",
                      judged.infinite);
  otherwise([&] { return absent(numbers, pair, judged); });
  otherwise([&] { return factor(numbers, pair, true); });
  otherwise([&] { return transposed(numbers, pair); });
  otherwise([&] { return spurious(numbers); });
  otherwise([&] { return factor(numbers, pair, false); });
  if (!found)
    found = Finding{Reason::unknown, "no pattern that is known: " + numbers.pattern()};
  pair.reason = found->reason;
  pair.explanation = found->text;
}

}  // namespace
}  // namespace xgrad::detail

namespace xgrad {

const char* to_string(GradcheckReason reason) {
  static constexpr const char* names[] = {
      "none",         "float32_rounding", "rounding",   "truncation",
      "kink",         "nondeterministic", "not_finite", "inputs_modified",
      "wrong_shape",  "wrong_dtype",      "not_linear", "transposed",
      "wrong_factor", "wrong_sign",       "absent",     "spurious",
      "unvisited",    "unknown"};
  static_assert(std::size(names) == static_cast<std::size_t>(GradcheckReason::unknown) + 1);
  return names[static_cast<std::size_t>(reason)];
}

GradcheckPair detail::summarized(const CheckedFunction& f, std::size_t output, const Shape& shape,
                                 const CheckedLeaf& leaf, JudgedPair&& judged) {
  GradcheckPair pair;
  pair.output = output;
  pair.input = leaf.position;
  pair.output_name = f.output_name(output);
  pair.input_name = leaf.name;
  pair.output_shape = shape;
  pair.input_shape = leaf.x.shape();
  pair.analytic = Tensor(std::move(judged.analytic));
  pair.numeric = Tensor(std::move(judged.numeric));
  const double *const a = pair.analytic.data<double>(), *const n = pair.numeric.data<double>();
  pair.elements = pair.analytic.numel();
  Findings found{.alike = 1e-6};  // the same one with every compiler
  for (std::size_t i = 0; i < pair.elements; ++i) {
    found.add({{.verdict = judged.verdicts[i], .numeric = n[i]}, 0, 0, i, a[i]});
    pair.zeros += judged.verdicts[i] == Verdict::right && a[i] == 0 ? 1 : 0;
  }
  pair.disagree = found.disagree;
  pair.unchecked = found.unchecked;
  pair.worst_error = found.worst_error;
  const std::size_t worst = found.worst.element;
  if (pair.elements == 0)
    return pair;
  const double error = std::abs(a[worst] - n[worst]);
  pair.worst = {
      .analytic = a[worst], .numeric = n[worst], .error = std::isfinite(error) ? error : INFINITY};
  if (pair.analytic.size(1) == numel(pair.input_shape) &&
      pair.analytic.size(0) == numel(pair.output_shape)) {
    pair.worst.output_index = position(pair.output_shape, worst / pair.analytic.size(1));
    pair.worst.input_index = position(pair.input_shape, worst % pair.analytic.size(1));
  }
  if (pair.disagree > 0)
    explain(pair, judged);
  return pair;
}

std::string detail::at(const std::string& name, std::size_t flat, const Shape& shape) {
  return fmt::format("{} at {}", name, place(flat, shape));
}

void detail::sum_up(GradcheckReport& report, const char* caller, bool strict) {
  for (const GradcheckPair& pair : report.pairs) {
    report.checked += pair.elements;
    report.disagree += pair.disagree;
    report.unchecked += pair.unchecked;
    report.worst_error = std::max(report.worst_error, pair.worst_error);
  }
  const GradcheckPair* const worst = report.disagree > 0 ? &report.worst() : nullptr;
  if (worst != nullptr && report.reason == GradcheckReason::none) {
    report.reason = worst->reason;
    report.explanation = worst->explanation;
  }
  const std::string unchecked = report.unchecked == 0
                                    ? ""
                                    : fmt::format("; {} unchecked, the first: {}", report.unchecked,
                                                  report.unchecked_elements[0].message);
  report.ok = report.reason == GradcheckReason::none;
  if (report.ok) {
    report.message = fmt::format(
        "{}: {} {} agree; largest error {:.2g}{}", caller,
        report.unchecked == 0
            ? fmt::format("all {}", report.checked)
            : fmt::format("{} of {}", report.checked - report.unchecked, report.checked),
        report.fast_mode ? "products" : "elements", report.worst_error, unchecked);
    if (!report.explanation.empty())
      report.message += "; " + report.explanation;
    if (strict && report.unchecked > 0) {
      report.ok = false;
      report.reason = report.unchecked_elements[0].reason;
      report.explanation = report.unchecked_elements[0].message;
    }
    return;
  }
  report.message = fmt::format("{}: ", caller);
  if (worst != nullptr) {
    const GradcheckElement& e = worst->worst;
    report.message += fmt::format(
        "d {} ({}) / d {} ({}): analytic {:.9g}, numeric {:.9g}; {} of {} elements disagree: ",
        worst->output_name, fmt::join(e.output_index, ", "), worst->input_name,
        fmt::join(e.input_index, ", "), e.analytic, e.numeric, report.disagree, report.checked);
  }
  report.message += report.explanation + unchecked;
}

const GradcheckPair& GradcheckReport::pair(std::size_t output, std::size_t input) const {
  for (const GradcheckPair& p : pairs)
    if (p.output == output && p.input == input)
      return p;
  fail<ValueError>("GradcheckReport: output {} with input {} was not compared", output, input);
}

const GradcheckPair& GradcheckReport::worst() const {
  check<ValueError>(!pairs.empty(), "GradcheckReport: nothing was compared: {}", message);
  const auto key = [](const GradcheckPair& p) {
    const double size = std::isfinite(p.worst.numeric) ? std::abs(p.worst.numeric) : 1.0;
    return std::pair(p.disagree > 0, p.worst.error / std::max(1.0, size));
  };
  return *std::ranges::max_element(pairs, {}, key);
}

std::string GradcheckReport::table() const {
  std::vector<std::vector<std::string>> lines{{"output", "input", "shape", "elements", "disagree",
                                               "zero", "worst error", "at", "analytic", "numeric",
                                               "reason"}};
  for (const GradcheckPair& p : pairs) {
    const GradcheckElement& e = p.worst;
    lines.push_back({p.output_name, p.input_name, to_string(p.input_shape),
                     std::to_string(p.elements), std::to_string(p.disagree),
                     std::to_string(p.zeros), p.elements > 0 ? fmt::format("{:.2g}", e.error) : "-",
                     fast_mode || p.elements == 0
                         ? "-"
                         : fmt::format("({}) / ({})", fmt::join(e.output_index, ", "),
                                       fmt::join(e.input_index, ", ")),
                     p.elements > 0 ? fmt::format("{:.9g}", e.analytic) : "-",
                     p.elements > 0 ? fmt::format("{:.9g}", e.numeric) : "-",
                     p.disagree > 0    ? to_string(p.reason)
                     : p.unchecked > 0 ? fmt::format("{} unchecked", p.unchecked)
                                       : "ok"});
  }
  std::string text = in_columns(lines, "<<<>>><<<<");
  for (const GradcheckPair& p : pairs)
    if (p.disagree > 0)
      text += fmt::format("d {} / d {}: {}\n", p.output_name, p.input_name, p.explanation);
  for (const GradcheckUnchecked& u : unchecked_elements)
    text += "unchecked: " + u.message + "\n";
  for (const std::string& note : notes)
    text += "note: " + note + "\n";
  return text + message + "\n";
}

Tensor GradcheckReport::error_map(std::size_t output, std::size_t input) const {
  const GradcheckPair& p = pair(output, input);
  check<ValueError>(!fast_mode, "error_map: fast mode keeps no Jacobian");
  auto error = empty_array<double>(p.analytic.shape());
  for (std::size_t i = 0; i < error.size(); ++i)
    error.data()[i] = std::abs(p.analytic.data<double>()[i] - p.numeric.data<double>()[i]);
  return Tensor(std::move(error));
}

// ---- sweeps ----

// Concludes from the shape of the curve.
static std::string conclusion_of(const EpsSweep& sweep) {
  constexpr double agreement = 1e-3;     // GradcheckOptions' rtol: below it, differences agree
  constexpr double float64_best = 1e-6;  // a smooth function reaches this easily
  const auto& points = sweep.points;
  const EpsSweep::Point& best = sweep.best();
  if (!std::ranges::all_of(points, [](const auto& p) { return std::isfinite(p.error); }) &&
      !(best.error <= agreement))
    return "not finite: the function, or its gradient, is NaN or infinite";
  double largest = 0, smallest = INFINITY;
  for (const auto& p : points)
    if (p.eps <= 1e-3 && p.eps >= 1e-8) {
      largest = std::max(largest, p.error);
      smallest = std::min(smallest, p.error);
    }
  if (best.error > agreement && largest <= 3 * smallest)
    return fmt::format(
        "flat: no eps agrees, the error stays near {:.2g}: the gradient is wrong, or there is a "
        "kink at the point itself",
        smallest);
  const double last = points.back().error;
  if (best.eps >= 1e-4 && last > 100 * best.error && last > 0.01)
    return fmt::format(
        "rounding wins from eps {:.0e} on, far too early for float64: the function computes in "
        "float32 inside, or large values cancel",
        best.eps);
  // From disagreement to agreement in one step: eps^2 alone would fall only by 100.
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    if (points[i].error > 1e-2 && points[i + 1].error < 1e-4 * points[i].error &&
        points[i].eps < 1e-2)
      return fmt::format(
          "a kink between {:.0e} and {:.0e} from the point: smaller differences agree",
          points[i + 1].eps, points[i].eps);
  if (best.error <= float64_best)
    return fmt::format(
        "right: the error falls as eps^2, rises as 1 / eps, and is {:.2g} at eps {:.0e}",
        best.error, best.eps);
  return fmt::format("the smallest error is {:.2g}, at eps {:.0e}", best.error, best.eps);
}

const EpsSweep::Point& EpsSweep::best() const {
  check<ValueError>(!points.empty(), "EpsSweep: no points");
  const auto key = [](const Point& p) { return std::isfinite(p.error) ? p.error : INFINITY; };
  return *std::ranges::min_element(points, {}, key);
}

std::string EpsSweep::table() const {
  std::size_t width = 5;
  for (const Point& p : points)
    width = std::max(width, p.input.size());
  std::string text =
      fmt::format("{:<7} {:>8}  {:<{}}  1e-16 ... 1\n", "eps", "error", "worst", width);
  for (const Point& p : points) {
    // Three signs for each factor of ten above 1e-16.
    const double decades = p.error > 0 ? std::clamp(std::log10(p.error) + 16, 0.0, 18.0) : 0;
    const auto length = std::isfinite(p.error) ? static_cast<std::size_t>(3 * decades) : 0;
    text += fmt::format("{:<7.0e} {:>8.1e}  {:<{}}  |{}{}\n", p.eps, p.error, p.input, width,
                        std::string(length, '#'), &p == &best() ? "  <- smallest" : "");
  }
  return text + conclusion + "\n";
}

EpsSweep eps_sweep(const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options) {
  using namespace detail;
  const SameDraws draws;
  const Snapshot before(inputs, options.names);
  const CheckedFunction checked = checked_function("eps_sweep", draws.of(f), inputs, options);
  const ModeGuard mode({true, nullptr});
  Generator generator(options.seed);
  std::vector<Tensor> v, analytic;
  Doubles weights;
  EpsSweep sweep;
  {
    const auto outputs = checked.with_graph();
    sweep.conclusion = before.changes();
    if (sweep.conclusion.empty())
      sweep.conclusion = two_results(outputs, checked.with_graph());
    if (!sweep.conclusion.empty())
      return sweep;
    for (const Tensor& y : outputs) {
      v.push_back(random_signed(y.shape(), generator));
      std::ranges::copy(elements(v.back()), std::back_inserter(weights));
    }
    analytic = gradients(outputs, checked.tensors(), v, {});
  }
  const Probe probe = checked.probe(shapes_of(v));
  // Every element moves by about eps, so that a kink near any of them is met.
  std::vector<Direction> directions;
  for (std::size_t k = 0; k < probe.leaves.size(); ++k) {
    Doubles u = elements(random_signed(checked.leaves()[k].x.shape(), generator));
    for (std::size_t i = 0; i < u.size(); ++i)
      if (!std::isfinite(probe.leaves[k].values[i]))
        u[i] = 0;
    directions.push_back({Point(probe.leaves.size())});
    directions[k].by[k] = std::move(u);
  }
  bool seen = false;  // above rounding
  for (int digits = 1; digits <= 10; ++digits) {
    EpsSweep::Point point{std::pow(10.0, -digits), -1, ""};
    for (std::size_t k = 0; k < directions.size(); ++k) {
      const Line line = probe.line(directions[k]);
      const Doubles above = line.at({.t = point.eps}), below = line.at({.t = -point.eps});
      double numeric = 0, rounding = 0;
      for (std::size_t j = 0; j < above.size(); ++j) {
        numeric += weights[j] * difference(above[j], below[j]) / (2 * point.eps);
        rounding += 0x1p-53 * std::abs(weights[j]) * (std::abs(above[j]) + std::abs(below[j]));
      }
      const Doubles moved = really_moved(checked.leaves()[k].x, directions[k].by[k], point.eps);
      const double exact = dot(or_zeros(analytic[k], moved.size()), moved);
      const double size = std::max(std::abs(exact), 1e-3 * std::abs(numeric));
      const double error = exact == numeric ? 0 : std::abs(exact - numeric) / size;
      seen = seen || !(std::max(size, std::abs(exact - numeric)) <= rounding / point.eps);
      if (!(error <= point.error)) {
        point.error = error;
        point.input = checked.leaves()[k].name;
      }
      if (std::isnan(error))
        break;
    }
    sweep.points.push_back(point);
  }
  sweep.conclusion =
      seen ? conclusion_of(sweep)
           : "no digit is left: rounding changes the function by more than any eps does";
  // Equal steps may be too large for some elements, as for log at 1e-12.
  if (sweep.conclusion.starts_with("flat"))
    if (const GradcheckReport report = gradcheck(f, inputs, options);
        report && report.unchecked == 0)
      sweep.conclusion = fmt::format(
          "right: no eps agrees, but steps of the sizes of the elements do, largest error {:.2g}",
          report.worst_error);
  return sweep;
}

}  // namespace xgrad
