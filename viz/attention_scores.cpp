// The terms of an attention's scores, for one item of a batch.

#include <cmath>
#include <optional>
#include <utility>
#include "../autograd/check/describe.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "attention_parts.hpp"

namespace xgrad::viz {

bool is_product(const Trace::Event& e) {
  return e.op == "matmul" || e.op == "einsum" || e.op == "bmm" || e.op == "mm";
}

AttentionHeads::AttentionHeads(std::string name, const Shape& weights, bool grouped,
                               const AttentionOptions& options)
    : name_(std::move(name)), shape_(weights), item_(options.item) {
  const std::size_t rank = shape_.size();
  heads_ = rank > 3 ? shape_[rank - 3] : 1;
  heads_ *= grouped ? shape_[rank - 4] : 1;
  items_ = numel(shape_) / (heads_ * shape_[rank - 2] * shape_[rank - 1]);
  check<ValueError>(item_ < items_, "{}: item {} does not exist: the batch of {} has items 0 to {}",
                    attention_page, item_, name_, items_ - 1);
}

Tensor AttentionHeads::without(const Tensor& weights, std::size_t head) const {
  if (heads_ == 1)
    return zeros_like(weights);
  const bool same = numel(weights.shape()) == numel(shape_);
  check<ValueError>(same || (weights.dim() > 3 && std::cmp_equal(weights.size(-3), heads_)),
                    "{}: {} has weights {}, which its product with the values reshapes to {}: that "
                    "must be as many, or (..., {}, T, S), for its heads to be told apart",
                    attention_page, name_, to_string(shape_), to_string(weights.shape()), heads_);
  const auto H = static_cast<Size>(heads_), last = static_cast<Size>(shape_[shape_.size() - 3]);
  const Tensor all = arange(static_cast<double>(heads_)),
               number = H == last ? reshape(all, {H, 1, 1}) : reshape(all, {H / last, last, 1, 1});
  const Tensor apart = same ? reshape(weights.detach(), shape_) : weights.detach();
  return reshape(masked_fill(apart, number == static_cast<double>(head), 0.0), weights.shape());
}

Tensor AttentionHeads::of(const Tensor& x) const {
  if (x.dim() < 2)
    return {};
  Shape full = shape_;
  full[full.size() - 2] = static_cast<std::size_t>(x.size(-2));
  full[full.size() - 1] = static_cast<std::size_t>(x.size(-1));
  return broadcast(x, full);
}

Tensor AttentionHeads::broadcast(const Tensor& x, const Shape& full) const {
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

namespace {

/// scores = q kᵀ * scale + bias, except for replaced elements.
struct Scores {
  std::size_t product;
  double scale = 1;
  Tensor bias = {};  ///< (H, T, S) or undefined
};

std::optional<double> number_in(const Tensor& x) {
  return x.defined() && x.numel() == 1 ? std::optional(x.item()) : std::nullopt;
}

/// Traces the scores back to the product that made them.
std::optional<Scores> product_behind(const Events& events, std::optional<std::size_t> at,
                                     const AttentionHeads& heads, int depth = 0) {
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
  if ((e.op == "mul" || e.op == "div") && is_binary(e))
    for (const std::size_t n : {0, 1}) {
      const auto c = number_in(e.inputs[1 - n]);
      if (!c || (e.op == "div" && n == 1))
        continue;
      if (const auto found = behind(n))
        return scaled(*found, e.op == "mul" ? *c : 1 / *c);
    }
  if ((e.op == "add" || e.op == "sub") && is_binary(e))
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

}  // namespace

void explain_scores(const Events& events, std::size_t softmax, const AttentionHeads& heads,
                    AttentionLayer& layer) {
  const auto scores = product_behind(events, events[softmax].made_by[0], heads);
  if (!scores)
    return;
  const Trace::Event& product = events[scores->product];
  Tensor left = product.inputs[0];
  double scale = scores->scale;
  if (product.made_by[0]) {  // (q * scale) kᵀ
    const Trace::Event& e = events[*product.made_by[0]];
    const auto c =
        (e.op == "mul" || e.op == "div") && is_binary(e) ? number_in(e.inputs[1]) : std::nullopt;
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

}  // namespace xgrad::viz
