#pragma once
// Cutting work across threads.

#include <cstddef>

namespace xgrad::kernels {

/// A reference to something callable with (Args...); does not own it.  A loop that takes one is
/// compiled once, and what it calls is compiled into one place.
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
/// are done.  The first exception is thrown on.  How work is cut into pieces must not depend on the
/// number of threads, and no two pieces may write to the same place: then the result is the same on
/// any number.  A call from within a task runs on its thread.
void parallel(std::size_t pieces, FunctionRef<std::size_t> task);

/// Cuts [0, n) into pieces of `grain` and calls f(begin, end) for each.
void parallel_for(std::size_t n, std::size_t grain, FunctionRef<std::size_t, std::size_t> f);

}  // namespace xgrad::kernels
