#pragma once

#include <cstddef>
#include <xgrad/nn/linear.hpp>

namespace xgrad::nn {

/// The feed-forward part of Llama and its kin, with their names: down_proj(silu(gate_proj(x)) *
/// up_proj(x)), x (..., C) -> (..., C).  Elsewhere the three are w1, w3 and w2.  Shazeer, 2020.
struct SwiGLU {
  Linear gate_proj, up_proj, down_proj;  ///< C -> hidden, C -> hidden, hidden -> C

  SwiGLU(Size width, Size hidden, bool bias = false)
      : gate_proj(width, hidden, bias),
        up_proj(width, hidden, bias),
        down_proj(hidden, width, bias) {}
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("gate_proj", self.gate_proj);
    v("up_proj", self.up_proj);
    v("down_proj", self.down_proj);
  }
};

}  // namespace xgrad::nn
