#include "anomaly.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include "../fail.hpp"
#include "../graph.hpp"
#include "../ops.hpp"

namespace xgrad {
namespace {

std::string in_scope(const std::string& scope) { return scope.empty() ? scope : ", in " + scope; }

std::string kinds(const ValueSummary& s) { return s.nan > 0 ? "NaN" : s.inf > 0 ? "inf" : "-inf"; }

// The place of the first NaN or, without one, of the first infinity.
std::string first_place(const Tensor& x, const ValueSummary& summary) {
  const std::vector<double> values = detail::elements(x);
  const auto bad = std::ranges::find_if(
      values, [&](double v) { return summary.nan > 0 ? std::isnan(v) : std::isinf(v); });
  return x.dim() == 0
             ? ""
             : ", first at " +
                   detail::place(static_cast<std::size_t>(bad - values.begin()), x.shape());
}

std::string lines(const std::vector<ValueSummary>& inputs, const ValueSummary& output) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("\n  input {}: {}", i, to_string(inputs[i]));
  return text + "\n  output:  " + to_string(output);
}

bool is_parameter(const Tensor& x) { return x.requires_grad() && x.is_leaf(); }

// Whether the op gives these infinities for any inputs, so that they are intended.  Tries inputs of
// 0.5 and 1.5, which no op maps to infinity by accident.
bool put_on_purpose(std::span<const Tensor> inputs, const std::vector<double>& output,
                    const Forward& forward) {
  for (const double value : {0.5, 1.5}) {
    std::vector<Tensor> others;
    for (const Tensor& x : inputs)
      others.push_back(x.defined() ? full_like(x, value) : x);
    std::vector<double> again;
    try {
      again = detail::elements(forward(others));
    } catch (const std::exception&) {
      return false;  // it rejects such inputs
    }
    for (std::size_t i = 0; i < output.size(); ++i)
      if (std::isinf(output[i]) && !(i < again.size() && again[i] == output[i]))
        return false;
  }
  return true;
}

}  // namespace

DetectAnomaly::DetectAnomaly() { Mode::current().observer = this; }

DetectAnomaly::~DetectAnomaly() { Mode::current().observer = outer; }

void DetectAnomaly::on_forward(std::string_view op, std::span<const Tensor> inputs,
                               const Tensor& output, const Forward& forward) {
  PassesOn::on_forward(op, inputs, output, forward);
  Place place{++ops_, Scope::current(), {}, summarize(output)};
  for (const Tensor& x : inputs)
    place.inputs.push_back(summarize(x));
  if (!place.output.all_finite()) {
    // Whether an infinity is allowed: the header has the rules.
    bool allowed = place.output.nan == 0 && output.numel() > 1;
    std::string maker, cause;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!place.inputs[i].all_finite()) {
        const auto made = made_.find(inputs[i].identity().value.get());
        const bool known = made != made_.end() && made->second.first.lock() != nullptr;
        maker = is_parameter(inputs[i])     ? "it is a parameter"
                : known                     ? made->second.second
                : inputs[i].requires_grad() ? "it is the result of an earlier op"
                                            : "it is a constant";
        cause += fmt::format("\n  input {} was already {}: {}", i, kinds(place.inputs[i]), maker);
        allowed = allowed && !is_parameter(inputs[i]) && place.inputs[i].nan == 0;
      }
    if (allowed && maker.empty() && place.output.inf > 0)
      allowed = put_on_purpose(inputs, detail::elements(output), forward);
    if (!allowed)
      fail<AnomalyError>("anomaly in the forward of op {}, {}{}: the output holds {}{}{}{}",
                         place.number, op, in_scope(place.scope), kinds(place.output),
                         first_place(output, place.output), lines(place.inputs, place.output),
                         cause);
    if (maker.empty())
      maker = fmt::format("op {}, {}{}, made it", place.number, op, in_scope(place.scope));
    made_[output.identity().value.get()] = {output.identity().value, maker};
  }
  if (output.requires_grad())
    places_.insert_or_assign(output.identity().node.get(), std::move(place));
}

void DetectAnomaly::on_gradient(const Node& node, const Tensor& gradient) {
  PassesOn::on_gradient(node, gradient);
  if (node.sequence == 0 && !held_back_.empty() && !summarize(gradient).all_finite())
    throw AnomalyError(held_back_);
}

void DetectAnomaly::on_backward(const Node& node, std::size_t input, const Tensor& gradient) {
  PassesOn::on_backward(node, input, gradient);
  if (running_ != &node) {  // the gradients of the node before have been used
    gradients_.erase(running_);
    running_ = &node;
  }
  const ValueSummary summary = summarize(gradient);
  if (!summary.all_finite()) {
    const auto place = places_.find(&node);
    const auto given = gradients_.find(&node);
    const bool known = place != places_.end();
    const bool arrived = given != gradients_.end();
    const bool passed_on = arrived && !given->second.all_finite() && !held_back_.empty();
    const std::string said = fmt::format(
        "anomaly in the backward of {}{}{}: the gradient of input {} holds {}{}{}{}\n  gradient of "
        "input {}: {}",
        known ? fmt::format("op {}, ", place->second.number) : "", node.op,
        known ? in_scope(place->second.scope) : "", input, kinds(summary),
        first_place(gradient, summary),
        known ? lines(place->second.inputs, place->second.output) : "",
        arrived ? "\n  gradient of the output:  " + to_string(given->second) : "", input,
        to_string(summary));
    if (!passed_on) {
      if (!known || place->second.output.minus_inf == 0)
        throw AnomalyError(said);
      held_back_ = said;
    }
  }
  gradients_.insert_or_assign(node.inputs[input].get(), summary);
}

}  // namespace xgrad
