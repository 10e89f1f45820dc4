// The machine's free memory.

#include <limits>
#include <string>
#include <xgrad/autograd/memory.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

TEST_CASE("the memory that a machine has left", "[memory]") {
  const TemporaryFolder folder;
  const std::string meminfo = folder / "meminfo";
  write_bytes(meminfo,
              "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:   3000 kB\n"
              "SwapTotal: 99 kB\nSwapFree:      50 kB\n");
  CHECK(available_memory(meminfo) == 3050 * 1024);
  CHECK(available_memory(folder / "none") == std::numeric_limits<std::size_t>::max());
  CHECK(available_memory() > 0);
}
