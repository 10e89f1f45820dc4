// Every sample of the tables of layers compared with PyTorch: initial values, outputs and all
// gradients.  layers.py describes the names in the files.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "golden/layer_calls.hpp"
#include "helpers/catch.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

void check_sample(const GoldenFile& file, const LayerCall& call, DType dtype) {
  const auto compare = [&](const std::string& value, const Tensor& ours, ErrorUnit unit) {
    file.check(call.name + "/" + value, ours, unit);
  };
  manual_seed(1337);
  AnyLayer model = call.make();
  nn::StateDict parameters;
  for (const auto& [parameter, value] : nn::detail::named_parameters(model.members)) {
    if (dtype == DType::float64)  // once is enough
      compare("init/" + parameter, value,
              call.options.normal_start ? ErrorUnit::absolute : ErrorUnit::bits);
    const std::string given = call.name + "/given/" + parameter;
    parameters.emplace_back(
        parameter, file.tensor(file.contains(given) ? given : call.name + "/init/" + parameter));
  }
  for (const auto& buffer : nn::detail::named_buffers(model.members))
    parameters.push_back(buffer);
  nn::detail::load_state_dict(model.members, parameters);
  nn::detail::convert(model.members, dtype);

  const std::string label = dtype == DType::float64 ? "f64" : "f32";
  LayerInputs inputs(file, call.name, dtype);
  manual_seed(99);
  const LayerOutputs outputs = call.run(model, inputs);
  REQUIRE(outputs.size() <= call.outputs.size());
  Tensor total = scalar(0, dtype);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    compare(label + "/out/" + call.outputs[i], outputs[i].detach(), ErrorUnit::relative);
    const Tensor up = file.tensor(call.name + "/up/" + call.outputs[i]).to(dtype);
    total = total + (outputs[i] * up).sum();
  }
  total.backward();
  const auto gradient = [&](const std::string& value, const Tensor& of) {
    compare(label + value, of.grad().defined() ? of.grad() : zeros_like(of.detach()),
            ErrorUnit::relative);
  };
  for (const auto& [parameter, value] : nn::detail::named_parameters(model.members))
    gradient("/grad/" + parameter, value);
  for (const auto& [input, value] : inputs.tensors())
    gradient("/grad_in/" + input, value);
}

}  // namespace

TEST_CASE("golden layers: initial parameters, outputs and gradients are PyTorch's",
          "[nn][golden]") {
  const GoldenFile file = layer_numbers();
  for (const LayerCall& call : layer_calls()) {
    INFO(call.name);
    if (call.options.derivatives_only) {
      AnyLayer model = call.make();
      LayerInputs inputs(file, call.name, DType::float32);
      call.run(model, inputs);
      continue;
    }
    for (const DType dtype : {DType::float64, DType::float32})
      check_sample(file, call, dtype);
  }
  CHECK(file.unused() == std::vector<std::string>{});
}
