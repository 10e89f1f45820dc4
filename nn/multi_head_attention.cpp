#include <xgrad/nn/multi_head_attention.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/masks.hpp>

namespace xgrad::nn {

MultiHeadAttention::MultiHeadAttention(Size embed_dim, Size heads,
                                       const MultiHeadAttentionOptions& options)
    : out_proj(embed_dim, embed_dim, options.bias),
      num_heads(heads),
      num_kv_heads(options.num_kv_heads.value_or(heads)),
      dropout(options.dropout) {
  if (heads <= 0 || embed_dim <= 0 || embed_dim % heads != 0)
    fail<ValueError>("MultiHeadAttention: embed_dim {} is not a multiple of num_heads {}",
                     embed_dim, heads);
  check<ValueError>(dropout >= 0 && dropout <= 1,
                    "MultiHeadAttention: dropout is {}; a probability is in [0, 1]", dropout);
  if (num_kv_heads <= 0 || heads % num_kv_heads != 0)
    fail<ValueError>("MultiHeadAttention: num_heads {} is not a multiple of num_kv_heads {}", heads,
                     num_kv_heads);
  const Size rows = embed_dim + 2 * num_kv_heads * (embed_dim / heads);
  in_proj_weight = init::xavier_uniform_(zeros({rows, embed_dim})).requires_grad_();
  if (options.bias) {
    in_proj_bias = zeros({rows}).requires_grad_();
    init::zeros_(out_proj.bias);
  }
}

namespace {

struct AttentionSizes {
  Size B, T, S, C, H, G;  // G: heads of keys and values
  Size D() const { return C / H; }
};

AttentionSizes checked_sizes(const MultiHeadAttention& layer, const Tensor& query,
                             const Tensor& key, const Tensor& value) {
  const Size C = layer.in_proj_weight.size(1);
  const auto& q = query.shape();
  const auto& k = key.shape();
  if (q.size() != 3 || k.size() != 3 || q[2] != C || k[2] != C || q[0] != k[0] ||
      value.shape() != k)
    fail<ShapeError>(
        "MultiHeadAttention: query {}, key {}, value {}: they must be (B, T, {}), (B, S, {}), (B, "
        "S, {}), or all without B",
        to_string(q), to_string(k), to_string(value.shape()), C, C, C);
  return {q[0], q[1], k[1], C, layer.num_heads, layer.num_kv_heads};
}

// The projections of query (B, T, C), key and value (B, T, G * D); where two are the same Tensor,
// by one product.
std::array<Tensor, 3> project(const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& weight, const Tensor& bias, const AttentionSizes& n) {
  const Size width = n.G * n.D();  // of keys, and of values
  const auto rows = [&](Size from, Size count, const Tensor& x) {
    return linear(x, narrow(weight, 0, from, count),
                  bias.defined() ? narrow(bias, 0, from, count) : bias);
  };
  if (key.handle() != value.handle())
    return {rows(0, n.C, query), rows(n.C, width, key), rows(n.C + width, width, value)};
  if (query.handle() != key.handle()) {
    const auto kv = chunk(rows(n.C, 2 * width, key), 2, -1);
    return {rows(0, n.C, query), kv[0], kv[1]};
  }
  const auto part = [qkv = linear(query, weight, bias)](Size from, Size count) {
    return narrow(qkv, -1, from, count);
  };
  return {part(0, n.C), part(n.C, width), part(n.C + width, width)};
}

// (B, T, heads * D) -> (B, heads, T, D)
Tensor split_heads(const Tensor& x, const AttentionSizes& n) {
  return permute(reshape(x, {n.B, x.size(1), x.size(2) / n.D(), n.D()}), {0, 2, 1, 3});
}

// (T, S) -> (T, S), (B * H, T, S) -> (B, H, T, S)
Dims mask_sizes(const Shape& mask, const AttentionSizes& n) {
  if (mask == Shape{n.T, n.S})
    return {n.T, n.S};
  if (mask == Shape{n.B * n.H, n.T, n.S})
    return {n.B, n.H, n.T, n.S};
  fail<ShapeError>("MultiHeadAttention: attn_mask {} must be ({}, {}) or ({}, {}, {})",
                   to_string(mask), n.T, n.S, n.B * n.H, n.T, n.S);
}

// All that is forbidden, as one mask that broadcasts to (B, H, T, S).
std::optional<Mask> forbidden(const MultiHeadAttention::Call& call, const AttentionSizes& n) {
  std::optional<Mask> all;
  const auto add = [&all](const Mask& mask) { all = all.has_value() ? *all | mask : mask; };
  if (const Mask* const mask = std::get_if<Mask>(&call.attn_mask))
    add(reshape(*mask, mask_sizes(mask->shape(), n)));
  if (call.key_padding_mask.has_value()) {
    const Mask& mask = *call.key_padding_mask;
    check<ShapeError>(mask.numel() == n.B * n.S && mask.size(-1) == n.S,
                      "MultiHeadAttention: key_padding_mask {} must be ({}, {})",
                      to_string(mask.shape()), n.B, n.S);
    add(reshape(mask, {n.B, 1, 1, n.S}));
  }
  if (call.is_causal)
    add(future(n.T, n.S));
  return all;
}

}  // namespace

Attended MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const Call& call) const {
  if (query.dim() == 2 && key.dim() == 2 && value.dim() == 2) {
    const Tensor q = unsqueeze(query, 0);
    const Tensor k = key.handle() == query.handle() ? q : unsqueeze(key, 0);
    const Tensor v = value.handle() == key.handle() ? k : unsqueeze(value, 0);
    const Attended one = (*this)(q, k, v, call);
    return {squeeze(one.output, 0), one.weights.defined() ? squeeze(one.weights, 0) : Tensor()};
  }
  const AttentionSizes n = checked_sizes(*this, query, key, value);
  const double p = training ? dropout : 0;
  const Tensor* const additive = std::get_if<Tensor>(&call.attn_mask);
  const bool masked = additive != nullptr || std::holds_alternative<Mask>(call.attn_mask) ||
                      call.key_padding_mask.has_value();
  const bool self = query.handle() == key.handle() && key.handle() == value.handle();
  const bool plain = self && call.is_causal && !masked && !call.need_weights;
  check<ValueError>(call.cache == nullptr || (plain && p == 0),
                    "MultiHeadAttention: a cache is for one Tensor as query, key and value, with "
                    "is_causal, without masks, need_weights and dropout");
  if (plain && call.cache == nullptr && n.G == n.H) {
    const Tensor qkv = linear(query, in_proj_weight, in_proj_bias);   // (B, T, 3C)
    return {out_proj(causal_self_attention(qkv, num_heads, p)), {}};  // (B, T, C)
  }

  const auto parts = project(query, key, value, in_proj_weight, in_proj_bias, n);
  const Tensor q = split_heads(parts[0], n);  // (B, H, T, D)
  const Tensor k = split_heads(parts[1], n);  // (B, G, S, D)
  const Tensor v = split_heads(parts[2], n);  // (B, G, S, D)
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  const auto merged = [&](const Tensor& y) {  // (B, H, T, D) -> (B, T, C)
    return out_proj(reshape(permute(y, {0, 2, 1, 3}), {n.B, n.T, n.C}));
  };
  AttentionOptions options{
      .is_causal = call.is_causal && !masked, .dropout_p = p, .enable_gqa = n.G != n.H};
  if (call.cache != nullptr)
    return {all_or_nothing({call.cache, 1},
                           [&] {
                             const auto [keys, values, offset] = call.cache->append(k, v);
                             options.causal_offset = offset;
                             return merged(scaled_dot_product_attention(q, keys, values, options));
                           }),
            {}};

  Tensor y, weights;
  if (call.need_weights) {
    const auto of_query = [&](const Tensor& x) {  // (B, G, S, D) -> (B, H, S, D)
      return n.G == n.H ? x : repeat_interleave(x, n.H / n.G, 1);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(n.D()));
    Tensor scores = matmul(q * scale, transpose(of_query(k), -2, -1));  // (B, H, T, S)
    if (additive != nullptr)
      scores += reshape(*additive, mask_sizes(additive->shape(), n));
    if (const auto mask = forbidden(call, n); mask.has_value())
      scores = masked_fill(scores, *mask, minus_infinity);
    weights = xgrad::dropout(softmax(scores, -1), p);  // (B, H, T, S)
    y = matmul(weights, of_query(v));                  // (B, H, T, D)
    if (call.average_attn_weights)
      weights = mean(weights, 1);  // (B, T, S)
  } else if (additive != nullptr) {
    Tensor bias = reshape(*additive, mask_sizes(additive->shape(), n));
    if (const auto mask = forbidden(call, n); mask.has_value())
      bias = where(*mask, minus_infinity, bias);
    y = scaled_dot_product_attention(q, k, v, bias, options);
  } else if (masked) {
    y = scaled_dot_product_attention(q, k, v, ~*forbidden(call, n), options);
  } else {
    y = scaled_dot_product_attention(q, k, v, options);
  }
  return {merged(y), weights};
}

}  // namespace xgrad::nn
