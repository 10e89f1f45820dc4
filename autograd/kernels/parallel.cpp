#include <xgrad/autograd/kernels/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#include <xgrad/autograd/fail.hpp>

namespace xgrad {
namespace {

// A job is a number of pieces that threads draw from a counter.  The caller draws too, and when
// none are left it waits only for workers that are inside: one that the system has not woken yet
// finds the job closed and costs nothing.  Workers look for the next job for a while before they
// sleep, because in training one follows another.
class Pool {
 public:
  explicit Pool(std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i)
      threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      generation_.fetch_add(1);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }

  void run(std::size_t pieces, const kernels::TaskRef& task) {
    {
      const std::lock_guard lock(mutex_);
      task_ = &task;
      pieces_ = pieces;
      next_.store(0);
      error_ = nullptr;
      generation_.fetch_add(1);
    }
    if (sleepers_.load() > 0)
      wake_.notify_all();
    draw(task);
    {
      const std::lock_guard lock(mutex_);
      task_ = nullptr;
    }
    for (std::size_t spins = 0; inside_.load(std::memory_order_acquire) > 0; ++spins)
      spins < spins_before_sleep ? pause() : std::this_thread::yield();
    if (error_)
      std::rethrow_exception(error_);
  }

  std::size_t workers() const { return threads_.size(); }
  static inline thread_local bool drawing = false;  // this thread is inside a job

 private:
  static constexpr std::size_t spins_before_sleep = 20'000;

  void draw(const kernels::TaskRef& task) {
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
      for (std::size_t spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
        if (spins < spins_before_sleep) {
          pause();
          continue;
        }
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        sleepers_.fetch_sub(1);
      }
      const kernels::TaskRef* task = nullptr;
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
    }
  }

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  const kernels::TaskRef* task_ = nullptr;  // of the open job
  std::size_t pieces_ = 0;
  std::exception_ptr error_;
  std::atomic<std::size_t> generation_{0}, next_{0}, inside_{0}, sleepers_{0};
  std::vector<std::thread> threads_;
};

std::mutex pool_mutex;  // one job at a time; a second thread that comes meanwhile works alone
std::size_t threads_wanted = std::max(1U, std::thread::hardware_concurrency());

Pool& pool() {
  static Pool* instance =
      nullptr;  // never destroyed: a Tensor with static storage may still need it
  if (instance == nullptr || instance->workers() + 1 != threads_wanted) {
    delete instance;
    instance = new Pool(threads_wanted - 1);
  }
  return *instance;
}

}  // namespace

std::size_t num_threads() {
  const std::lock_guard lock(pool_mutex);
  return threads_wanted;
}

void set_num_threads(std::size_t n) {
  check<ValueError>(n >= 1 && n <= 1024, "set_num_threads: {} is not between 1 and 1024", n);
  const std::lock_guard lock(pool_mutex);
  threads_wanted = n;
}

void kernels::parallel(std::size_t pieces, TaskRef task) {
  if (pieces > 1 && !Pool::drawing) {
    const std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock && threads_wanted > 1) {
      pool().run(pieces, task);
      return;
    }
  }
  for (std::size_t i = 0; i < pieces; ++i)
    task(i);
}

}  // namespace xgrad
