#include <xgrad/autograd/kernels/parallel.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/fork.hpp>
#include <xgrad/autograd/kernels/processors.hpp>
#include <xgrad/autograd/threads.hpp>

namespace xgrad {
namespace {

using Task = kernels::FunctionRef<std::size_t>;

// A job is a number of pieces that threads draw from a counter.  The caller draws too, and when
// none are left it waits only for workers that are inside: one that the system has not woken yet
// finds the job closed and costs nothing.
class Pool {
 public:
  /// Of that many threads, the caller's among them, or of fewer if the system does not start them.
  explicit Pool(std::size_t threads) {
    try {
      while (this->threads() < threads)
        workers_.emplace_back([this] { work(); });
    } catch (const std::exception&) {  // a limit on processes or on memory
    }
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      generation_.fetch_add(1);
    }
    generation_.notify_all();
    for (std::thread& worker : workers_)
      worker.join();
  }

  void run(std::size_t pieces, const Task& task) {
    {
      const std::lock_guard lock(mutex_);
      task_ = &task;
      pieces_ = pieces;
      next_.store(0);
      generation_.fetch_add(1);
    }
    generation_.notify_all();
    draw(task);
    {
      const std::lock_guard lock(mutex_);
      task_ = nullptr;
    }
    for (std::size_t n; (n = inside_.load(std::memory_order_acquire)) > 0;)
      wait_while(inside_, n);
    if (error_)
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

  std::size_t threads() const { return workers_.size() + 1; }
  static inline thread_local bool drawing = false;  // this thread is inside a job

 private:
  void draw(const Task& task) {
    drawing = true;
    for (std::size_t i; (i = next_.fetch_add(1)) < pieces_;) {
      try {
        task(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_)
          error_ = std::current_exception();
        next_.store(pieces_);
      }
    }
    drawing = false;
  }

  void work() {
    for (std::size_t seen = 0;;) {
      wait_while(generation_, seen);
      const Task* task = nullptr;
      {
        const std::lock_guard lock(mutex_);
        seen = generation_.load();
        if (stopping_)
          return;
        if (task_ == nullptr)
          continue;
        task = task_;
        inside_.fetch_add(1);
      }
      draw(*task);
      inside_.fetch_sub(1, std::memory_order_release);
      inside_.notify_one();
    }
  }

  // For a while without sleeping, because in training one job follows another.
  static void wait_while(const std::atomic<std::size_t>& number, std::size_t value) {
    for (std::size_t spins = 0; spins < 20'000; ++spins) {
      if (number.load(std::memory_order_acquire) != value)
        return;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    number.wait(value, std::memory_order_acquire);
  }

  std::mutex mutex_;
  bool stopping_ = false;
  const Task* task_ = nullptr;  // of the open job
  std::size_t pieces_ = 0;
  std::exception_ptr error_;
  std::atomic<std::size_t> generation_{0}, next_{0}, inside_{0};
  std::vector<std::thread> workers_;
};

std::mutex pool_mutex;  // one job at a time; a second thread that comes meanwhile works alone
Pool* pool = nullptr;   // never destroyed: a Tensor with static storage may still need it
// Not under the mutex, which is held as long as a job runs: a task may ask and change it as well.
std::atomic<std::size_t> threads_wanted = kernels::default_threads();

// A child process has the thread that called fork() and no other: it starts its own.  Whatever
// those of the parent were doing, their pool is left alone.
const detail::RenewedInChild<pool_mutex> renewed_mutex;
const detail::RenewedInChild<pool> renewed_pool;

// How many of n threads there is address space for, where it is limited: a stack and the
// allocator's arena, which takes 128 MiB at first, and as much again to compute with.
std::size_t threads_with_room(std::size_t n) {
  constexpr std::size_t room = std::size_t{256} << 20;
  for (; n > 1; --n) {
    void* const space =
        mmap(nullptr, n * room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space != MAP_FAILED) {
      munmap(space, n * room);
      break;
    }
  }
  return n;
}

// The threads that are wanted, or as many as the system allows; with the mutex held.
Pool* start_threads() {
  std::size_t wanted = threads_wanted.load();
  if (pool != nullptr && pool->threads() == wanted)
    return pool;
  delete std::exchange(pool, nullptr);
  pool = new (std::nothrow) Pool(threads_with_room(wanted));
  // Not if another number has been asked for meanwhile.
  threads_wanted.compare_exchange_strong(wanted, pool == nullptr ? 1 : pool->threads());
  return pool;
}

}  // namespace

std::size_t num_threads() {
  if (!Pool::drawing)
    if (const std::unique_lock lock(pool_mutex, std::try_to_lock); lock)
      start_threads();
  return threads_wanted.load();
}

void set_num_threads(std::size_t n) {
  check<ValueError>(n >= 1 && n <= 1024, "set_num_threads: {} is not between 1 and 1024", n);
  threads_wanted.store(n);
}

void on_threads(std::size_t n, const std::function<void(std::size_t)>& task) {
  kernels::parallel(n, task);
}

void kernels::parallel(std::size_t pieces, Task task) {
  if (pieces > 1 && !Pool::drawing) {
    const std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (Pool* const threads = lock ? start_threads() : nullptr;
        threads != nullptr && threads->threads() > 1) {
      threads->run(pieces, task);
      return;
    }
  }
  for (std::size_t i = 0; i < pieces; ++i)
    task(i);
}

void kernels::parallel_for(std::size_t n, std::size_t grain,
                           FunctionRef<std::size_t, std::size_t> f) {
  if (n <= grain) {
    if (n > 0)
      f(0, n);
    return;
  }
  parallel((n + grain - 1) / grain,
           [&](std::size_t piece) { f(piece * grain, std::min(n, (piece + 1) * grain)); });
}

}  // namespace xgrad
