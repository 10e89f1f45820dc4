#include "attention.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include "../autograd/fail.hpp"
#include "../autograd/graph.hpp"
#include "../autograd/ops.hpp"
#include "init.hpp"

namespace xgrad::nn {

Mask future(Dim queries, Dim keys) { return triu(zeros({queries, keys}) == 0, 1); }

Mask sliding_window(Dim queries, Dim keys, Dim window, Dim offset) {
  check<ValueError>(window > 0, "sliding_window: window is {}; it must be at least 1", window);
  check<ValueError>(offset > -(Size{1} << 60) && offset < Size{1} << 60,
                    "sliding_window: offset is {}; it must be between -2^60 and 2^60", offset);
  const Mask all = zeros({queries, keys}) == 0;
  const Size width = std::min(window.value, std::abs(offset) + queries);
  return tril(all, offset) & ~tril(all, offset - width);  // the diagonal of own keys
}

Tensor alibi_bias(Dim heads, Dim queries, Dim keys, Dim offset, DType dtype) {
  check<ValueError>(heads >= 0, "alibi_bias: heads is {}; it must not be negative", heads);
  const auto power = static_cast<Size>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  for (Size h = 0; h < heads; ++h) {
    const Size step = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;  // of 2 power
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(step) / static_cast<double>(power)));
  }
  const auto first = static_cast<double>(offset);
  const Tensor position = first + arange(0, static_cast<double>(queries), 1, DType::float64);
  const Tensor key = arange(0, static_cast<double>(keys), 1, DType::float64);
  const Tensor distance = abs(unsqueeze(position, 1) - key);  // (T, S)
  return to(Tensor(std::move(slopes), {heads, 1, 1}) * -distance, dtype);
}

Size RotaryEmbedding::rotated_channels(Dim head_dim, const RotaryOptions& options) {
  const double share = options.partial_rotary_factor;
  check<ValueError>(share >= 0 && share <= 1,
                    "RotaryEmbedding: partial_rotary_factor {} is not between 0 and 1", share);
  const auto dims = static_cast<Size>(static_cast<double>(head_dim) * share);
  check<ValueError>(head_dim >= 0 && dims % 2 == 0,
                    "RotaryEmbedding: head_dim {} is odd or negative, or its rotated part, {}, is",
                    head_dim, dims);
  check<ValueError>(options.theta > 0 && options.factor > 0 && std::isfinite(1 / options.factor),
                    "RotaryEmbedding: theta {} and factor {} must be positive", options.theta,
                    options.factor);
  check<ValueError>(options.low_freq_factor < options.high_freq_factor,
                    "RotaryEmbedding: low_freq_factor {} is not below high_freq_factor {}",
                    options.low_freq_factor, options.high_freq_factor);
  return dims;
}

RotaryEmbedding::RotaryEmbedding(Dim head_dim, const Indices& positions,
                                 const RotaryOptions& options)
    : pairs_(options.pairs), head_dim_(head_dim) {
  const Size dims = rotated_channels(head_dim, options);
  const auto pairs = to_size(dims / 2);
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dims);
    const double frequency = std::pow(options.theta, -exponent);
    double kept = 0;  // the share that is not divided
    if (options.original_max_position_embeddings > 0) {
      const double turns = static_cast<double>(options.original_max_position_embeddings) *
                           frequency / (2 * std::numbers::pi);
      kept = std::clamp(
          (turns - options.low_freq_factor) / (options.high_freq_factor - options.low_freq_factor),
          0.0, 1.0);
    }
    frequencies[i] = frequency * (kept + (1 - kept) / options.factor);
  }
  Shape shape = positions.shape();
  shape.push_back(pairs);
  auto cos = empty_array<double>(shape), sin = empty_array<double>(shape);
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const double angle = static_cast<double>(positions.data()[i / pairs]) * frequencies[i % pairs];
    cos.data()[i] = std::cos(angle);
    sin.data()[i] = std::sin(angle);
  }
  cos_ = Tensor(std::move(cos));
  sin_ = Tensor(std::move(sin));
}

RotaryEmbedding::RotaryEmbedding(const Tensor& cos, const Tensor& sin, RotaryPairs pairs)
    : pairs_(pairs), cos_(cos), sin_(sin) {
  if (cos.dim() == 0 || cos.shape() != sin.shape())
    fail<ShapeError>("RotaryEmbedding: cos {} and sin {} are not both (..., T, R / 2)",
                     to_string(cos.shape()), to_string(sin.shape()));
}

Tensor RotaryEmbedding::operator()(const Tensor& x) const {
  const Size pairs = cos_.size(-1), rotating = 2 * pairs;
  const Shape expected = x.dim() == 0 ? Shape() : Shape(x.shape().begin(), x.shape().end() - 1);
  const Shape positions(cos_.shape().begin(), cos_.shape().end() - 1);
  const auto spreads = [](std::size_t size, std::size_t to) { return size == 1 || size == to; };
  const bool given = head_dim_ < 0;  // cosines and sines
  if (x.dim() == 0 || (given ? x.size(-1) < rotating : x.size(-1) != head_dim_) ||
      positions.size() > expected.size() ||
      !std::equal(positions.begin(), positions.end(), expected.end() - positions.size(), spreads))
    fail<ShapeError>("RotaryEmbedding: x {} is not (..., T, {}) of {} {}", to_string(x.shape()),
                     given ? rotating : head_dim_, given ? "cos and sin" : "positions",
                     to_string(given ? cos_.shape() : positions));
  if (const Size rest = x.size(-1) - rotating; rest > 0) {
    const RotaryEmbedding rotate(cos_, sin_, pairs_);
    return cat({rotate(narrow(x, -1, 0, rotating)), narrow(x, -1, rotating, rest)}, -1);
  }
  const Tensor cos = to(cos_, x.dtype()), sin = to(sin_, x.dtype());
  const auto rotated = [&](const Tensor& a, const Tensor& b, const auto& join) {
    return join({a * cos - b * sin, b * cos + a * sin});
  };
  if (pairs_ == RotaryPairs::half)
    return rotated(narrow(x, -1, 0, pairs), narrow(x, -1, pairs, pairs),
                   [](const std::vector<Tensor>& both) { return cat(both, -1); });
  Shape split = expected;  // (..., T, D / 2, 2)
  split.push_back(static_cast<std::size_t>(pairs));
  split.push_back(2);
  const Tensor both = reshape(x, split);
  return rotated(select(both, -1, 0), select(both, -1, 1), [&](const std::vector<Tensor>& pair) {
    return reshape(stack(pair, -1), x.shape());
  });
}

namespace {

// (..., T, D) with another T.
Shape with_positions(Shape shape, Size positions) {
  shape[-2] = positions;
  return shape;
}

void check_fits(const char* name, const Tensor& x, const Value* held, Size length) {
  if (held == nullptr)
    return;
  const Shape expected = with_positions(held->shape, length);
  if (with_positions(x.shape(), length) != expected)
    fail<ShapeError>("KeyValueCache: {} {} does not continue the cached {}", name,
                     to_string(x.shape()), to_string(expected));
  if (x.dtype() != held->dtype)
    fail<DTypeError>("KeyValueCache: {} is {} but the cache is {}", name, to_string(x.dtype()),
                     to_string(held->dtype));
}

// Writes x (..., T, D) to positions `offset` and after of `held` (..., capacity, D).
void put(const Tensor& x, Size offset, const Value& held) {
  const Size width = x.size(-1), rows = x.size(-2), capacity = held.shape[-2];
  const Size matrices = rows * width == 0 ? 0 : x.numel() / (rows * width);
  dispatch(held.dtype, [&]<class T>() {
    for (Size i = 0; i < matrices; ++i)
      std::copy_n(x.data<T>() + i * rows * width, rows * width,
                  held.writable_data<T>() + (i * capacity + offset) * width);
  });
}

struct AttentionSizes {
  Size B, T, S, C, H, G;  // G: heads of keys and values
  Size D() const { return C / H; }
};

}  // namespace

KeyValueCache::Held KeyValueCache::append(const Tensor& k, const Tensor& v) {
  const Shape &keys = k.shape(), &values = v.shape();
  if (keys.size() < 2 || keys.size() != values.size() ||
      !std::equal(keys.begin(), keys.end() - 1, values.begin()))
    fail<ShapeError>("KeyValueCache: k {} and v {} are not (..., T, D) and (..., T, Dv)",
                     to_string(keys), to_string(values));
  if (k.dtype() != v.dtype())
    fail<DTypeError>("KeyValueCache: k is {} but v is {}", to_string(k.dtype()),
                     to_string(v.dtype()));
  const bool first = length_ == 0;
  check_fits("k", k, first ? nullptr : keys_.get(), length_);
  check_fits("v", v, first ? nullptr : values_.get(), length_);
  const Size positions = keys[-2];
  if (positions > capacity_ - length_)
    fail<ValueError>("KeyValueCache: {} positions are cached and {} more exceed its capacity, {}",
                     length_, positions, capacity_);
  if (xgrad::detail::any_requires_grad(std::array{k, v}))
    throw GraphError("KeyValueCache: gradients do not flow through a cache; use NoGrad");

  const auto room = [&](const Tensor& x) {
    return zeros(with_positions(x.shape(), capacity_), x.dtype()).identity().value;
  };
  if (first) {
    auto empty = room(k);
    values_ = room(v);
    keys_ = std::move(empty);
    written_ = 0;
  }
  xgrad::detail::make_sole_owner(keys_);
  xgrad::detail::make_sole_owner(values_);
  put(k, length_, *keys_);
  put(v, length_, *values_);
  const Size end = length_ + positions;
  if (written_ > end)  // clears positions that were truncated
    for (const auto& [x, held] : {std::pair(&k, keys_.get()), std::pair(&v, values_.get())})
      put(zeros(with_positions(x->shape(), written_ - end), x->dtype()), end, *held);
  written_ = end;
  Held held{Tensor(keys_, nullptr), Tensor(values_, nullptr), static_cast<Size>(length_)};
  length_ += positions;
  return held;
}

void KeyValueCache::truncate(Dim length) {
  check<ValueError>(length >= 0 && length <= length_,
                    "KeyValueCache: {} of {} positions cannot be kept", length, length_);
  length_ = length;
  if (length == 0)
    keys_ = values_ = nullptr;
}

Tensor causal_self_attention(const Tensor& qkv, Dim n_head, KeyValueCache& cache) {
  check<ValueError>(n_head > 0, "causal_self_attention: n_head is {}; it must be at least 1",
                    n_head);
  if (qkv.dim() != 3 || qkv.size(2) % (3 * n_head) != 0)
    fail<ShapeError>(
        "causal_self_attention: qkv {} is not (B, T, 3C) with C a multiple of {} heads",
        to_string(qkv.shape()), n_head);
  const Size B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3, H = n_head;
  const Tensor parts = permute(reshape(qkv, {B, T, 3, H, C / H}), {2, 0, 3, 1, 4});
  return all_or_nothing({&cache, 1}, [&] {  // parts: (3, B, H, T, D)
    const auto [keys, values, offset] = cache.append(parts[1], parts[2]);
    const Tensor y = scaled_dot_product_attention(
        parts[0], keys, values, {.is_causal = true, .causal_offset = offset});  // (B, H, T, D)
    return reshape(transpose(y, 1, 2), {B, T, C});
  });
}

SelfAttention::SelfAttention(Dim d_model, const SelfAttentionOptions& options)
    : W_q(d_model, options.d_k.value_or(d_model), false),
      W_k(d_model, options.d_k.value_or(d_model), false),
      W_v(d_model, options.d_v.value_or(d_model), false),
      scale(1 / std::sqrt(static_cast<double>(options.d_k.value_or(d_model)))) {
  check<ValueError>(options.d_k != 0, "SelfAttention: d_k is 0");
  if (options.output_projection)
    W_o.emplace(options.d_v.value_or(d_model), d_model, false);
}

Attended SelfAttention::operator()(const Tensor& x, const Call& call) const {
  check<ShapeError>(x.dim() >= 2, "SelfAttention: x is {}; it must be (B, T, C) or (T, C)",
                    to_string(x.shape()));
  const Tensor q = W_q(x);                                 // (B, T, d_k)
  const Tensor k = W_k(x);                                 // (B, T, d_k)
  const Tensor v = W_v(x);                                 // (B, T, d_v)
  Tensor scores = matmul(q, k.transpose(-2, -1)) * scale;  // (B, T, T)
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  if (call.mask.has_value() &&
      broadcast_shapes(scores.shape(), call.mask->shape(), "SelfAttention") != scores.shape())
    fail<ShapeError>("SelfAttention: mask {} does not broadcast to the scores {}",
                     to_string(call.mask->shape()), to_string(scores.shape()));
  if (call.mask.has_value())
    scores = masked_fill(scores, ~*call.mask, minus_infinity);
  if (call.is_causal)
    scores = masked_fill(scores, future(x.size(-2), x.size(-2)), minus_infinity);
  const Tensor weights = softmax(scores, -1);  // (B, T, T)
  const Tensor y = matmul(weights, v);         // (B, T, d_v)
  return {W_o.has_value() ? (*W_o)(y) : y, weights};
}

MultiHeadAttention::MultiHeadAttention(Dim embed_dim, Dim heads,
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

static AttentionSizes checked_sizes(const MultiHeadAttention& layer, const Tensor& query,
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

// The projections of query (B, T, C), key and value (B, T, G * D); one product for equal inputs.
static std::array<Tensor, 3> project(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& weight, const Tensor& bias,
                                     const AttentionSizes& n) {
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
static Tensor split_heads(const Tensor& x, const AttentionSizes& n) {
  return permute(reshape(x, {n.B, x.size(1), x.size(2) / n.D(), n.D()}), {0, 2, 1, 3});
}

// (T, S) -> (T, S), (B * H, T, S) -> (B, H, T, S)
static Dims mask_sizes(const Shape& mask, const AttentionSizes& n) {
  if (mask == Shape{n.T, n.S})
    return {n.T, n.S};
  if (mask == Shape{n.B * n.H, n.T, n.S})
    return {n.B, n.H, n.T, n.S};
  fail<ShapeError>("MultiHeadAttention: attn_mask {} must be ({}, {}) or ({}, {}, {})",
                   to_string(mask), n.T, n.S, n.B * n.H, n.T, n.S);
}

// All that is forbidden, as one mask that broadcasts to (B, H, T, S).
static std::optional<Mask> forbidden(const MultiHeadAttention::Call& call,
                                     const AttentionSizes& n) {
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

Attended MultiHeadAttention::operator()(const Tensor& query, const Tensor& key,
                                        const Tensor& value) const {
  return (*this)(query, key, value, Call{});
}

template void detail::Collector::layer(const std::string&, MultiHeadAttention&);

}  // namespace xgrad::nn
