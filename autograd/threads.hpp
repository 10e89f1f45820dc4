#pragma once
// How many threads share the work.  The numbers do not depend on it.

#include <cstddef>

namespace xgrad {

/// The number of threads that work: at first that of the machine's cores, afterwards what
/// set_num_threads() asked for, or fewer if the system does not allow as many.  Starts them if they
/// are not there yet, for only then is it known.
std::size_t num_threads();

/// Asks for n threads, the calling one among them, from the next piece of work on.  May be called
/// at any time, on any thread.  ValueError if n is 0 or above 1024.
void set_num_threads(std::size_t n);

}  // namespace xgrad
