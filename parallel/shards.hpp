#pragma once
// Data parallelism: a batch is cut into shards.  One thread runs each shard forward and backward,
// so that threads synchronise a few times in a step and not in every op.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "../autograd/engine.hpp"
#include "../autograd/ops.hpp"

namespace xgrad::parallel {

/// A shard costs an addition of all gradients.
inline constexpr std::size_t default_shards = 4;

/// The number of shards of a batch: min(rows, most).  It must not depend on the machine, because
/// the order of sums depends on it.
std::size_t shard_count(std::size_t rows, std::size_t most = default_shards);

/// The loss of rows [begin, end) of a batch: a mean over them with equal weights.
using ShardLoss = std::function<Tensor(std::size_t begin, std::size_t end)>;

/// As loss(0, rows).backward(), and returns that loss, but in shards: gradients are summed as a
/// binary tree over the shards, so they are the same on any number of threads.  Several threads
/// call `loss` at the same time, each with its own graph; it must not write to shared data.  Hooks
/// on leaves are called for each shard, and again if the batch then runs whole.
///
/// The whole batch's loss is the mean of the shards' losses, weighted by their rows.  The batch
/// runs whole, after the shards' forward passes, if one of them contains anything that such a mean
/// does not cover:
/// - a loss with an ignored target or with class weights, or with Reduction::sum;
/// - a sum to one number of a Tensor, a Mask or Indices whose first dimension is the shard's rows;
///   a selection by a Mask, nonzero(), or a BatchNorm;
/// - a random number, because its order is the whole batch's.  Dropout is an exception: the first
///   shard to need a mask draws it for the whole batch, with PyTorch's numbers.  That requires a
///   Tensor with as many rows as the shard, and no Generator of the caller's.
/// An Observer (Trace, DetectAnomaly) sees the whole batch.  No other case is detected: pass
/// most_shards = 1 for a loss that divides by a count of its own, sums its flattened rows, or
/// compares rows with each other.  To accumulate several batches, scale each loss by its share of
/// the counted targets.
///
/// If anything throws, no grad() has changed.  ValueError if there are no rows; ShapeError if the
/// loss has more elements than one.
double backward(std::size_t rows, const ShardLoss& loss, std::size_t most_shards = default_shards);

/// The loss alone, in shards, without a graph.
double mean_loss(std::size_t rows, const ShardLoss& loss, std::size_t most_shards = default_shards);

namespace detail {

std::size_t common_rows(std::initializer_list<const Shape*> shapes);
template <class Loss, class... Batch>
auto of_rows(const Loss& loss, const Batch&... batch) {
  return [&](std::size_t begin, std::size_t end) {
    return loss(batch.narrow(0, static_cast<std::int64_t>(begin), end - begin)...);
  };
}

// Results of shards, for code that computes some of a batch's shards: parallel/mpi.

/// Shards [first, last).
using ShardRange = std::pair<std::size_t, std::size_t>;

/// The result of one shard.
struct ShardResult {
  double loss = 0;  ///< times its share of the rows
  DType dtype = DType::float32;
  LeafGradients gradients;
  std::uint64_t masks = 0;  ///< dropout's masks that it has taken
};

/// One shard: its rows [begin, end), and their share of all rows.
using RunShard = std::function<ShardResult(std::size_t begin, std::size_t end, double weight)>;

/// Runs some of the shards of a batch, on threads.  No value if the batch must run whole: see
/// backward().  default_generator() has then drawn nothing; otherwise it has drawn the masks of the
/// whole batch.
std::optional<std::vector<ShardResult>> run_shards(std::size_t rows, std::size_t shards,
                                                   ShardRange range, const RunShard& run);

/// The result of a loss, without gradients yet.  ShapeError unless it is one element.
ShardResult result_of(const Tensor& loss, double weight);

/// parallel::backward() that calls check(leaf) for each leaf with a gradient; check() may throw.
double backward_all(std::size_t rows, const ShardLoss& loss, std::size_t most_shards,
                    const std::function<void(const Tensor::Identity& leaf)>& check);

/// The sum in the losses' dtype, as the loss of the whole batch would be.
double total(const std::vector<double>& losses, DType dtype);

/// The sum in the order of a binary tree: the sum of the first half plus the sum of the second.
/// Skips undefined Tensors, uses up the list, and records no graph.
Tensor tree_sum(std::span<Tensor> list);

}  // namespace detail

/// The same for loss(x, y, ...), a mean over the rows of Tensors, Indices or Masks; it is called
/// with a range of rows of each.  ShapeError unless all have equally many.
template <class Loss, class... Batch>
  requires(sizeof...(Batch) > 0 && std::invocable<const Loss&, const Batch&...>)
double backward(const Loss& loss, const Batch&... batch) {
  return backward(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
}
template <class Loss, class... Batch>
  requires(sizeof...(Batch) > 0 && std::invocable<const Loss&, const Batch&...>)
double mean_loss(const Loss& loss, const Batch&... batch) {
  return mean_loss(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
}

}  // namespace xgrad::parallel
