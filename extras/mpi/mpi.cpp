#include "mpi/mpi.hpp"

// Only the C interface: MPI-3 removed the C++ one.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/optim.hpp>

namespace xgrad::parallel {
namespace {

void must(int code) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<RankError>("MPI: {}", std::string_view(text, static_cast<std::size_t>(length)));
}

// A rank that is about to end says so, on a channel of its own: others would wait for it for ever.
MPI_Comm goodbyes = MPI_COMM_NULL;
bool someone_is_gone = false;

void check_others() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point noticed;
  int here = 0;
  MPI_Status status;
  must(MPI_Iprobe(MPI_ANY_SOURCE, 0, goodbyes, &here, &status));
  if (here == 0)
    return;
  if (noticed == Clock::time_point())
    noticed = Clock::now();
  // What it sent before may still be on its way.
  if (Clock::now() - noticed < std::chrono::seconds(2))
    return;
  someone_is_gone = true;
  fail<RankError>("rank {} has ended", status.MPI_SOURCE);
}

// Messages that are on their way, and the Tensors that they are read from and written to.
class Messages {
 public:
  ~Messages() {
    int all = 0;
    if (requests_.empty() || (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(),
                                          &all, MPI_STATUSES_IGNORE) == MPI_SUCCESS &&
                              all != 0))
      return;
    // MPI still writes to this memory, and this process cannot go on with the others.
    someone_is_gone = true;
    static std::vector<std::vector<Tensor>> never_freed;
    never_freed.push_back(std::move(tensors_));
  }
  void send(const Tensor& x, std::size_t to, int tag) {
    start(x, [&](const void* data, int n, MPI_Datatype type, MPI_Request* request) {
      must(MPI_Isend(data, n, type, static_cast<int>(to), tag, MPI_COMM_WORLD, request));
    });
  }
  void receive(Tensor x, std::size_t from, int tag) {
    start(x, [&](void* data, int n, MPI_Datatype type, MPI_Request* request) {
      must(MPI_Irecv(data, n, type, static_cast<int>(from), tag, MPI_COMM_WORLD, request));
    });
  }
  bool done() {
    if (requests_.empty())
      return true;
    int all = 0;
    must(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all,
                     MPI_STATUSES_IGNORE));
    if (all != 0) {
      requests_.clear();
      tensors_.clear();
    }
    return all != 0;
  }

 private:
  template <class F>
  void start(const Tensor& x, const F& post) {
    if (x.numel() == 0)
      return;
    tensors_.push_back(x);
    dispatch(x.dtype(), [&]<class T>() {
      // Ours alone, but for the windows on it.
      post(const_cast<T*>(x.data<T>()), static_cast<int>(x.numel()),
           std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE,
           &requests_.emplace_back(MPI_REQUEST_NULL));
    });
  }

  std::vector<MPI_Request> requests_;
  std::vector<Tensor> tensors_;
};

// Each rank sums a slice of the elements: it gets that slice of all subtrees, and gives all ranks
// its sum (a reduce-scatter and an all-gather).  No algorithm sends fewer bytes.
class Sum : public PendingSum {
 public:
  Sum(const Communicator& world, std::size_t shards, std::vector<Tensor> mine, int tag)
      : ranks_(world.size()),
        rank_(world.rank()),
        tag_(tag),
        n_(static_cast<std::size_t>(mine.front().numel())),
        sum_(zeros({n_}, mine.front().dtype())),
        parts_(shards) {
    check<RankError>(n_ <= std::numeric_limits<int>::max(),
                     "parallel: {} elements are too many for one sum", n_);
    for (std::size_t other = 0; other < ranks_; ++other) {
      const std::vector<ShardRange> nodes = subtrees(shards, shards_of_rank(shards, ranks_, other));
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        Tensor& part = parts_[nodes[i].first];
        if (other == rank_) {
          part = slice(mine[i], rank_);
          continue;
        }
        part = zeros({slice(sum_, rank_).numel()}, sum_.dtype());
        messages_.receive(part, other, tag_);
      }
    }
    // Not all to the same rank at once.
    for (std::size_t k = 1; k < ranks_; ++k)
      for (const Tensor& x : mine)
        messages_.send(slice(x, (rank_ + k) % ranks_), (rank_ + k) % ranks_, tag_);
  }

  bool poll() override {
    check_others();
    if (!messages_.done())
      return false;
    if (std::exchange(summed_, true))
      return true;
    foreach_tree_sum_({&parts_, 1});
    const Tensor own = parts_.front(), here = slice(sum_, rank_);
    dispatch(sum_.dtype(), [&]<class T>() {
      std::copy_n(own.data<T>(), own.numel(), const_cast<T*>(here.data<T>()));  // as in Messages
    });
    for (std::size_t k = 1; k < ranks_; ++k) {
      const std::size_t to = (rank_ + k) % ranks_, from = (rank_ + ranks_ - k) % ranks_;
      messages_.receive(slice(sum_, from), from, tag_ + 1);
      messages_.send(own, to, tag_ + 1);
    }
    return messages_.done();
  }
  Tensor result() const override { return sum_; }

 private:
  Tensor slice(const Tensor& x, std::size_t rank) const {
    const std::size_t begin = rank * n_ / ranks_, end = (rank + 1) * n_ / ranks_;
    return narrow(x, 0, static_cast<std::int64_t>(begin), end - begin);
  }

  std::size_t ranks_, rank_;
  int tag_;
  std::size_t n_;
  Tensor sum_;
  std::vector<Tensor> parts_;  // of the slice that is summed here, at the first shard of a subtree
  bool summed_ = false;
  Messages messages_;
};

class Mpi : public Communicator {
 public:
  Mpi() {
    int provided = 0;
    must(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    must(MPI_Comm_dup(MPI_COMM_WORLD, &goodbyes));
    int rank = 0, size = 1;
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    must(MPI_Comm_size(MPI_COMM_WORLD, &size));
    rank_ = static_cast<std::size_t>(rank);
    size_ = static_cast<std::size_t>(size);
    check<RankError>(provided >= MPI_THREAD_SERIALIZED, "MPI: it allows no threads");
  }
  ~Mpi() override {
    std::vector<MPI_Request> requests(size_, MPI_REQUEST_NULL);
    for (std::size_t other = 0; other < size_; ++other)
      if (other != rank_)
        MPI_Isend(nullptr, 0, MPI_BYTE, static_cast<int>(other), 0, goodbyes, &requests[other]);
    if (someone_is_gone)
      MPI_Abort(MPI_COMM_WORLD, 1);  // some wait for others, who do not come
    MPI_Finalize();
  }
  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  void broadcast(std::span<std::byte> bytes) const override {
    constexpr std::size_t most = std::size_t{1} << 30;  // MPI counts in int
    for (std::size_t at = 0; at < bytes.size(); at += most) {
      MPI_Request request = MPI_REQUEST_NULL;
      must(MPI_Ibcast(bytes.data() + at, static_cast<int>(std::min(most, bytes.size() - at)),
                      MPI_BYTE, 0, MPI_COMM_WORLD, &request));
      for (int done = 0; must(MPI_Test(&request, &done, MPI_STATUS_IGNORE)), done == 0;) {
        check_others();
        std::this_thread::yield();
      }
    }
  }
  std::unique_ptr<PendingSum> begin_sum(std::size_t shards,
                                        std::vector<Tensor> of_subtrees) const override {
    constexpr int tags = 32'768;  // MPI promises no more
    next_tag_ = (next_tag_ + 2) % tags;
    return std::make_unique<Sum>(*this, shards, std::move(of_subtrees), next_tag_);
  }

 private:
  std::size_t rank_ = 0, size_ = 1;
  mutable int next_tag_ = 0;
};

}  // namespace

std::shared_ptr<const Communicator> mpi_world() {
  static const auto all = std::make_shared<const Mpi>();  // MPI begins once in a process
  return all;
}

}  // namespace xgrad::parallel
