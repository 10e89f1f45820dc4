// Our calls of the second half of golden/layers.py, by the same names.

#include <xgrad/nn/activations.hpp>
#include <xgrad/nn/batch_norm.hpp>
#include <xgrad/nn/flatten.hpp>
#include <xgrad/nn/group_norm.hpp>
#include <xgrad/nn/losses.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/multi_head_attention.hpp>
#include <xgrad/nn/recurrent.hpp>
#include <xgrad/nn/rotary_embedding.hpp>
#include <xgrad/nn/swiglu.hpp>

#include "golden/layer_cases.hpp"

namespace xgrad::testing {
namespace {

void add_small_layers(LayerCases& cases) {
  cases.simple("Identity/default", [] { return nn::Identity(); });
  cases.simple("Flatten/default", [] { return nn::Flatten(); });
  cases.simple("Flatten/0_1", [] { return nn::Flatten{0, 1}; });
  cases.simple("LeakyReLU/default", [] { return nn::LeakyReLU(); });
  cases.simple("LeakyReLU/0.2", [] { return nn::LeakyReLU{0.2}; });
  cases.simple("ELU/default", [] { return nn::ELU(); });
  cases.simple("ELU/0.5", [] { return nn::ELU{0.5}; });
  cases.simple("Softplus/default", [] { return nn::Softplus(); });
  cases.simple("Softplus/2_3", [] { return nn::Softplus{2, 3}; });
  cases.simple("PReLU/one", [] { return nn::PReLU(); });
  cases.simple("PReLU/channels", [] { return nn::PReLU(3, 0.1); });
  cases.simple("PReLU/rows", [] { return nn::PReLU(3); });
  for (const std::int64_t dim : {-1, 0})
    cases.simple("LogSoftmax/" + std::to_string(dim), [dim] { return nn::LogSoftmax{dim}; });
  cases.simple("GroupNorm/3d", [] { return nn::GroupNorm(2, 6); });
  cases.simple("GroupNorm/2d", [] { return nn::GroupNorm(2, 8); });
  cases.simple("GroupNorm/4d", [] { return nn::GroupNorm(1, 4, {.eps = 0.1}); });
  cases.simple("GroupNorm/not_affine", [] { return nn::GroupNorm(4, 4, {.affine = false}); });
  cases.simple("SwiGLU/default", [] { return nn::SwiGLU(4, 6); });
  cases.simple("SwiGLU/bias", [] { return nn::SwiGLU(4, 6, true); });
}

void add_batch_norms(LayerCases& cases) {
  const auto batch_norm = [&cases](const std::string& name, int calls, bool evaluate,
                                   const nn::BatchNormOptions& options) {
    cases.add(
        "BatchNorm1d/" + name, [&] { return nn::BatchNorm1d(3, options); },
        [&](nn::BatchNorm1d& layer, LayerInputs& in) {
          Tensor y;
          for (int i = 1; i <= calls; ++i)
            y = layer(in["x"] * i);
          if (evaluate) {
            nn::eval(layer);
            y = layer(in["x"]);
          }
          LayerOutputs outputs{{"y", y}};
          for (const auto& buffer : nn::named_buffers(layer))
            outputs.push_back(buffer);
          return outputs;
        });
  };
  batch_norm("2d", 1, false, {});
  batch_norm("3d", 2, false, {});
  batch_norm("cumulative", 3, false, {.momentum = std::nullopt});
  batch_norm("momentum", 1, false, {.eps = 0.1, .momentum = 0.4});
  batch_norm("eval", 1, true, {});
  batch_norm("eval_3d", 2, true, {});
  batch_norm("not_affine", 1, false, {.affine = false});
  batch_norm("no_statistics", 1, true, {.track_running_stats = false});
}

// Those of LSTM and GRU, by what is given and what comes back.
LayerOutputs outputs_of(const nn::LSTM& layer, LayerInputs& in) {
  const auto [y, h, c] = in.has("h") ? layer(in["x"], {in["h"], in["c"]}) : layer(in["x"]);
  return {{"y", y}, {"h_n", h}, {"c_n", c}};
}
LayerOutputs outputs_of(const nn::GRU& layer, LayerInputs& in) {
  const auto [y, h] = in.has("h") ? layer(in["x"], in["h"]) : layer(in["x"]);
  return {{"y", y}, {"h_n", h}};
}

template <class M>
void add_recurrent(LayerCases& cases, const std::string& type) {
  const auto recurrence = [&](const std::string& name, const nn::RecurrentOptions& options = {}) {
    cases.add(
        type + "/" + name, [&] { return M(3, 4, options); },
        [](const M& layer, LayerInputs& in) { return outputs_of(layer, in); });
  };
  recurrence("default");
  recurrence("start");
  recurrence("unbatched");
  recurrence("batch_first", {.batch_first = true});
  recurrence("no_bias", {.bias = false});
  recurrence("both_ways", {.bidirectional = true});
  recurrence("three_layers", {.num_layers = 3});
  recurrence("all", {.num_layers = 2, .batch_first = true, .dropout = 0.3, .bidirectional = true});
  recurrence("unbatched_both_ways", {.num_layers = 2, .bidirectional = true});
}

void add_attention_parts(LayerCases& cases) {
  const auto rotary = [&cases](const std::string& name, const nn::RotaryOptions& options = {}) {
    cases.add(
        "RotaryEmbedding/" + name, [] { return nn::Identity(); },
        [&](const nn::Identity&, LayerInputs& in) {
          const nn::RotaryEmbedding rotate(6, in.indices("positions"), options);
          return LayerOutputs{{"y", rotate(in["x"])}};
        });
  };
  rotary("half");
  rotary("interleaved", {.pairs = nn::RotaryPairs::interleaved});
  rotary("theta", {.theta = 500});
  rotary("of_batch");
  for (const auto& [heads, offset] : {std::pair(8, 0), std::pair(6, 2), std::pair(1, 0)})
    cases.add(
        "alibi_bias/" + std::to_string(heads) + "_" + std::to_string(offset),
        [] { return nn::Identity(); },
        [heads = static_cast<std::size_t>(heads), offset = static_cast<std::size_t>(offset)](
            const nn::Identity&, LayerInputs& in) {
          const Tensor& x = in["x"];
          return LayerOutputs{{"y", x + nn::alibi_bias(heads, 3, 5, offset, x.dtype())}};
        });

  using Heads = nn::MultiHeadAttention;
  const auto grouped = [&cases](const std::string& name, const nn::MultiHeadAttentionOptions& o,
                                const Heads::Call& options) {
    cases.add(
        "MultiHeadAttention/grouped_" + name, [&] { return Heads(8, 4, o); },
        [&](const Heads& layer, LayerInputs& in) {
          Heads::Call call = options;
          if (in.has("allowed"))
            call.attn_mask = ~in.mask("allowed");
          const Tensor query = in["query"], key = in.has("key") ? in["key"] : query;
          const auto [y, weights] = layer(query, key, key, call);
          LayerOutputs outputs{{"y", y}};
          if (weights.defined())
            outputs.emplace_back("weights", weights);
          return outputs;
        });
  };
  const Heads::Call plain{.need_weights = false};
  const Heads::Call causal{.is_causal = true, .need_weights = false};
  grouped("self", {.num_kv_heads = 2}, {});
  grouped("causal", {.num_kv_heads = 2}, causal);
  grouped("one", {.bias = false, .num_kv_heads = 1}, causal);
  grouped("cross", {.num_kv_heads = 2}, plain);
  grouped("mask", {.num_kv_heads = 1}, {});
  grouped("mask_no_weights", {.num_kv_heads = 2}, plain);
  grouped("dropout", {.dropout = 0.3, .num_kv_heads = 2}, causal);
}

void add_losses(LayerCases& cases) {
  const auto loss = [&cases](const std::string& name, const auto& layer) {
    cases.add(
        name, [&] { return layer; },
        [](const auto& m, LayerInputs& in) {
          return LayerOutputs{{"loss", m(in["x"], in["target"])}};
        });
  };
  const auto of_classes = [&cases](const std::string& name, const auto& layer) {
    cases.add(
        name, [&] { return layer; },
        [](const auto& m, LayerInputs& in) {
          return LayerOutputs{{"loss", m(in["x"], in.indices("target"))}};
        });
  };
  for (const auto& [name, reduction] :
       {std::pair("mean", Reduction::mean), std::pair("sum", Reduction::sum),
        std::pair("none", Reduction::none)}) {
    loss(std::string("MSELoss/") + name, nn::MSELoss{reduction});
    loss(std::string("L1Loss/") + name, nn::L1Loss{reduction});
    loss(std::string("SmoothL1Loss/") + name, nn::SmoothL1Loss{{reduction}});
    loss(std::string("HuberLoss/") + name, nn::HuberLoss{{reduction}});
    loss(std::string("KLDivLoss/") + name, nn::KLDivLoss{{reduction}});
  }
  loss("SmoothL1Loss/beta", nn::SmoothL1Loss{{.beta = 0.3}});
  loss("HuberLoss/delta", nn::HuberLoss{{.delta = 0.3}});
  loss("KLDivLoss/log_target", nn::KLDivLoss{{.log_target = true}});
  const Tensor weights = tensor({0.5, 2, 1, 3}), rows = tensor({{0.5}, {2}, {1}});
  of_classes("CrossEntropyLoss/default", nn::CrossEntropyLoss());
  loss("CrossEntropyLoss/probabilities", nn::CrossEntropyLoss());
  of_classes("CrossEntropyLoss/weight",
             nn::CrossEntropyLoss{{.weight = weights, .label_smoothing = 0.1}});
  of_classes("NLLLoss/weight", nn::NLLLoss{{.weight = weights, .reduction = Reduction::sum}});
  loss("BCELoss/default", nn::BCELoss());
  loss("BCELoss/weight", nn::BCELoss{{.weight = rows, .reduction = Reduction::sum}});
  loss("BCEWithLogitsLoss/default", nn::BCEWithLogitsLoss());
  loss("BCEWithLogitsLoss/weights", nn::BCEWithLogitsLoss{{.weight = rows, .pos_weight = weights}});
}

}  // namespace

void add_more_layers(LayerCases& cases) {
  add_small_layers(cases);
  add_batch_norms(cases);
  add_recurrent<nn::LSTM>(cases, "LSTM");
  add_recurrent<nn::GRU>(cases, "GRU");
  add_attention_parts(cases);
  add_losses(cases);
}

}  // namespace xgrad::testing
