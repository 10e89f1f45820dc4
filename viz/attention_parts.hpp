#pragma once
// Shared by the sources of the attention page.

#include <cstddef>
#include <string>
#include <vector>
#include "../autograd/check/differences.hpp"
#include "../autograd/tensor.hpp"
#include "../autograd/trace.hpp"
#include "attention.hpp"

namespace xgrad::viz {

inline constexpr const char* attention_page = "attention page";  // in messages
using Events = std::vector<Trace::Event>;

bool is_product(const Trace::Event& e);
/// Whether it has two operands: a user's op may have the same name.
inline bool is_binary(const Trace::Event& e) {
  return e.inputs.size() == 2 && e.inputs[0].defined() && e.inputs[1].defined();
}
/// A size; 0 for an undefined Tensor.
inline std::size_t size_of(const Tensor& x, Size d) {
  return x.defined() ? static_cast<std::size_t>(x.size(d)) : 0;
}
/// Whether scores mask their keys: -inf or, as is common, -1e9.
auto is_masked(const auto& score) { return score < -xgrad::detail::mask_size; }

/// Extracts one item's heads (H, T, S), in float64, from weights (..., T, S) and related Tensors.
class AttentionHeads {
 public:
  /// Grouped queries have weights (..., G, H / G, T, S).  ValueError if there is no such item.
  AttentionHeads(std::string name, const Shape& weights, bool grouped,
                 const AttentionOptions& options);
  std::size_t heads() const { return heads_; }
  std::size_t items() const { return items_; }
  const Shape& shape() const { return shape_; }

  /// The heads' matrices in x (..., M, N), whose leading dimensions equal or broadcast to those of
  /// the weights; undefined if they do not.
  Tensor of(const Tensor& x) const;
  /// x broadcast to the weights.
  Tensor like_weights(const Tensor& x) const { return broadcast(x, shape_); }
  /// The whole batch's weights, in any shape, with those of a head set to 0.  ValueError if the
  /// head cannot be located.
  Tensor without(const Tensor& weights, std::size_t head) const;

 private:
  Tensor broadcast(const Tensor& x, const Shape& full) const;

  std::string name_;
  Shape shape_;
  std::size_t item_, heads_ = 1, items_ = 1;
};

/// The scores, or, where there are none, 0 and for weights of 0 -inf.
Tensor scores_or_zeros(const AttentionLayer& layer);
/// Whether query i sees exactly keys 0 to i, in every head.
bool is_causal(const AttentionLayer& layer);
/// Fills q, k, scale and bias, if they reproduce this softmax's scores.
void explain_scores(const Events& events, std::size_t softmax, const AttentionHeads& heads,
                    AttentionLayer& layer);
/// Drops heads that are not in layer.heads.
void keep_heads(AttentionLayer& layer);
/// Fills layer.patterns; `tokens` are empty if unknown.
void add_patterns(AttentionLayer& layer);

}  // namespace xgrad::viz
