// Memory blocks: sizes, alignment, and which threads reuse which blocks.

#include <sys/resource.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <barrier>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>
#include <xgrad/autograd/memory.hpp>
#include <xgrad/autograd/sanitizers.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("blocks of all sizes are aligned and whole", "[memory]") {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 1; bytes <= 1024; ++bytes)
    sizes.push_back(bytes);
  for (std::size_t power = 11; power <= 23; ++power)
    for (const std::size_t part : {4, 5, 6, 7})
      for (const std::size_t off : {-1, 0, 1, 64})
        sizes.push_back((std::size_t{1} << power) / 4 * part + off);
  for (int round = 0; round < 2; ++round) {  // new blocks, then reused ones
    std::vector<unsigned char*> blocks;
    for (const std::size_t bytes : sizes) {
      blocks.push_back(static_cast<unsigned char*>(allocate_bytes(bytes)));
      CHECK(reinterpret_cast<std::uintptr_t>(blocks.back()) % 64 == 0);
      std::memset(blocks.back(), static_cast<int>(bytes % 251), bytes);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {  // no other block overlaps
      const auto mark = static_cast<unsigned char>(sizes[i] % 251);
      CHECK(blocks[i][0] == mark);
      CHECK(blocks[i][sizes[i] - 1] == mark);
      free_bytes(blocks[i], sizes[i]);
    }
  }
}

TEST_CASE("no block, and blocks that nothing can hold", "[memory]") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}, std::size_t{1} << 20})
    free_bytes(nullptr, bytes);
  free_bytes(allocate_bytes(0), 0);
  constexpr std::size_t all = ~std::size_t{0};
  for (const std::size_t bytes : {all, all - 63, all / 2 + 1})
    CHECK_THROWS_AS(allocate_bytes(bytes), std::bad_alloc);
}

#if !XGRAD_ADDRESS_SANITIZER
TEST_CASE("a large block that one thread frees is there for another", "[memory]") {
  constexpr std::size_t bytes = std::size_t{3} << 20;
  void* first = nullptr;
  std::thread([&] { first = allocate_bytes(bytes); }).join();
  free_bytes(first, bytes);
  void* second = nullptr;
  std::thread([&] { second = allocate_bytes(bytes); }).join();
  CHECK(second == first);
  free_bytes(second, bytes);
}

TEST_CASE("a thread that frees another's blocks does not accumulate them", "[memory]") {
  constexpr std::size_t bytes = 4096, parts = 256, rounds = 40;
  std::vector<void*> blocks(parts);
  std::barrier turn(2);
  std::thread maker([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      for (void*& block : blocks)
        std::memset(block = allocate_bytes(bytes), 1, bytes);
      turn.arrive_and_wait();
      turn.arrive_and_wait();
    }
  });
  std::set<void*> seen;
  for (std::size_t i = 0; i < rounds; ++i) {
    turn.arrive_and_wait();
    for (void* const block : blocks) {
      seen.insert(block);
      free_bytes(block, bytes);
    }
    turn.arrive_and_wait();
  }
  maker.join();
  CHECK(seen.size() < 4 * parts);
}

#if defined(__GLIBC__)
TEST_CASE("a thread keeps 64 MiB of small blocks and no more", "[memory]") {
  constexpr std::size_t bytes = 1024, most = std::size_t{64} << 20;
  std::size_t in_use = 0, kept = 0;
  std::thread([&] {
    std::vector<void*> blocks(2 * most / bytes);
    const std::size_t before = mallinfo2().uordblks;
    for (void*& block : blocks)
      block = allocate_bytes(bytes);
    in_use = mallinfo2().uordblks - before;
    for (void* const block : blocks)
      free_bytes(block, bytes);
    kept = mallinfo2().uordblks - before;
  }).join();
  if (in_use < 2 * most) {
    WARN("malloc is not glibc's (under valgrind, say), and does not count");
    return;
  }
  CHECK(kept >= most);
  CHECK(kept <= most + most / 4);  // malloc's overhead
}
#endif

TEST_CASE("repeated work asks the system for no memory", "[memory]") {
  constexpr std::size_t bytes = std::size_t{48} << 20, parts = 24;
  const auto page_faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  // Blocks of one size, then blocks of another while most of the first still exist.
  const auto step = [] {
    std::vector<void*> blocks;
    const auto take = [&](std::size_t size) {
      blocks.push_back(allocate_bytes(size));
      std::memset(blocks.back(), 1, size);
    };
    for (std::size_t i = 0; i < parts; ++i)
      take(bytes / parts);
    for (std::size_t i = 0; i < 2; ++i) {
      free_bytes(blocks.back(), bytes / parts);
      blocks.pop_back();
    }
    for (std::size_t i = 0; i < 4; ++i)
      take(bytes / parts / 2);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      free_bytes(blocks[i], i < parts - 2 ? bytes / parts : bytes / parts / 2);
  };
  step();
  step();
  const auto before = page_faults();
  step();
  CHECK(page_faults() - before < 200);  // a part has 512 pages
}
#endif
