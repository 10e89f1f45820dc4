#include <xgrad/autograd/trace.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>

namespace xgrad {
namespace {

thread_local std::string path;

// The same value and place in the graph, unmoved by an update() of the original.
Tensor as_it_is(const Tensor& x) { return x.defined() ? Saved(x).tensor() : Tensor(); }

std::string shapes(const Trace::Event& event) {
  std::vector<std::string> inputs;
  for (const Tensor& x : event.inputs)
    inputs.push_back(x.defined() ? to_string(x.shape()) : "-");
  return fmt::format("{} -> {}", fmt::join(inputs, ", "), to_string(event.output.shape()));
}

}  // namespace

void Trace::on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                       const Forward& forward) {
  Event event{std::string(op), Scope::current(), {}, as_it_is(output), forward};
  for (const Tensor& x : inputs)
    event.inputs.push_back(as_it_is(x));
  events_.push_back(std::move(event));
  if (before_ != nullptr)
    before_->on_forward(op, inputs, output, forward);
}

void Trace::on_backward(const Node& node, std::size_t input, const Tensor& gradient) {
  if (on_backward_)
    on_backward_(node, input, gradient);
  if (before_ != nullptr)
    before_->on_backward(node, input, gradient);
}

std::string to_string(const Trace& trace) {
  std::size_t op = 2, scope = 5;  // the widths of the columns' titles
  for (const Trace::Event& e : trace.events()) {
    op = std::max(op, e.op.size());
    scope = std::max(scope, e.scope.size());
  }
  std::string table = fmt::format("{:<{}}  {:<{}}  shapes\n", "op", op, "scope", scope);
  for (const Trace::Event& e : trace.events())
    table += fmt::format("{:<{}}  {:<{}}  {}\n", e.op, op, e.scope, scope, shapes(e));
  return table;
}

const std::string& Scope::current() { return path; }

void Scope::enter(std::string_view name) {
  length_before_ = path.size();
  entered_ = true;
  if (!path.empty())
    path += '.';
  path += name;
}

void Scope::leave() noexcept { path.resize(length_before_); }

}  // namespace xgrad
