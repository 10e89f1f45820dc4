// Every layer of nn, small and in float64.

#include <memory>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/activations.hpp>
#include <xgrad/nn/batch_norm.hpp>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/flatten.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/group_norm.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/losses.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/multi_head_attention.hpp>
#include <xgrad/nn/recurrent.hpp>
#include <xgrad/nn/rms_norm.hpp>
#include <xgrad/nn/rotary_embedding.hpp>
#include <xgrad/nn/self_attention.hpp>
#include <xgrad/nn/sequential.hpp>
#include <xgrad/nn/swiglu.hpp>
#include <xgrad/nn/transformer_block.hpp>

#include "autograd/ops/derivative_orders.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {

// Parameters are drawn anew: those that start as ones or zeros could hide a mistake.  Before every
// call the generator is seeded, so that dropout's mask is always the same.
template <class M, class F>
LayerSample sample_of(const std::string& layer, const std::string& name, M model, const Inputs& xs,
                      const F& f) {
  nn::to(model, DType::float64);
  LayerSample s{layer, name, {nn::parameters(model), {}, 1e-5}};
  std::uint64_t seed = 1;
  for (Tensor& p : s.d.inputs) {
    const Tensor noise = normal(p.shape(), seed++);
    p.copy_(0.5 * p + 0.4 * noise);
  }
  const std::size_t parameters = s.d.inputs.size();
  for (const Tensor& x : xs)
    s.d.inputs.push_back(clone(x).requires_grad_());
  s.d.f = [model = std::make_shared<M>(std::move(model)), f, parameters](const Inputs& in) {
    manual_seed(7);
    return f(*model, Inputs(in.begin() + static_cast<std::ptrdiff_t>(parameters), in.end()));
  };
  return s;
}

template <class M>
LayerSample sample_of(const std::string& layer, const std::string& name, M model, const Tensor& x) {
  return sample_of(layer, name, std::move(model), Inputs{x},
                   [](const M& m, const Inputs& in) { return m(in[0]); });
}

Tensor uniform(const Dims& sizes, double low, double high, std::uint64_t seed) {
  Generator generator(seed);
  return low + (high - low) * rand(sizes, generator, DType::float64);
}

// Away from 0.
Tensor off_zero(const Dims& sizes, std::uint64_t seed) {
  const Tensor x = uniform(sizes, -2, 2, seed);
  return where(x < 0.0, x - 0.05, x + 0.05);
}

void add_small(std::vector<LayerSample>& all) {
  const Tensor x = normal({2, 3, 4}, 1);
  all.push_back(sample_of("Linear", "", nn::Linear(4, 3), x));
  all.push_back(sample_of("Linear", "without bias", nn::Linear(4, 3, false), x));
  const Indices ids({{0, 4}, {4, 2}});
  all.push_back(sample_of("Embedding", "an index twice", nn::Embedding(5, 3), {},
                          [ids](const nn::Embedding& m, const Inputs&) {
                            return tanh(m(ids));  // on its own it is linear
                          }));
  all.push_back(sample_of("Embedding", "without its padding",
                          nn::Embedding(5, 3, {.padding_idx = 1}), {},
                          [ids](const nn::Embedding& m, const Inputs&) { return tanh(m(ids)); }));
  all.push_back(sample_of("LayerNorm", "", nn::LayerNorm(4), x));
  all.push_back(sample_of("LayerNorm", "without bias", nn::LayerNorm(4, {.bias = false}), x));
  all.push_back(sample_of("LayerNorm", "two dimensions", nn::LayerNorm({3, 4}), x));
  all.push_back(sample_of("RMSNorm", "", nn::RMSNorm(4), x));
  all.push_back(sample_of("RMSNorm", "eps given", nn::RMSNorm({3, 4}, 0.1), x));
  all.push_back(sample_of("Dropout", "mask fixed", nn::Dropout(0.4), x));
  nn::Dropout off(0.4);
  nn::eval(off);
  all.push_back(sample_of("Dropout", "eval", off, x));
  all.push_back(sample_of("ReLU", "", nn::ReLU(), off_zero({2, 5}, 2)));
  all.push_back(sample_of("GELU", "", nn::GELU(), x));
  all.push_back(sample_of("GELU", "tanh", nn::GELU{Gelu::tanh}, x));
  all.push_back(sample_of("SiLU", "", nn::SiLU(), x));
  all.push_back(sample_of("Tanh", "", nn::Tanh(), x));
  all.push_back(sample_of("Sigmoid", "", nn::Sigmoid(), x));
  all.push_back(sample_of("Softmax", "", nn::Softmax(), x));
  all.push_back(sample_of("Softmax", "dim 1", nn::Softmax{1}, x));
  all.push_back(sample_of("Sequential", "",
                          nn::Sequential{nn::Linear(4, 5), nn::GELU(), nn::LayerNorm(5),
                                         nn::Dropout(0.3), nn::Linear(5, 2), nn::Softmax()},
                          normal({3, 4}, 3)));
  const nn::Sequential words{nn::Embedding(5, 3), nn::Linear(3, 2), nn::Tanh()};
  all.push_back(sample_of("Sequential", "of Indices", words, {},
                          [ids](const nn::Sequential& m, const Inputs&) { return m(ids); }));
}

void add_more(std::vector<LayerSample>& all) {
  const Tensor x = normal({2, 4, 3}, 12), kinked = off_zero({2, 3, 2}, 13);
  const auto curved = [](const auto& m, const Inputs& in) { return tanh(m(in[0])); };
  all.push_back(sample_of("Identity", "", nn::Identity(), Inputs{x}, curved));
  all.push_back(sample_of("Flatten", "", nn::Flatten(), Inputs{x}, curved));
  all.push_back(sample_of("LeakyReLU", "", nn::LeakyReLU(), kinked));
  all.push_back(sample_of("ELU", "", nn::ELU{0.7}, kinked));
  all.push_back(sample_of("Softplus", "", nn::Softplus{2}, x));
  all.push_back(sample_of("PReLU", "one", nn::PReLU(), kinked));
  all.push_back(sample_of("PReLU", "of channels", nn::PReLU(3), kinked));
  all.push_back(sample_of("LogSoftmax", "", nn::LogSoftmax(), x));
  all.push_back(sample_of("GroupNorm", "", nn::GroupNorm(2, 4), x));
  all.push_back(sample_of("GroupNorm", "not affine", nn::GroupNorm(2, 4, {.affine = false}), x));
  const Tensor batch = normal({4, 3}, 14);
  all.push_back(sample_of("BatchNorm1d", "", nn::BatchNorm1d(3), batch));
  all.push_back(
      sample_of("BatchNorm1d", "3-d, not affine", nn::BatchNorm1d(4, {.affine = false}), x));
  nn::BatchNorm1d running(3);
  running(normal({5, 3}, 15).to(DType::float32));
  nn::eval(running);
  all.push_back(sample_of("BatchNorm1d", "eval", running, Inputs{batch}, curved));
  all.push_back(sample_of("SwiGLU", "", nn::SwiGLU(3, 2, true), batch));
  for (const auto pairs : {nn::RotaryPairs::half, nn::RotaryPairs::interleaved}) {
    const nn::RotaryEmbedding rotate(4, {0, 2, 9}, {.theta = 10, .pairs = pairs});
    all.push_back(
        sample_of("RotaryEmbedding", "", nn::Identity(), Inputs{normal({2, 3, 4}, 16)},
                  [rotate](const nn::Identity&, const Inputs& in) { return tanh(rotate(in[0])); }));
  }
}

void add_losses(std::vector<LayerSample>& all) {
  const Tensor x = uniform({2, 3}, 0.1, 0.9, 20), y = uniform({2, 3}, 0.1, 0.9, 21);
  const auto add = [&](const std::string& name, const auto& loss) {
    all.push_back(sample_of(name, "", loss, Inputs{x, y},
                            [](const auto& m, const Inputs& in) { return m(in[0], in[1]); }));
  };
  const auto of_classes = [&](const std::string& name, const auto& loss) {
    all.push_back(sample_of(name, "", loss, Inputs{x}, [](const auto& m, const Inputs& in) {
      return m(tanh(in[0]), Indices{2, 0});
    }));
  };
  const Tensor weight = tensor({1, 2, 0.5});
  add("MSELoss", nn::MSELoss());
  add("L1Loss", nn::L1Loss{Reduction::none});
  add("SmoothL1Loss", nn::SmoothL1Loss{{.beta = 0.3}});
  add("HuberLoss", nn::HuberLoss{{.delta = 0.3}});
  add("KLDivLoss", nn::KLDivLoss());
  add("BCELoss", nn::BCELoss{{.weight = weight}});
  add("BCEWithLogitsLoss", nn::BCEWithLogitsLoss{{.pos_weight = weight}});
  of_classes("CrossEntropyLoss", nn::CrossEntropyLoss{{.weight = weight}});
  of_classes("NLLLoss", nn::NLLLoss());
}

void add_recurrent(std::vector<LayerSample>& all) {
  const Tensor x = normal({3, 2, 2}, 17), h = normal({2, 2, 3}, 18), c = normal({2, 2, 3}, 19);
  const auto all_of = [](const std::vector<Tensor>& results) {
    std::vector<Tensor> flat;
    for (const Tensor& result : results)
      flat.push_back(flatten(result));
    return cat(flat);
  };
  const nn::RecurrentOptions both_ways{.bidirectional = true};
  const nn::RecurrentOptions two_layers{.num_layers = 2, .bias = false, .dropout = 0.3};
  for (const auto& [name, options] : {std::pair("both ways", both_ways),
                                      std::pair("two layers, dropout's mask fixed", two_layers)}) {
    all.push_back(sample_of("LSTM", name, nn::LSTM(2, 3, options), {x, h, c},
                            [=](const nn::LSTM& m, const Inputs& in) {
                              const auto [y, h_n, c_n] = m(in[0], {in[1], in[2]});
                              return all_of({y, h_n, c_n});
                            }));
    all.push_back(sample_of("GRU", name, nn::GRU(2, 3, options), {x, h},
                            [=](const nn::GRU& m, const Inputs& in) {
                              const auto [y, h_n] = m(in[0], in[1]);
                              return all_of({y, h_n});
                            }));
  }
}

void add_self_attention(std::vector<LayerSample>& all) {
  const Tensor x = normal({2, 3, 4}, 4);
  // output and weights in one Tensor
  const auto both = [](const nn::Attended& a) {
    return cat({reshape(a.output, {-1}), reshape(a.weights, {-1})});
  };
  using Layer = nn::SelfAttention;
  all.push_back(sample_of("SelfAttention", "", Layer(4), Inputs{x},
                          [both](const Layer& m, const Inputs& in) { return both(m(in[0])); }));
  all.push_back(sample_of(
      "SelfAttention", "causal, widths of its own",
      Layer(4, {.d_k = 2, .d_v = 3, .output_projection = false}), Inputs{x},
      [both](const Layer& m, const Inputs& in) { return both(m(in[0], {.is_causal = true})); }));
  const Mask mask({{true, false, true}, {false, false, false}, {true, true, false}});
  all.push_back(sample_of(
      "SelfAttention", "mask with a row of none", Layer(4), Inputs{x},
      [both, mask](const Layer& m, const Inputs& in) { return both(m(in[0], {.mask = mask})); }));
}

void add_multi_head(std::vector<LayerSample>& all) {
  const Tensor q = normal({2, 2, 4}, 5), k = normal({2, 3, 4}, 6);
  const Tensor scores = normal({2, 3}, 7);
  using Layer = nn::MultiHeadAttention;
  const Mask forbidden({{false, true, false}, {false, false, true}});
  const Mask padding({{false, false, true}, {false, false, false}});
  for (const bool weights : {true, false}) {
    const std::string how = weights ? ", with weights" : ", fused";
    const auto result = [weights](const nn::Attended& a) {
      return weights ? cat({reshape(a.output, {-1}), reshape(a.weights, {-1})}) : a.output;
    };
    all.push_back(sample_of("MultiHeadAttention", "query, key, value" + how, Layer(4, 2),
                            Inputs{q, k, normal({2, 3, 4}, 8)},
                            [=](const Layer& m, const Inputs& in) {
                              return result(m(in[0], in[1], in[2], {.need_weights = weights}));
                            }));
    all.push_back(sample_of(
        "MultiHeadAttention", "masks" + how, Layer(4, 2, {.bias = false}), Inputs{q, k},
        [=](const Layer& m, const Inputs& in) {
          return result(
              m(in[0], in[1], in[1],
                {.attn_mask = forbidden, .key_padding_mask = padding, .need_weights = weights}));
        }));
    all.push_back(sample_of("MultiHeadAttention", "additive mask" + how, Layer(4, 2),
                            Inputs{q, k, scores}, [=](const Layer& m, const Inputs& in) {
                              return result(m(in[0], in[1], in[1],
                                              {.attn_mask = in[2], .need_weights = weights}));
                            }));
    all.push_back(sample_of("MultiHeadAttention", "grouped" + how, Layer(4, 2, {.num_kv_heads = 1}),
                            Inputs{q, k}, [=](const Layer& m, const Inputs& in) {
                              return result(m(in[0], in[1], in[1], {.need_weights = weights}));
                            }));
    all.push_back(sample_of(
        "MultiHeadAttention", "causal, dropout's mask fixed" + how, Layer(4, 2, {.dropout = 0.3}),
        Inputs{k}, [=](const Layer& m, const Inputs& in) {
          return result(
              m(in[0], in[0], in[0],
                {.is_causal = true, .need_weights = weights, .average_attn_weights = false}));
        }));
  }
}

void add_transformers(std::vector<LayerSample>& all) {
  const Tensor x = normal({2, 3, 4}, 9);
  all.push_back(sample_of("CausalSelfAttention", "", nn::CausalSelfAttention(4, 2), x));
  all.push_back(sample_of("CausalSelfAttention", "dropout's mask fixed",
                          nn::CausalSelfAttention(4, 2, 0.3, false), x));
  all.push_back(sample_of("MLP", "", nn::MLP(3), normal({2, 3}, 10)));
  all.push_back(sample_of("TransformerBlock", "", nn::TransformerBlock(4, 2), x));
  all.push_back(sample_of("TransformerBlock", "dropout's mask fixed",
                          nn::TransformerBlock(4, 2, 0.3, false), normal({1, 3, 4}, 11)));
  nn::GPTConfig llama = nn::GPTConfig::llama({.block_size = 3,
                                              .vocab_size = 4,
                                              .n_layer = 1,
                                              .n_head = 2,
                                              .n_embd = 4,
                                              .n_kv_head = 1,
                                              .n_inner = 3});
  llama.qkv_bias = true;
  all.push_back(sample_of("Norm", "layer", nn::Norm({.n_embd = 4}), x));
  all.push_back(sample_of("Norm", "rms", nn::Norm(llama), x));
  all.push_back(sample_of("MLP", "SwiGLU", nn::MLP(llama), x));
  all.push_back(sample_of("CausalSelfAttention", "grouped", nn::CausalSelfAttention(llama), x));
  all.push_back(sample_of("TransformerBlock", "Llama's", nn::TransformerBlock(llama), Inputs{x},
                          [](const nn::TransformerBlock& block, const Inputs& in) {
                            const nn::RotaryEmbedding rotate(2, arange_indices(0, 3));
                            return tanh(block(in[0], nullptr, &rotate));
                          }));
  const Indices ids({{0, 3, 1}, {2, 2, 0}}), targets({{3, 1, -100}, {2, 0, 1}});
  all.push_back(sample_of("GPT", "Llama's", nn::GPT(llama), {},
                          [=](const nn::GPT& m, const Inputs&) { return m.loss(ids, targets); }));
  const nn::GPTConfig config{
      .block_size = 3, .vocab_size = 4, .n_layer = 1, .n_head = 2, .n_embd = 4};
  all.push_back(sample_of("GPT", "loss", nn::GPT(config), {},
                          [=](const nn::GPT& m, const Inputs&) { return m.loss(ids, targets); }));
  all.push_back(sample_of("GPT", "logits", nn::GPT(config), {},
                          [=](const nn::GPT& m, const Inputs&) { return m(ids); }));
  nn::GPTConfig two = config;
  two.n_layer = 2;
  two.n_embd = 2;
  two.dropout = 0.2;
  all.push_back(sample_of("GPT", "two layers, loss, dropout's mask fixed", nn::GPT(two), {},
                          [=](const nn::GPT& m, const Inputs&) { return m.loss(ids, targets); }));
}

}  // namespace

std::vector<LayerSample> layer_samples() {
  manual_seed(11);
  std::vector<LayerSample> all;
  add_small(all);
  add_more(all);
  add_losses(all);
  add_recurrent(all);
  add_self_attention(all);
  add_multi_head(all);
  add_transformers(all);
  return all;
}

}  // namespace xgrad::testing
