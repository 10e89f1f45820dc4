#pragma once
// Functions with right gradients, which no checker may call wrong.

#include <cstdint>
#include <functional>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::testing {

struct Awkward {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>&)> f;
  std::vector<Tensor> inputs;
};

/// At kinks, at infinite places, steep, very large or very small.
std::vector<Awkward> awkward_functions();
/// Two to six ops of (3, 4) -> (3, 4), of numbers between 1e-6 and 1e6, equal ones and zeros.
Awkward random_composition(std::uint64_t seed);

}  // namespace xgrad::testing
