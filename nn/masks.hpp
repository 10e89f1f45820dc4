#pragma once
// Masks that attention layers make.

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// (T, S), true at [t][s] where s > t: what a causal query must not see.
Mask future(std::size_t queries, std::size_t keys);

}  // namespace xgrad::nn
