#pragma once
// The cases of golden/layers.py, which says what each name in the file means.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/module.hpp>

#include "golden/file.hpp"

namespace xgrad::testing {

using LayerOutputs = std::vector<std::pair<std::string, Tensor>>;

// The inputs of one case in one dtype; a Tensor gathers its gradient.
class LayerInputs {
 public:
  LayerInputs(const GoldenFile& file, std::string prefix, DType dtype)
      : file_(file), prefix_(std::move(prefix)), dtype_(dtype) {}

  bool has(const std::string& name) const { return file_.contains(prefix_ + name); }
  const Tensor& operator[](const std::string& name) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end())
      return found->second;
    const Tensor x = file_.tensor(prefix_ + name).to(dtype_).clone();
    return tensors_.emplace(name, Tensor(x).requires_grad_()).first->second;
  }
  Indices indices(const std::string& name) const { return file_.indices(prefix_ + name); }
  Mask mask(const std::string& name) const {
    const Indices values = indices(name);
    auto mask = empty_array<bool>(values.shape());
    std::copy_n(values.data(), values.numel(), mask.data());
    return mask;
  }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  const GoldenFile& file_;
  std::string prefix_;
  DType dtype_;
  std::map<std::string, Tensor> tensors_;
};

struct LayerCases {
  const GoldenFile& file;
  std::vector<GoldenComparison> found = {};

  // make() constructs the layer, run(layer, inputs) calls it.  `start` is how near the parameters
  // come to PyTorch's when they are drawn: bits for uniforms, 1e-6 for normals.
  template <class Make, class Run>
  void add(const std::string& name, const Make& make, const Run& run,
           ErrorUnit start = ErrorUnit::bits) {
    const auto compare = [&](const std::string& value, const Tensor& ours, ErrorUnit unit) {
      const std::string full = name + "/" + value;
      found.push_back(compare_golden(full, ours, file.tensor(full), unit));
    };
    manual_seed(1337);
    auto made = make();
    nn::StateDict parameters;
    for (const auto& [parameter, value] : nn::named_parameters(made)) {
      compare("init/" + parameter, value, start);
      const std::string given = name + "/given/" + parameter;
      parameters.emplace_back(
          parameter, file.tensor(file.contains(given) ? given : name + "/init/" + parameter));
    }
    for (const auto& buffer : nn::named_buffers(made))
      parameters.push_back(buffer);
    nn::load_state_dict(made, parameters);

    for (const DType dtype : {DType::float64, DType::float32}) {
      const std::string label = dtype == DType::float64 ? "f64" : "f32";
      auto model = nn::clone(made);
      nn::to(model, dtype);
      LayerInputs inputs(file, name + "/in/", dtype);
      manual_seed(99);
      const LayerOutputs outputs = run(model, inputs);
      Tensor total = scalar(0, dtype);
      for (const auto& [output, value] : outputs) {
        compare(label + "/out/" + output, value.detach(), ErrorUnit::relative);
        total = total + (value * file.tensor(name + "/up/" + output).to(dtype)).sum();
      }
      total.backward();
      const auto gradient = [&](const std::string& value, const Tensor& of) {
        compare(label + value, of.grad().defined() ? of.grad() : zeros_like(of.detach()),
                ErrorUnit::relative);
      };
      for (const auto& [parameter, value] : nn::named_parameters(model))
        gradient("/grad/" + parameter, value);
      for (const auto& [input, value] : inputs.tensors())
        gradient("/grad_in/" + input, value);
    }
  }

  // A layer that takes x and returns y.
  template <class Make>
  void simple(const std::string& name, const Make& make) {
    add(name, make, [](auto& layer, LayerInputs& in) {
      return LayerOutputs{{"y", layer(in["x"])}};
    });
  }
};

/// The layers that are not in layers_test.cpp.
void add_more_layers(LayerCases& cases);

}  // namespace xgrad::testing
