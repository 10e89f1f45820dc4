#include "checks.hpp"

#include <bit>
#include <cmath>
#include <iterator>
#include <new>
#include <numeric>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/random.hpp>

// Catch2 asks the last one first.
CATCH_TRANSLATE_EXCEPTION(const std::exception& error) {
  return fmt::format("It throws an exception: {}", error.what());
}
CATCH_TRANSLATE_EXCEPTION(const std::bad_alloc&) {
  return "It asks for more memory than it is given (1 GiB): look at the sizes, and at what a loop "
         "appends to.";
}
CATCH_TRANSLATE_EXCEPTION(const xgrad::Error& error) {
  return fmt::format("It throws an error: {}", error.what());
}
CATCH_TRANSLATE_EXCEPTION(const exercise::NotWritten&) {
  return "Nothing is written yet: replace todo() by your lines.";
}

namespace learn {

using namespace xgrad;

namespace {

// A reason in words for beginners.
const char* meaning(GradcheckReason reason) {
  using enum GradcheckReason;
  switch (reason) {
    case absent:
      return "The function's value changes when this input changes, and the backward lacks that: a "
             "term is missing, nothing is added for this input, or it is a constant where it is "
             "used.";
    case spurious:
      return "The backward couples outputs with elements of this input on which they do not "
             "depend.";
    case wrong_sign:
      return "The gradient points the wrong way.";
    case wrong_factor:
      return "All numbers are wrong by the same factor: a multiplication or a mean is missing, or "
             "there is one too many.";
    case transposed:
      return "The numbers are right but in the wrong places: rows and columns are exchanged.";
    case wrong_shape:
      return "A gradient has the shape of its input; this one does not, or shapes "
             "on the way do not fit (a sum without keepdim?).";
    case not_linear:
      return "A backward multiplies the gradient that arrives; this one does something else with "
             "it, or does not use it.";
    case not_finite:
      return "There is a NaN or an infinity.";
    default:
      return "\"analytic\" is what your backward says, \"numeric\" how much the output really "
             "changes when that element is moved a little.";
  }
}

std::string shape_of(const Tensor& x) { return x.defined() ? to_string(x.shape()) : "undefined"; }

// The gradient of a fixed combination of f's elements; `meanwhile` runs between forward and
// backward.
std::vector<double> gradient_of(const TensorFunction& f, const Inputs& inputs,
                                const std::function<void(Inputs&)>& meanwhile) {
  Inputs leaves;
  for (const Tensor& x : inputs)
    leaves.push_back(x.detach().clone().requires_grad_());
  manual_seed(0);
  const Tensor y = f(leaves).at(0);
  meanwhile(leaves);
  std::vector<double> all;
  for (const Tensor& g : grad({sum(y * y)}, leaves, {.allow_unused = true}))
    if (g.defined())
      std::ranges::copy(xgrad::detail::elements(g), std::back_inserter(all));
  return all;
}

// Checks that two calls agree: no state, draws from the default generator only, and unchanged
// arguments.
void check_calls(const std::string& name, const TensorFunction& f, const Inputs& inputs) {
  const auto call = [&](Inputs& given) {
    for (const Tensor& x : inputs)
      given.push_back(x.detach().clone().requires_grad_(x.requires_grad()));
    manual_seed(0);
    return f(given).at(0);
  };
  Inputs first, second;
  const Tensor y = call(first), again = call(second);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect(same(first[i], inputs[i]),
           "{}: input {} has other numbers after the call: make a new Tensor in place of changing "
           "that one",
           name, i);
  expect(!y.defined() || !again.defined() || same(y.detach(), again.detach()),
         "{}: two calls with the same numbers, and the same seed, give different results: it keeps "
         "something from call to call, or draws from a generator of its own in place of the "
         "default one",
         name);
}

// An op with this value and these slopes, so that gradcheck() can check slopes that are numbers.
Tensor op_of(const Inputs& in, const std::function<double(const std::vector<double>&)>& value,
             const std::vector<double>& slopes) {
  return record(
      "yours", in,
      [value](std::span<const Tensor> now) {
        std::vector<double> x;
        for (const Tensor& t : now)
          x.push_back(t.item());
        return scalar(value(x), DType::float64);
      },
      [slopes](Context& ctx) {
        for (std::size_t i = 0; i < slopes.size(); ++i)
          ctx.add(i, ctx.gradient() * slopes[i]);
      });
}

// Other numbers; with factor 30, scores are so far apart that some weights are 0.
Inputs scaled(double factor) {
  Inputs in = exercise::inputs();
  for (Tensor& x : in)
    x = (x.detach() * factor).requires_grad_();
  return in;
}

}  // namespace

void expect(bool right, const std::string& text) {
  if (!right)
    FAIL(text);
  SUCCEED();
}

std::string number(double x) {
  return fmt::format("{:.6g}", std::isnan(x) ? std::abs(x) : x);  // a NaN may have a sign
}

std::array<std::string, 2> numbers(double a, double b) {
  std::array both = {number(a), number(b)};
  for (int digits = 9; both[0] == both[1] && digits <= 17; digits += 4)
    both = {fmt::format("{:.{}g}", a, digits), fmt::format("{:.{}g}", b, digits)};
  return both;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::ranges::equal(xgrad::detail::elements(a), xgrad::detail::elements(b), {},
                            std::bit_cast<std::uint64_t, double>,
                            std::bit_cast<std::uint64_t, double>);
}

void check_gradient(const std::string& name, const TensorFunction& f, const Inputs& inputs) {
  check_calls(name, f, inputs);
  const GradientExplanation found = explain_gradient(f, inputs);
  if (found) {
    const auto alone = gradient_of(f, inputs, [](Inputs&) {});
    const auto again = gradient_of(f, inputs, [&](Inputs& leaves) {
      Inputs others;
      for (const Tensor& leaf : leaves)
        others.push_back(leaf.detach() * 0.5);
      f(others);
    });
    expect(alone == again,
           "{}: the gradient changes if the function is called again before the backward runs: it "
           "keeps something outside of its graph",
           name);
    const auto updated = gradient_of(f, inputs, [](Inputs& leaves) {
      for (Tensor& leaf : leaves)
        leaf.fill_(0.5);
    });
    expect(alone == updated,
           "{}: the gradient changes if an input is updated before, as an optimizer does\n\nA "
           "backward captures Saved(x), which keeps the numbers that the forward had; a Tensor "
           "names whatever x is by then.",
           name);
    return;
  }
  std::string said = found.message;
  GradcheckReason reason = found.whole.reason;
  if (found.first_wrong && found.ops[*found.first_wrong].alone) {
    const OpCheck& op = found.ops[*found.first_wrong];
    try {
      const GradcheckReport alone = gradcheck(op.alone, op.leaves);
      if (!alone)
        reason = alone.reason;
    } catch (const Error&) {  // op.message has the text
    }
  }
  if (std::ranges::all_of(
          found.ops, [](const OpCheck& op) { return op.verdict == OpCheck::Verdict::constant; }))
    said = fmt::format("{}: no gradient reaches its inputs; {}", name, said);
  const bool captured = said.find(" is undefined") != std::string::npos;  // see lent()
  expect(false, "{}\n\n{}", said,
         captured ? "What was captured by reference is gone when the backward runs: capture "
                    "Saved(x), which keeps the numbers."
                  : meaning(reason));
}

void check_values(const std::string& name, const TensorFunction& mine,
                  const TensorFunction& reference, const Inputs& inputs) {
  check_calls(name, mine, inputs);
  const std::vector<Tensor> yours = mine(inputs), right = reference(inputs);
  for (std::size_t i = 0; i < right.size(); ++i)
    expect(yours.at(i).defined() && yours[i].shape() == right[i].shape(),
           "{}: the result has the shape {}, and should have {}", name, shape_of(yours[i]),
           shape_of(right[i]));
  const Comparison found = compare(mine, reference, inputs);
  std::string said = found.message;
  const std::string_view table = ": `table` lists both";  // a table that is not shown here
  if (const std::size_t at = said.find(table); at != std::string::npos)
    said.erase(at, table.size());
  expect(bool(found),
         "{}: {}\n\nThis is about values, not gradients: the lines above name the first step of "
         "the reference whose numbers you do not have, and the first of yours that it does not "
         "have. If you have all of its numbers, look at what you do with the last of them.",
         name, said);
}

void check_op(const std::string& name, const TensorFunction& mine, const TensorFunction& reference,
              const std::vector<Inputs>& cases) {
  std::string others;
  for (const Inputs& in : cases) {
    std::string sizes;
    for (const Tensor& x : in)
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", to_string(x.shape()));
    if (&in != &cases.front())
      others = fmt::format(
          "With inputs of the shapes {} (with others, tried before, it is right: is a number fixed "
          "that should come from the inputs or their shapes?)\n",
          sizes);
    INFO(others);
    check_values(name, mine, reference, in);
    check_gradient(name, mine, in);
  }
}

void check_slopes(const std::string& name, const std::vector<std::string>& names,
                  const std::vector<std::vector<double>>& points,
                  const std::function<double(const std::vector<double>&)>& value,
                  const std::function<std::vector<double>(const std::vector<double>&)>& slopes) {
  for (const std::vector<double>& point : points) {
    Inputs in;
    std::string where;
    for (std::size_t i = 0; i < point.size(); ++i) {
      in.push_back(scalar(point[i], DType::float64).requires_grad_());
      where += fmt::format("{}{} = {}", i == 0 ? "" : ", ", names[i], point[i]);
    }
    const std::vector<double> first = slopes(point);
    const GradcheckReport report =
        gradcheck([&](const Inputs& at) { return op_of(at, value, first); }, in,
                  {.atol = 1e-6, .rtol = 1e-6, .names = names});
    expect(slopes(point) == first,
           "{}: two calls with {} give different results: it keeps something from call to call",
           name, where);
    if (report)
      continue;
    const GradcheckElement& worst = report.worst().worst;
    const auto [right, yours] = numbers(worst.numeric, worst.analytic);
    expect(false,
           "{}: at {} the slope along {} is {}, because f changes by that much per unit there; "
           "yours is {}{}",
           name, where, report.worst().input_name, right, yours,
           worst.analytic == 0 ? "\n\nA slope of 0 says that f does not change here."
           : std::abs(worst.analytic + worst.numeric) < 1e-5 ? "\n\nOnly the sign is wrong."
                                                             : "");
  }
}

void check_future(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                  const std::string& where, const std::string& why) {
  // Larger numbers have scores of some hundreds, which a mask of -100 does not hide.  (There a mask
  // after softmax divides 0 by 0, which is no leak.)
  for (const double size : {1.0, 3.0, 30.0}) {
    const auto found = check_causal(f, (x * size).detach(), {.atol = 1e-12 * size * size});
    expect(found || (size == 30 && std::isnan(found.leak)), "{}{}{}", where, found.message, why);
  }
}

Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (causal)
    scores = masked_fill(scores, nn::future(q.size(-2), k.size(-2)), -INFINITY);
  return matmul(softmax(scores, -1), v);
}

void check_explained(Tensor (*attention)(const Inputs&)) {
  check_gradient("attention", attention, exercise::inputs());
  check_op("attention", attention, exercise::reference, {exercise::inputs(), scaled(-30)});
}

void check_compared(Tensor (*attention)(const Inputs&)) {
  check_op("attention", attention, exercise::reference, {exercise::inputs(), scaled(1.5)});
}

void check_drops(const std::string& name, const std::function<Tensor()>& dropped,
                 const Tensor& weights, double p) {
  expect(!all(dropped() == weights),
         "{}: nothing is dropped: with p = {} the values are those of p = 0", name, p);
  constexpr int samples = 1000;
  constexpr double limit = 6;  // standard errors
  const auto all_weights = xgrad::detail::elements(weights);
  std::vector<std::size_t> at;  // those that are not 0 anyway
  for (std::size_t i = 0; i < all_weights.size(); ++i)
    if (all_weights[i] > 1e-9)
      at.push_back(i);
  std::vector<double> alone(at.size()), both(at.size() * at.size());
  for (int n = 0; n < samples; ++n) {
    const auto now = xgrad::detail::elements(dropped());
    std::vector<std::size_t> zeros;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double divided = all_weights[at[i]] / (1 - p);
      if (now[at[i]] == 0)
        zeros.push_back(i);
      else if (!(std::abs(now[at[i]] - divided) <= 1e-9))
        expect(false,
               "{}: with p = {} a weight of {} becomes {}; it is 0, or, if it is kept, divided by "
               "1 - p, which is {}",
               name, p, number(all_weights[at[i]]), number(now[at[i]]), number(divided));
    }
    for (const std::size_t i : zeros) {
      ++alone[i];
      for (const std::size_t j : zeros)
        ++both[i * at.size() + j];
    }
  }
  const double mean =
      std::accumulate(alone.begin(), alone.end(), 0.0) / static_cast<double>(samples * at.size());
  for (const double count : alone)
    expect(std::abs(count / samples - p) <= limit * std::sqrt(p * (1 - p) / samples),
           "{}: with p = {} the share of weights that are dropped is {:.2f}", name, p, mean);
  const double tolerance = limit * std::sqrt(p * p * (1 - p * p) / samples);
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!(std::abs(both[i * at.size() + j] / samples - p * p) <= tolerance))
        expect(false,
               "{}: some weights are dropped together, or never together: each has a coin of its "
               "own",
               name);
}

}  // namespace learn
