#include "golden/layer_calls.hpp"

#include <algorithm>
#include <optional>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>
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

// ---- the tables ----

static std::vector<LayerTable>& tables() {
  static std::vector<LayerTable> all;
  return all;
}

bool add_layers(LayerTable table) {
  const auto at = std::ranges::upper_bound(tables(), table.folder, {}, &LayerTable::folder);
  tables().insert(at, std::move(table));
  return true;
}

const std::vector<LayerTable>& layer_tables() { return tables(); }

std::vector<LayerCall> layer_calls() {
  std::vector<LayerCall> all;
  for (const LayerTable& table : layer_tables())
    all.insert(all.end(), table.calls.begin(), table.calls.end());
  return all;
}

GoldenFile layer_numbers() {
  std::vector<std::string> folders;
  for (const LayerTable& table : layer_tables())
    folders.push_back(table.folder);
  return GoldenFile(folders);
}

namespace {

// ---- functions of the table's texts: table_layers.py has PyTorch's ----

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

const bool layers_added = add_layers({"layers",
                                      "nn",
                                      {
#include "golden/generated/layers.inc"
                                      }});

}  // namespace

}  // namespace xgrad::testing
