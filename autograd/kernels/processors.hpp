#pragma once
// How many threads are worth starting.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace xgrad::kernels {

/// The first number of OMP_NUM_THREADS if it is set and one from 1 to 1024, as for BLAS and
/// PyTorch; else the processors that this thread may run on (taskset), or fewer if its control
/// group may use less time than that (containers).
std::size_t default_threads();

/// The first number of "4" or "4,2"; none for anything else.
std::optional<std::size_t> parse_thread_count(std::string_view text);

/// How many processors' time the control group of this process may use, rounded up; none if it is
/// not limited.  `root` is where control groups are mounted, `group` this one's path below it.
std::optional<std::size_t> processors_of_group(const std::string& root, const std::string& group);

}  // namespace xgrad::kernels
