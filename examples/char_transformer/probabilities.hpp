#pragma once
// A table of what a model writes: how likely each character was, and what else could have been.

#include <cstdint>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/nn/sampling.hpp>

namespace char_transformer {

/// Prints the names of the columns.
void print_probabilities_head();

/// Prints a row: the probability that `token` was drawn with, the model's own for it (at
/// temperature 1, of all characters), its rank among those, itself, and the likeliest others with
/// the probabilities that they would have been drawn with.  `logits` are (1, V).
void print_probabilities(const xgrad::Tensor& logits, std::int64_t token,
                         const xgrad::nn::GenerateOptions& options,
                         const xgrad::text::Characters& characters);

}  // namespace char_transformer
