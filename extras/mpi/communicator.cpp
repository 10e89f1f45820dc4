#include "mpi/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/optim.hpp>
#include <xgrad/autograd/profile.hpp>

#include "mpi/mpi.hpp"

namespace xgrad::parallel {
namespace {

class Finished : public PendingSum {
 public:
  explicit Finished(Tensor sum) : sum_(std::move(sum)) {}
  bool poll() override { return true; }
  Tensor result() const override { return sum_; }

 private:
  Tensor sum_;
};

class Alone : public Communicator {
 public:
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  void broadcast(std::span<std::byte>) const override {}
  std::unique_ptr<PendingSum> begin_sum(std::size_t, std::vector<Tensor> whole) const override {
    return std::make_unique<Finished>(std::move(whole.front()));
  }
};

// What launchers tell the processes that they start: Open MPI's, MPICH's and its kin's, Slurm's.
struct Launcher {
  const char *size, *rank, *neighbours;
};
constexpr Launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"}};

std::size_t count_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<std::size_t>(std::max(0, std::atoi(text)));
}

bool all_end = false;

void add_subtrees(ShardRange node, ShardRange range, std::vector<ShardRange>& found) {
  const auto [begin, end] = node;
  if (begin >= range.second || end <= range.first)
    return;
  if (begin >= range.first && end <= range.second) {
    found.push_back(node);
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  add_subtrees({begin, middle}, range, found);
  add_subtrees({middle, end}, range, found);
}

// The sum of numbers that are zero on all ranks but one.
std::vector<double> sum_of(const Communicator& world, const std::vector<double>& numbers) {
  const auto pending = world.begin_sum(world.size(), {tensor(numbers, DType::float64)});
  const Tensor sum = wait({&pending, 1}).front();
  return {sum.data<double>(), sum.data<double>() + sum.numel()};
}

}  // namespace

ShardRange shards_of_rank(std::size_t shards, std::size_t ranks, std::size_t rank) {
  check<RankError>(ranks <= shards,
                   "parallel: the batch is cut into {}, which is too few for {} ranks: use fewer "
                   "ranks, or more shards and a batch of as many rows",
                   counted(shards, "shard", "shards"), ranks);
  return {rank * shards / ranks, (rank + 1) * shards / ranks};
}

std::vector<ShardRange> subtrees(std::size_t shards, ShardRange range) {
  std::vector<ShardRange> found;
  add_subtrees({0, shards}, range, found);
  return found;
}

std::vector<Tensor> wait(std::span<const std::unique_ptr<PendingSum>> sums) {
  const xgrad::detail::Timed timed("wait for ranks");
  const auto poll = [&] {
    bool all = true;
    for (const auto& sum : sums)
      all = sum->poll() && all;
    return all;
  };
  // At first without sleeping: an answer takes microseconds where nobody is late.
  for (std::size_t polls = 0; !poll(); ++polls)
    if (polls > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    else
      std::this_thread::yield();
  std::vector<Tensor> results;
  for (const auto& sum : sums)
    results.push_back(sum->result());
  return results;
}

std::shared_ptr<const Communicator> alone() {
  static const auto one = std::make_shared<Alone>();
  return one;
}

Launched launched() {
  for (const auto& [size, rank, neighbours] : launchers)
    if (const std::size_t n = count_in(size); n > 1)
      return {count_in(rank), n, std::max<std::size_t>(1, count_in(neighbours))};
  return {};
}

std::shared_ptr<const Communicator> world() {
  const std::size_t n = launched().size;
  if (n == 1)
    return alone();
  std::shared_ptr<const Communicator> all = mpi_world();
  check<RankError>(all->size() == n,
                   "parallel: this is one of {} processes, but MPI knows of {}: the mpirun that "
                   "started it is of another MPI than xgrad was built with",
                   n, all->size());
  return all;
}

std::vector<double> gather(const Communicator& world, double mine) {
  std::vector<double> numbers(world.size());
  numbers[world.rank()] = mine;
  return sum_of(world, numbers);
}

std::string text_of(const Communicator& world, std::size_t rank, std::string text) {
  const bool mine = world.rank() == rank;
  std::vector<double> numbers{mine ? static_cast<double>(text.size()) : 0.0};
  numbers.assign(static_cast<std::size_t>(sum_of(world, numbers).front()), 0.0);
  if (numbers.empty())
    return "";
  if (mine)
    std::ranges::copy(text, numbers.begin());
  numbers = sum_of(world, numbers);
  text.assign(numbers.begin(), numbers.end());
  return text;
}

void end_together() { all_end = true; }

bool ended_together() { return all_end; }

void detail::agree(const Communicator& world, const std::exception_ptr& mine) {
  const std::vector<double> failed = gather(world, mine != nullptr ? 1 : 0);
  const auto first = std::ranges::find(failed, 1.0);
  if (first == failed.end())
    return;
  const auto rank = static_cast<std::size_t>(first - failed.begin());
  std::string message = "another kind of exception";
  try {
    if (mine != nullptr)
      std::rethrow_exception(mine);
  } catch (const std::bad_alloc&) {
    message = "not enough memory";
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
  }
  message = text_of(world, rank, message);
  end_together();
  if (mine != nullptr)
    std::rethrow_exception(mine);
  fail<RankError>("rank {}: {}", rank, message);
}

}  // namespace xgrad::parallel
