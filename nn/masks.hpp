#pragma once
// Masks that attention layers make.

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// (T, S), true at [t][s] where s > t: what a causal query must not see.
Mask future(std::size_t queries, std::size_t keys);
/// The same elements in another shape.
Mask reshape(const Mask& mask, const Dims& sizes);

}  // namespace xgrad::nn
