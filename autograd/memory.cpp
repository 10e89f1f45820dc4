#include "memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <string_view>
#include "fork.hpp"
#include "per_thread.hpp"
#include "sanitizers.hpp"

namespace xgrad {

namespace {

constexpr std::align_val_t alignment{64};
// Reusing blocks would hide a use after free from AddressSanitizer.
constexpr bool keep_blocks = !XGRAD_ADDRESS_SANITIZER;

// Block sizes: 64, 128, 256 bytes, then four to a doubling: above 256 at most a fifth is unused.
struct SizeClass {
  std::size_t index, bytes;
};
constexpr std::size_t classes = 226;  // the last: 2^63 bytes

constexpr SizeClass size_class(std::size_t bytes) {
  if (bytes <= 64)
    return {0, 64};
  if (bytes <= 128)
    return {1, 128};
  const std::size_t n = std::max<std::size_t>(bytes, 256) - 1;
  const auto log2 = static_cast<std::size_t>(std::bit_width(n)) - 1;  // 2^log2 <= n
  const std::size_t quarter = std::size_t{1} << (log2 - 2);
  const std::size_t step =
      ((n - (std::size_t{1} << log2)) >> (log2 - 2)) + 1;  // 1..4 quarters above 2^log2
  return {(log2 - 7) * 4 + step + 1, (std::size_t{1} << log2) + step * quarter};
}
std::size_t class_bytes(std::size_t index) {
  if (index < 2)
    return 64 << index;
  const std::size_t log2 = (index - 2) / 4 + 7, step = (index - 2) % 4 + 1;
  return (std::size_t{1} << log2) + step * (std::size_t{1} << (log2 - 2));
}

// A free block holds the address of the next, so the list needs no memory.
struct Free {
  Free* next;
};
struct Blocks {
  std::array<Free*, classes> of_class{};
  std::size_t kept = 0;  // bytes

  void* take(SizeClass size) {
    Free* const block = of_class[size.index];
    if (block != nullptr) {
      of_class[size.index] = block->next;
      kept -= size.bytes;
    }
    return block;
  }
  void keep(SizeClass size, void* block) {
    of_class[size.index] = new (block) Free{of_class[size.index]};
    kept += size.bytes;
  }
  // Returns blocks to the system, the largest first, until at most `most` bytes are left.
  void shrink(std::size_t most) {
    for (std::size_t i = classes; i-- > 0 && kept > most;)
      while (kept > most && of_class[i] != nullptr)
        ::operator delete(take({i, class_bytes(i)}), alignment);
  }
};

// Free and used bytes together stay within 9/8 of the most bytes ever in use.  The eighth is there
// because blocks serve one size only: a program that repeats its arrays then asks the system for
// none, and no program holds much more than it needs.
struct Bounded : Blocks {
  // Bytes.  Keep this order: GCC would update `used` and `kept`, if they were neighbours, as one
  // vector, which is slower.
  std::size_t most = 0, most_used = 0, used = 0;

  void count(SizeClass size) {
    used += size.bytes;
    if (used > most_used) {
      most_used = used;
      most = used + used / 8;
    }
  }
  // Keeps a freed block if the bound allows; returns whether it did.
  bool keeps(SizeClass size, void* block) {
    used -= std::min(used, size.bytes);
    if (kept + used + size.bytes > most)
      return false;
    keep(size, block);
    return true;
  }
};

// ---- small blocks: each thread keeps its own ----

constexpr std::size_t largest_small = 16384;
constexpr std::size_t most_small = std::size_t{64} << 20;  // bytes a thread may keep

// A thread that frees other threads' blocks keeps no more of them than it allocates itself.
struct Cache : Bounded {
  ~Cache();
  bool keeps(SizeClass size, void* block) {
    return kept < most_small && Bounded::keeps(size, block);
  }
};

// The size class by bytes / 64, looked up because an op allocates and frees eight small blocks.
static_assert(largest_small <= std::numeric_limits<std::uint16_t>::max());
constexpr auto small_classes = [] {
  std::array<std::array<std::uint16_t, 2>, largest_small / 64 + 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const SizeClass size = size_class(i * 64);
    table[i] = {static_cast<std::uint16_t>(size.index), static_cast<std::uint16_t>(size.bytes)};
  }
  return table;
}();
SizeClass small_class(std::size_t bytes) {
  const auto [index, rounded] = small_classes[(bytes + 63) / 64];
  return {index, rounded};
}

// Null before the cache is made and after it is destroyed.
thread_local constinit Cache* cache = nullptr;

Cache::~Cache() {
  cache = nullptr;
  shrink(0);
}

[[gnu::noinline]] Cache& new_cache() { return *(cache = &detail::per_thread<Cache>()); }

// ---- large blocks: shared by all threads, because one makes gradients and another frees them ----

struct Store : Bounded {
  std::mutex mutex;
};

// It is constructed first and never destroyed, because a Tensor with static storage may need it.
constinit union Kept {
  Store store{};
  ~Kept() {}
} kept;
constinit Store& store = kept.store;
// A child process starts with an empty one, because another thread may have been changing this one.
const detail::RenewedInChild<kept> renewed_store;

// Free blocks are returned to the system before an allocation fails, if they amount to 64 MiB.
void* from_system(std::size_t bytes) {
  constexpr std::size_t much = std::size_t{64} << 20;
  try {
    return ::operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(store.mutex);
    if (store.kept < much)
      throw;
    store.shrink(0);
  }
  return ::operator new(bytes, alignment);
}

[[gnu::noinline]] void* allocate_new_small(SizeClass size) {
  Cache& mine = cache != nullptr ? *cache : new_cache();
  void* const block = from_system(size.bytes);
  mine.count(size);
  return block;
}

[[gnu::noinline]] void* allocate_large(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(-1) / 2)  // before it is rounded up
    throw std::bad_alloc();
  if (!keep_blocks)
    return ::operator new(bytes, alignment);
  const SizeClass size = size_class(bytes);
  {
    const std::lock_guard lock(store.mutex);
    if (void* const block = store.take(size)) {
      store.count(size);
      return block;
    }
    store.shrink(store.most - std::min(store.most, store.used + size.bytes));
  }
  void* const block = from_system(size.bytes);
  const std::lock_guard lock(store.mutex);
  store.count(size);
  return block;
}

[[gnu::noinline]] void give_back(void* block) noexcept { ::operator delete(block, alignment); }

[[gnu::noinline]] void free_large(void* block, std::size_t bytes) noexcept {
  if (keep_blocks && block != nullptr) {
    const std::lock_guard lock(store.mutex);
    if (store.keeps(size_class(bytes), block))
      return;
  }
  give_back(block);
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  if (!keep_blocks || bytes > largest_small)
    return allocate_large(bytes);
  const SizeClass size = small_class(bytes);
  if (cache != nullptr)
    if (void* const block = cache->take(size)) {
      cache->count(size);
      return block;
    }
  return allocate_new_small(size);
}

void free_bytes(void* block, std::size_t bytes) noexcept {
  if (!keep_blocks || bytes > largest_small)
    return free_large(block, bytes);
  if (block == nullptr)
    return;
  // A thread without a cache makes none here: freeing must not need memory.
  if (cache == nullptr || !cache->keeps(small_class(bytes), block))
    give_back(block);
}

std::size_t available_memory(const std::string& meminfo) {
  std::uint64_t kilobytes = 0;
  std::ifstream file(meminfo);
  for (std::string line; std::getline(file, line);)
    for (const std::string_view word : {"MemAvailable:", "SwapFree:"})
      if (line.starts_with(word))
        kilobytes += std::strtoull(line.c_str() + word.size(), nullptr, 10);
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return kilobytes == 0 || kilobytes > most / 1024 ? most : kilobytes * 1024;
}

}  // namespace xgrad
