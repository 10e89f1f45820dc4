#include "parallel.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>
#include "../fail.hpp"
#include "../fork.hpp"
#include "../threads.hpp"

namespace xgrad {
namespace {

using Task = kernels::FunctionRef<std::size_t>;

// A job is a number of tasks.  Each thread first takes the tasks of its own range, whose data its
// cache may hold from the last job of that size; then it takes tasks that others have not begun.
// The caller takes tasks, too.  In the end it waits only for workers inside the job: a worker that
// wakes later finds the job closed, and costs nothing.
class Pool {
 public:
  /// Starts that many threads, the caller included, or fewer if the system refuses.
  explicit Pool(std::size_t threads) {
    try {
      ranges_ = std::vector<Range>(threads);
      while (this->threads() < threads)
        workers_.emplace_back([this, me = this->threads()] { work(me); });
    } catch (const std::exception&) {  // the system limits processes or memory
    }
  }
  ~Pool() {
    state_.fetch_or(stopping);
    state_.notify_all();
    for (std::thread& worker : workers_)
      worker.join();
  }

  void run(std::size_t pieces, const Task& task) {
    task_ = task;
    for (std::size_t t = 0, begin = 0; t < threads(); ++t) {
      ranges_[t].next.store(begin, std::memory_order_relaxed);
      ranges_[t].end = begin = pieces * (t + 1) / threads();
    }
    state_.fetch_add(next_job + open + 1);
    state_.notify_all();
    draw(0);
    state_.fetch_sub(open + 1);
    wait_until([](unsigned state) { return inside(state) == 0; });
    if (failed_.exchange(false))
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

  std::size_t threads() const { return workers_.size() + 1; }
  static inline thread_local bool drawing = false;  // this thread is inside a job

 private:
  struct Range {  // [next, end)
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
    std::size_t left() const {
      const std::size_t first = next.load(std::memory_order_relaxed);
      return first < end ? end - first : 0;
    }
  };
  // The state: the number of threads inside a job, whether it is open, whether to stop, and a
  // number that changes with each job.
  static constexpr unsigned open = 2048, stopping = 2 * open, next_job = 2 * stopping;
  static unsigned inside(unsigned state) { return state % open; }
  static unsigned job(unsigned state) { return state / next_job; }

  void draw(std::size_t me) {
    drawing = true;
    for (std::size_t t = 0; t < threads(); ++t) {
      Range& range = ranges_[(me + t) % threads()];
      if (t > 0 && range.left() == 0)
        continue;
      for (std::size_t i; (i = range.next.fetch_add(1, std::memory_order_relaxed)) < range.end;)
        attempt(i);
    }
    drawing = false;
  }
  void attempt(std::size_t i) {
    try {
      task_(i);
    } catch (...) {
      if (!failed_.exchange(true))
        error_ = std::current_exception();
      for (Range& r : ranges_)
        r.next.store(r.end, std::memory_order_relaxed);
    }
  }

  void work(std::size_t me) {
    for (unsigned seen = 0;;) {
      unsigned state =
          wait_until([&](unsigned now) { return (now & stopping) != 0 || job(now) != seen; });
      if ((state & stopping) != 0)
        return;
      while ((state & open) != 0 && !state_.compare_exchange_weak(state, state + 1)) {
      }
      seen = job(state);
      if ((state & open) == 0)
        continue;
      draw(me);
      if ((state_.fetch_sub(1) & (open | (open - 1))) == 1)
        state_.notify_all();
    }
  }

  // Spins for a while before sleeping, because in training one job follows another.
  template <class F>
  unsigned wait_until(const F& holds) const {
    for (std::size_t spins = 0;; ++spins) {
      const unsigned state = state_.load(std::memory_order_acquire);
      if (holds(state))
        return state;
      if (spins >= 20'000)
        state_.wait(state);
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
  }

  alignas(64) std::atomic<unsigned> state_{0};
  static constexpr auto nothing = [](std::size_t) {};
  Task task_ = nothing;  // of the open job
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::vector<Range> ranges_;
  std::vector<std::thread> workers_;
};

std::size_t default_threads() {
  if (const char* const text = std::getenv("OMP_NUM_THREADS"))  // "4", or "4,2" for nested regions
    if (const long n = std::strtol(text, nullptr, 10); n >= 1)
      return std::min({static_cast<std::size_t>(n), 4 * num_processors(), std::size_t{1024}});
  return num_processors();
}

std::mutex pool_mutex;  // one job at a time; a second thread meanwhile works alone
Pool* pool = nullptr;   // never destroyed: a Tensor with static storage may still need it
// It is atomic and needs no mutex, which is held throughout a job: a task may read and change it.
std::atomic<std::size_t> threads_wanted = default_threads();

// A child process has only the thread that called fork(), so it starts its own.  The parent's pool
// is left alone, whatever its threads were doing.
const detail::RenewedInChild<pool_mutex> renewed_mutex;
const detail::RenewedInChild<pool> renewed_pool;

// Starts the wanted number of threads, or as many as the system allows; the mutex is held.
Pool* start_threads() {
  std::size_t wanted = threads_wanted.load();
  if (pool != nullptr && pool->threads() == wanted)
    return pool;
  delete std::exchange(pool, nullptr);
  pool = new (std::nothrow) Pool(wanted);
  // Keeps a number that was requested meanwhile.
  threads_wanted.compare_exchange_strong(wanted, pool == nullptr ? 1 : pool->threads());
  return pool;
}

}  // namespace

std::size_t num_processors() {
#if defined(__linux__)
  cpu_set_t set;  // with more than 1024 processors the call fails
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

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
