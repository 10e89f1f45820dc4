#pragma once
// For this folder's own files.

#include <memory>
#include <vector>
#include <xgrad/autograd/ops.hpp>

#include "mpi/communicator.hpp"

namespace xgrad::parallel::detail {

/// What the ranks tell each other when their shards are done.
struct Report {
  std::vector<double> losses;    ///< of the shards
  std::vector<double> present;   ///< of the parameters: how many ranks have a gradient
  double whole = 0, failed = 0;  ///< how many ranks cannot cut the batch, or have failed

  std::unique_ptr<PendingSum> begin_sum(const Communicator& world) const {
    std::vector<double> all = losses;
    all.insert(all.end(), present.begin(), present.end());
    all.insert(all.end(), {whole, failed});
    return world.begin_sum(world.size(), {tensor(all, DType::float64)});
  }
  void read(const Tensor& sum) {
    const std::size_t shards = losses.size(), parameters = present.size();
    const double* const numbers = sum.data<double>();
    losses.assign(numbers, numbers + shards);
    present.assign(numbers + shards, numbers + shards + parameters);
    whole = numbers[shards + parameters];
    failed = numbers[shards + parameters + 1];
  }
};

}  // namespace xgrad::parallel::detail
