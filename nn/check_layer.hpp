#pragma once
// All that can be checked of a layer, in one call.
//
//   const auto report = nn::check_layer(layer, randn({2, 3, 8}));  // of two inputs: {x, memory}
//   std::cout << report;  // a line per check

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#include <xgrad/nn/gradcheck.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

struct LayerCheckOptions {
  std::optional<std::int64_t> batch_dim = 0;  ///< of inputs and output; none if x is one item
  /// Whether a position, along dimension -2, that sees a later one is a failure.  Else it is only
  /// reported.
  bool causal = false;
  /// With more elements in the inputs, the parameters and the result together gradcheck is in fast
  /// mode; gradgradcheck with more than a sixteenth of it.
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
  /// A line per check: its name, "ok", "FAILED", "does not apply" or "info", and what was found.
  std::string table() const;
};
std::ostream& operator<<(std::ostream& out, const LayerReport& report);

namespace detail {
using OfInputs = std::function<Tensor(const std::vector<Tensor>&)>;
LayerReport check_layer(const Members& members, const OfInputs& f,
                        const std::vector<Tensor>& inputs, const LayerCheckOptions& options,
                        bool is_call);
}  // namespace detail

/// Checks f(layer, inputs), which calls the layer in its own way, on a clone of the layer.  Layer
/// and inputs are converted to each dtype; a Tensor that f holds is not, so give it as an input:
/// {x, s}.
///
///   state_dict                the result depends on no trained Tensor that visit does not name
///   parameters                a gradient reaches every parameter that is not frozen
///   deterministic             two calls give the same bits: in training, from one seed
///   check_batch_independence  in evaluation and in training, of each input (B, ...) if the result
///                             is (B, ...), too
///   check_causal              in evaluation, if x, the first input, is (..., T, C) and the result
///                             has this T
///   gradcheck, gradgradcheck  in float64 and evaluation, of the inputs and every parameter
///   dtype                     a float32 layer gives float32, a float64 layer float64
///
/// Throws what f throws for these inputs, in the dtype of the layer's first Tensor; what is thrown
/// in a check is its failure.
template <Layer M, class F>
requires std::is_invocable_r_v < Tensor, const F&, const M&, const std::vector<Tensor>
& > LayerReport check_layer(const M& layer, const F& f, const std::vector<Tensor>& inputs,
                            const LayerCheckOptions& options = {}) {
  const M copy = clone(layer);
  return detail::check_layer(
      detail::members(copy), [&](const std::vector<Tensor>& in) -> Tensor { return f(copy, in); },
      inputs, options, false);
}
/// The same of f(layer, x).
template <Layer M, class F>
requires std::is_invocable_r_v<Tensor, const F&, const M&, const Tensor&> LayerReport
check_layer(const M& layer, const F& f, const Tensor& x, const LayerCheckOptions& options = {}) {
  return check_layer(
      layer, [&](const M& m, const std::vector<Tensor>& in) -> Tensor { return f(m, in[0]); },
      std::vector{x}, options);
}
/// The same of layer(inputs...), one to three Tensors.
template <Layer M>
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
template <Layer M>
requires std::is_invocable_r_v<Tensor, const M&, const Tensor&> LayerReport
check_layer(const M& layer, const Tensor& x, const LayerCheckOptions& options = {}) {
  return check_layer(layer, std::vector{x}, options);
}

}  // namespace xgrad::nn
