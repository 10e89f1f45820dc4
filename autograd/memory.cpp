#include <xgrad/autograd/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

namespace xgrad {

namespace {

constexpr std::align_val_t alignment{64};
constexpr std::size_t largest_kept = std::size_t{1}
                                     << 26;  // bytes; larger blocks go back to the system
constexpr std::size_t most_kept = std::size_t{256} << 20;  // bytes a thread may keep
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keep_blocks =
    false;  // a kept block would hide a use after free from AddressSanitizer
#else
constexpr bool keep_blocks = true;
#endif

// Block sizes: four to a doubling, from 64 bytes, so that at most a fifth of a block is unused.
struct SizeClass {
  std::size_t index, bytes;
};

SizeClass size_class(std::size_t bytes) {
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

// A block that is free holds the address of the next: remembering one needs no memory.
struct Free {
  Free* next;
};

struct Cache {
  std::array<Free*, 96> blocks{};
  std::size_t kept = 0;
  ~Cache();
};

// Tensors with static storage die after the main thread's thread_local objects: the pointer tells
// whether the cache lives.
thread_local Cache* cache = nullptr;
thread_local bool cache_is_dead = false;

Cache::~Cache() {
  cache = nullptr;
  cache_is_dead = true;
  for (Free* list : blocks)
    while (list != nullptr)
      ::operator delete(std::exchange(list, list->next), alignment);
}

Cache* live_cache() {
  if (cache == nullptr && !cache_is_dead) {
    thread_local Cache mine;
    cache = &mine;
  }
  return cache;
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  if (!keep_blocks || bytes > largest_kept)
    return ::operator new(bytes, alignment);
  const SizeClass size = size_class(bytes);
  if (Cache* const c = live_cache(); c != nullptr && c->blocks[size.index] != nullptr) {
    c->kept -= size.bytes;
    return std::exchange(c->blocks[size.index], c->blocks[size.index]->next);
  }
  return ::operator new(size.bytes, alignment);
}

void free_bytes(void* block, std::size_t bytes) noexcept {
  if (block != nullptr && keep_blocks && bytes <= largest_kept) {
    const SizeClass size = size_class(bytes);
    if (Cache* const c = live_cache(); c != nullptr && c->kept + size.bytes <= most_kept) {
      c->kept += size.bytes;
      c->blocks[size.index] = new (block) Free{c->blocks[size.index]};
      return;
    }
  }
  ::operator delete(block, alignment);
}

}  // namespace xgrad
