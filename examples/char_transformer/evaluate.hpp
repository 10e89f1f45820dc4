#pragma once
// Losses without training.

#include <cstdint>
#include <functional>
#include <optional>
#include <xgrad/data/ids.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/parallel/data_parallel.hpp>

#include "options.hpp"
#include "source.hpp"

namespace char_transformer {

/// Called before every batch with how much of all is done, from 0 to 1; true gives up.
using Stop = std::function<bool(double done)>;

/// Few enough that evaluating takes little more memory than training.
inline constexpr std::size_t blocks_at_once = 16;

using Ranks = xgrad::parallel::DataParallel;

/// The mean loss over all non-overlapping blocks of a part; no value if stopped.
std::optional<double> validation_loss(const Ranks& ranks, const xgrad::nn::GPT& model,
                                      const xgrad::text::Ids& part, const Stop& stop);

/// The mean loss over `batches` random batches: the same ones for the same seed, from a generator
/// of its own; no value if stopped.
std::optional<double> estimate_loss(const Ranks& ranks, const xgrad::nn::GPT& model,
                                    const xgrad::text::Ids& part, std::size_t batch_size,
                                    std::size_t batches, std::uint64_t seed, const Stop& stop);

/// Whole-split losses with a line on standard error that shows how far it is, if that is a
/// terminal.
double shown_validation_loss(const Ranks& ranks, const xgrad::nn::GPT& model,
                             const xgrad::text::Ids& part);

/// Prints "val_loss X (perplexity Y)", and where it is known how far that is from the best
/// possible.
void print_validation_loss(double loss, const Source& source, std::size_t block_size);

/// The command `eval`.
void evaluate(const EvalOptions& options);

}  // namespace char_transformer
