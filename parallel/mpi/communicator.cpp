#include "communicator.hpp"

// Only the C interface: MPI-3 removed the C++ one.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <thread>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/parallel/shards.hpp>

namespace xgrad::parallel {
namespace {

// The variables that launchers set for their processes: Open MPI's, MPICH's and its kin's, Slurm's.
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

void must(int code) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<RankError>("MPI: {}", std::string_view(text, static_cast<std::size_t>(length)));
}

bool all_end = false;
// A rank that is about to end says so, on a channel of its own: otherwise others would wait
// forever.
MPI_Comm goodbyes = MPI_COMM_NULL;
bool someone_is_gone = false;

void check_others() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point noticed;
  int arrived = 0;
  MPI_Status status;
  must(MPI_Iprobe(MPI_ANY_SOURCE, 0, goodbyes, &arrived, &status));
  if (arrived == 0)
    return;
  if (noticed == Clock::time_point())
    noticed = Clock::now();
  // Its last messages may still be on their way.
  if (Clock::now() - noticed < std::chrono::seconds(2))
    return;
  someone_is_gone = true;
  fail<RankError>("rank {} has ended", status.MPI_SOURCE);
}

// Messages in flight, and the Tensors that they are read from and written to.
class Messages {
 public:
  ~Messages() {
    if (requests_.empty())
      return;
    // MPI still writes to this memory, so this process cannot continue with the others.
    someone_is_gone = true;
    static std::vector<std::vector<Tensor>> never_freed;
    never_freed.push_back(std::move(tensors_));
  }
  void send(const Tensor& x, std::size_t to, int tag) {
    start(x, [&](const void* data, int n, MPI_Datatype type, MPI_Request* request) {
      must(MPI_Isend(data, n, type, static_cast<int>(to), tag, MPI_COMM_WORLD, request));
    });
  }
  void receive(const Tensor& x, std::size_t from, int tag) {
    start(x, [&](void* data, int n, MPI_Datatype type, MPI_Request* request) {
      must(MPI_Irecv(data, n, type, static_cast<int>(from), tag, MPI_COMM_WORLD, request));
    });
  }
  void add(MPI_Request request) { requests_.push_back(request); }
  void wait() {
    const xgrad::detail::Timed timed("wait for ranks");
    const int n = static_cast<int>(requests_.size());
    int all = 0;
    // Polls first: an answer takes microseconds unless a rank is late.
    for (std::size_t polls = 0;
         must(MPI_Testall(n, requests_.data(), &all, MPI_STATUSES_IGNORE)), all == 0; ++polls) {
      check_others();
      if (polls > 1000)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      else
        std::this_thread::yield();
    }
    requests_.clear();
    tensors_.clear();
  }

 private:
  template <class F>
  void start(const Tensor& x, const F& post) {
    if (x.numel() == 0)
      return;
    tensors_.push_back(x);
    dispatch(x.dtype(), [&]<class T>() {
      // Ours alone, except for views of it.
      post(const_cast<T*>(x.data<T>()), static_cast<int>(x.numel()),
           std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE,
           &requests_.emplace_back(MPI_REQUEST_NULL));
    });
  }

  std::vector<MPI_Request> requests_;
  std::vector<Tensor> tensors_;
};

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

Launched launched() {
  for (const auto& [size, rank, neighbours] : launchers)
    if (const std::size_t n = count_in(size); n > 1)
      return {count_in(rank), n, std::max<std::size_t>(1, count_in(neighbours))};
  return {};
}

Communicator::Communicator() {
  const std::size_t n = launched().size;
  if (n == 1)
    return;
  int provided = 0, rank = 0, size = 1;
  must(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  must(MPI_Comm_dup(MPI_COMM_WORLD, &goodbyes));
  must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  must(MPI_Comm_size(MPI_COMM_WORLD, &size));
  rank_ = static_cast<std::size_t>(rank);
  size_ = static_cast<std::size_t>(size);
  check<RankError>(provided >= MPI_THREAD_SERIALIZED, "MPI: it allows no threads");
  check<RankError>(size_ == n,
                   "parallel: this is one of {} processes, but MPI knows of {}: the mpirun that "
                   "started it is of another MPI than xgrad was built with",
                   n, size_);
}

Communicator::~Communicator() {
  if (size_ == 1)
    return;
  std::vector<MPI_Request> requests(size_, MPI_REQUEST_NULL);
  for (std::size_t other = 0; other < size_; ++other)
    if (other != rank_)
      MPI_Isend(nullptr, 0, MPI_BYTE, static_cast<int>(other), 0, goodbyes, &requests[other]);
  if (someone_is_gone)
    MPI_Abort(MPI_COMM_WORLD, 1);  // other ranks wait for calls that never come
  MPI_Finalize();
}

void Communicator::broadcast(std::span<std::byte> bytes) const {
  constexpr std::size_t most = std::size_t{1} << 30;  // MPI counts in int
  for (std::size_t at = 0; size_ > 1 && at < bytes.size(); at += most) {
    MPI_Request request = MPI_REQUEST_NULL;
    must(MPI_Ibcast(bytes.data() + at, static_cast<int>(std::min(most, bytes.size() - at)),
                    MPI_BYTE, 0, MPI_COMM_WORLD, &request));
    Messages messages;
    messages.add(request);
    messages.wait();
  }
}

// Each rank sums a slice of the elements: it receives that slice of all subtrees, and sends its sum
// to all ranks (a reduce-scatter and an all-gather).  No algorithm sends fewer bytes.
Tensor Communicator::sum(std::size_t shards, std::vector<Tensor> mine) const {
  if (size_ == 1)
    return mine.front();
  const std::size_t n = mine.front().numel();
  check<RankError>(n <= std::numeric_limits<int>::max(),
                   "parallel: {} elements are too many for one sum", n);
  const auto slice = [&](const Tensor& x, std::size_t rank) {
    const std::size_t begin = rank * n / size_, end = (rank + 1) * n / size_;
    return narrow(x, 0, static_cast<std::int64_t>(begin), end - begin);
  };
  const Tensor sum = zeros({n}, mine.front().dtype());
  std::vector<Tensor> parts(shards);  // of the own slice, by the first shard of a subtree
  Messages messages;
  for (std::size_t other = 0; other < size_; ++other) {
    const std::vector<ShardRange> nodes = subtrees(shards, shards_of_rank(shards, size_, other));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Tensor& part = parts[nodes[i].first];
      if (other == rank_) {
        part = slice(mine[i], rank_);
        continue;
      }
      part = zeros({slice(sum, rank_).numel()}, sum.dtype());
      messages.receive(part, other, 0);
    }
  }
  for (std::size_t k = 1; k < size_; ++k)  // spreads the load
    for (const Tensor& x : mine)
      messages.send(slice(x, (rank_ + k) % size_), (rank_ + k) % size_, 0);
  messages.wait();
  const Tensor own = detail::tree_sum(parts), destination = slice(sum, rank_);
  dispatch(sum.dtype(), [&]<class T>() {
    std::copy_n(own.data<T>(), own.numel(),
                const_cast<T*>(destination.data<T>()));  // as in Messages
  });
  for (std::size_t k = 1; k < size_; ++k) {
    const std::size_t to = (rank_ + k) % size_, from = (rank_ + size_ - k) % size_;
    messages.receive(slice(sum, from), from, 1);
    messages.send(own, to, 1);
  }
  messages.wait();
  return sum;
}

std::shared_ptr<const Communicator> world() {
  static const auto all = std::make_shared<const Communicator>();  // MPI begins once in a process
  return all;
}

std::vector<double> Communicator::sum(std::vector<double> numbers) const {
  if (size_ == 1)
    return numbers;
  const std::size_t n = numbers.size();
  std::vector<double> all(n * size_);
  MPI_Request request = MPI_REQUEST_NULL;
  must(MPI_Iallgather(numbers.data(), static_cast<int>(n), MPI_DOUBLE, all.data(),
                      static_cast<int>(n), MPI_DOUBLE, MPI_COMM_WORLD, &request));
  Messages messages;
  messages.add(request);
  messages.wait();
  for (std::size_t i = 0; i < n; ++i) {
    numbers[i] = 0;
    for (std::size_t rank = 0; rank < size_; ++rank)
      numbers[i] += all[rank * n + i];
  }
  return numbers;
}

std::vector<double> gather(const Communicator& world, double mine) {
  std::vector<double> numbers(world.size());
  numbers[world.rank()] = mine;
  return world.sum(numbers);
}

std::string text_of(const Communicator& world, std::size_t rank, std::string text) {
  const bool mine = world.rank() == rank;
  std::vector<double> numbers{mine ? static_cast<double>(text.size()) : 0.0};
  numbers.assign(static_cast<std::size_t>(world.sum(numbers).front()), 0.0);
  if (numbers.empty())
    return "";
  if (mine)
    std::ranges::copy(text, numbers.begin());
  numbers = world.sum(numbers);
  text.assign(numbers.begin(), numbers.end());
  return text;
}

bool ended_together() { return all_end; }

void agree(const Communicator& world, const std::exception_ptr& mine) {
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
  all_end = true;
  if (mine != nullptr)
    std::rethrow_exception(mine);
  fail<RankError>("rank {}: {}", rank, message);
}

}  // namespace xgrad::parallel
