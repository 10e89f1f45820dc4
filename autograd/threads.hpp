#pragma once
// How many threads share the work.  The numbers do not depend on it.

#include <cstddef>
#include <functional>

namespace xgrad {

/// The number of threads that work: at first that of the machine's cores, afterwards what
/// set_num_threads() asked for, or fewer if the system does not allow as many.  Starts them if they
/// are not there yet, for only then is it known.
std::size_t num_threads();

/// Asks for n threads, the calling one among them, from the next piece of work on.  May be called
/// at any time, on any thread.  ValueError if n is 0 or above 1024.
void set_num_threads(std::size_t n);

/// Calls task(0) ... task(n - 1), each once, on this and other threads, and returns when all are
/// done.  The first exception is thrown on.  What ops do within a task runs on the task's thread.
void on_threads(std::size_t n, const std::function<void(std::size_t)>& task);

}  // namespace xgrad
