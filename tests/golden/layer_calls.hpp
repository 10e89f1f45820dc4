#pragma once
// Our calls of the tables of layers (tests/golden/table_layers.py, table_lm.py).

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/recurrent.hpp>

#include "golden/file.hpp"

namespace xgrad::testing {

/// The inputs of one sample in one dtype, by name; a Tensor accumulates its gradient.
class LayerInputs {
 public:
  LayerInputs(const GoldenFile& file, const std::string& sample, DType dtype)
      : file_(file), prefix_(sample + "/in/"), dtype_(dtype) {}

  const Tensor& operator[](const std::string& name);
  Indices indices(const std::string& name) const { return file_.indices(prefix_ + name); }
  Mask mask(const std::string& name) const;
  /// The Tensors that were used; each may be replaced by another.
  std::map<std::string, Tensor>& tensors() { return tensors_; }

 private:
  const GoldenFile& file_;
  std::string prefix_;
  DType dtype_;
  std::map<std::string, Tensor> tensors_;
};

/// The results of a layer, in the order of the names in the table.
struct LayerOutputs : std::vector<Tensor> {
  LayerOutputs(Tensor y) : vector{std::move(y)} {}
  LayerOutputs(std::vector<Tensor> ys) : vector(std::move(ys)) {}
  LayerOutputs(const nn::Attended& y) : vector{y.output} {
    if (y.weights.defined())
      push_back(y.weights);
  }
  LayerOutputs(const nn::LSTM::Result& y) : vector{y.output, y.h_n, y.c_n} {}
  LayerOutputs(const nn::GRU::Result& y) : vector{y.output, y.h_n} {}
};

/// A layer of any type, and its members by visit.
struct AnyLayer {
  std::shared_ptr<void> layer;
  nn::detail::Members members;
};

struct LayerCall {
  struct Options {
    bool normal_start = false;      ///< parameters start from normal values: PyTorch's to 1e-6
    bool derivatives_only = false;  ///< the file has inputs alone
    bool no_differences = false;
  };
  std::string name;                  ///< "Linear/bias"
  std::vector<std::string> outputs;  ///< names
  AnyLayer (*make)();
  LayerOutputs (*run)(AnyLayer&, LayerInputs&);
  Options options;
};

struct LayerTable {
  std::string folder;   ///< of PyTorch's numbers, in tests/golden
  std::string headers;  ///< the folder of the headers that declare the layers
  std::vector<LayerCall> calls;
};

/// Adds a table before main() runs: each file of calls that is linked does so.
bool add_layers(LayerTable table);
/// In the order of their folders' names.
const std::vector<LayerTable>& layer_tables();
/// All calls of all tables, and PyTorch's numbers for them.
std::vector<LayerCall> layer_calls();
GoldenFile layer_numbers();

// ---- for the texts of the tables ----

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

}  // namespace xgrad::testing
