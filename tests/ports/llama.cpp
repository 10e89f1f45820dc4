// A small Llama: RMSNorm, rotary positions, grouped queries, SwiGLU.  Names as in transformers.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct LlamaAttention {
  std::size_t heads = 4, kv_heads = 2;
  nn::Linear q_proj{16, 16, false}, k_proj{16, 8, false}, v_proj{16, 8, false};
  nn::Linear o_proj{16, 16, false};

  Tensor operator()(const Tensor& x, const nn::RotaryEmbedding& rotate) const {
    const auto split = [&](const Tensor& y, std::size_t n) {
      return y.view({x.size(0), x.size(1), n, -1}).transpose(1, 2);
    };
    const Tensor q = rotate(split(q_proj(x), heads)), k = rotate(split(k_proj(x), kv_heads));
    const Tensor v = split(v_proj(x), kv_heads);
    const Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = true, .enable_gqa = true});
    return o_proj(y.transpose(1, 2).flatten(-2));
  }
  static void visit(auto& self, auto&& v) {
    v("q_proj", self.q_proj), v("k_proj", self.k_proj);
    v("v_proj", self.v_proj), v("o_proj", self.o_proj);
  }
};

struct LlamaBlock {
  nn::RMSNorm input_layernorm{16, 1e-5}, post_attention_layernorm{16, 1e-5};
  LlamaAttention self_attn;
  nn::SwiGLU mlp{16, 20};

  Tensor operator()(Tensor x, const nn::RotaryEmbedding& rotate) const {
    x += self_attn(input_layernorm(x), rotate);
    return x + mlp(post_attention_layernorm(x));
  }
  static void visit(auto& self, auto&& v) {
    v("input_layernorm", self.input_layernorm), v("self_attn", self.self_attn);
    v("post_attention_layernorm", self.post_attention_layernorm), v("mlp", self.mlp);
  }
};

struct Llama {
  nn::Embedding embed_tokens{11, 16};
  std::vector<LlamaBlock> layers{LlamaBlock{}, LlamaBlock{}};
  nn::RMSNorm norm{16, 1e-5};
  nn::Linear lm_head{16, 11, false};

  Tensor operator()(const Indices& ids) const {
    const nn::RotaryEmbedding rotate(4, arange_indices(0, ids.size(1)));
    Tensor x = embed_tokens(ids);
    for (const LlamaBlock& layer : layers)
      x = layer(x, rotate);
    return lm_head(norm(x));
  }
  static void visit(auto& self, auto&& v) {
    v("embed_tokens", self.embed_tokens), v("layers", self.layers);
    v("norm", self.norm), v("lm_head", self.lm_head);
  }
};

}  // namespace

TEST_CASE("port: Llama", "[ports]") {
  testing::run_port("llama", [](testing::Port& port) {
    Llama model;
    port.compare_next_token(model);
  });
}
