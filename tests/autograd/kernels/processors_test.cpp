// How many threads are worth starting: the environment, affinity and control groups.

#if defined(__linux__)
#include <sched.h>
#endif

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <xgrad/autograd/kernels/processors.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad::kernels;

TEST_CASE("OMP_NUM_THREADS is read as OpenMP reads it", "[threads]") {
  CHECK(parse_thread_count("4") == 4);
  CHECK(parse_thread_count("4,2") == 4);
  CHECK(parse_thread_count("1024") == 1024);
  for (const char* text : {"", "0", "-1", "1025", "four", "4x", " 4", "99999999999999999999", ","})
    CHECK(parse_thread_count(text) == std::nullopt);
}

TEST_CASE("a control group limits the threads, and so do those above it", "[threads]") {
  const TemporaryFolder folder;
  const std::string root = folder / "groups";
  const auto limit = [&](const std::string& group, const std::string& text) {
    std::filesystem::create_directories(root + group);
    std::ofstream(root + group + "/cpu.max") << text << '\n';
  };
  CHECK(processors_of_group(root, "/a/b") == std::nullopt);
  limit("/a/b", "max 100000");
  CHECK(processors_of_group(root, "/a/b") == std::nullopt);
  limit("/a/b", "250000 100000");
  CHECK(processors_of_group(root, "/a/b") == 3);
  limit("/a", "800000 100000");
  CHECK(processors_of_group(root, "/a/b") == 3);
  limit("/a", "100000 100000");
  CHECK(processors_of_group(root, "/a/b") == 1);
  limit("", "50000 100000");
  CHECK(processors_of_group(root, "/a/b") == 1);
  CHECK(processors_of_group(root, "") == 1);
  limit("", "100000 0");
  CHECK(processors_of_group(root, "") == std::nullopt);
}

#if defined(__linux__)
TEST_CASE("a thread that may run on one processor starts no others", "[threads]") {
  if (std::getenv("OMP_NUM_THREADS") != nullptr)
    return;
  std::size_t n = 0;
  std::thread([&n] {  // the affinity is the thread's own
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &set))
      ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
    n = default_threads();
  })
      .join();
  CHECK(n == 1);
}
#endif
