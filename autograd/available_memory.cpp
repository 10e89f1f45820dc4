#include <xgrad/autograd/available_memory.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <xgrad/autograd/kernels/control_group.hpp>

namespace xgrad {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::uint64_t n = 0;
  std::ifstream file(path);
  return file >> n ? std::optional(n) : std::nullopt;
}

/// The sum of what stands behind these words, at the beginning of a line each.
std::uint64_t sum_of(const std::string& path, std::initializer_list<std::string_view> words) {
  std::uint64_t sum = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    for (const std::string_view word : words)
      if (line.starts_with(word))
        sum += std::strtoull(line.c_str() + word.size(), nullptr, 10);
  return sum;
}

/// Of addresses (ulimit -v), of which a process takes more than it uses.
std::size_t addresses_left() {
#if defined(__unix__) || defined(__APPLE__)
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    if (const auto pages = number_in("/proc/self/statm")) {
      const std::uint64_t used = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
      return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
    }
#endif
  return unlimited;
}

}  // namespace

std::size_t detail::memory_of_machine(const std::string& meminfo) {
  const std::uint64_t kilobytes = sum_of(meminfo, {"MemAvailable:", "SwapFree:"});
  return kilobytes == 0 ? unlimited : kilobytes * 1024;
}

std::size_t detail::memory_of_group(const std::string& root, const std::string& group) {
  std::size_t least = unlimited;
  for (const std::string& folder : kernels::group_folders(root, group)) {
    auto limit = number_in(folder + "/memory.max"), used = number_in(folder + "/memory.current");
    if (!limit || !used) {  // "max", or version 1
      limit = number_in(folder + "/memory.limit_in_bytes");
      used = number_in(folder + "/memory.usage_in_bytes");
    }
    if (!limit || !used)
      continue;
    // Files that were read lately count as used, and are dropped when the memory is wanted.
    const std::uint64_t files =  // in version 1 those of the groups below are in the totals alone
        std::max(sum_of(folder + "/memory.stat", {"inactive_file ", "active_file "}),
                 sum_of(folder + "/memory.stat", {"total_inactive_file ", "total_active_file "}));
    const std::uint64_t held = *used - std::min(*used, files);
    least = std::min<std::size_t>(least, *limit - std::min(*limit, held));
  }
  return least;
}

std::size_t available_memory() {
  const std::string mounted = "/sys/fs/cgroup";
  return std::min({detail::memory_of_machine(),
                   detail::memory_of_group(mounted, kernels::own_group()),
                   detail::memory_of_group(mounted + "/memory", kernels::own_group("memory")),
                   addresses_left()});
}

}  // namespace xgrad
