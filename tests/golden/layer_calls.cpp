#include "golden/layer_calls.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/layers.hpp>

namespace xgrad::testing {

const Tensor& LayerInputs::operator[](const std::string& name) {
  const auto found = tensors_.find(name);
  if (found != tensors_.end())
    return found->second;
  const Tensor x = file_.tensor(prefix_ + name).to(dtype_).clone();
  return tensors_.emplace(name, Tensor(x).requires_grad_()).first->second;
}

Mask LayerInputs::mask(const std::string& name) const {
  const Indices values = indices(name);
  auto mask = empty_array<bool>(values.shape());
  std::copy_n(values.data(), values.numel(), mask.data());
  return mask;
}

namespace {

template <class Make, class Run>
LayerCall layer_call(const char* name, const char* outputs, Make, Run,
                     const LayerCall::Options& options) {
  using M = decltype(Make{}());
  LayerCall call{.name = name,
                 .outputs = {},
                 .make =
                     [] {
                       auto layer = std::make_shared<M>(Make{}());
                       return AnyLayer{layer, nn::detail::members(*layer)};
                     },
                 .run = [](AnyLayer& any, LayerInputs& in) -> LayerOutputs {
                   return Run{}(*static_cast<M*>(any.layer.get()), in);
                 },
                 .options = options};
  std::istringstream names(outputs);
  for (std::string output; names >> output;)
    call.outputs.push_back(output);
  return call;
}

// ---- functions of the table's texts: layers.py has PyTorch's ----

template <class M>
M evaluated(M layer) {
  nn::eval(layer);
  return layer;
}
// After a call with x.
template <class M>
M evaluated(M layer, const Tensor& x) {
  layer(x);
  return evaluated(std::move(layer));
}

// Calls with x, 2 x and so on, then perhaps one in evaluation; the statistics after them.
LayerOutputs called_batch_norm(nn::BatchNorm1d& layer, const Tensor& x, int calls, bool evaluate) {
  std::vector<Tensor> outputs(1);
  for (int i = 1; i <= calls; ++i)
    outputs[0] = layer(x * i);
  if (evaluate) {
    nn::eval(layer);
    outputs[0] = layer(x);
  }
  for (const auto& [name, buffer] : nn::named_buffers(layer))
    outputs.push_back(buffer);
  return outputs;
}

lm::GPTConfig small_llama() {
  lm::GPTConfig config = lm::GPTConfig::llama({.block_size = 3,
                                               .vocab_size = 4,
                                               .n_layer = 1,
                                               .n_head = 2,
                                               .n_embd = 4,
                                               .n_kv_head = 1,
                                               .n_inner = 3});
  config.qkv_bias = true;
  return config;
}

Tensor rotated(const lm::TransformerBlock& block, const Tensor& x) {
  const nn::RotaryEmbedding rotate(2, arange_indices(0, 3));
  return block(x, nullptr, &rotate);
}

}  // namespace

const std::vector<LayerCall>& layer_calls() {
  static const std::vector<LayerCall> calls = {
#include "golden/generated/layers.inc"
  };
  return calls;
}

}  // namespace xgrad::testing
