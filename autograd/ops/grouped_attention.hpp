#pragma once

#include <xgrad/autograd/ops.hpp>

namespace xgrad::detail {

/// scaled_dot_product_attention with enable_gqa; a mask that is not given is undefined, or null.
Tensor grouped_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         AttentionOptions options, const Tensor& bias, const Mask* allowed);

}  // namespace xgrad::detail
