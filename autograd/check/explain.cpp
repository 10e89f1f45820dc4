#include "explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include "../engine.hpp"
#include "../fail.hpp"
#include "../ops.hpp"
#include "describe.hpp"
#include "op_check.hpp"
#include "probe.hpp"
#include "same_draws.hpp"

namespace xgrad {

using Event = Trace::Event;

// ---- parts of a function that its graph does not show ----

namespace detail {

static bool is_view(std::string_view op) {
  constexpr std::string_view views[] = {"reshape", "flatten",   "squeeze", "unsqueeze", "narrow",
                                        "select",  "slice",     "split",   "chunk",     "index",
                                        "expand",  "transpose", "permute"};
  return std::ranges::find(views, op) != std::end(views);
}

// A value has one identity, however many handles it has.
static const void* identity(const Tensor& x) {
  return x.defined() ? x.identity().value.get() : nullptr;
}

static std::string named(const Event& event, std::size_t n) {
  return fmt::format("op {}, {}", n + 1, in_scope(event));
}

// Whether two runs have the same ops, so that they can be compared one by one.
static bool aligned(const std::vector<Event>& a, const std::vector<Event>& b) {
  return std::ranges::equal(a, b, [](const Event& x, const Event& y) {
    return x.op == y.op && x.inputs.size() == y.inputs.size();
  });
}

std::vector<std::string> unused_results(const std::vector<Event>& events,
                                        const std::vector<Tensor>& outputs) {
  std::set<const void*> outgoing, used, from_view;
  for (const Tensor& y : outputs)
    outgoing.insert(identity(y));
  for (const Event& event : events)
    if (is_view(event.op))
      from_view.insert(identity(event.output));
  std::vector<std::string> found;
  // Goes from the last op to the first: `used` holds the inputs of later ops.
  for (std::size_t n = events.size(); n-- > 0;) {
    const Event& event = events[n];
    const auto goes_on = [&](const Tensor& x) {
      return used.contains(identity(x)) || outgoing.contains(identity(x));
    };
    const bool of_part = !event.inputs.empty() && from_view.contains(identity(event.inputs[0]));
    if (event.output.requires_grad() && !is_view(event.op) && !goes_on(event.output) &&
        (of_part || std::ranges::any_of(event.inputs, goes_on)))
      found.push_back(fmt::format(
          "no output depends on the result of {}: {}", named(event, n),
          of_part ? "it is a new Tensor, and the Tensor of that part did not change; "
                    "x = x.select_scatter(...) puts a part back"
                  : "it was lost, or read as numbers, through which no gradient passes"));
    for (const Tensor& x : event.inputs)
      used.insert(identity(x));
  }
  std::ranges::reverse(found);
  return found;
}

std::string copied_value(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const SameDraws draws;
  const auto events_now = [&] {
    draws.again();
    Trace trace;
    f(inputs);
    return trace.events();
  };
  const std::vector<Event> before = events_now();
  Generator generator(0);
  std::vector<CheckedLeaf> leaves;
  Point values;
  for (const Tensor& x : inputs)
    if (x.defined() && x.requires_grad()) {
      leaves.push_back({leaves.size(), "", x});
      values.push_back(
          elements(x.detach() + random_signed(x.shape(), generator).to(x.dtype()) * 1e-3));
    }
  // The leaves move in place, because f may read a layer's parameters from the layer.
  const std::vector<Event> after = [&] {
    const Moved moved(leaves, std::move(values));
    return events_now();
  }();
  if (!aligned(before, after))
    return {};
  std::set<const void*> known;
  for (const Tensor& x : inputs)
    known.insert(identity(x));
  for (std::size_t n = 0; n < before.size(); ++n) {
    const Event &a = before[n], &b = after[n];
    for (std::size_t i = 0; i < a.inputs.size(); ++i)
      if (a.inputs[i].defined() && b.inputs[i].defined() &&
          !known.contains(identity(a.inputs[i])) && !same_bits(a.inputs[i], b.inputs[i]))
        return fmt::format(
            "input {} of {} moves with the function's inputs, but no graph leads to it: numbers "
            "were read (item(), data(), array()) and put back, through which no gradient passes; "
            "compute them with ops",
            i, named(a, n));
    known.insert(identity(a.output));
    const ModeGuard unobserved({false, nullptr});
    const Tensor again = a.forward(a.inputs);
    if (same_bits(again, a.output) && !same_bits(again, b.forward(a.inputs)))
      return fmt::format(
          "a number that {} is given moves with the function's inputs, but no graph leads to it: "
          "it was read (item()), and no gradient passes through it; use a Tensor",
          named(a, n));
  }
  return {};
}

void add_hidden(GradcheckReport& report, const TensorFunction& f,
                const std::vector<Tensor>& inputs) {
  const ModeGuard mode({true, nullptr});
  std::vector<std::string> found;
  if (report.disagree > 0)
    if (std::string copied = copied_value(f, inputs); !copied.empty())
      found.push_back(std::move(copied));
  const SameDraws draws;
  const Trace trace;
  const auto outputs = f(inputs);
  std::ranges::move(unused_results(trace.events(), outputs), std::back_inserter(found));
  for (const std::string& note : found)
    report.message += "; " + note;
  std::ranges::move(found, std::back_inserter(report.notes));
}

}  // namespace detail

// ---- which op is wrong ----

namespace {

using detail::elements, detail::in_scope;

std::string of_input(std::size_t i, const std::vector<std::string>& names) {
  return i < names.size() ? names[i] : fmt::format("input {} of the function", i);
}

// The first place where a value that depends on an input is used as a constant.
std::string cut(const std::vector<Event>& events, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& results, const std::vector<std::string>& names) {
  struct Known {
    Tensor value;
    std::string name;
  };
  std::vector<Known> known;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && inputs[i].requires_grad())
      known.push_back({inputs[i], of_input(i, names)});
  // A value is known by its storage (detach() shares it), or by its numbers (data() copies them).
  const auto known_as = [&](const Tensor& x) -> const Known* {
    for (const Known& k : known)
      if (k.value.identity().value == x.identity().value)
        return &k;
    for (const Known& k : known)
      if (x.numel() > 1 && k.value.numel() == x.numel() && elements(k.value) == elements(x) &&
          detail::scale_of(elements(x)) > 0)
        return &k;
    return nullptr;
  };
  for (std::size_t n = 0; n < events.size(); ++n) {
    const Event& e = events[n];
    bool depends = false;
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
      const Tensor& x = e.inputs[i];
      if (!x.defined())
        continue;
      depends = depends || x.requires_grad();
      if (x.requires_grad())
        continue;
      if (const Known* const same = known_as(x); same != nullptr)
        return fmt::format(
            "the graph is cut before op {}, {}: its input {} holds {}, but as a constant "
            "(detach(), or a copy of the numbers)",
            n + 1, e.op, i, same->name);
    }
    if (depends && !e.output.requires_grad())
      return fmt::format("the graph is cut at op {}, {}: it ran under NoGrad", n + 1, e.op);
    if (e.output.requires_grad())
      known.push_back({e.output, fmt::format("the result of op {}, {}", n + 1, e.op)});
  }
  for (const Tensor& result : results)
    if (const Known* const same = result.requires_grad() ? nullptr : known_as(result))
      return fmt::format("the graph is cut at the end: the result holds {}, but as a constant",
                         same->name);
  return {};
}

// A hook on an input or on an op's output that changes the gradient.
std::string hook(const std::vector<OpCheck>& ops, const std::vector<Tensor>& inputs,
                 const std::vector<std::string>& names) {
  for (const OpCheck& check : ops)
    if (check.hooked)
      return fmt::format("op {}, {}: a hook on its output changes its gradient", check.number,
                         in_scope(check));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && inputs[i].requires_grad()) {
      const Tensor one = ones_like(inputs[i]);
      const Tensor back = grad({inputs[i]}, {inputs[i]}, {.grad_outputs = {one}})[0];
      if (elements(back) != elements(one))
        return fmt::format("a hook on {} changes its gradient", of_input(i, names));
    }
  return {};
}

std::string suspicion(const std::vector<OpCheck>& ops, const std::vector<Event>& events,
                      const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                      const TensorFunction& f, const std::vector<std::string>& names) {
  if (std::string found = hook(ops, inputs, names); !found.empty())
    return found;
  if (std::string found = cut(events, inputs, results, names); !found.empty())
    return found;
  if (std::string found = detail::copied_value(f, inputs); !found.empty())
    return found;
  for (const OpCheck& check : ops)
    if (check.verdict == OpCheck::Verdict::unchecked)
      return fmt::format("op {}, {}, could not be checked: {}", check.number, in_scope(check),
                         check.message);
  return "the function may depend on something besides its inputs";
}

// The number of leaves that the function's ops use and that are not among its inputs.
std::size_t other_leaves(const std::vector<Event>& events, const std::vector<Tensor>& inputs) {
  std::set<const Node*> leaves;
  for (const Event& event : events)
    for (const Tensor& x : event.inputs)
      if (x.defined() && x.requires_grad() && x.is_leaf())
        leaves.insert(x.identity().node.get());
  for (const Tensor& x : inputs)
    leaves.erase(x.defined() ? x.identity().node.get() : nullptr);
  return leaves.size();
}

}  // namespace

GradientExplanation explain_gradient(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options) {
  const detail::SameDraws draws;
  const TensorFunction same_draws = draws.of(f);
  const detail::Snapshot before(inputs);
  GradientExplanation found;
  Trace trace;
  const std::vector<Tensor> results = f(inputs);
  const std::vector<Event>& events = trace.events();
  {
    const ModeGuard unobserved({true, nullptr, false, Mode::current().autocast});
    found.message = before.changes();
    if (found.message.empty())
      found.message = detail::two_results(results, same_draws(inputs));
    found.ok = found.message.empty();
    if (!found.ok)
      return found;
    for (const Event& event : events) {
      found.ops.push_back(detail::check_op(event, found.ops.size() + 1, options));
      if (!found.first_wrong && found.ops.back().verdict == OpCheck::Verdict::wrong)
        found.first_wrong = found.ops.size() - 1;
    }
    GradcheckOptions whole{
        .eps = options.eps, .atol = options.atol, .rtol = options.rtol, .seed = options.seed};
    whole.names = options.names;
    try {
      found.whole = gradcheck(same_draws, inputs, whole);
      if (found.whole && options.second_order)
        found.whole = gradgradcheck(same_draws, inputs, whole);
    } catch (const std::exception& error) {
      if (!found.first_wrong)
        throw;
      found.whole.ok = false;
      found.whole.message = error.what();
    }
  }
  found.ok = !found.first_wrong && found.whole.ok;
  if (found.first_wrong) {
    const OpCheck& op = found.ops[*found.first_wrong];
    found.message =
        fmt::format("op {} of {}, {}: {}", op.number, found.ops.size(), in_scope(op), op.message);
    if (found.whole && found.whole.unchecked == 0)
      found.message += "; differences of the whole do not show it here";
  } else if (found.ok) {
    found.message = fmt::format("the backward of each of the {} ops is right; {}", found.ops.size(),
                                found.whole.message);
    for (const OpCheck& op : found.ops)
      if (op.unchecked > 0 || op.verdict == OpCheck::Verdict::unchecked)
        found.message += fmt::format("; but op {}, {}, could not be checked: {}", op.number,
                                     in_scope(op), op.message);
    if (const std::size_t n = other_leaves(events, inputs); n > 0)
      found.message += fmt::format(
          "; the whole was not checked by {}: nn::explain_gradient(layer, inputs) does",
          counted(n, "other Tensor that requires a gradient", "other Tensors that require one"));
  } else {
    std::string whole = found.whole.message;
    if (found.whole.reason != GradcheckReason::not_finite) {
      const std::string why = suspicion(found.ops, events, inputs, results, f, options.names);
      if (const std::size_t again = whole.find("; " + why); again != std::string::npos)
        whole.erase(again, why.size() + 2);
      whole = why + "; " + whole;
    }
    found.message = "no op's own backward is wrong, but the whole is: " + whole;
  }
  return found;
}

std::string to_string(const GradientExplanation& explanation) {
  std::vector<std::vector<std::string>> rows{{"   ", "op", "scope", "shapes", "gradient"}};
  for (const OpCheck& c : explanation.ops) {
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < c.inputs.size(); ++i)
      inputs.push_back(c.defined[i] ? to_string(c.inputs[i]) : "-");
    std::string verdict = "constant";
    if (c.verdict == OpCheck::Verdict::unchecked)
      verdict = "not checked";
    else if (c.verdict != OpCheck::Verdict::constant)
      verdict =
          fmt::format("{}, error {:.1e}", c.verdict == OpCheck::Verdict::right ? "right" : "WRONG",
                      c.worst_error);
    rows.push_back({fmt::format("{:>3}", c.number), c.op, c.scope,
                    fmt::format("{} -> {}", fmt::join(inputs, ", "), to_string(c.output)),
                    verdict});
  }
  return in_columns(rows, "<<<<") + explanation.message + "\n";
}

}  // namespace xgrad
