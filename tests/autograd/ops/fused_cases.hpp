#pragma once
// The fused ops, as their tests call them: small, and at the sizes of `nano`.

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
  // Its derivative is a formula of its own, and not that of the ops that Decompose shows: of an
  // infinite gradient these may make inf - inf where the formula is infinite.
  bool own_formula = false;
};

std::vector<FusedCase> fused_cases();

}  // namespace xgrad::testing
