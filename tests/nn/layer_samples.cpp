// The tables of layers as functions for derivative checks.

#include <xgrad/autograd/random.hpp>

#include "autograd/ops/derivative_orders.hpp"
#include "golden/layer_calls.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {

// Parameters are drawn anew, because ones or zeros could hide a mistake.  The generator is seeded
// before every call, so dropout's mask is always the same.  The sine gives linear layers second
// derivatives.
static LayerSample sample_of(const GoldenFile& file, const LayerCall& call) {
  AnyLayer model = call.make();
  nn::detail::convert(model.members, DType::float64);
  const std::size_t slash = call.name.find('/');
  LayerSample s{call.name.substr(0, slash), call.name.substr(slash + 1), {{}, {}, 1e-5}};
  std::uint64_t seed = 1;
  for (auto& [name, p] : nn::detail::named_parameters(model.members)) {
    const Tensor noise = normal(p.shape(), seed++);
    p.copy_(0.5 * p + 0.4 * noise);
    s.d.inputs.push_back(p);
  }
  const std::size_t parameters = s.d.inputs.size();
  LayerInputs inputs(file, call.name, DType::float64);
  std::vector<bool> differentiable;  // statistics are not
  for (const Tensor& y : call.run(model, inputs))
    differentiable.push_back(y.requires_grad());
  for (const auto& [name, x] : inputs.tensors())
    s.d.inputs.push_back(x);
  Size elements = 0;
  for (const Tensor& x : s.d.inputs)
    elements += x.numel();
  s.large = elements > 170;
  s.d.f = [call, model, inputs, parameters, differentiable](const Inputs& in) mutable {
    std::size_t i = parameters;
    for (auto& [name, x] : inputs.tensors())
      x = in[i++];
    manual_seed(7);
    std::vector<Tensor> lines;
    const LayerOutputs outputs = call.run(model, inputs);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (differentiable[k])
        lines.push_back(flatten(outputs[k]));
    return sin(cat(lines));
  };
  return s;
}

std::vector<LayerSample> layer_samples() {
  manual_seed(11);
  static const GoldenFile file = layer_numbers();
  std::vector<LayerSample> all;
  for (const LayerCall& call : layer_calls())
    if (!call.options.no_differences)
      all.push_back(sample_of(file, call));
  return all;
}

}  // namespace xgrad::testing
