#pragma once

#include <optional>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/nn/bfloat16.hpp>

namespace xgrad::nn {

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = {};  ///< of a row that starts as zeros and stays so
};

/// A row of the weight for each index: (...) -> (..., dim).
struct Embedding {
  Tensor weight;            ///< (num_embeddings, dim)
  Bfloat16Matrix bfloat16;  ///< instead of the weight
  std::optional<std::int64_t> padding_idx;

  /// Draws the weight from N(0, 1), as torch.nn.Embedding; the row padding_idx gets no gradient.
  Embedding(Size num_embeddings, Size dim, const EmbeddingOptions& options = {});
  Tensor operator()(const Indices& indices) const;
  static void visit(auto& self, auto&& v) {
    v("weight", may_be_bfloat16(self.weight, self.bfloat16));
  }
};

}  // namespace xgrad::nn
