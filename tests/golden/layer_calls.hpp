#pragma once
// Our calls of the table of layers (tests/golden/layers.py).

#include <map>
#include <memory>
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

const std::vector<LayerCall>& layer_calls();

}  // namespace xgrad::testing
