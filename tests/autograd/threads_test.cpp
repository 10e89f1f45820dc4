// Threads: as many as the system allows, errors on the way, changes at any time, and fork().

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/threads.hpp>

#include "helpers/catch.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

constexpr int skipped = 77, timed_out = 78;

// Sanitizers fail in a child if another thread runs: ThreadSanitizer does not follow a child's
// threads, and AddressSanitizer's allocator may have been locked.
constexpr bool may_fork = !XGRAD_SANITIZER;

// The result of f in a child process, which is ended if it hangs.
template <class F>
int in_child(const F& f) {
  if (!may_fork)
    return f();
  std::fflush(nullptr);  // or the child would write it as well
  std::cout.flush();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int code = 99;
    try {
      code = f();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status)
                           : (WTERMSIG(status) == SIGALRM ? timed_out : -WTERMSIG(status));
}

// Whether each task is done once.
bool all_done(std::size_t pieces) {
  std::vector<std::atomic<int>> done(pieces);
  kernels::parallel(pieces, [&](std::size_t i) { done[i].fetch_add(1); });
  return std::all_of(done.begin(), done.end(), [](const auto& n) { return n.load() == 1; });
}

// 0 if work proceeds with some, but not all of the requested threads.
int asks_for_too_many() {
  set_num_threads(1024);
  if (!all_done(5000))
    return 1;
  const std::size_t n = num_threads();
  if (n < 1 || n >= 1024)
    return 2;
  const Tensor x = ones({300, 300});
  if (matmul(x, x).sum().item() != 300.0 * 300.0 * 300.0)
    return 3;
  set_num_threads(2);  // and a smaller number works again
  return all_done(5000) && num_threads() <= 2 ? 0 : 4;
}

}  // namespace

TEST_CASE("threads that cannot be started for want of processes are done without", "[threads]") {
  if (!may_fork)
    return;
  for (const rlim_t processes : {1, 3, 6}) {
    CAPTURE(processes);
    const int code = in_child([&] {
      // The limit does not bind root.
      if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setuid(61234) != 0))
        return skipped;
      const rlimit limit{processes, processes};
      return ::setrlimit(RLIMIT_NPROC, &limit) == 0 ? asks_for_too_many() : skipped;
    });
    CHECK((code == 0 || code == skipped));
  }
}

TEST_CASE("an exception in a task reaches the caller and loses no thread", "[threads]") {
  const Threads four(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside{0};
    try {
      kernels::parallel(64, [&](std::size_t i) {
        inside.fetch_add(1);
        if (i % 3 == 1)
          throw std::runtime_error("piece " + std::to_string(i));
        inside.fetch_sub(1);
      });
      FAIL("nothing was thrown");
    } catch (const std::runtime_error& error) {
      CHECK_THAT(error.what(), StartsWith("piece "));
    }
    CHECK(inside.load() >= 1);
  }
  CHECK(num_threads() == 4);
  // All four still exist: each waits until all have arrived.
  std::atomic<int> arrived{0};
  kernels::parallel(4, [&](std::size_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 4)
      std::this_thread::yield();
  });
  CHECK(arrived.load() == 4);
}

TEST_CASE("an exception is gone once it has been caught", "[threads]") {
  const Threads two(2);
  const auto held = std::make_shared<int>(0);
  struct Error : std::exception {
    std::shared_ptr<int> what_it_holds;
  };
  try {
    kernels::parallel(8, [&](std::size_t) {
      Error error;
      error.what_it_holds = held;
      throw error;
    });
  } catch (const Error&) {
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("the number of threads may be read and changed within a task", "[threads]") {
  const Threads three(3);
  const int code = in_child([] {
    std::atomic<bool> good{true};
    kernels::parallel(50, [&](std::size_t i) {
      set_num_threads(1 + i % 4);
      if (num_threads() < 1 || num_threads() > 4)
        good = false;
    });
    set_num_threads(5);
    return good && all_done(100) && num_threads() == 5 ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("the number of threads may be changed while another thread works", "[threads]") {
  const Threads two(2);
  const int code = in_child([] {
    std::atomic<bool> stop{false}, good{true};
    std::thread other([&] {
      for (std::size_t i = 0; !stop; ++i) {
        set_num_threads(1 + i % 5);
        if (num_threads() < 1 || num_threads() > 5)
          good = false;
      }
    });
    for (int i = 0; i < 300; ++i)
      if (!all_done(40))
        good = false;
    stop = true;
    other.join();
    set_num_threads(3);
    return good && all_done(40) && num_threads() == 3 ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("threads end that had just been called to a job", "[threads]") {
  const Threads two(2);
  const int code = in_child([] {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::seconds(20);  // on a busy machine
    for (std::size_t i = 0; i < 20'000 && Clock::now() < end; ++i) {
      set_num_threads(5 + i % 2);
      for (std::size_t job = 0; job < i % 3 + 1; ++job)
        kernels::parallel(6, [](std::size_t) {});
    }
    return 0;
  });
  CHECK(code == 0);
}

TEST_CASE("a child process has threads of its own", "[threads]") {
  if (!may_fork)
    return;
  const Threads three(3);
  CHECK(all_done(100));  // the parent's threads have started
  Generator generator(1);
  const Tensor x = randn({200, 200}, generator);
  const double expected = matmul(x, x).sum().item();
  const auto works = [&] {
    return num_threads() == 3 && all_done(1000) && matmul(x, x).sum().item() == expected ? 0 : 1;
  };
  CHECK(in_child(works) == 0);
  CHECK(in_child([&] { return in_child(works); }) == 0);  // and a child of the child
  CHECK(in_child([&] {
          std::exit(works());  // with destructors of statics
          return 1;
        }) == 0);
  CHECK(works() == 0);  // the parent goes on
}

TEST_CASE("a child may be forked while another thread works", "[threads]") {
  const Threads three(3);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop)
      kernels::parallel(20, [](std::size_t) {
        for (std::size_t i = 0; i < 1000; ++i)
          std::atomic_signal_fence(std::memory_order_seq_cst);
      });
  });
  for (int i = 0; i < 20; ++i)
    CHECK(in_child([] { return all_done(200) && num_threads() == 3 ? 0 : 1; }) == 0);
  stop = true;
  other.join();
}

TEST_CASE("a child may be forked while another thread makes Tensors and gradients", "[threads]") {
  const Tensor w = ones({1 << 16}).requires_grad_();
  const auto work = [&w] { sum(w * 2).backward(); };
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop)
      work();
  });
  for (int i = 0; i < 20; ++i)
    CHECK(in_child([&] { return work(), 0; }) == 0);
  stop = true;
  other.join();
}

TEST_CASE("a child may be forked within a task", "[threads]") {
  const Threads three(3);
  std::atomic<int> good{0};
  kernels::parallel(6, [&](std::size_t) {
    good += in_child([] { return all_done(50) && num_threads() == 3 ? 0 : 1; }) == 0;
  });
  CHECK(good.load() == 6);
}

TEST_CASE("set_num_threads takes 1 to 1024", "[threads]") {
  const Threads two(2);
  for (const std::size_t n : {std::size_t{0}, std::size_t{1025}})
    CHECK_THROWS_AS(set_num_threads(n), ValueError);
  CHECK(num_threads() == 2);
}

// tests/CMakeLists.txt runs it as if on older processors.
TEST_CASE("the SIMD instructions have a name", "[.simd-name]") {
  std::cout << "SIMD instructions: " << simd_name() << '\n';
  CHECK_FALSE(simd_name().empty());
}

// The value of OMP_NUM_THREADS that tests/CMakeLists.txt sets.
TEST_CASE("the number of threads is that of the environment", "[.num-threads]") {
  std::cout << "threads: " << num_threads() << '\n';
  CHECK(num_threads() >= 1);
}

TEST_CASE("the environment asks for at most four threads a processor", "[threads]") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string(),
                    most = std::to_string(std::min<std::size_t>(4 * num_processors(), 1024));
  for (const char* const asked : {"1024", "999999"})
    CHECK(std::system(("OMP_NUM_THREADS=" + std::string(asked) + " '" + self +
                       "' '[.num-threads]' | grep -q 'threads: " + most + "$'")
                          .c_str()) == 0);
}

#if defined(__linux__)
TEST_CASE("a process that may run on one processor starts no others", "[threads]") {
  if (!may_fork || std::getenv("OMP_NUM_THREADS") != nullptr)
    return;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  CHECK(in_child([&] {
          cpu_set_t set;
          if (::sched_getaffinity(0, sizeof set, &set) != 0)
            return skipped;
          int first = 0;
          while (!CPU_ISSET(first, &set))
            ++first;
          CPU_ZERO(&set);
          CPU_SET(first, &set);
          ::sched_setaffinity(0, sizeof set, &set);
          return std::system(("'" + self + "' '[.num-threads]' | grep -q 'threads: 1$'").c_str());
        }) == 0);
}
#endif
