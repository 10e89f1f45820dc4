#pragma once
// First, second and third derivatives, checked against central differences.

#include <functional>
#include <optional>
#include <xgrad/autograd/check/gradcheck.hpp>

#include "golden/samples.hpp"

namespace xgrad::testing {

/// A function and float64 inputs; those that require a gradient are differentiated.
struct Differentiated {
  Inputs inputs;
  std::function<Tensor(const Inputs&)> f;
  /// The step of third derivatives, larger because they cancel more than lower ones.
  double third_eps = 1e-4;
};

/// A sample of an op with its inputs as leaves; none if differences do not apply, or it has no
/// elements or more than 2,000.
std::optional<Differentiated> differentiated(const OpSample& sample);

/// The derivative of this order, 1, 2 or 3, compared with central differences of the next lower
/// one, along random cotangents; in gradcheck's fast mode on request and if the Jacobian is large.
GradcheckReport check_order(int order, const Differentiated& d, bool fast = false);

/// A layer with random parameters, differentiated by these and its inputs.
struct LayerSample {
  std::string layer, name;
  Differentiated d;
  bool large = false;  ///< more than 170 elements: uses fast mode
};
/// All samples of the tables of layers (golden/layer_calls.hpp).
std::vector<LayerSample> layer_samples();

}  // namespace xgrad::testing
