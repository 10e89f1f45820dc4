#include <xgrad/autograd/kernels/processors.hpp>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <xgrad/autograd/kernels/control_group.hpp>

namespace xgrad::kernels {

std::optional<std::size_t> parse_thread_count(std::string_view text) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool ends = end == text.data() + text.size() || *end == ',';
  return error == std::errc() && ends && n >= 1 && n <= 1024 ? std::optional(n) : std::nullopt;
}

std::optional<std::size_t> processors_of_group(const std::string& root, const std::string& group) {
  double least = INFINITY;
  for (const std::string& folder : group_folders(root, group)) {
    double quota = 0, period = 0;  // microseconds; "max" is not a number
    if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period && period > 0)
      least = std::min(least, quota / period);
  }
  if (!std::isfinite(least))
    return std::nullopt;
  return static_cast<std::size_t>(std::max(1.0, std::ceil(least)));
}

namespace {

std::size_t processors() {
#if defined(__linux__)
  cpu_set_t set;  // fails on more than 1024 processors
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

std::size_t default_threads() {
  if (const char* const text = std::getenv("OMP_NUM_THREADS"))
    if (const auto n = parse_thread_count(text))
      return *n;
  const std::size_t n = processors();
  return std::min(n, processors_of_group("/sys/fs/cgroup", own_group()).value_or(n));
}

}  // namespace xgrad::kernels
