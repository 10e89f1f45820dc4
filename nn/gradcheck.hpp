#pragma once
// Checking a layer: its gradient in every input and in every parameter, by name.
//
//   nn::to(block, DType::float64);
//   const auto report = nn::gradcheck(block, {x});
//   std::cout << report.table();  // a line per parameter: attn.c_attn.weight, ...

#include <type_traits>
#include <vector>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

namespace detail {

enum class LayerCheck { gradcheck, gradgradcheck };
GradcheckReport gradcheck(LayerCheck which, const Members& members, const TensorFunction& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options);
EpsSweep eps_sweep(const Members& members, const TensorFunction& f,
                   const std::vector<Tensor>& inputs, const GradcheckOptions& options);
[[noreturn]] void wrong_count(std::size_t given);
/// Why a Tensor may be of another dtype than the layer.
inline constexpr const char* not_converted =
    "does it name every Tensor?  One that the function holds is to be an input: {x, s}";

template <class M, class... Xs>
concept CalledWith =
    std::is_invocable_r_v<Tensor, const M&, Xs...> || std::is_invocable_r_v < std::vector<Tensor>,
const M&, Xs... > ;

// layer(in[0], ...) with as many Tensors as are given.
template <class M>
TensorFunction call_of(const M& model, std::size_t given) {
  using X = const Tensor&;
  static_assert(CalledWith<M, X> || CalledWith<M, X, X> || CalledWith<M, X, X, X>,
                "this layer has no const call that takes Tensors alone and returns a Tensor or a "
                "vector of them: give a function of the inputs that calls it");
  using Inputs = std::vector<Tensor>;
  if constexpr (CalledWith<M, X>)
    if (given == 1)
      return [&model](const Inputs& in) { return model(in[0]); };
  if constexpr (CalledWith<M, X, X>)
    if (given == 2)
      return [&model](const Inputs& in) { return model(in[0], in[1]); };
  if constexpr (CalledWith<M, X, X, X>)
    if (given == 3)
      return [&model](const Inputs& in) { return model(in[0], in[1], in[2]); };
  wrong_count(given);
}

}  // namespace detail

/// xgrad::gradcheck() of layer(inputs...), one to three Tensors, in the inputs, whether or not they
/// require a gradient, and in every parameter that is not frozen; the report has the parameters'
/// names.  A Tensor that requires a gradient and that the output depends on, but visit does not
/// name, is a failure: an optimizer would never see it.  DTypeError unless inputs, parameters and
/// buffers are float64.
template <Layer M>
GradcheckReport gradcheck(const M& model, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradcheck, detail::members(model),
                           detail::call_of(model, inputs.size()), inputs, options);
}
/// The same for f, which computes from the inputs and calls the layer in its own way: with tokens,
/// options, or several results.
template <Layer M>
GradcheckReport gradcheck(const M& model, const TensorFunction& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradcheck, detail::members(model), f, inputs,
                           options);
}
/// xgrad::gradgradcheck() in inputs and parameters.
template <Layer M>
GradcheckReport gradgradcheck(const M& model, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradgradcheck, detail::members(model),
                           detail::call_of(model, inputs.size()), inputs, options);
}
template <Layer M>
GradcheckReport gradgradcheck(const M& model, const TensorFunction& f,
                              const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradgradcheck, detail::members(model), f, inputs,
                           options);
}
/// xgrad::eps_sweep() in inputs and parameters.
template <Layer M>
EpsSweep eps_sweep(const M& model, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {}) {
  return detail::eps_sweep(detail::members(model), detail::call_of(model, inputs.size()), inputs,
                           options);
}
template <Layer M>
EpsSweep eps_sweep(const M& model, const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {}) {
  return detail::eps_sweep(detail::members(model), f, inputs, options);
}

}  // namespace xgrad::nn

namespace xgrad {
// The same names check a layer and its parameters.
using nn::eps_sweep;
using nn::gradcheck;
using nn::gradgradcheck;
}  // namespace xgrad
