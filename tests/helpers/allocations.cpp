#include "helpers/allocations.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allocations_left = never;

void count() {
  if (allocations_left == never)
    return;
  if (allocations_left == 0) {
    allocations_left = never;
    throw std::bad_alloc();
  }
  --allocations_left;
}

thread_local std::ptrdiff_t held = 0, most_held = 0;

std::ptrdiff_t size_of([[maybe_unused]] void* block) {
#if defined(__GLIBC__)
  return static_cast<std::ptrdiff_t>(::malloc_usable_size(block));
#else
  return 0;
#endif
}

void* counted(void* block) {
  most_held = std::max(most_held, held += size_of(block));
  return block;
}

void* checked(void* block) {
  if (block == nullptr)
    throw std::bad_alloc();
  return counted(block);
}

void release(void* block) {
  held -= size_of(block);
  std::free(block);
}

void* aligned_block(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(to, (bytes + to - 1) / to * to + (bytes == 0 ? to : 0));
}

}  // namespace

FailingAllocation::FailingAllocation(std::size_t k) { allocations_left = k; }
FailingAllocation::~FailingAllocation() { allocations_left = never; }

PeakMemory::PeakMemory() : before_(most_held = held) {}
std::size_t PeakMemory::bytes() const { return static_cast<std::size_t>(most_held - before_); }

void* operator new(std::size_t bytes) {
  count();
  constexpr std::uint64_t most = std::uint64_t{1} << 40;  // AddressSanitizer's ends the program
  if (bytes > most)
    throw std::bad_alloc();
  return checked(std::malloc(bytes == 0 ? 1 : bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count();
  return checked(aligned_block(bytes, alignment));
}
// AddressSanitizer has its own of these, which would not match our delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(std::malloc(bytes == 0 ? 1 : bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(aligned_block(bytes, alignment));
}
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
