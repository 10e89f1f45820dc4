#include <xgrad/autograd/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <vector>

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
  const std::size_t n = std::max<std::size_t>(bytes, 256) - 1;
  const auto log2 = static_cast<std::size_t>(std::bit_width(n)) - 1;  // 2^log2 <= n
  const std::size_t quarter = std::size_t{1} << (log2 - 2);
  const std::size_t step =
      (n - (std::size_t{1} << log2)) / quarter + 1;  // 1..4 quarters above 2^log2
  if (bytes <= 64)
    return {0, 64};
  if (bytes <= 128)
    return {1, 128};
  return {(log2 - 7) * 4 + step + 1, (std::size_t{1} << log2) + step * quarter};
}

struct Cache {
  std::array<std::vector<void*>, 96> blocks;
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
  for (auto& list : blocks)
    for (void* block : list)
      ::operator delete(block, alignment);
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
  if (Cache* const c = live_cache(); c != nullptr && !c->blocks[size.index].empty()) {
    void* const block = c->blocks[size.index].back();
    c->blocks[size.index].pop_back();
    c->kept -= size.bytes;
    return block;
  }
  return ::operator new(size.bytes, alignment);
}

void free_bytes(void* block, std::size_t bytes) noexcept {
  if (block != nullptr && keep_blocks && bytes <= largest_kept) {
    const SizeClass size = size_class(bytes);
    if (Cache* const c = live_cache(); c != nullptr && c->kept + size.bytes <= most_kept) {
      try {
        c->blocks[size.index].push_back(block);
        c->kept += size.bytes;
        return;
      } catch (const std::bad_alloc&) {  // no room to remember it: give it back below
      }
    }
  }
  ::operator delete(block, alignment);
}

}  // namespace xgrad
