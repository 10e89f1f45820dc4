#pragma once
// Checks of a layer: its gradient by every input and parameter, by name.
//
//   nn::to(block, DType::float64);
//   const auto report = nn::gradcheck(block, {x});
//   std::cout << report.table();  // a line per parameter: attn.c_attn.weight, ...

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#include "../autograd/check/explain.hpp"
#include "../autograd/check/gradcheck.hpp"
#include "module.hpp"

namespace xgrad::nn {

struct LayerReport;
struct LayerCheckOptions;

namespace detail {

enum class LayerCheck { gradcheck, gradgradcheck };
GradcheckReport gradcheck(LayerCheck which, const Members& members, const TensorFunction& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options);
EpsSweep eps_sweep(const Members& members, const TensorFunction& f,
                   const std::vector<Tensor>& inputs, const GradcheckOptions& options);
GradientExplanation explain_gradient(const Members& members, const TensorFunction& f,
                                     const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options);
[[noreturn]] void wrong_count(std::size_t given);

template <class F, class... Xs>
concept CalledWith =
    std::is_invocable_r_v<Tensor, F, Xs...> || std::is_invocable_r_v<std::vector<Tensor>, F, Xs...>;
template <class F, class X = const Tensor&>
concept Called = CalledWith<F, X> || CalledWith<F, X, X> || CalledWith<F, X, X, X>;

// layer(in[0], ...) with the given number of Tensors.
template <class M>
TensorFunction call_of(const M& model, std::size_t given) {
  using X = const Tensor&;
  constexpr bool called = Called<const M&>, called_if_mutable = Called<M&>;
  check_call_type<M, called, called_if_mutable>();
  static_assert(called || called_if_mutable || HasForward<M>,
                "this layer has no call that takes Tensors alone and returns a Tensor or a vector "
                "of them: give a function of the inputs that calls it");
  using Inputs = std::vector<Tensor>;
  if constexpr (CalledWith<const M&, X>)
    if (given == 1)
      return [&model](const Inputs& in) { return model(in[0]); };
  if constexpr (CalledWith<const M&, X, X>)
    if (given == 2)
      return [&model](const Inputs& in) { return model(in[0], in[1]); };
  if constexpr (CalledWith<const M&, X, X, X>)
    if (given == 3)
      return [&model](const Inputs& in) { return model(in[0], in[1], in[2]); };
  wrong_count(given);
}

// Says why a class is no layer.
struct NoLayer {
  template <class M>
  NoLayer(const M&) {
    check_layer_type<M>();
  }
};

using OfInputs = std::function<Tensor(const std::vector<Tensor>&)>;
LayerReport check_layer(const Members& members, const OfInputs& f,
                        const std::vector<Tensor>& inputs, const LayerCheckOptions& options,
                        bool is_call);

}  // namespace detail

/// xgrad::gradcheck() of f, which computes from the inputs and calls the layer in its own way: with
/// tokens, options, or several results.  Checks the gradient by the inputs, whether or not they
/// require one, and by every parameter that is not frozen; the report has the parameters' names.
/// Fails if the output depends on a Tensor that requires a gradient and that visit does not name:
/// an optimizer would never see it.  DTypeError unless inputs, parameters and buffers are float64.
template <class M>
GradcheckReport gradcheck(const M& model, const TensorFunction& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradcheck, detail::members(model), f, inputs,
                           options);
}
/// The same of layer(inputs...), one to three Tensors.
template <detail::MeantAsLayer M>
GradcheckReport gradcheck(const M& model, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {}) {
  return nn::gradcheck(model, detail::call_of(model, inputs.size()), inputs, options);
}
/// xgrad::gradgradcheck() by inputs and parameters.
template <class M>
GradcheckReport gradgradcheck(const M& model, const TensorFunction& f,
                              const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::LayerCheck::gradgradcheck, detail::members(model), f, inputs,
                           options);
}
template <detail::MeantAsLayer M>
GradcheckReport gradgradcheck(const M& model, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {}) {
  return nn::gradgradcheck(model, detail::call_of(model, inputs.size()), inputs, options);
}
/// xgrad::eps_sweep() by inputs and parameters.
template <class M>
EpsSweep eps_sweep(const M& model, const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {}) {
  return detail::eps_sweep(detail::members(model), f, inputs, options);
}
template <detail::MeantAsLayer M>
EpsSweep eps_sweep(const M& model, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {}) {
  return nn::eps_sweep(model, detail::call_of(model, inputs.size()), inputs, options);
}

/// xgrad::explain_gradient() by inputs and parameters, which the message calls by their names.
template <class M>
GradientExplanation explain_gradient(const M& model, const TensorFunction& f,
                                     const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options = {}) {
  return detail::explain_gradient(detail::members(model), f, inputs, options);
}
template <detail::MeantAsLayer M>
GradientExplanation explain_gradient(const M& model, const std::vector<Tensor>& inputs,
                                     const ExplainOptions& options = {}) {
  return nn::explain_gradient(model, detail::call_of(model, inputs.size()), inputs, options);
}

}  // namespace xgrad::nn

namespace xgrad {

// The same names for a layer and its parameters.
using nn::eps_sweep;
using nn::explain_gradient;
using nn::gradcheck;
using nn::gradgradcheck;

}  // namespace xgrad

namespace xgrad::nn {

// After those names, because xgrad::gradcheck() takes a class without visit as a function.
template <int = 0>
GradcheckReport gradcheck(detail::NoLayer, const std::vector<Tensor>&, GradcheckOptions = {});
template <int = 0>
GradcheckReport gradgradcheck(detail::NoLayer, const std::vector<Tensor>&, GradcheckOptions = {});
template <int = 0>
EpsSweep eps_sweep(detail::NoLayer, const std::vector<Tensor>&, GradcheckOptions = {});
template <int = 0>
GradientExplanation explain_gradient(detail::NoLayer, const std::vector<Tensor>&,
                                     ExplainOptions = {});

// All checks of a layer, in one call.
//
//   const auto report = nn::check_layer(layer, randn({2, 3, 8}));  // of two inputs: {x, memory}
//   std::cout << report;  // a line per check

struct LayerCheckOptions {
  std::optional<std::int64_t> batch_dim = 0;  ///< of inputs and output; none if x is one item
  /// Whether it is a failure if a position, along dimension -2, depends on a later one.  Otherwise
  /// it is only reported.
  bool causal = false;
  /// If the inputs, the parameters and the result together have more elements, gradcheck runs in
  /// fast mode; gradgradcheck beyond a sixteenth.
  std::size_t full = 4096;
  std::uint64_t seed = 0;
};

/// The result.  Converts to true unless a check failed.
struct LayerReport {
  enum class Status { ok, failed, does_not_apply, information };
  struct Line {
    std::string check;
    Status status;
    std::string found;  ///< its first line
  };
  bool ok = true;
  std::vector<Line> lines;  ///< in the order in which check_layer() lists them
  explicit operator bool() const { return ok; }

  /// ValueError if there is no such check.
  const Line& line(std::string_view check) const;
  /// A line per check: its name, "ok", "FAILED", "does not apply" or "info", and the finding.
  std::string table() const;
};
std::ostream& operator<<(std::ostream& out, const LayerReport& report);

/// Checks f(layer, inputs), which calls the layer in its own way, on a clone of the layer.  Layer
/// and inputs are converted to each dtype; a Tensor that f holds is not, so pass it as an input:
/// {x, s}.
///
///   state_dict                the result depends on no trained Tensor that visit does not name
///   parameters                every Tensor that visit names as a parameter requires a gradient,
///                             or was frozen by requires_grad_(false); a gradient other than 0
///                             reaches the former, here or with inputs and parameters moved
///   deterministic             two calls give the same bits: in training, from one seed
///   check_batch_independence  in evaluation and in training, of each input (B, ...) if the result
///                             is (B, ...), too
///   check_causal              in evaluation, if x, the first input, is (..., T, C) and the result
///                             has this T
///   gradcheck, gradgradcheck  in float64 and evaluation, of the inputs and every parameter
///   dtype                     a float32 layer gives float32, a float64 layer float64
///
/// Throws any error of f for these inputs, in the dtype of the layer's first Tensor; an error
/// within a check is that check's failure.
template <class M, class F>
  requires std::is_invocable_r_v<Tensor, const F&, const M&, const std::vector<Tensor>&>
LayerReport check_layer(const M& layer, const F& f, const std::vector<Tensor>& inputs,
                        const LayerCheckOptions& options = {}) {
  const M copy = clone(layer);
  return detail::check_layer(
      detail::members(copy), [&](const std::vector<Tensor>& in) -> Tensor { return f(copy, in); },
      inputs, options, false);
}
/// The same of f(layer, x).
template <class M, class F>
  requires std::is_invocable_r_v<Tensor, const F&, const M&, const Tensor&>
LayerReport check_layer(const M& layer, const F& f, const Tensor& x,
                        const LayerCheckOptions& options = {}) {
  return check_layer(
      layer, [&](const M& m, const std::vector<Tensor>& in) -> Tensor { return f(m, in[0]); },
      std::vector{x}, options);
}
/// The same of layer(inputs...), one to three Tensors.
template <class M>
LayerReport check_layer(const M& layer, const std::vector<Tensor>& inputs,
                        const LayerCheckOptions& options = {}) {
  const M copy = clone(layer);
  const TensorFunction call = detail::call_of(copy, inputs.size());
  return detail::check_layer(
      detail::members(copy),
      [&](const std::vector<Tensor>& in) { return call.single("check_layer", in); }, inputs,
      options, true);
}
/// The same of layer(x).
template <class M>
LayerReport check_layer(const M& layer, const Tensor& x, const LayerCheckOptions& options = {}) {
  return check_layer(layer, std::vector{x}, options);
}

}  // namespace xgrad::nn
