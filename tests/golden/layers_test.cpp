// Every layer against PyTorch's: what it starts from, its outputs and all its gradients, by the
// cases of golden/layers.py, which says what each name in the file means.

#include <algorithm>
#include <map>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/activations.hpp>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/multi_head_attention.hpp>
#include <xgrad/nn/rms_norm.hpp>
#include <xgrad/nn/self_attention.hpp>
#include <xgrad/nn/sequential.hpp>
#include <xgrad/nn/transformer_block.hpp>

#include "golden/layer_cases.hpp"
#include "helpers/catch.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

using Inputs = LayerInputs;
using Outputs = LayerOutputs;
using Cases = LayerCases;

template <class M>
M evaluating(M layer) {
  nn::eval(layer);
  return layer;
}

void add_plain_layers(Cases& cases) {
  cases.simple("Linear/bias", [] { return nn::Linear(5, 4); });
  cases.simple("Linear/no_bias", [] { return nn::Linear(5, 4, false); });
  cases.simple("Linear/3d", [] { return nn::Linear(7, 9); });
  cases.simple("Linear/1d", [] { return nn::Linear(3, 2); });
  cases.simple("Linear/wide", [] { return nn::Linear(40, 17); });
  const auto look_up = [](auto& layer, Inputs& in) {
    return Outputs{{"y", layer(in.indices("ids"))}};
  };
  cases.add(
      "Embedding/repeated", [] { return nn::Embedding(7, 5); }, look_up, ErrorUnit::absolute);
  cases.add(
      "Embedding/padding", [] { return nn::Embedding(7, 5, {.padding_idx = 3}); }, look_up,
      ErrorUnit::absolute);
  cases.add(
      "Embedding/padding_from_the_end", [] { return nn::Embedding(7, 5, {.padding_idx = -1}); },
      look_up, ErrorUnit::absolute);
  cases.add(
      "Embedding/small", [] { return nn::Embedding(3, 4); }, look_up, ErrorUnit::absolute);
  cases.simple("LayerNorm/bias", [] { return nn::LayerNorm(6); });
  cases.simple("LayerNorm/3d", [] { return nn::LayerNorm(37); });
  cases.simple("LayerNorm/two_dimensions", [] { return nn::LayerNorm({3, 4}); });
  cases.simple("LayerNorm/eps", [] { return nn::LayerNorm(6, {.eps = 0.1}); });
  cases.simple("LayerNorm/no_bias", [] { return nn::LayerNorm(6, {.bias = false}); });
  cases.simple("RMSNorm/default_eps", [] { return nn::RMSNorm(6); });
  cases.simple("RMSNorm/eps", [] { return nn::RMSNorm(37, 0.1); });
  cases.simple("RMSNorm/two_dimensions", [] { return nn::RMSNorm(Dims{3, 4}); });
  cases.simple("Dropout/0.3", [] { return nn::Dropout(0.3); });
  cases.simple("Dropout/0.5", [] { return nn::Dropout(); });
  cases.simple("Dropout/0", [] { return nn::Dropout(0); });
  cases.simple("Dropout/1", [] { return nn::Dropout(1); });
  cases.simple("Dropout/eval", [] { return evaluating(nn::Dropout(0.3)); });
  cases.simple("ReLU/default", [] { return nn::ReLU(); });
  cases.simple("SiLU/default", [] { return nn::SiLU(); });
  cases.simple("Tanh/default", [] { return nn::Tanh(); });
  cases.simple("Sigmoid/default", [] { return nn::Sigmoid(); });
  cases.simple("GELU/erf", [] { return nn::GELU(); });
  cases.simple("GELU/tanh", [] { return nn::GELU{Gelu::tanh}; });
  for (const std::int64_t dim : {-1, 0, 1})
    cases.simple("Softmax/" + std::to_string(dim), [dim] { return nn::Softmax{dim}; });
  cases.simple("Sequential/mixed", [] {
    return nn::Sequential{nn::Linear(4, 6), nn::GELU(), nn::LayerNorm(6), nn::Dropout(0.4),
                          nn::Linear(6, 3)};
  });
}

void add_multi_head_attention(Cases& cases) {
  using nn::MultiHeadAttention;
  using Call = MultiHeadAttention::Call;
  // Which inputs there are says what is attended to, and which masks there are.
  const auto attention = [&cases](const std::string& name, const Call& options = {},
                                  const nn::MultiHeadAttentionOptions& layer = {}) {
    cases.add(
        "MultiHeadAttention/" + name, [&] { return MultiHeadAttention(6, 2, layer); },
        [&](const MultiHeadAttention& mha, Inputs& in) {
          Call call = options;
          if (in.has("attn_mask")) {
            if (name.starts_with("additive") || name == "padding_and_additive_mask")
              call.attn_mask = in["attn_mask"];
            else
              call.attn_mask = in.mask("attn_mask");
          }
          if (in.has("padding"))
            call.key_padding_mask = in.mask("padding");
          const Tensor query = in["query"];
          const Tensor key = in.has("key") ? in["key"] : query;
          const Tensor value = in.has("value") ? in["value"] : key;
          const nn::Attended result = mha(query, key, value, call);
          CHECK(result.weights.defined() == call.need_weights);
          Outputs outputs{{"y", result.output}};
          if (call.need_weights)
            outputs.emplace_back("weights", result.weights);
          return outputs;
        });
  };
  const Call no_weights{.need_weights = false}, per_head{.average_attn_weights = false};
  const Call causal{.is_causal = true}, causal_no_weights{.is_causal = true, .need_weights = false};
  attention("self");
  attention("self_per_head", per_head);
  attention("self_no_weights", no_weights);
  attention("self_no_bias", {}, {.bias = false});
  attention("self_unbatched");
  attention("causal", causal);
  attention("causal_no_weights", causal_no_weights);
  attention("cross");
  attention("cross_no_weights", no_weights);
  attention("cross_no_bias_per_head", per_head, {.bias = false});
  attention("cross_key_is_value");
  attention("bool_mask");
  attention("bool_mask_no_weights", no_weights);
  attention("bool_mask_of_each_head", per_head);
  attention("additive_mask");
  attention("additive_mask_no_weights", no_weights);
  attention("additive_mask_of_each_head");
  attention("padding");
  attention("padding_and_bool_mask_no_weights", no_weights);
  attention("padding_and_additive_mask");
  attention("dropout", {}, {.dropout = 0.3});
  attention("dropout_no_weights", no_weights, {.dropout = 0.3});
  attention("dropout_causal_no_weights", causal_no_weights, {.dropout = 0.3});
}

void add_self_attention(Cases& cases) {
  const auto attention = [&cases](const std::string& name, bool is_causal = false,
                                  const nn::SelfAttentionOptions& options = {}) {
    cases.add(
        "SelfAttention/" + name, [&] { return nn::SelfAttention(6, options); },
        [&](const nn::SelfAttention& layer, Inputs& in) {
          nn::SelfAttention::Call call{.is_causal = is_causal};
          if (in.has("mask"))
            call.mask = in.mask("mask");
          const nn::Attended result = layer(in["x"], call);
          return Outputs{{"y", result.output}, {"weights", result.weights}};
        });
  };
  attention("plain");
  attention("unbatched");
  attention("causal", true);
  attention("mask");
  attention("mask_and_causal", true);
  attention("widths", false, {.d_k = 3, .d_v = 5});
  attention("no_output_projection", false, {.d_k = 3, .d_v = 5, .output_projection = false});
}

void add_transformer(Cases& cases) {
  struct Variant {
    const char* name;
    double dropout;
    bool bias;
  };
  for (const auto& [name, dropout, bias] :
       {Variant{"bias", 0, true}, Variant{"no_bias", 0, false}, Variant{"dropout", 0.2, true}}) {
    const double p = dropout;
    const bool with_bias = bias;
    cases.simple(std::string("CausalSelfAttention/") + name,
                 [=] { return nn::CausalSelfAttention(8, 2, p, with_bias); });
    cases.simple(std::string("MLP/") + name, [=] { return nn::MLP(8, p, with_bias); });
    cases.simple(std::string("TransformerBlock/") + name,
                 [=] { return nn::TransformerBlock(8, 2, p, with_bias); });
  }
  const nn::GPTConfig small{
      .block_size = 6, .vocab_size = 11, .n_layer = 2, .n_head = 2, .n_embd = 8};
  nn::GPTConfig one_layer{.block_size = 8,
                          .vocab_size = 11,
                          .n_layer = 1,
                          .n_head = 4,
                          .n_embd = 8,
                          .dropout = 0.3,
                          .bias = false};
  nn::GPTConfig dropping = small;
  dropping.dropout = 0.2;
  dropping.bias = false;
  const auto loss = [](const nn::GPT& model, Inputs& in) {
    return Outputs{{"loss", model.loss(in.indices("ids"), in.indices("targets"))}};
  };
  cases.add(
      "GPT/logits", [&] { return nn::GPT(small); },
      [](const nn::GPT& model, Inputs& in) {
        return Outputs{{"logits", model(in.indices("ids"))}};
      },
      ErrorUnit::absolute);
  cases.add(
      "GPT/last_logits", [&] { return evaluating(nn::GPT(one_layer)); },
      [](const nn::GPT& model, Inputs& in) {
        return Outputs{{"logits", model.last_logits(in.indices("ids"))}};
      },
      ErrorUnit::absolute);
  cases.add(
      "GPT/loss", [&] { return nn::GPT(small); }, loss, ErrorUnit::absolute);
  cases.add(
      "GPT/loss_dropout", [&] { return nn::GPT(dropping); }, loss, ErrorUnit::absolute);
}

std::vector<GoldenComparison> run_layers(const GoldenFile& file) {
  Cases cases{file};
  add_plain_layers(cases);
  add_multi_head_attention(cases);
  add_self_attention(cases);
  add_transformer(cases);
  add_more_layers(cases);
  return std::move(cases.found);
}

}  // namespace

TEST_CASE("golden layers: initial parameters, outputs and gradients are PyTorch's",
          "[nn][golden]") {
  const GoldenFile file("layers");
  check_golden(run_layers(file));
  CHECK(file.unused().empty());
}

TEST_CASE("golden layers: summary", "[.golden-summary]") {
  print_golden_summary("layers", run_layers(GoldenFile("layers")));
}
