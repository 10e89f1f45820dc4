#pragma once
// Losses without training.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <xgrad/data/ids.hpp>
#include <xgrad/nn/gpt.hpp>

#include "ranks.hpp"
#include "recipe.hpp"
#include "source.hpp"

namespace char_transformer {

/// Called before every batch with how much of all is done, from 0 to 1; true gives up.
using Stop = std::function<bool(double done)>;

/// Few enough that evaluating takes little more memory than training.
inline constexpr std::size_t blocks_at_once = 16;

/// The mean loss over the first `blocks` blocks that stand side by side; no value if stopped.
std::optional<double> block_loss(const Ranks& ranks, const xgrad::nn::GPT& model,
                                 const xgrad::text::Ids& part, std::size_t blocks,
                                 const Stop& stop);

/// The mean loss over `batches` random batches: the same ones for the same seed, from a generator
/// of its own; no value if stopped.
std::optional<double> estimate_loss(const Ranks& ranks, const xgrad::nn::GPT& model,
                                    const xgrad::text::Ids& part, std::size_t batch_size,
                                    std::size_t batches, std::uint64_t seed, const Stop& stop);

/// How many blocks the validation after the last step takes.
std::size_t final_blocks(const TrainOptions& options, const xgrad::text::Ids& validation);

/// "all 29 blocks", "the first 2,048 of 17,000 blocks".
std::string format_blocks(std::size_t blocks, std::size_t all);

/// Prints "LABEL X (perplexity Y)", what it is over, and with the text's own entropy how far it is
/// from the best possible.
void print_loss(const std::string& label, double loss, const std::string& over,
                const std::optional<double>& entropy);

}  // namespace char_transformer
