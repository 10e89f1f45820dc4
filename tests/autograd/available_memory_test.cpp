// How much memory there is left: the machine, control groups of both versions, ulimit.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/kernels/control_group.hpp>
#include <xgrad/autograd/sanitizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

}  // namespace

TEST_CASE("this process's control group, of each version", "[memory]") {
  const TemporaryFolder folder;
  const std::string groups = folder / "cgroup";
  write_bytes(groups, "9:name=systemd:/\n4:cpu,memory:/a/b:c\n1:cpuset:/\n0::/user.slice/x\n");
  CHECK(kernels::own_group("", groups) == "/user.slice/x");
  CHECK(kernels::own_group("memory", groups) == "/a/b:c");
  CHECK(kernels::own_group("cpu", groups) == "/a/b:c");
  CHECK(kernels::own_group("cpuset", groups) == "");
  CHECK(kernels::own_group("mem", groups) == "");
  write_bytes(groups, "nonsense\n0:\n\n");
  CHECK(kernels::own_group("", groups) == "");
  CHECK(kernels::own_group("", folder / "none") == "");
  CHECK(kernels::group_folders("/root", "/a/b") ==
        std::vector<std::string>{"/root/a/b", "/root/a", "/root"});
  CHECK(kernels::group_folders("/root", "") == std::vector<std::string>{"/root"});
}

TEST_CASE("the memory that a machine has left", "[memory]") {
  const TemporaryFolder folder;
  const std::string meminfo = folder / "meminfo";
  write_bytes(meminfo,
              "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:   3000 kB\n"
              "SwapTotal: 99 kB\nSwapFree:      50 kB\n");
  CHECK(detail::memory_of_machine(meminfo) == 3050 * 1024);
  CHECK(detail::memory_of_machine(folder / "none") == unlimited);
}

TEST_CASE("the memory that a control group leaves, and those above it", "[memory]") {
  const TemporaryFolder folder;
  const std::string root = folder / "groups";
  const auto left = [&] { return detail::memory_of_group(root, "/a/b"); };
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories(root + "/a/b");
    write_bytes(root + file, text);
  };
  CHECK(left() == unlimited);
  SECTION("version 2") {
    write("/a/b/memory.max", "max\n");
    write("/a/b/memory.current", "500\n");
    CHECK(left() == unlimited);
    write("/a/memory.max", "10000\n");
    CHECK(left() == unlimited);
    write("/a/memory.current", "4000\n");
    CHECK(left() == 6000);
    // What is kept of files can be dropped.
    write("/a/memory.stat", "anon 3000\nfile 1000\ninactive_file 600\nactive_file 300\n");
    CHECK(left() == 6900);
    write("/a/b/memory.max", "3000\n");
    CHECK(left() == 2500);
    write("/memory.max", "100\n");
    write("/memory.current", "4000\n");
    CHECK(left() == 0);
  }
  SECTION("version 1") {
    write("/a/memory.limit_in_bytes", "9223372036854771712\n");
    write("/a/memory.usage_in_bytes", "4000\n");
    CHECK(left() == 9223372036854771712u - 4000);
    write("/a/b/memory.limit_in_bytes", "10000\n");
    write("/a/b/memory.usage_in_bytes", "4000\n");
    write("/a/b/memory.stat",
          "inactive_file 1\nactive_file 1\ntotal_inactive_file 600\n"
          "total_active_file 300\n");
    CHECK(left() == 6900);
  }
}

#if !XGRAD_SANITIZER  // they take all addresses
TEST_CASE("ulimit -v limits the memory that is left", "[memory]") {
  const std::size_t before = available_memory();
  CHECK(before > 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{rlim_t{1} << 40, rlim_t{1} << 40};
    ::setrlimit(RLIMIT_AS, &limit);
    const bool unchanged = available_memory() < (std::size_t{1} << 40);
    const rlimit less{4096, 4096};
    ::setrlimit(RLIMIT_AS, &less);
    ::_exit(unchanged && available_memory() == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif
