#pragma once
// Memory: aligned blocks that are reused, and the memory that is left.

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace xgrad {

/// Bytes aligned to 64, from a cache of freed blocks, because fresh large blocks cost page faults.
/// Each thread has its own cache of small blocks; all share the large ones.  Throws std::bad_alloc.
void* allocate_bytes(std::size_t bytes);
void free_bytes(void* block, std::size_t bytes) noexcept;

/// A standard allocator on allocate_bytes.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    // NOLINTBEGIN(bugprone-sizeof-expression): T may be a pointer type
    if (n > static_cast<std::size_t>(-1) / (2 * sizeof(T)))
      throw std::bad_array_new_length();
    return static_cast<T*>(allocate_bytes(n * sizeof(T)));
  }
  void deallocate(T* block, std::size_t n) noexcept { free_bytes(block, n * sizeof(T)); }
  // NOLINTEND(bugprone-sizeof-expression)
  friend bool operator==(const Allocator&, const Allocator&) { return true; }
};

// Ask before a large allocation: Linux promises more memory than it has, and kills the process that
// writes to it.

/// The bytes that are free or can be freed, with swap: MemAvailable and SwapFree of `meminfo`.  The
/// largest number if it cannot be read.
std::size_t available_memory(const std::string& meminfo = "/proc/meminfo");

namespace detail {

/// A shared object in a block of allocate_bytes, for the many small ones of a graph.
template <class T, class... Args>
std::shared_ptr<T> make_pooled(Args&&... args) {
  return std::allocate_shared<T>(Allocator<T>(), std::forward<Args>(args)...);
}

}  // namespace detail
}  // namespace xgrad
