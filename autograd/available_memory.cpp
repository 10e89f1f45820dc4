#include <xgrad/autograd/available_memory.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>

namespace xgrad {

std::size_t available_memory(const std::string& meminfo) {
  std::uint64_t kilobytes = 0;
  std::ifstream file(meminfo);
  for (std::string line; std::getline(file, line);)
    for (const std::string_view word : {"MemAvailable:", "SwapFree:"})
      if (line.starts_with(word))
        kilobytes += std::strtoull(line.c_str() + word.size(), nullptr, 10);
  return kilobytes == 0 ? std::numeric_limits<std::size_t>::max() : kilobytes * 1024;
}

}  // namespace xgrad
