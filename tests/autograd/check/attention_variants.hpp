#pragma once
// Attention with mistakes, and correct attention in other forms.

#include <cstdint>
#include <xgrad/autograd/tensor.hpp>

#include "helpers/tensors.hpp"

struct Weights {
  xgrad::Tensor qkv = normal({24, 8}, 1), out = normal({8, 8}, 2);
};

// Variants with mistakes, and correct variants in other forms.
struct Variant {
  bool no_scale = false, mask_after = false, no_mask = false, mask_leaks = false;
  bool heads_not_merged = false, heads_reversed = false, wrong_weight = false;
  bool scales_q = false, scores_transposed = false;
  bool mask_off_by_one = false, heads_not_transposed = false;
  double scale = 0.5;
  std::int64_t softmax_dim = -1;
};

/// x (B, T, 8), two heads.
xgrad::Tensor attention(const xgrad::Tensor& x, const Weights& w, const Variant& v);
