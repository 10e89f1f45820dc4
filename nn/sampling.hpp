#pragma once
// The distribution that the next token of a text is drawn from.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

struct GenerateOptions {
  double temperature = 1;          ///< logits are divided by it; 0: the likeliest, no draw
  std::optional<Size> top_k = {};  ///< draws among the k likeliest only
  double top_p = 1;  ///< draws among the likeliest that have this much probability together
  double min_p = 0;  ///< draws among those that are at least this many times the likeliest
  /// The ids that end a sequence, as transformers names them.  One that has ended is filled with
  /// the first of these ids; generation ends when all have.
  std::vector<std::int64_t> eos_token_id = {};
  /// Called before each draw with the logits of each sequence's next token, (B, V) in float32.
  std::function<void(const Tensor&)> on_logits = {};
  /// Called after each step with the new token of each sequence.
  std::function<void(std::span<const std::int64_t>)> on_token = {};
  /// Asked after that: true ends it.
  std::function<bool()> stop = {};
};

/// The probabilities that `generate` draws with: logits (..., V) -> (..., V) in float32, without a
/// graph.  In HuggingFace's order, each step on what the one before has left:
///
///   1. temperature T:  p = softmax(logits / T); as T goes to 0, all of it on the likeliest
///   2. top_k:  the k largest stay, and what equals the last of them (Fan et al., 2018)
///   3. top_p:  of the largest as many as it takes for a sum of top_p or more; of equal ones the
///      lower ids first (Holtzman et al., 2020)
///   4. min_p:  those with `p >= min_p * max p` (Nguyen et al., 2024)
///
/// after each of which p is divided by its sum.  (llama.cpp's usual order has temperature last.)
/// ValueError unless T is 0 or above and finite, top_k 1 or above, top_p above 0 and at most 1,
/// min_p from 0 to 1, and all logits finite (of float64 ones that float32 cannot hold, so is what
/// they differ by from the largest, as far as it counts); ShapeError without a dimension, or if V
/// is 0.
Tensor next_token_probabilities(const Tensor& logits, const GenerateOptions& options = {});

/// The errors of next_token_probabilities() that are the options', before there are logits.
void check_sampling(const GenerateOptions& options);

}  // namespace xgrad::nn
