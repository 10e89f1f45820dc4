#pragma once
// Masks that attention layers make, and those that users give them.

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// (T, S), true at [t][s] where s > t: what a causal query must not see.
Mask future(Size queries, Size keys);

// Query t is at position t + offset: S - T if the queries are the last of the keys' positions; it
// may be negative.

/// (T, S), true where the key is the query's own or one of the window - 1 before it: a mask for
/// scaled_dot_product_attention, causal by itself.  Jiang et al., 2023.  ValueError unless
/// window is positive and |offset| below 2^60.
Mask sliding_window(Size queries, Size keys, Size window, Size offset = 0);
/// (H, T, S), -slope_h * |position of the query - position of the key|: an additive mask.  Slopes
/// are 2^(-8 h / H) for h = 1 ... H if H is a power of two; else those of the next smaller power n,
/// then every other of 2n.  Not causal: masked_fill(bias, future(T, S), -INFINITY) is.
/// Press et al., 2022.
Tensor alibi_bias(Size heads, Size queries, Size keys, Size offset = 0,
                  DType dtype = DType::float32);

}  // namespace xgrad::nn
