#pragma once

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/nn/bfloat16.hpp>

namespace xgrad::nn {

/// y = x Wᵀ + b: x (..., in) -> (..., out).  With adapters (lora.hpp) also + lora_scale (x Aᵀ) Bᵀ.
struct Linear {
  Tensor weight;            ///< (out, in)
  Tensor bias;              ///< (out,), or undefined
  Bfloat16Matrix bfloat16;  ///< instead of the weight
  Tensor lora_A, lora_B;    ///< (rank, in) and (out, rank), or undefined
  double lora_scale = 1;

  /// Draws weight, then bias, from U(-1 / sqrt(in), 1 / sqrt(in)), as torch.nn.Linear.
  Linear(Size in_features, Size out_features, bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", may_be_bfloat16(self.weight, self.bfloat16));
    v("bias", self.bias);
    v("lora_A", self.lora_A);
    v("lora_B", self.lora_B);
  }
};

}  // namespace xgrad::nn
