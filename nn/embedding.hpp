#pragma once

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/nn/bfloat16.hpp>

namespace xgrad::nn {

/// A row of the weight for each index: (...) -> (..., dim).
struct Embedding {
  Tensor weight;            ///< (num_embeddings, dim)
  Bfloat16Matrix bfloat16;  ///< instead of the weight

  /// Draws the weight from N(0, 1), as torch.nn.Embedding.
  Embedding(std::size_t num_embeddings, std::size_t dim);
  Tensor operator()(const Indices& indices) const;
  static void visit(auto& self, auto&& v) {
    v("weight", may_be_bfloat16(self.weight, self.bfloat16));
  }
};

}  // namespace xgrad::nn
