#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/random.hpp>

#include "course/judge.hpp"

namespace learn {

using namespace xgrad;
using exercise::Inputs;

namespace {

// "undefined symbol: _Z5otherd": a function that is declared and used, and nowhere defined.
std::string load_error(const std::string& said) {
  const std::string_view undefined = "undefined symbol: ";
  const std::size_t at = said.find(undefined);
  if (at == std::string::npos)
    return said;
  const std::string symbol = said.substr(at + undefined.size());
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return fmt::format("{} is used, and declared, but nowhere defined",
                     status == 0 ? name.get() : symbol);
}

}  // namespace

Work::Work(const std::string& library) : library_(::dlopen(library.c_str(), RTLD_NOW)) {
  if (library_ == nullptr)
    throw Error(load_error(::dlerror()));
}

void* Work::symbol(const char* name) const {
  void* const found = ::dlsym(library_, name);
  if (found == nullptr)
    throw Missing{name};
  return found;
}

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

}  // namespace

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
  const auto bits = [](const Tensor& x) {
    std::vector<std::uint64_t> all;
    for (const double element : xgrad::detail::elements(x))
      all.push_back(std::bit_cast<std::uint64_t>(element));
    return all;
  };
  return a.shape() == b.shape() && bits(a) == bits(b);
}

Answer ask(const std::vector<std::function<Answer()>>& judges) {
  Answer answer;
  for (const auto& judge : judges)
    if (answer = judge(); !answer.right)
      break;
  return answer;
}

namespace {

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

// Whether two calls agree: no state, draws from the default generator only, and unchanged
// arguments.
Answer judge_calls(const std::string& name, const TensorFunction& f, const Inputs& inputs) {
  const auto call = [&](Inputs& given) {
    given.clear();
    for (const Tensor& x : inputs)
      given.push_back(x.detach().clone().requires_grad_(x.requires_grad()));
    manual_seed(0);
    return f(given).at(0);
  };
  Inputs first, second;
  const Tensor y = call(first), again = call(second);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!same(first[i], inputs[i]))
      return {false, fmt::format("{}: input {} has other numbers after the "
                                 "call: make a new Tensor in place of changing that one",
                                 name, i)};
  if (y.defined() && again.defined() && !same(y.detach(), again.detach()))
    return {false, fmt::format("{}: two calls with the same numbers, and the same seed, give "
                               "different results: it keeps something from call to call, or draws "
                               "from a generator of its own in place of the default one",
                               name)};
  return {true, ""};
}

}  // namespace

Answer judge_gradient(const std::string& name, const TensorFunction& f, const Inputs& inputs) {
  if (Answer found = judge_calls(name, f, inputs); !found.right)
    return found;
  const GradientExplanation found = explain_gradient(f, inputs);
  if (found) {
    const auto alone = gradient_of(f, inputs, [](Inputs&) {});
    if (alone != gradient_of(f, inputs, [&](Inputs& leaves) {
          Inputs others;
          for (const Tensor& leaf : leaves)
            others.push_back(leaf.detach() * 0.5);
          f(others);
        }))
      return {false, name +
                         ": the gradient changes if the function is called again before the "
                         "backward runs: it keeps something outside of its graph"};
    if (alone != gradient_of(f, inputs, [](Inputs& leaves) {
          for (Tensor& leaf : leaves)
            leaf.fill_(0.5);
        }))
      return {false, name +
                         ": the gradient changes if an input is updated before, as an optimizer "
                         "does\n\nA backward captures Saved(x), which keeps the numbers that the "
                         "forward had; a Tensor names whatever x is by then."};
    return {true, found.message};
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
  if (found.ops.empty() || std::ranges::all_of(found.ops, [](const OpCheck& op) {
        return op.verdict == OpCheck::Verdict::constant;
      }))
    said = fmt::format("{}: no gradient reaches its inputs; {}", name, said);
  if (said.find(" is undefined") != std::string::npos)  // see lent()
    return {false, said +
                       "\n\nWhat was captured by reference is gone when the backward runs: "
                       "capture Saved(x), which keeps the numbers."};
  return {false, fmt::format("{}\n\n{}", said, meaning(reason))};
}

Answer judge_values(const std::string& name, const TensorFunction& mine,
                    const TensorFunction& reference, const Inputs& inputs) {
  if (Answer calls = judge_calls(name, mine, inputs); !calls.right)
    return calls;
  const std::vector<Tensor> yours = mine(inputs), right = reference(inputs);
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!yours.at(i).defined() || yours[i].shape() != right[i].shape())
      return {false, fmt::format("{}: the result has the shape {}, and should have {}", name,
                                 shape_of(yours[i]), shape_of(right[i]))};
  const Comparison found = compare(mine, reference, inputs);
  if (found)
    return {true, found.message};
  std::string said = fmt::format("{}: {}", name, found.message);
  const std::string_view table = ": `table` lists both";  // a table that is not shown here
  if (const std::size_t at = said.find(table); at != std::string::npos)
    said.erase(at, table.size());
  return {false,
          said +
              "\n\nThis is about values, not gradients: the lines above name the first step of the "
              "reference whose numbers you do not have, and the first of yours that it does not "
              "have. If you have all of its numbers, look at what you do with the last of them."};
}

Answer judge_op(const std::string& name, const TensorFunction& mine,
                const TensorFunction& reference, const std::vector<Inputs>& cases) {
  Answer answer;
  for (const Inputs& in : cases) {
    std::string sizes;
    for (const Tensor& x : in)
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", to_string(x.shape()));
    try {
      answer = ask({[&] { return judge_values(name, mine, reference, in); },
                    [&] { return judge_gradient(name, mine, in); }});
    } catch (const Error& error) {
      answer = {false, fmt::format("{}: it throws an error: {}", name, error.what())};
    }
    if (!answer.right) {
      if (&in != &cases.front())
        answer.said += fmt::format(
            "\n\nThis is with inputs of the shapes {}; with others, tried before, it is right: "
            "is a number fixed that should come from the inputs or their shapes?",
            sizes);
      break;
    }
  }
  return answer;
}

Judge judge_of(std::string_view stage) {
  static const std::map<std::string, Judge, std::less<>> judges = {
      {"1", judge_slope},        {"2", judge_graph},        {"3", judge_engine},
      {"4", judge_broadcasting}, {"5", judge_softmax},      {"6", judge_attention},
      {"7", judge_masks},        {"8", judge_heads},        {"9", judge_adam},
      {"10", judge_training},    {"11", judge_gradcheck},   {"12", judge_second},
      {"11.10", judge_causal},   {"11.11", judge_dropout},  {"11.12", judge_dropped},
      {"11.1", judge_explained}, {"11.2", judge_explained}, {"11.3", judge_explained},
      {"11.4", judge_explained}, {"11.5", judge_explained}, {"11.6", judge_explained},
      {"11.7", judge_compared},  {"11.8", judge_compared},  {"11.9", judge_compared}};
  return judges.find(stage)->second;
}

}  // namespace learn
