#pragma once
// A model that several processes train together (torch.nn.parallel.DistributedDataParallel).

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#include <xgrad/parallel/shards.hpp>

#include "communicator.hpp"

namespace xgrad::parallel {

struct DataParallelOptions {
  /// The number of shards of a batch, which limits the number of ranks.
  std::size_t shards = default_shards;
  std::size_t check_interval = 100;  ///< batches between comparisons of the ranks' parameters
};

/// backward() and mean_loss() of shards.hpp on all ranks of a world, each of which computes some of
/// a batch's shards.  The results, and grad() afterwards, have the same bits for any number of
/// ranks and threads, so all later work (clipping, any optimizer) is the same on all ranks and
/// needs no exchange.
///
/// All ranks make the same calls in the same order, with the same number of rows.  If one throws,
/// all throw: that rank throws its own exception, and the others a RankError; no grad() has
/// changed.
class DataParallel {
 public:
  using Options = DataParallelOptions;

  /// Copies rank 0's parameters and default_generator() to all ranks.  RankError if names, shapes
  /// or dtypes differ between ranks.  While this lives, the model must not be copied or moved to
  /// other Tensors.
  explicit DataParallel(std::vector<std::pair<std::string, Tensor>> named_parameters,
                        std::shared_ptr<const Communicator> world = parallel::world(),
                        const Options& options = {});

  const Communicator& world() const { return *world_; }
  std::size_t rank() const { return world_->rank(); }
  std::size_t size() const { return world_->size(); }

  /// As parallel::backward(): calls loss(begin, end) for this rank's rows only; if the batch must
  /// run whole, every rank computes all of it.  RankError if there are fewer shards than ranks, or
  /// if the ranks' parameters differ.  GraphError if the loss depends on a leaf that is not one of
  /// the parameters.
  double backward(std::size_t rows, const ShardLoss& loss);
  double mean_loss(std::size_t rows, const ShardLoss& loss) const;

  /// The same for loss(x, y, ...).
  template <class Loss, class... Batch>
    requires(sizeof...(Batch) > 0 && std::invocable<const Loss&, const Batch&...>)
  double backward(const Loss& loss, const Batch&... batch) {
    return backward(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
  }
  template <class Loss, class... Batch>
    requires(sizeof...(Batch) > 0 && std::invocable<const Loss&, const Batch&...>)
  double mean_loss(const Loss& loss, const Batch&... batch) const {
    return mean_loss(detail::common_rows({&batch.shape()...}), detail::of_rows(loss, batch...));
  }

 private:
  std::optional<double> run(std::size_t rows, const detail::RunShard& shard,
                            LeafGradients* gradients) const;
  void check_leaf(const Tensor::Identity& leaf) const;
  detail::ShardResult shard_of(const Tensor& loss, double weight) const;
  void share_parameters();
  void check_parameters() const;

  std::vector<std::pair<std::string, Tensor>> parameters_;
  std::unordered_map<const Tensor::Identity*, std::size_t> numbers_;  ///< of the parameters
  std::shared_ptr<const Communicator> world_;
  Options options_;
  std::size_t batches_ = 0;
};

}  // namespace xgrad::parallel
