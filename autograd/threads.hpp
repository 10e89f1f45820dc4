#pragma once
// Worker threads, on whose number no result depends, and the SIMD instructions in use.

#include <cstddef>
#include <functional>
#include <string>

namespace xgrad {

/// The processors that this process may use (taskset, control groups).
std::size_t num_processors();

/// The number of worker threads.  First OMP_NUM_THREADS, but at most four a processor, or
/// num_processors(); later the number given to set_num_threads(), or fewer if the system refuses.
/// Starts the threads, because only then the number is known.
std::size_t num_threads();

/// Requests n threads, including the calling one, for work that begins later.  May be called at any
/// time, on any thread.  ValueError if n is 0 or above 1024.
void set_num_threads(std::size_t n);

/// Calls task(0) ... task(n - 1), each once, on this and other threads, and returns when all are
/// done.  Rethrows the first exception.  Ops within a task run on the task's thread.  A child
/// forked within a task must exit there: the threads that it would wait for are not in it.
void on_threads(std::size_t n, const std::function<void(std::size_t)>& task);

/// xsimd's name of the instructions that the loaded kernels use: "sse2", "fma3+avx2", "avx512bw",
/// "neon64".  The portable build holds several and loads the best for the processor.
std::string simd_name();

/// The BLAS that the process has loaded, and OpenBLAS's name of the processor: "OpenBLAS Zen",
/// "MKL".
std::string blas_name();

/// The library for products under Autocast: "oneDNN 2.6.3" or, without it or without instructions
/// for bfloat16, "OpenBLAS Zen in float32, no faster".
std::string bfloat16_name();

}  // namespace xgrad
