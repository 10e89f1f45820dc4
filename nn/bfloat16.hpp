#pragma once
// Weights that stay in bfloat16, 2 bytes an element: for answers, of which one token reads every
// weight once.  Linear and Embedding may have theirs so, and have no Tensor then:
//
//   nn::to_bfloat16(model);  // or io::load_pretrained(folder, {.bfloat16 = true})
//   const NoGrad no_grad;
//   model.last_logits(idx, caches);
//
// Such a model cannot be trained, saved or converted: what would need its weights as Tensors throws
// a ValueError, and a gradient a GraphError.

#include <xgrad/autograd/ops/bfloat16_matrix.hpp>

namespace xgrad::nn {

/// What visit is given for a weight that may be in bfloat16 instead: v("weight",
/// may_be_bfloat16(self.weight, self.bfloat16)).
template <class T, class M>
struct MayBeBfloat16 {
  T& tensor;
  M& bfloat16;
};
template <class T, class M>
MayBeBfloat16<T, M> may_be_bfloat16(T& tensor, M& bfloat16) {
  return {tensor, bfloat16};
}

}  // namespace xgrad::nn
