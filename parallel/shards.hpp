#pragma once
// Data parallelism: a batch is cut into shards, each of which goes forward and backward on one
// thread from beginning to end, so that threads meet a few times in a step and not in every op.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::parallel {

/// A shard costs a copy of all gradients, in memory and in time.
inline constexpr std::size_t default_shards = 4;

/// How many shards a batch of so many rows is cut into: min(rows, most).  It depends on nothing
/// else, least of all on the machine, because the order of the sums depends on it.
std::size_t shard_count(std::size_t rows, std::size_t most = default_shards);

/// The loss of rows [begin, end) of a batch: a mean over them in which all weigh the same.
using ShardLoss = std::function<Tensor(std::size_t begin, std::size_t end)>;

/// As loss(0, rows).backward(), and returns that loss, but cut into shards: gradients are summed as
/// a binary tree over the shards, so they are the same on any number of threads.  `loss` is called
/// by several threads at a time, each with a graph of its own; the data that it shares with others
/// it only reads and writes nothing of it.  Hooks on leaves are called for each shard, and again if
/// the batch then runs whole.
///
/// The whole batch's loss is the mean of the shards' losses, weighted by their rows.  The batch
/// runs whole, after the shards' forward passes, if one of them meets something that is not so
/// averaged:
/// - a loss with an ignored target or with weights of classes, or with Reduction::sum;
/// - a sum to one number of a Tensor, a Mask or Indices whose first dimension is the shard's rows;
///   a selection by a Mask, nonzero(), or a BatchNorm;
/// - a random number, because draws come in the order of the whole batch, unless it is dropout's:
///   a mask is drawn for the whole batch, with PyTorch's numbers, by the first shard that comes to
///   it.  A Tensor with as many rows as the shard is taken for these rows of the batch; dropout of
///   one with other rows, or from a Generator of the caller's, is not cut.
/// An Observer (Trace, DetectAnomaly) sees the whole batch.  Nothing else is noticed: a loss that
/// divides by a count of its own, sums its flattened rows, or compares rows with each other, takes
/// most_shards = 1.  To add up several batches, scale each loss by its share of the targets that
/// count.
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

}  // namespace detail

/// The same of loss(x, y, ...), a mean over the rows of Tensors, Indices or Masks: it is given some
/// rows of each.  ShapeError unless all have as many.
template <class Loss, class... Batch>
requires(sizeof...(Batch) > 0 &&
         std::invocable<const Loss&, const Batch&...>) double backward(const Loss& loss,
                                                                       const Batch&... batch) {
  return backward(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
}
template <class Loss, class... Batch>
requires(sizeof...(Batch) > 0 &&
         std::invocable<const Loss&, const Batch&...>) double mean_loss(const Loss& loss,
                                                                        const Batch&... batch) {
  return mean_loss(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
}

}  // namespace xgrad::parallel

namespace xgrad::parallel::detail {

// The results of shards, for code that computes some of a batch's shards: parallel/ and extras/.

/// Shards [first, last).
using ShardRange = std::pair<std::size_t, std::size_t>;

/// The result of one shard.
struct ShardResult {
  double loss = 0;  ///< times its share of the rows
  DType dtype = DType::float32;
  LeafGradients gradients;
  std::uint64_t masks = 0;  ///< of dropout, that it has taken
};

/// One shard: its number, its rows [begin, end), and their share of all rows.
using RunShard = std::function<ShardResult(std::size_t shard, std::size_t begin, std::size_t end,
                                           double weight)>;

/// Runs some of the shards of a batch, on threads.  No value if the batch must run whole: see
/// backward().  default_generator() has then drawn nothing, and else the masks of the whole batch.
std::optional<std::vector<ShardResult>> run_shards(std::size_t rows, std::size_t shards,
                                                   ShardRange range, const RunShard& run);

/// The result of a loss, still without gradients.  ShapeError unless it is one element.
ShardResult result_of(const Tensor& loss, double weight);

/// The result of a loss of some rows, and its gradients.
ShardResult backward_of(const Tensor& loss, double weight);

/// parallel::backward() of shards that are run so.
double backward_all(std::size_t rows, std::size_t most_shards, const RunShard& run);

/// In the losses' dtype, as the loss of the whole batch would be.
double total(const std::vector<double>& losses, DType dtype);

}  // namespace xgrad::parallel::detail
