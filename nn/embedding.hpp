#pragma once

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// A row of the weight for each index: (...) -> (..., dim).
struct Embedding {
  Tensor weight;  ///< (num_embeddings, dim)

  /// Draws the weight from N(0, 1), as torch.nn.Embedding.
  Embedding(std::size_t num_embeddings, std::size_t dim);
  Tensor operator()(const Indices& indices) const;
  static void visit(auto& self, auto&& v) { v("weight", self.weight); }
};

}  // namespace xgrad::nn
