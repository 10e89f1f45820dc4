// A translator: an encoder, and a decoder with cross-attention to it.  Vaswani et al., 2017, with
// norms first.

#include "ports/port.hpp"

using namespace xgrad;

namespace {

struct Encoder {
  nn::LayerNorm norm{8};
  nn::MultiHeadAttention attention{8, 2};
  nn::Sequential mlp{nn::LayerNorm(8), nn::Linear(8, 16), nn::ReLU{}, nn::Linear(16, 8)};

  Tensor operator()(Tensor x, const Mask& padding) const {
    const Tensor h = norm(x);
    x += attention(h, h, h, {.key_padding_mask = padding, .need_weights = false}).output;
    return x + mlp(x);
  }
  static void visit(auto& self, auto&& v) {
    v("norm", self.norm), v("attention", self.attention), v("mlp", self.mlp);
  }
};

struct CrossDecoder {
  nn::LayerNorm norm{8}, cross_norm{8};
  nn::MultiHeadAttention attention{8, 2}, cross{8, 2};
  nn::Sequential mlp{nn::LayerNorm(8), nn::Linear(8, 16), nn::ReLU{}, nn::Linear(16, 8)};

  nn::Attended operator()(Tensor y, const Tensor& memory, const Mask& padding) const {
    const Tensor h = norm(y);
    y += attention(h, h, h, {.is_causal = true, .need_weights = false}).output;
    const auto [read, weights] =
        cross(cross_norm(y), memory, memory, {.key_padding_mask = padding});
    y += read;
    return {y + mlp(y), weights};
  }
  static void visit(auto& self, auto&& v) {
    v("norm", self.norm), v("attention", self.attention), v("cross_norm", self.cross_norm);
    v("cross", self.cross), v("mlp", self.mlp);
  }
};

struct Translator {
  nn::Embedding tokens{9, 8}, positions{6, 8};
  Encoder encoder;
  CrossDecoder decoder;
  nn::LayerNorm norm{8};

  nn::Attended operator()(const Indices& source, const Indices& target) const {
    const auto embed = [&](const Indices& ids) {
      return tokens(ids) + positions(arange_indices(0, ids.size(1)));
    };
    const Mask padding = source == 0;
    const auto [y, weights] = decoder(embed(target), encoder(embed(source), padding), padding);
    return {matmul(norm(y), tokens.weight.t()), weights};
  }
  static void visit(auto& self, auto&& v) {
    v("tokens", self.tokens), v("positions", self.positions), v("encoder", self.encoder);
    v("decoder", self.decoder), v("norm", self.norm);
  }
};

}  // namespace

TEST_CASE("port: an encoder and a decoder", "[ports]") {
  testing::run_port("encoder_decoder", [](testing::Port& port) {
    Translator model;
    port.start(model);
    const Indices target = port.indices("target");
    const auto [logits, weights] = model(port.indices("source"), target.slice(1, 0, -1));
    const Tensor loss = cross_entropy(logits.flatten(0, 1), target.slice(1, 1, {}).flatten(),
                                      {.ignore_index = 0, .label_smoothing = 0.1});
    loss.backward();
    port.compare("logits", logits), port.compare("weights", weights), port.compare("loss", loss);
    port.compare_gradients(model);
  });
}
