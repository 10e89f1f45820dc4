// What a GradcheckReport holds, as numbers, as text and as a map.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <iterator>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/fail.hpp>

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
  std::size_t worst = 0;
  double largest = -1;
  for (std::size_t i = 0; i < pair.elements; ++i) {
    if (judged.verdicts[i] == Verdict::unchecked) {
      ++pair.unchecked;
      continue;
    }
    const bool agrees = judged.verdicts[i] == Verdict::right;
    const double error = std::abs(a[i] - n[i]);
    const double size = std::isfinite(error) ? error / std::max(1.0, std::abs(n[i])) : INFINITY;
    pair.worst_error = std::max(pair.worst_error, size);
    // The worst element that disagrees is reported; if all agree, the worst of all.  Of those that
    // differ by rounding alone, the first: with every compiler the same.
    const bool first_to_disagree = !agrees && pair.disagree == 0;
    if (first_to_disagree || (agrees == (pair.disagree == 0) && size > largest * (1 + 1e-6))) {
      worst = i;
      largest = size;
    }
    pair.disagree += agrees ? 0 : 1;
    pair.zeros += agrees && a[i] == 0 ? 1 : 0;
  }
  if (pair.elements == 0)
    return pair;
  const double error = std::abs(a[worst] - n[worst]);
  pair.worst.analytic = a[worst];
  pair.worst.numeric = n[worst];
  pair.worst.error = std::isfinite(error) ? error : INFINITY;
  if (pair.analytic.size(1) == numel(pair.input_shape) &&
      pair.analytic.size(0) == numel(pair.output_shape)) {
    pair.worst.output_index = position(pair.output_shape, worst / pair.analytic.size(1));
    pair.worst.input_index = position(pair.input_shape, worst % pair.analytic.size(1));
  }
  if (pair.disagree > 0)
    explain(pair, judged);
  return pair;
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
                                                  report.left_out[0].message);
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
      report.reason = report.left_out[0].reason;
      report.explanation = report.left_out[0].message;
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
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], line[c].size());
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t c = 0; c + 1 < line.size(); ++c) {
      const bool number = c >= 3 && c <= 5;
      text += number ? fmt::format("{:>{}}  ", line[c], widths[c])
                     : fmt::format("{:<{}}  ", line[c], widths[c]);
    }
    text += line.back() + "\n";
  }
  for (const GradcheckPair& p : pairs)
    if (p.disagree > 0)
      text += fmt::format("d {} / d {}: {}\n", p.output_name, p.input_name, p.explanation);
  for (const GradcheckUnchecked& u : left_out)
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

}  // namespace xgrad
