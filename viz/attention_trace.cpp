// Finds the attentions of a Trace, their gradients, and the loss without each head.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include "../autograd/check/describe.hpp"
#include "../autograd/engine.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "../autograd/trace.hpp"
#include "attention.hpp"
#include "attention_parts.hpp"

namespace xgrad::viz {
namespace {

/// The op that made the weights, a softmax or a named one, and the products of its result with
/// values; of named weights there may be none.
struct AttentionEvents {
  std::size_t weights;
  std::vector<std::size_t> products = {};
};

bool is_named(const Trace::Event& e) { return e.name == "attention"; }
bool is_softmax(const Trace::Event& e) { return e.op == "softmax"; }

/// Whether the last dimension sums to 1, or to 0 if masked completely.
bool is_over_last(const Tensor& weights) {
  const std::vector<double> totals = xgrad::detail::elements(sum(weights.detach(), {-1}));
  return std::ranges::all_of(
      totals, [](double t) { return std::abs(t - 1) < 1e-3 || t == 0 || std::isnan(t); });
}

/// Whether an op may stand between the weights, its input n, and their product with the values.
bool keeps_weights(const Trace::Event& e, std::size_t n, const Shape& weights) {
  static const std::vector<std::string_view> ops{"dropout", "where", "mul", "masked_fill",
                                                 "reshape"};
  const auto is_matrix = [&](const Shape& shape) {
    return shape.size() >= 2 && shape.back() == weights.back() &&
           shape[shape.size() - 2] == weights[weights.size() - 2];
  };
  if (e.op == "mul" && is_binary(e) && e.inputs[1 - n].requires_grad() &&
      is_matrix(e.inputs[1 - n].shape()))
    return false;  // a gate of features
  return std::ranges::find(ops, e.op) != ops.end() && is_matrix(e.output.shape());
}

std::vector<AttentionEvents> find_attentions(const Events& events) {
  std::map<std::size_t, AttentionEvents> found;   // by `weights`, in the order of events
  std::map<std::size_t, std::size_t> weights_of;  // by the event whose output has them
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Trace::Event& e = events[i];
    const bool has_matrix = e.output.dim() >= 2 && e.output.numel() > 0;
    if (is_named(e)) {
      check<ValueError>(has_matrix,
                        "{}: op {}, {}, is named attention and is {}: that must be "
                        "weights (..., H, T, S)",
                        attention_page, i + 1, e.op, to_string(e.output.shape()));
      found.try_emplace(i, AttentionEvents{i});
    }
    if (is_named(e) || (is_softmax(e) && has_matrix && is_over_last(e.output))) {
      weights_of[i] = i;
      continue;
    }
    for (std::size_t n = 0; n < e.inputs.size(); ++n) {
      const auto from = e.made_by[n] ? weights_of.find(*e.made_by[n]) : weights_of.end();
      if (from == weights_of.end())
        continue;
      const std::size_t weights = from->second;
      if (is_product(e) && n == 0)
        found.try_emplace(weights, AttentionEvents{weights}).first->second.products.push_back(i);
      else if (keeps_weights(e, n, events[weights].output.shape()))
        weights_of[i] = weights;
    }
  }
  std::vector<AttentionEvents> list;
  for (auto& [weights, attention] : found)
    list.push_back(std::move(attention));
  return list;
}

/// "h.0.attn": without the names of fused ops, and numbered if one Scope has several.
std::vector<std::string> names_of(const Events& events, const std::vector<AttentionEvents>& found) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> count;
  for (const AttentionEvents& f : found) {
    std::string_view name = events[f.weights].scope;
    for (const std::string_view op : {"scaled_dot_product_attention", "causal_self_attention"})
      if (name.ends_with(op))
        name.remove_suffix(op.size());
    while (name.ends_with('.'))
      name.remove_suffix(1);
    names.emplace_back(name.empty() ? "attention" : name);
    ++count[names.back()];
  }
  std::map<std::string, std::size_t> seen;
  for (std::string& name : names)
    if (const std::string first = name; count[first] > 1)
      name += fmt::format(" #{}", ++seen[first]);
  return names;
}

/// The output of the last event if the products, or all ops that use named weights, get weights
/// without a head.
double loss_without(const Events& events, const AttentionEvents& at, const AttentionHeads& heads,
                    std::size_t head, std::size_t last) {
  std::vector<Tensor> changed(events.size());
  const bool named = is_named(events[at.weights]);
  if (named)
    changed[at.weights] = heads.without(events[at.weights].output, head);
  for (std::size_t i = named ? at.weights + 1 : at.products.front(); i <= last; ++i) {
    std::vector<Tensor> inputs = events[i].inputs;
    bool any = false;
    for (std::size_t n = 0; n < inputs.size(); ++n)
      if (events[i].made_by[n] && changed[*events[i].made_by[n]].defined()) {
        inputs[n] = changed[*events[i].made_by[n]];
        any = true;
      }
    if (!named && std::ranges::find(at.products, i) != at.products.end()) {
      inputs[0] = heads.without(inputs[0], head);
      any = true;
    }
    if (any)
      changed[i] = events[i].forward(inputs);
  }
  return (changed[last].defined() ? changed[last] : events[last].output).item();
}

/// The weights' shape, or their shape in the product if that shows more of the heads.
const Shape& shape_with_heads(const Events& events, const AttentionEvents& at) {
  const Shape& before = events[at.weights].output.shape();
  if (at.products.empty())
    return before;
  const Shape& after = events[at.products.front()].inputs[0].shape();
  return after.size() > before.size() && numel(after) == numel(before) ? after : before;
}

/// Whether several heads share values: weights (..., G, H / G, T, S), values (..., G, 1, S, D).
bool is_grouped(const Events& events, const AttentionEvents& at) {
  if (at.products.empty())
    return false;
  const Trace::Event& product = events[at.products.front()];
  if (!is_binary(product) || product.inputs[0].dim() < 5)
    return false;
  const Tensor &weights = product.inputs[0], &values = product.inputs[1];
  return values.dim() == weights.dim() && weights.size(-3) > 1 && values.size(-3) == 1;
}

/// The item's logits, if the last log_softmax has a row for each position.
Tensor find_logits(const Events& events, const AttentionHeads& heads, std::size_t item) {
  const auto is_last = [](const Trace::Event& e) {
    return e.op == "log_softmax" || e.op == "cross_entropy";
  };
  const auto found = std::find_if(events.rbegin(), events.rend(), is_last);
  const Shape& shape = heads.shape();
  const auto T = static_cast<Size>(shape[shape.size() - 2]);
  if (found == events.rend())
    return {};
  const Tensor x = found->inputs[0].detach();
  const Size V = x.dim() >= 2 ? x.size(-1) : 0;
  const auto items = static_cast<Size>(heads.items());
  if (V < 2 || x.numel() != items * T * V || (x.dim() > 2 && x.size(-2) != T))
    return {};
  return select(reshape(x, {items, T, V}), 0, static_cast<Size>(item)).to(DType::float64);
}

void check_list(const char* what, std::size_t given, std::size_t wanted, const std::string& of) {
  if (given != 0 && given != wanted)
    fail<ValueError>("{}: {} {} for {}, which has {}", attention_page, given, what, of, wanted);
}

}  // namespace

AttentionRun trace_attention(const std::function<Tensor()>& f, const AttentionOptions& options) {
  check_function(f, attention_page);
  Trace trace;
  const Tensor loss = [&] {
    const Decompose decompose;
    return f();
  }();
  const Events& events = trace.events();
  const ModeGuard unseen(Mode{});
  check<ValueError>(loss.defined() && loss.numel() == 1,
                    "{}: the function returned {}; it must return a loss, one element",
                    attention_page,
                    loss.defined() ? to_string(loss.shape()) : "an undefined Tensor");
  check<GraphError>(loss.requires_grad(),
                    "{}: the loss has no graph: nothing requires a gradient, or NoGrad lives",
                    attention_page);
  check<ValueError>(std::isfinite(loss.item()),
                    "{}: the loss is {}; DetectAnomaly names the first such op", attention_page,
                    loss.item());
  const auto last = trace.maker(loss);
  const std::vector<AttentionEvents> found = find_attentions(events);
  check<ValueError>(!found.empty() && last.has_value(),
                    "{}: no attention ran: no softmax over the last dimension whose result is the "
                    "left operand of a matmul, bmm, mm or einsum, in {} ops; named(weights, "
                    "\"attention\") says which other values are weights (..., H, T, S)",
                    attention_page, events.size());
  std::vector<std::size_t> chosen = options.layers;
  if (chosen.empty())
    for (std::size_t i = 0; i < found.size(); ++i)
      chosen.push_back(i);

  std::vector<Tensor> wanted;
  for (const std::size_t i : chosen) {
    check<ValueError>(i < found.size(), "{}: layer {} does not exist: there are layers 0 to {}",
                      attention_page, i, found.size() - 1);
    const Trace::Event& e = events[found[i].weights];
    wanted.push_back(e.output);
    if (is_softmax(e))
      wanted.push_back(e.inputs[0]);
  }
  for (const Tensor& x : wanted)
    check<GraphError>(
        x.requires_grad(),
        "{}: the attention weights have no graph: neither q nor k requires a gradient",
        attention_page);
  const std::vector<Tensor> gradients =
      grad({loss}, wanted, {.retain_graph = true, .allow_unused = true});

  AttentionRun run{.name = {}, .loss = loss.item()};
  const std::vector<std::string> names = names_of(events, found);
  bool keys_found = options.keys.empty();
  std::size_t next = 0;  // of `gradients`
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    const AttentionEvents& at = found[chosen[n]];
    const Trace::Event& e = events[at.weights];
    const Tensor& weights = e.output;
    const AttentionHeads heads(names[chosen[n]], shape_with_heads(events, at),
                               is_grouped(events, at), options);
    const std::size_t T = size_of(weights, -2), S = size_of(weights, -1);
    check_list("tokens", options.tokens.size(), T, names[chosen[n]]);
    if (T != S)
      check_list("keys", options.keys.size(), S, names[chosen[n]]);
    check<ValueError>(options.position.value_or(0) < T,
                      "{}: position {} does not exist: there are positions 0 to {}", attention_page,
                      options.position.value_or(0), T - 1);
    const auto next_gradient = [&] {
      const std::size_t i = next++;
      return heads.of(gradients[i].defined() ? gradients[i] : zeros_like(wanted[i]));
    };
    AttentionLayer layer{.name = names[chosen[n]],
                         .index = chosen[n],
                         .weights = heads.of(weights),
                         .gradient = next_gradient()};
    if (is_softmax(e)) {
      layer.scores = heads.of(e.inputs[0]);
      layer.score_gradient = next_gradient();
      explain_scores(events, at.weights, heads, layer);
    }
    layer.self = T == S && (options.keys.size() != S || is_causal(layer));
    keys_found = keys_found || (!layer.self && options.keys.size() == S);
    layer.heads = options.heads;
    if (layer.heads.empty())
      for (std::size_t h = 0; h < heads.heads(); ++h)
        layer.heads.push_back(h);
    for (const std::size_t h : layer.heads) {
      check<ValueError>(h < heads.heads(), "{}: head {} does not exist: {} has heads 0 to {}",
                        attention_page, h, layer.name, heads.heads() - 1);
      layer.loss_without.push_back(loss_without(events, at, heads, h, *last));
    }
    keep_heads(layer);
    add_patterns(layer);
    if (n == 0)
      run.logits = find_logits(events, heads, options.item);
    run.layers.push_back(std::move(layer));
  }
  check<ValueError>(keys_found, "{}: {} keys are given, and no layer has as many but its queries",
                    attention_page, options.keys.size());
  check_list("class names", options.classes.size(), size_of(run.logits, -1), "the logits");
  if (run.logits.defined())
    check_list("targets", options.targets.size(), size_of(run.logits, 0), "the logits");
  return run;
}

}  // namespace xgrad::viz
