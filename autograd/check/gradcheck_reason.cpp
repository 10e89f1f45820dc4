// Why a Jacobian disagrees: each reason has a test, of the pattern of the numbers.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

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

// What in the shapes has size c, 1 / c, c^2 or 1 / c^2.
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

class Numbers {
 public:
  Numbers(const GradcheckPair& pair, const JudgedPair& judged)
      : pair_(pair),
        tolerance_(judged.tolerance),
        m_(pair.analytic.size(0)),
        n_(pair.analytic.size(1)),
        a_(pair.analytic.data<double>()),
        b_(pair.numeric.data<double>()) {
    for (std::size_t i = 0; i < m_ * n_; ++i)
      if (judged.verdicts[i] == Verdict::wrong)
        wrong_.push_back(i);
  }

  std::size_t m() const { return m_; }
  std::size_t n() const { return n_; }
  double a(std::size_t i) const { return a_[i]; }
  double b(std::size_t i) const { return b_[i]; }
  const std::vector<std::size_t>& wrong() const { return wrong_; }
  std::span<const double> analytic() const { return {a_, m_ * n_}; }
  double atol() const { return tolerance_.atol; }
  // (What is unchecked, NaN, agrees with anything.)
  bool close(double a, double b) const {
    return std::isnan(b) || std::abs(a - b) <= tolerance_.atol + tolerance_.rtol * std::abs(b);
  }

  // A(i) = B(to(i)) for all elements i.
  template <class F>
  bool permuted(const F& to) const {
    for (std::size_t i = 0; i < m_ * n_; ++i)
      if (!close(a_[i], b_[to(i)]))
        return false;
    return true;
  }

  // c, if A = c B in all elements, or in those that disagree; and how many say so.
  struct Ratio {
    double c;
    std::size_t elements;
  };
  std::optional<Ratio> ratio(bool everywhere) const {
    std::vector<std::size_t> over = wrong_;
    if (everywhere) {
      over.resize(m_ * n_);
      std::iota(over.begin(), over.end(), std::size_t{0});
    }
    double ab = 0, bb = 0;
    std::size_t significant = 0;
    std::erase_if(over, [&](std::size_t i) { return std::isnan(b_[i]); });
    for (const std::size_t i : over) {
      ab += a_[i] * b_[i];
      bb += b_[i] * b_[i];
      significant += std::abs(b_[i]) > 100 * tolerance_.atol ? 1 : 0;
    }
    if (bb == 0 || significant == 0 || ab == 0)
      return {};
    const double c = ab / bb;
    if (!std::ranges::all_of(over, [&](std::size_t i) {
          return std::abs(a_[i] - c * b_[i]) <= tolerance_.atol * std::max(1.0, std::abs(c)) +
                                                    tolerance_.rtol * std::abs(c * b_[i]);
        }))
      return {};
    return Ratio{c, significant};
  }

  // Which columns and which rows have wrong elements: "3 of 12 elements of input 0: (0, 1), ..."
  std::string pattern() const {
    std::vector<bool> rows(m_), columns(n_);
    bool diagonal = m_ == n_;
    for (const std::size_t i : wrong_) {
      rows[i / n_] = columns[i % n_] = true;
      diagonal = diagonal && i / n_ == i % n_;
    }
    if (diagonal && wrong_.size() > 1)
      return fmt::format("all that disagree are on the diagonal, {} of {}", wrong_.size(), m_);
    return fmt::format("wrong are {}; and {}", list(columns, pair_.input_name, pair_.input_shape),
                       list(rows, pair_.output_name, pair_.output_shape));
  }

 private:
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

  const GradcheckPair& pair_;
  const Tolerance& tolerance_;
  std::size_t m_, n_;
  const double *a_, *b_;
  std::vector<std::size_t> wrong_;
};

Maybe absent(const Numbers& numbers, const GradcheckPair& pair, const JudgedPair& judged) {
  if (!std::ranges::all_of(numbers.wrong(), [&](std::size_t i) { return numbers.a(i) == 0; }))
    return {};
  if (!judged.reached && judged.wrong_op.find("adds no gradient") != std::string::npos)
    return finding(Reason::absent, "no gradient of {} arrives at {}: {}", pair.output_name,
                   pair.input_name, judged.wrong_op);
  if (!judged.reached)
    return finding(Reason::absent,
                   "no gradient: the graph of {} does not lead to {}, though its value depends on "
                   "it: is there a detach(), a NoGrad, or a Tensor made from another's numbers?",
                   pair.output_name, pair.input_name);
  if (std::ranges::all_of(numbers.analytic(), [](double a) { return a == 0; }))
    return finding(Reason::absent, "the gradient of {} is zero everywhere: {}", pair.input_name,
                   judged.wrong_op.empty()
                       ? "a backward formula adds nothing for it, or a path to it is detached"
                       : judged.wrong_op);
  return finding(Reason::absent, "the gradient is zero where it should not be: {}",
                 numbers.pattern());
}

Maybe spurious(const Numbers& numbers) {
  const auto flat = [&](std::size_t i) { return std::abs(numbers.b(i)) <= numbers.atol(); };
  if (!std::ranges::all_of(numbers.wrong(), flat))
    return {};
  return finding(Reason::spurious,
                 "a gradient where the function does not change: it does not use these elements, "
                 "or goes in steps (a round, a comparison): {}",
                 numbers.pattern());
}

Maybe factor(const Numbers& numbers, const GradcheckPair& pair, bool everywhere) {
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

// Where element `flat` of a shape goes if its last two dimensions are taken for swapped: memory
// holds (..., q, p) where (..., p, q) is meant.
std::size_t swapped(std::size_t flat, const Shape& shape) {
  const std::size_t p = shape[shape.size() - 2], q = shape.back();
  const std::size_t matrix = flat / (p * q), at = flat % (p * q);
  return matrix * p * q + (at % p) * q + at / p;
}

Maybe transposed(const Numbers& numbers, const GradcheckPair& pair) {
  const std::size_t m = numbers.m(), n = numbers.n();
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

}  // namespace

void explain(GradcheckPair& pair, const JudgedPair& judged) {
  const Numbers numbers(pair, judged);
  // The surest reasons first, and a special case (no gradient at all) before the general one (a
  // wrong factor).
  Maybe found;
  const auto otherwise = [&found](const auto& test) { found = found ? found : test(); };
  if (!std::ranges::all_of(numbers.analytic(), [](double a) { return std::isfinite(a); }))
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

std::string float32_op(const CheckedFunction& f) {
  const Trace trace;
  f.with_graph();
  const auto is_float = [](double v) { return static_cast<double>(static_cast<float>(v)) == v; };
  // Of more digits than a round number has.
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
  // Of other inputs nearby, too: 1 / 1e-10 happens to be a float32.
  const auto rounds_nearby = [&](const Trace::Event& e) {
    const ModeGuard plain({false, nullptr});
    std::vector<Tensor> inputs;
    double factor = 1;
    for (const Tensor& x : e.inputs)
      inputs.push_back(x.defined() ? x.detach() * (factor += 1.23456789e-7) : x);
    return rounds(e.forward(inputs), inputs);
  };
  for (const Trace::Event& e : trace.events()) {
    if (!e.output.requires_grad())
      continue;
    const bool single = e.output.dtype() == DType::float32;
    if (single || (rounds(e.output, e.inputs) && rounds_nearby(e)))
      return fmt::format("op '{}'{} {} of shape {}", e.op, e.scope.empty() ? "" : " in " + e.scope,
                         single ? "makes a float32 Tensor" : "rounds to float32 inside: its output",
                         to_string(e.output.shape()));
  }
  return {};
}

}  // namespace xgrad::detail
