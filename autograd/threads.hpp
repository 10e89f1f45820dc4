#pragma once
// How many threads do the work, on which the numbers do not depend, and which SIMD instructions.

#include <cstddef>
#include <functional>
#include <string>

namespace xgrad {

/// The processors that this process may use (taskset, control groups).
std::size_t num_processors();

/// The number of threads that work: at first OMP_NUM_THREADS, but at most four a processor, or else
/// num_processors(), afterwards what set_num_threads() asked for, or fewer if the system does not
/// allow as many.  Starts them if they are not there yet: only then is it known.
std::size_t num_threads();

/// Asks for n threads, the calling one among them, from the next piece of work on.  May be called
/// at any time, on any thread.  ValueError if n is 0 or above 1024.
void set_num_threads(std::size_t n);

/// Calls task(0) ... task(n - 1), each once, on this and other threads, and returns when all are
/// done.  The first exception is thrown on.  Ops within a task run on the task's thread.
/// A child forked within a task is to end there: the threads that it would wait for are not in it.
void on_threads(std::size_t n, const std::function<void(std::size_t)>& task);

/// xsimd's name of the instructions that the loaded kernels use: "sse2", "fma3+avx2", "avx512bw",
/// "neon64".  The portable build has
/// several and takes the best that the processor can run.
std::string simd_name();

/// The BLAS that the process has loaded, which makes the matrix products, and for OpenBLAS the
/// processor that it takes this one for: "OpenBLAS Zen", "MKL".
std::string blas_name();

}  // namespace xgrad
