#pragma once
// Processes that work on one batch.  MPI's words: a process is a rank, all of them are a world.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <xgrad/parallel/parts.hpp>

namespace xgrad::parallel {

/// What goes wrong among ranks: one that failed, that differs, or that cannot be reached.
struct RankError : Error {
  using Error::Error;
};

using detail::ShardRange;

/// The shards that a rank computes.  RankError if there are fewer shards than ranks.
ShardRange shards_of_rank(std::size_t shards, std::size_t ranks, std::size_t rank);

/// The largest subtrees of the shards' tree that lie in a range.  The root is [0, shards), the
/// children of [a, b) are its first half [a, a + (b - a) / 2) and the rest.
std::vector<ShardRange> subtrees(std::size_t shards, ShardRange range);

/// A sum on its way.
class PendingSum {
 public:
  PendingSum() = default;
  PendingSum(const PendingSum&) = delete;
  PendingSum& operator=(const PendingSum&) = delete;
  virtual ~PendingSum() = default;
  /// Does what can be done without waiting; whether the sum is there.  RankError if another rank
  /// cannot be reached.
  virtual bool poll() = 0;
  /// Once it is there.
  virtual Tensor result() const = 0;
};

/// Waits for sums, each of which goes on meanwhile.
std::vector<Tensor> wait(std::span<const std::unique_ptr<PendingSum>> sums);

/// All calls but rank() and size() are made by all ranks, in the same order, and by one thread at a
/// time.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  /// Gives all ranks the bytes of rank 0.
  virtual void broadcast(std::span<std::byte> bytes) const = 0;

  /// Begins the sum of a flat Tensor of each shard, in the order of the shards' tree, so it has the
  /// same bits for any number of ranks.  A rank gives a Tensor for each of its subtrees(): the sum
  /// over it.  All ranks get the sum.
  virtual std::unique_ptr<PendingSum> begin_sum(std::size_t shards,
                                                std::vector<Tensor> of_subtrees) const = 0;
};

/// A world of one.
std::shared_ptr<const Communicator> alone();

/// The world that mpirun started this process in; a world of one if it did not.  MPI ends with the
/// process.  A rank that ends while others wait for it ends them too: they throw RankError.  (One
/// that ends before it has called this is for mpirun to notice.)  RankError if xgrad was built
/// for another MPI than mpirun's.
std::shared_ptr<const Communicator> world();

/// What mpirun has told this process, before and without world().
struct Launched {
  std::size_t rank = 0, size = 1;
  std::size_t neighbours = 1;  ///< ranks on this machine, itself among them
};
Launched launched();

/// A number of each rank, in their order, on all of them.
std::vector<double> gather(const Communicator& world, double mine);

/// The text of one rank on all; the others' is not looked at.
std::string text_of(const Communicator& world, std::size_t rank, std::string text);

/// Calls f on each rank.  If it throws on any, throws on all: what it threw on the rank itself, and
/// on the others a RankError with the message of the first.
template <class F>
void together(const Communicator& world, const F& f);

/// Says that all ranks are about to end, and know why.
void end_together();
/// Whether that was said, or a call of together() has thrown.
bool ended_together();

namespace detail {

/// Tells the ranks whether this one has failed; throws as together() if one has.
void agree(const Communicator& world, const std::exception_ptr& mine);

}  // namespace detail

template <class F>
void together(const Communicator& world, const F& f) {
  std::exception_ptr mine;
  try {
    f();
  } catch (...) {
    mine = std::current_exception();
  }
  detail::agree(world, mine);
}

}  // namespace xgrad::parallel
