#pragma once
// Processes that work on one batch, over MPI.  A process is called a rank, and all of them a world.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <xgrad/parallel/shards.hpp>

namespace xgrad::parallel {

using detail::ShardRange;

/// An error of ranks: one failed, differs, or cannot be reached.
struct RankError : Error {
  using Error::Error;
};

/// The shards that a rank computes.  RankError if there are fewer shards than ranks.
ShardRange shards_of_rank(std::size_t shards, std::size_t ranks, std::size_t rank);

/// The largest subtrees of the shards' tree within a range.  The root is [0, shards); the children
/// of [a, b) are its first half [a, a + (b - a) / 2) and the rest.
std::vector<ShardRange> subtrees(std::size_t shards, ShardRange range);

/// All ranks make all calls but rank() and size() in the same order, from one thread at a time.
class Communicator {
 public:
  Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }

  /// Copies rank 0's bytes to all ranks.
  void broadcast(std::span<std::byte> bytes) const;

  /// The sum of a flat Tensor of each shard, in the order of the shards' tree, so it has the same
  /// bits for any number of ranks.  A rank passes the sum over each of its subtrees().  All ranks
  /// get the total.
  Tensor sum(std::size_t shards, std::vector<Tensor> of_subtrees) const;
  /// The sums of a few numbers, in the order of ranks.
  std::vector<double> sum(std::vector<double> numbers) const;

 private:
  std::size_t rank_ = 0, size_ = 1;
};

/// The world that mpirun started this process in, or a world of one.  MPI ends with the process.
/// If a rank ends while others wait for it, they throw RankError.  (If a rank ends before it has
/// called this function, only mpirun can notice.)  RankError if xgrad was built for another MPI
/// than mpirun's.
std::shared_ptr<const Communicator> world();

/// mpirun's variables for this process, available without world().
struct Launched {
  std::size_t rank = 0, size = 1;
  std::size_t neighbours = 1;  ///< ranks on this machine, itself among them
};
Launched launched();

/// A number of each rank, in order, on all ranks.
std::vector<double> gather(const Communicator& world, double mine);

/// The text of one rank, on all ranks; other texts are ignored.
std::string text_of(const Communicator& world, std::size_t rank, std::string text);

/// Tells the ranks whether this one has failed.  If any has, all throw: a failed rank its own
/// exception, the others a RankError with the message of the first.
void agree(const Communicator& world, const std::exception_ptr& mine);

/// Calls f on each rank, then agree().
template <class F>
void together(const Communicator& world, const F& f) {
  std::exception_ptr mine;
  try {
    f();
  } catch (...) {
    mine = std::current_exception();
  }
  agree(world, mine);
}

/// Whether agree() has thrown: all ranks know the reason.
bool ended_together();

}  // namespace xgrad::parallel
