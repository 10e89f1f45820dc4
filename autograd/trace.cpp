#include <xgrad/autograd/trace.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
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

std::string numbers(const std::vector<std::optional<std::size_t>>& made_by) {
  std::vector<std::string> words;
  for (const auto& n : made_by)
    words.push_back(n ? std::to_string(*n + 1) : "-");
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

Trace::Trace(OnBackward on_backward)
    : on_backward_(std::move(on_backward)),
      before_(std::exchange(Mode::current().observer, this)) {}

Trace::~Trace() { Mode::current().observer = before_; }

std::optional<std::size_t> Trace::maker(const Tensor& x) const {
  const auto found = x.defined() ? makers_.find(x.impl().value.get()) : makers_.end();
  return found == makers_.end() ? std::nullopt : std::optional(found->second);
}

void Trace::clear() {
  events_.clear();
  makers_.clear();
}

void Trace::on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                       const Forward& forward) {
  Event event{std::string(op), Scope::current(), {}, {}, as_it_is(output), forward};
  for (const Tensor& x : inputs) {
    event.inputs.push_back(as_it_is(x));
    event.made_by.push_back(maker(x));
  }
  makers_[output.impl().value.get()] = events_.size();
  events_.push_back(std::move(event));
  if (before_ != nullptr)
    before_->on_forward(op, inputs, output, forward);
}

void Trace::on_gradient(const Node& node, const Tensor& gradient) {
  if (before_ != nullptr)
    before_->on_gradient(node, gradient);
}

void Trace::on_backward(const Node& node, std::size_t input, const Tensor& gradient) {
  if (on_backward_)
    on_backward_(node, input, gradient);
  if (before_ != nullptr)
    before_->on_backward(node, input, gradient);
}

std::string to_string(const Trace& trace) { return to_string(trace.events()); }

std::string to_string(const std::vector<Trace::Event>& events, const std::vector<bool>& marked) {
  std::vector<std::array<std::string, 5>> rows{{"op", "name", "from", "scope", "shapes"}};
  for (const Trace::Event& e : events) {
    const std::size_t n = rows.size();
    rows.push_back({(!marked.empty() && marked[n - 1] ? "* " : "") + std::to_string(n), e.op,
                    numbers(e.made_by), e.scope, shapes(e)});
  }
  std::array<std::size_t, 5> width{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < width.size(); ++c)
      width[c] = std::max(width[c], row[c].size());
  std::string table;
  for (const auto& [number, name, from, scope, shape] : rows)
    table += fmt::format("{:>{}}  {:<{}}  {:<{}}  {:<{}}  {}\n", number, width[0], name, width[1],
                         from, width[2], scope, width[3], shape);
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
