#pragma once
// Cutting work across threads.

#include <cstddef>
#include <type_traits>

namespace xgrad::kernels {

/// A reference to something callable with (std::size_t); does not own it.
class TaskRef {
 public:
  template <class F>
  TaskRef(const F& f)
      : object_(&f), call_([](const void* o, std::size_t i) { (*static_cast<const F*>(o))(i); }) {}
  void operator()(std::size_t i) const { call_(object_, i); }

 private:
  const void* object_;
  void (*call_)(const void*, std::size_t);
};

/// Calls task(0) ... task(pieces - 1), each once, on this and other threads, and returns when all
/// are done.  The first exception is thrown on.  How work is cut into pieces must not depend on the
/// number of threads, and no two pieces may write to the same place: then the result is the same on
/// any number.  A call from within a task runs on its thread.
void parallel(std::size_t pieces, TaskRef task);

/// Cuts [0, n) into pieces of `grain` and calls f(begin, end) for each.
template <class F>
void parallel_for(std::size_t n, std::size_t grain, const F& f) {
  if (n <= grain) {
    if (n > 0)
      f(std::size_t{0}, n);
    return;
  }
  parallel((n + grain - 1) / grain, [&](std::size_t piece) {
    const std::size_t begin = piece * grain;
    f(begin, begin + grain < n ? begin + grain : n);
  });
}

}  // namespace xgrad::kernels
