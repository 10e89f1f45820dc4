#include <xgrad/nn/transformer_block.hpp>

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::nn {

const GPTConfig& checked(const GPTConfig& c, const char* caller) {
  if (std::min({c.block_size, c.vocab_size, c.n_layer, c.n_head, c.n_embd}) <= 0)
    fail<ValueError>(
        "{}: block_size {}, vocab_size {}, n_layer {}, n_head {}, n_embd {}: all must be positive",
        caller, c.block_size, c.vocab_size, c.n_layer, c.n_head, c.n_embd);
  check<ValueError>(c.head_dim > 0 || c.n_embd % c.n_head == 0,
                    "{}: n_embd {} is not a multiple of n_head {}", caller, c.n_embd, c.n_head);
  check<ValueError>(c.n_head % c.kv_heads() == 0, "{}: n_head {} is not a multiple of n_kv_head {}",
                    caller, c.n_head, c.kv_heads());
  check<ValueError>(!c.rotary || c.head_width() % 2 == 0,
                    "{}: heads of {} channels cannot rotate in pairs", caller, c.head_width());
  check<ValueError>(c.dropout >= 0 && c.dropout <= 1,
                    "{}: dropout is {}; a probability is in [0, 1]", caller, c.dropout);
  check<ValueError>(c.norm_eps > 0 && std::isfinite(c.norm_eps), "{}: norm_eps {} must be positive",
                    caller, c.norm_eps);
  if (c.rotary)
    RotaryEmbedding(2, arange_indices(0, 1), *c.rotary);  // its errors, whatever the sizes
  return c;
}

static GPTConfig of_block(Size width, Size heads, double dropout, bool bias) {
  return {.n_head = heads, .n_embd = width, .dropout = dropout, .bias = bias};
}

static Size checked_qkv_width(const GPTConfig& c) {
  checked(c, "CausalSelfAttention");
  return (c.n_head + 2 * c.kv_heads()) * c.head_width();
}

CausalSelfAttention::CausalSelfAttention(const GPTConfig& c)
    : c_attn(c.n_embd, checked_qkv_width(c), c.qkv_bias.value_or(c.bias)),
      c_proj(c.n_head * c.head_width(), c.n_embd, c.proj_bias.value_or(c.bias)),
      n_head(c.n_head),
      n_kv_head(c.kv_heads()),
      dropout(c.dropout) {}

CausalSelfAttention::CausalSelfAttention(Size width, Size heads, double p, bool bias)
    : CausalSelfAttention(of_block(width, heads, p, bias)) {}

Tensor CausalSelfAttention::operator()(const Tensor& x, KeyValueCache* cache,
                                       const RotaryEmbedding* rotate) const {
  const double p = training ? dropout : 0;
  check<ValueError>(cache == nullptr || p == 0,
                    "CausalSelfAttention: dropout with a cache; call eval() first");
  return all_or_nothing({cache, cache == nullptr ? 0u : 1u}, [&] {
    const Tensor qkv = c_attn(x);  // (B, T, (H + 2G) D)
    const auto attended = [&] {
      if (rotate != nullptr || n_kv_head != n_head)
        return grouped(qkv, p, cache, rotate);
      return cache == nullptr ? causal_self_attention(qkv, n_head, p)
                              : causal_self_attention(qkv, n_head, *cache);
    };
    const Tensor y = attended();                          // (B, T, HD)
    return xgrad::dropout(c_proj(y), dropout, training);  // (B, T, C)
  });
}

// As causal_self_attention, which has as many keys as queries and leaves them where they are.
Tensor CausalSelfAttention::grouped(const Tensor& qkv, double p, KeyValueCache* cache,
                                    const RotaryEmbedding* rotate) const {
  check<ShapeError>(qkv.dim() == 3,
                    "CausalSelfAttention: queries, keys and values are {}, not (B, T, channels)",
                    to_string(qkv.shape()));
  const Size B = qkv.size(0), T = qkv.size(1), H = n_head, G = n_kv_head,
             D = qkv.size(2) / (H + 2 * G);
  const auto heads = [&](Size first, Size n) {  // (B, n, T, D)
    return transpose(reshape(narrow(qkv, -1, first * D, n * D), {B, T, n, D}), 1, 2);
  };
  Tensor q = heads(0, H), k = heads(H, G), v = heads(H + G, G);
  if (rotate != nullptr) {
    q = (*rotate)(q);
    k = (*rotate)(k);
  }
  Size offset = 0;
  if (cache != nullptr) {
    const auto held = cache->append(k, v);
    k = held.keys;
    v = held.values;
    offset = held.offset;
  }
  const Tensor y = scaled_dot_product_attention(q, k, v,
                                                {.is_causal = true,
                                                 .dropout_p = p,
                                                 .causal_offset = offset,
                                                 .enable_gqa = G != H});  // (B, H, T, D)
  return reshape(transpose(y, 1, 2), {B, T, H * D});
}

MLP::MLP(const GPTConfig& c)
    : c_fc(c.n_embd, c.inner_width(), c.mlp_bias.value_or(c.bias)),
      c_gate(c.activation != Activation::swiglu
                 ? std::nullopt
                 : std::optional<Linear>(std::in_place, c.n_embd, c.inner_width(),
                                         c.mlp_bias.value_or(c.bias))),
      c_proj(c.inner_width(), c.n_embd, c.mlp_bias.value_or(c.bias)),
      dropout(c.dropout),
      activation(c.activation) {
  check<ValueError>(c.dropout >= 0 && c.dropout <= 1,
                    "MLP: dropout is {}; a probability is in [0, 1]", c.dropout);
}

MLP::MLP(Size width, double p, bool bias) : MLP(of_block(width, 1, p, bias)) {}

Tensor MLP::operator()(const Tensor& x) const {
  const Tensor y =
      c_gate ? silu((*c_gate)(x)) * c_fc(x)
             : gelu(c_fc(x), activation == Activation::gelu_tanh ? Gelu::tanh : Gelu::erf);
  return xgrad::dropout(c_proj(y), dropout, training);
}

Norm::Norm(const GPTConfig& c)
    : weight(ones({c.n_embd}).requires_grad_()), eps(c.norm_eps), kind(c.norm) {
  if (c.norm == NormKind::layer && c.bias)
    bias = zeros({c.n_embd}).requires_grad_();
}
Tensor Norm::operator()(const Tensor& x) const {
  const Dims width = weight.shape();
  return kind == NormKind::rms ? rms_norm(x, width, weight, eps)
                               : layer_norm(x, width, weight, bias, eps);
}

TransformerBlock::TransformerBlock(const GPTConfig& c) : ln_1(c), attn(c), ln_2(c), mlp(c) {}
TransformerBlock::TransformerBlock(Size width, Size heads, double dropout, bool bias)
    : TransformerBlock(of_block(width, heads, dropout, bias)) {}

Tensor TransformerBlock::operator()(const Tensor& x, KeyValueCache* cache,
                                    const RotaryEmbedding* rotate) const {
  const auto attended = [&] {
    const Scope scope("attn");
    return x + attn(ln_1(x), cache, rotate);
  };
  return all_or_nothing({cache, cache == nullptr ? 0u : 1u}, [&] {
    const Tensor y = attended();
    const Scope scope("mlp");
    return y + mlp(ln_2(y));
  });
}

}  // namespace xgrad::nn
