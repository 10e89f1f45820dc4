#pragma once
// What the sources of the attention page share.

#include <cmath>
#include <string>
#include <vector>
#include <xgrad/autograd/check/values.hpp>
#include <xgrad/autograd/tensor.hpp>

#include "attention.hpp"

namespace xgrad::pages {

/// Whether a score keeps its key unseen: -inf, or as people write it, -1e9.
inline bool is_masked(double score) { return score < -1e8; }

/// Drops the heads that are not among layer.heads.
void keep_heads(AttentionLayer& layer);
/// Fills layer.patterns; `tokens` are empty where nobody knows them.
void add_patterns(AttentionLayer& layer, const std::vector<std::string>& tokens);

}  // namespace xgrad::pages
