#include <xgrad/nn/transformer_block.hpp>

#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::nn {

static void check_probability(const char* layer, double p) {
  check<ValueError>(p >= 0 && p <= 1, "{}: dropout is {}; a probability is in [0, 1]", layer, p);
}

CausalSelfAttention::CausalSelfAttention(std::size_t width, std::size_t heads, double p, bool bias)
    : c_attn(width, 3 * width, bias), c_proj(width, width, bias), n_head(heads), dropout(p) {
  if (heads == 0 || width % heads != 0)
    fail<ValueError>("CausalSelfAttention: width {} is not a multiple of n_head {}", width, heads);
  check_probability("CausalSelfAttention", p);
}

Tensor CausalSelfAttention::operator()(const Tensor& x, KeyValueCache* cache) const {
  const double p = training ? dropout : 0;
  if (cache != nullptr) {
    check<ValueError>(p == 0, "CausalSelfAttention: dropout with a cache; call eval() first");
    return all_or_nothing({cache, 1},
                          [&] { return c_proj(causal_self_attention(c_attn(x), n_head, *cache)); });
  }
  const Tensor qkv = c_attn(x);                            // (B, T, 3C)
  const Tensor y = causal_self_attention(qkv, n_head, p);  // (B, T, C)
  return xgrad::dropout(c_proj(y), dropout, training);     // (B, T, C)
}

MLP::MLP(std::size_t width, double p, bool bias)
    : c_fc(width, 4 * width, bias), c_proj(4 * width, width, bias), dropout(p) {
  check_probability("MLP", p);
}

Tensor MLP::operator()(const Tensor& x) const {
  return xgrad::dropout(c_proj(gelu(c_fc(x))), dropout, training);
}

TransformerBlock::TransformerBlock(std::size_t width, std::size_t heads, double dropout, bool bias)
    : ln_1(width, {.bias = bias}),
      attn(width, heads, dropout, bias),
      ln_2(width, {.bias = bias}),
      mlp(width, dropout, bias) {}

Tensor TransformerBlock::operator()(const Tensor& x, KeyValueCache* cache) const {
  const auto attended = [&] {
    const Scope scope("attn");
    return x + attn(ln_1(x), cache);
  };
  return all_or_nothing({cache, cache == nullptr ? 0u : 1u}, [&] {
    const Tensor y = attended();
    const Scope scope("mlp");
    return y + mlp(ln_2(y));
  });
}

}  // namespace xgrad::nn
