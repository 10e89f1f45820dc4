#include <xgrad/autograd/check/untracked.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/op_check.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::detail {
namespace {

using Event = Trace::Event;

bool is_view(std::string_view op) {
  static const std::set<std::string_view> views = {
      "reshape", "flatten", "squeeze", "unsqueeze", "narrow",    "select", "slice",
      "split",   "chunk",   "index",   "expand",    "transpose", "permute"};
  return views.contains(op);
}

// A value is one however many handles it has.
const void* identity(const Tensor& x) { return x.defined() ? x.impl().value.get() : nullptr; }

std::string named(const Event& event, std::size_t n) {
  return fmt::format("op {}, {}", n + 1, in_scope(event));
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && same_bits(a, b);
}

// The same draws, the same ops: else the two runs cannot be laid beside each other.
bool aligned(const std::vector<Event>& a, const std::vector<Event>& b) {
  return std::ranges::equal(a, b, [](const Event& x, const Event& y) {
    return x.op == y.op && x.inputs.size() == y.inputs.size();
  });
}

}  // namespace

std::vector<std::string> unused_results(const std::vector<Event>& events,
                                        const std::vector<Tensor>& outputs) {
  std::set<const void*> outgoing, used, from_view;
  for (const Tensor& y : outputs)
    outgoing.insert(identity(y));
  for (const Event& event : events)
    if (is_view(event.op))
      from_view.insert(identity(event.output));
  std::vector<std::string> found;
  // From the last: `used` is what later ops take.
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
          of_part ? "it is a new Tensor, and what the part was taken from is as it was; "
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
  Generator generator(0);
  std::vector<Tensor> moved;
  for (const Tensor& x : inputs) {
    moved.push_back(x.defined() && x.requires_grad()
                        ? (x.detach() + random_signed(x.shape(), generator).to(x.dtype()) * 1e-3)
                              .requires_grad_()
                        : x);
  }
  const auto events_of = [&](const std::vector<Tensor>& in) {
    draws.again();
    Trace trace;
    f(in);
    return trace.events();
  };
  const std::vector<Event> before = events_of(inputs), after = events_of(moved);
  if (!aligned(before, after))
    return {};
  std::set<const void*> known;
  for (const Tensor& x : inputs)
    known.insert(identity(x));
  for (std::size_t n = 0; n < before.size(); ++n) {
    const Event &a = before[n], &b = after[n];
    for (std::size_t i = 0; i < a.inputs.size(); ++i)
      if (a.inputs[i].defined() && b.inputs[i].defined() &&
          !known.contains(identity(a.inputs[i])) && !same_elements(a.inputs[i], b.inputs[i]))
        return fmt::format(
            "input {} of {} moves with the function's inputs, but no graph leads to it: numbers "
            "were read (item(), data(), array()) and put back, through which no gradient passes; "
            "compute them with ops",
            i, named(a, n));
    known.insert(identity(a.output));
    const ModeGuard unobserved({false, nullptr});
    const Tensor again = a.forward(a.inputs);
    if (same_elements(again, a.output) && !same_elements(again, b.forward(a.inputs)))
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

}  // namespace xgrad::detail
