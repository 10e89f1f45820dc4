#include "per_thread.hpp"

#include <pthread.h>

#include <atomic>
#include <utility>

namespace xgrad::detail {

static thread_local constinit OfThread* newest = nullptr;

// Calls the destructors as that of a key of POSIX threads, after those of thread_local objects.
// Without a key (a process has a limited number) they are not called.
struct EndOfThread {
  static inline pthread_key_t key;
  static inline constinit std::atomic<bool> has_key = false;

  EndOfThread() { has_key = pthread_key_create(&key, destroy_all) == 0; }
  ~EndOfThread() {  // a plugin may be unloaded before its threads end
    if (has_key.exchange(false))
      pthread_key_delete(key);
  }
  // The last made first.  A destructor that needs one which is destroyed makes it again.
  static void destroy_all(void*) {
    while (newest != nullptr)
      delete std::exchange(newest, newest->next_);
  }
};

OfThread::OfThread() : next_(newest) {
  static const EndOfThread end;
  if (EndOfThread::has_key)
    pthread_setspecific(EndOfThread::key, this);
  newest = this;
}

}  // namespace xgrad::detail
