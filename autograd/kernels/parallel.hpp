#pragma once
// Dividing work among threads.

#include <cstddef>

namespace xgrad::kernels {

/// A reference to something callable with (Args...); does not own it.  A loop that takes one is
/// compiled once.
template <class... Args>
class FunctionRef {
 public:
  template <class F>
  FunctionRef(const F& f)
      : object_(&f),
        call_([](const void* o, Args... args) { (*static_cast<const F*>(o))(args...); }) {}
  void operator()(Args... args) const { call_(object_, args...); }

 private:
  const void* object_;
  void (*call_)(const void*, Args...);
};

/// Calls task(0) ... task(pieces - 1), each once, on this and other threads, and returns when all
/// are done.  Rethrows the first exception.  The division into tasks must not depend on the number
/// of threads, and no two tasks may write to the same memory: then the result is the same on any
/// number.  A call within a task runs on the task's thread.
void parallel(std::size_t pieces, FunctionRef<std::size_t> task);

/// Cuts [0, n) into chunks of `grain` and calls f(begin, end) for each.
void parallel_for(std::size_t n, std::size_t grain, FunctionRef<std::size_t, std::size_t> f);

}  // namespace xgrad::kernels
