#pragma once
// Test calls of the fused ops: small, and at the sizes of `nano`.

#include <functional>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::testing {

using Tensors = std::vector<Tensor>;

struct FusedCase {
  const char* name;
  std::vector<Dims> sizes;
  std::function<Tensor(const Tensors&)> f;
  std::vector<Dims> nano = {};  // sizes in the table of fused ops, if it has a row there
  // Its derivative is a formula of its own, not that of the composition: for an infinite gradient
  // the composition may give inf - inf where the formula is infinite.
  bool own_formula = false;
};

std::vector<FusedCase> fused_cases();

}  // namespace xgrad::testing
