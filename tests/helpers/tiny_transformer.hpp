#pragma once
// A small causal transformer of the core's layers, batches for it, and the bits of its gradients.

#include <algorithm>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

struct TinyAttention {
  nn::Linear c_attn, c_proj;
  Size n_head;
  double dropout;
  bool training = true;
  Tensor operator()(const Tensor& x) const {
    const double p = training ? dropout : 0;
    const Tensor y = c_proj(causal_self_attention(c_attn(x), n_head, p));
    return xgrad::dropout(y, p, training);
  }
  static void visit(auto& self, auto&& v) {
    v("c_attn", self.c_attn), v("c_proj", self.c_proj), v("training", self.training);
  }
};

struct TinyMLP {
  nn::Linear c_fc, c_proj;
  nn::Dropout drop;
  Tensor operator()(const Tensor& x) const {
    const Scope scope("mlp");
    return drop(c_proj(gelu(c_fc(x))));
  }
  static void visit(auto& self, auto&& v) {
    v("c_fc", self.c_fc), v("c_proj", self.c_proj), v("drop", self.drop);
  }
};

struct TinyBlock {
  nn::LayerNorm ln_1;
  TinyAttention attn;
  nn::LayerNorm ln_2;
  TinyMLP mlp;
  TinyBlock(Size C, Size n_head, double p = 0)
      : ln_1(C),
        attn{{C, 3 * C}, {C, C}, n_head, p},
        ln_2(C),
        mlp{{C, 4 * C}, {4 * C, C}, nn::Dropout(p)} {}
  Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attn(ln_1(x));
    return y + mlp(ln_2(y));
  }
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1), v("attn", self.attn), v("ln_2", self.ln_2), v("mlp", self.mlp);
  }
};

struct TinyTransformer {
  nn::Embedding wte, wpe;
  std::vector<TinyBlock> h;
  nn::LayerNorm ln_f;
  nn::Linear lm_head;
  TinyTransformer(Size T, Size V, Size n_layer, Size n_head, Size C, double p = 0)
      : wte(V, C),
        wpe(T, C),
        h(static_cast<std::size_t>(n_layer), TinyBlock(C, n_head, p)),
        ln_f(C),
        lm_head(C, V) {
    for (TinyBlock& block : h)
      block = TinyBlock(C, n_head, p);  // copies would share their weights
  }
  Tensor loss(const Indices& x, const Indices& y) const {
    Tensor z = wte(x) + wpe(arange_indices(x.size(1)));
    for (std::size_t i = 0; i < h.size(); ++i) {
      const Scope scope("h." + std::to_string(i));
      z = h[i](z);
    }
    return cross_entropy(lm_head(ln_f(z)).flatten(0, 1), y.flatten());
  }
  static void visit(auto& self, auto&& v) {
    v("wte", self.wte), v("wpe", self.wpe), v("h", self.h);
    v("ln_f", self.ln_f), v("lm_head", self.lm_head);
  }
};

inline TinyTransformer tiny_model(double dropout = 0) {
  manual_seed(5);
  return {6, 11, 2, 2, 8, dropout};
}

/// Blocks of six characters of a text, and the characters that follow them.
struct TinyBatch {
  Indices x, y;
};
inline TinyBatch tiny_batch(Size rows, std::uint64_t seed = 3) {
  Generator generator(seed);
  const Indices at = randint(193, {rows, 1}, generator) + arange_indices(6);
  return {at * at % 11, (at + 1) * (at + 1) % 11};
}

// The gradient of a batch in eight shards, as one process computes it, and its loss.
template <class Loss, class... Batch>
double in_one_process(const Loss& loss, const Batch&... batch) {
  return parallel::backward(
      std::min({static_cast<std::size_t>(batch.size(0))...}),
      [&](std::size_t begin, std::size_t end) {
        return loss(batch.narrow(0, static_cast<std::int64_t>(begin), end - begin)...);
      },
      8);
}

inline std::string bits_of(const nn::StateDict& state) {
  std::string bits;
  for (const auto& [name, x] : state) {
    bits += name;
    if (x.defined())
      dispatch(x.dtype(), [&, &value = x]<class T>() {
        bits.append(reinterpret_cast<const char*>(value.template data<T>()),
                    value.numel() * sizeof(T));
      });
  }
  return bits;
}

// Returns the bytes of all gradients and clears them.
inline std::string take_gradients(const nn::StateDict& parameters) {
  nn::StateDict gradients;
  for (auto [name, p] : parameters) {
    gradients.emplace_back(name, p.grad());
    p.zero_grad();
  }
  return bits_of(gradients);
}
