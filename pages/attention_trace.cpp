// Finding the attentions in what ran, their gradients, and the loss without each head.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

#include "attention.hpp"
#include "attention_parts.hpp"

namespace xgrad::pages {
namespace {

using Events = std::vector<Trace::Event>;
constexpr const char* attention_page = "attention page";

bool is_product(const Trace::Event& e) { return e.op == "matmul" || e.op == "einsum"; }

/// A softmax and the product with the values that comes of it.
struct Found {
  std::size_t softmax, product;
};

/// Whether the last dimension sums to 1, or to 0 where all is masked.
bool is_over_last(const Tensor& weights) {
  for (const double total : xgrad::detail::elements(sum(weights.detach(), {-1})))
    if (!(std::abs(total - 1) < 1e-3 || total == 0 || std::isnan(total)))
      return false;
  return true;
}

/// What may lie between the weights and their product with the values: the same matrices.
bool keeps_weights(const Trace::Event& e, const Shape& weights) {
  static const std::vector<std::string_view> ops{"dropout", "where", "mul", "masked_fill",
                                                 "reshape"};
  const Shape& shape = e.output.shape();
  return std::ranges::find(ops, e.op) != ops.end() && shape.size() >= 2 &&
         shape.back() == weights.back() && shape[shape.size() - 2] == weights[weights.size() - 2];
}

std::vector<Found> find_attentions(const Events& events) {
  std::vector<Found> found;
  std::map<std::size_t, std::size_t> softmax_of;  // by the event that has its weights
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Trace::Event& e = events[i];
    if (e.op == "softmax" && e.output.dim() >= 2 && e.output.numel() > 0 &&
        is_over_last(e.output)) {
      softmax_of[i] = i;
      continue;
    }
    for (std::size_t n = 0; n < e.inputs.size(); ++n) {
      const auto from = e.made_by[n] ? softmax_of.find(*e.made_by[n]) : softmax_of.end();
      if (from == softmax_of.end())
        continue;
      if (is_product(e) && n == 0)
        found.push_back({from->second, i});
      else if (keeps_weights(e, events[from->second].output.shape()))
        softmax_of[i] = from->second;
    }
  }
  // Weights that are multiplied more than once are one attention.
  std::ranges::stable_sort(found, {}, &Found::softmax);
  const auto same = std::ranges::unique(found, {}, &Found::softmax);
  found.erase(same.begin(), same.end());
  return found;
}

/// "h.0.attn": without the names of fused ops, and told apart where one Scope has several.
std::vector<std::string> names_of(const Events& events, const std::vector<Found>& found) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> count;
  for (const Found& f : found) {
    std::string_view name = events[f.softmax].scope;
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

/// The heads (H, T, S) of one item, in float64.
class Heads {
 public:
  Heads(const std::string& name, const Shape& weights, const AttentionOptions& options)
      : shape_(weights), item_(options.item) {
    const std::size_t rank = shape_.size();
    heads_ = rank > 3 || (rank == 3 && options.heads_first) ? shape_[rank - 3] : 1;
    items_ = numel(shape_) / (heads_ * shape_[rank - 2] * shape_[rank - 1]);
    check<ValueError>(item_ < items_,
                      "{}: item {} does not exist: the batch of {} has items 0 to {}",
                      attention_page, item_, name, items_ - 1);
  }
  std::size_t heads() const { return heads_; }
  std::size_t items() const { return items_; }
  const Shape& shape() const { return shape_; }

  /// Of matrices (..., M, N) whose leading dimensions are, or broadcast to, those of the weights;
  /// undefined if they do not.
  Tensor of(const Tensor& x) const {
    if (x.dim() < 2)
      return {};
    Shape full = shape_;
    full[full.size() - 2] = static_cast<std::size_t>(x.size(-2));
    full[full.size() - 1] = static_cast<std::size_t>(x.size(-1));
    return broadcast(x, full);
  }
  /// Of what broadcasts to the weights.
  Tensor like_weights(const Tensor& x) const { return broadcast(x, shape_); }

 private:
  Tensor broadcast(const Tensor& x, const Shape& full) const {
    const Shape& own = x.shape();
    Tensor y = x.detach();
    if (numel(own) != numel(full)) {
      if (own.size() > full.size())
        return {};
      for (std::size_t d = 1; d <= own.size(); ++d)
        if (own[own.size() - d] != 1 && own[own.size() - d] != full[full.size() - d])
          return {};
      y = expand(y, full);
    }
    const auto rows = static_cast<Size>(full[full.size() - 2]),
               columns = static_cast<Size>(full[full.size() - 1]);
    y = reshape(y, {static_cast<Size>(items_), static_cast<Size>(heads_), rows, columns});
    return select(y, 0, static_cast<std::int64_t>(item_)).to(DType::float64);
  }

  Shape shape_;
  std::size_t item_, heads_ = 1, items_ = 1;
};

// ---- what scores are made of ----

/// scores = q kᵀ * scale + bias, but for elements that were replaced.
struct Scores {
  std::size_t product;
  double scale = 1;
  Tensor bias = {};  ///< (H, T, S) or undefined
};

std::optional<double> number_in(const Tensor& x) {
  return x.defined() && x.numel() == 1 ? std::optional(x.item()) : std::nullopt;
}

/// Follows the scores back to the product that they are made of.
std::optional<Scores> product_behind(const Events& events, std::optional<std::size_t> at,
                                     const Heads& heads, int depth = 0) {
  if (!at || depth > 16)
    return std::nullopt;
  const Trace::Event& e = events[*at];
  if (is_product(e))
    return Scores{*at};
  const auto behind = [&](std::size_t n) {
    return product_behind(events, e.made_by[n], heads, depth + 1);
  };
  const auto scaled = [](Scores s, double c) {
    s.scale *= c;
    s.bias = s.bias.defined() ? s.bias * c : s.bias;
    return s;
  };
  if (e.op == "mul" || e.op == "div")
    for (const std::size_t n : {0, 1}) {
      const auto c = number_in(e.inputs[1 - n]);
      if (!c || (e.op == "div" && n == 1))
        continue;
      if (const auto found = behind(n))
        return scaled(*found, e.op == "mul" ? *c : 1 / *c);
    }
  if (e.op == "add" || e.op == "sub")
    for (const std::size_t n : {0, 1}) {
      auto found = behind(n);
      if (!found)
        continue;
      if (e.op == "sub" && n == 1)
        found = scaled(*found, -1);
      const Tensor other = heads.like_weights(e.inputs[1 - n]);
      if (!other.defined())
        return std::nullopt;
      const Tensor added = e.op == "sub" && n == 0 ? -other : other;
      found->bias = found->bias.defined() ? found->bias + added : added;
      return found;
    }
  if (e.op == "masked_fill" || e.op == "where" || e.op == "reshape" || e.op == "expand")
    for (std::size_t n = e.inputs.size(); n-- > 0;)
      if (const auto found = behind(n))
        return found;
  return std::nullopt;
}

/// Fills q, k, scale and bias, if scores computed from them are those that were there.
void explain_scores(const Events& events, const Found& f, const Heads& heads,
                    AttentionLayer& layer) {
  const auto scores = product_behind(events, events[f.softmax].made_by[0], heads);
  if (!scores)
    return;
  const Trace::Event& product = events[scores->product];
  Tensor left = product.inputs[0];
  double scale = scores->scale;
  if (product.made_by[0]) {  // (q * scale) kᵀ
    const Trace::Event& e = events[*product.made_by[0]];
    const auto c = e.op == "mul" || e.op == "div" ? number_in(e.inputs[1]) : std::nullopt;
    if (c && *c != 0 && e.inputs[0].shape() == left.shape()) {
      left = e.inputs[0];
      scale *= e.op == "mul" ? *c : 1 / *c;
    }
  }
  const Tensor q = heads.of(left), right = heads.of(product.inputs[1]);
  if (!q.defined() || !right.defined())
    return;
  const std::vector<double> there = xgrad::detail::elements(layer.scores);
  for (const Tensor& k : {transpose(right, -2, -1), right}) {  // einsum transposes by itself
    if (k.size(-2) != layer.scores.size(-1) || k.size(-1) != q.size(-1) ||
        q.size(-2) != layer.scores.size(-2))
      continue;
    Tensor mine = matmul(q, transpose(k, -2, -1)) * scale;
    if (scores->bias.defined())
      mine = mine + scores->bias;
    const std::vector<double> computed = xgrad::detail::elements(mine);
    bool same = true;
    for (std::size_t i = 0; i < there.size() && same; ++i)
      same = is_masked(there[i]) ||
             std::abs(computed[i] - there[i]) <= 1e-4 * (1 + std::abs(there[i]));
    if (same) {
      layer.q = q;
      layer.k = k;
      layer.scale = scale;
      layer.bias = scores->bias;
      return;
    }
  }
}

// ---- the loss without a head ----

/// The last event's output where event `from` has another output.
double replayed(const Events& events, std::size_t from, const Tensor& instead, std::size_t last) {
  std::vector<Tensor> changed(events.size());
  changed[from] = instead;
  for (std::size_t i = from + 1; i <= last; ++i) {
    std::vector<Tensor> inputs = events[i].inputs;
    bool any = false;
    for (std::size_t n = 0; n < inputs.size(); ++n)
      if (events[i].made_by[n] && changed[*events[i].made_by[n]].defined()) {
        inputs[n] = changed[*events[i].made_by[n]];
        any = true;
      }
    if (any)
      changed[i] = events[i].forward(inputs);
  }
  return (changed[last].defined() ? changed[last] : events[last].output).item();
}

Tensor without_head(const Tensor& output, std::size_t head, std::size_t heads) {
  if (heads == 1)
    return zeros_like(output);
  const Tensor number =
      reshape(arange(static_cast<double>(heads)), {static_cast<Size>(heads), 1, 1});
  return masked_fill(output.detach(), number == static_cast<double>(head), 0.0);
}

// ---- the logits ----

/// Those of the item, if the last log_softmax has as many rows as there are positions.
Tensor find_logits(const Events& events, const Heads& heads) {
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
  return x;
}

void check_list(const char* what, std::size_t given, std::size_t wanted, const std::string& of) {
  if (given != 0 && given != wanted)
    fail<ValueError>("{}: {} {} for {}, which has {}", attention_page, given, what, of, wanted);
}

}  // namespace

AttentionRun trace_attention(const std::function<Tensor()>& f, const AttentionOptions& options) {
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
                    "{}: the loss is {}; DetectAnomaly names the op where that began",
                    attention_page, loss.item());
  const auto last = trace.maker(loss);
  const std::vector<Found> found = find_attentions(events);
  check<ValueError>(!found.empty() && last.has_value(),
                    "{}: no attention ran: no softmax over the last dimension whose result is the "
                    "left operand of a matmul, in {} ops",
                    attention_page, events.size());
  std::vector<std::size_t> chosen = options.layers;
  if (chosen.empty())
    for (std::size_t i = 0; i < found.size(); ++i)
      chosen.push_back(i);

  std::vector<Tensor> wanted;
  for (const std::size_t i : chosen) {
    check<ValueError>(i < found.size(), "{}: layer {} does not exist: there are layers 0 to {}",
                      attention_page, i, found.size() - 1);
    wanted.push_back(events[found[i].softmax].output);
    wanted.push_back(events[found[i].softmax].inputs[0]);
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
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    const Found& at = found[chosen[n]];
    const Tensor& weights = events[at.softmax].output;
    const Heads heads(names[chosen[n]], weights.shape(), options);
    const auto T = static_cast<std::size_t>(weights.size(-2)),
               S = static_cast<std::size_t>(weights.size(-1));
    check_list("tokens", options.tokens.size(), T, names[chosen[n]]);
    if (T != S)
      check_list("keys", options.keys.size(), S, names[chosen[n]]);
    check<ValueError>(options.position.value_or(0) < T,
                      "{}: position {} does not exist: there are positions 0 to {}", attention_page,
                      options.position.value_or(0), T - 1);
    const auto gradient = [&](std::size_t i) {
      return heads.of(gradients[i].defined() ? gradients[i] : zeros_like(wanted[i]));
    };
    AttentionLayer layer{.name = names[chosen[n]],
                         .index = chosen[n],
                         .weights = heads.of(weights),
                         .gradient = gradient(2 * n),
                         .scores = heads.of(events[at.softmax].inputs[0]),
                         .score_gradient = gradient(2 * n + 1)};
    explain_scores(events, at, heads, layer);
    layer.heads = options.heads;
    if (layer.heads.empty())
      for (std::size_t h = 0; h < heads.heads(); ++h)
        layer.heads.push_back(h);
    for (const std::size_t h : layer.heads) {
      check<ValueError>(h < heads.heads(), "{}: head {} does not exist: {} has heads 0 to {}",
                        attention_page, h, layer.name, heads.heads() - 1);
      layer.loss_without.push_back(replayed(
          events, at.product, without_head(events[at.product].output, h, heads.heads()), *last));
    }
    keep_heads(layer);
    add_patterns(layer, T == S ? options.tokens : std::vector<std::string>());
    if (n == 0) {
      const Tensor logits = find_logits(events, heads);
      if (logits.defined())
        run.logits = select(reshape(logits, {static_cast<Size>(heads.items()), static_cast<Size>(T),
                                             logits.size(-1)}),
                            0, static_cast<std::int64_t>(options.item))
                         .to(DType::float64);
    }
    run.layers.push_back(std::move(layer));
  }
  const std::size_t classes =
      run.logits.defined() ? static_cast<std::size_t>(run.logits.size(-1)) : 0;
  check_list("class names", options.classes.size(), classes, "the logits");
  if (!options.targets.empty() && run.logits.defined()) {
    check_list("targets", options.targets.size(), static_cast<std::size_t>(run.logits.size(0)),
               "the logits");
  }
  return run;
}

}  // namespace xgrad::pages
