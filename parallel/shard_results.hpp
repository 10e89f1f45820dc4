#pragma once
// What shards give.  For what computes some of a batch's shards: parallel/ and extras/.

#include <functional>
#include <optional>
#include <utility>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/parallel/shards.hpp>

namespace xgrad::parallel::detail {

/// Shards [first, last).
using ShardRange = std::pair<std::size_t, std::size_t>;

/// What one shard gives.
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
