#pragma once
// Memory that runs out at a chosen moment, and the amount held.

#include <cstddef>

/// While it lives, the allocation number `k` (from 0) of this thread by operator new fails.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t k);
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
};

/// The most bytes of operator new that this thread has held, beyond those held at construction.
class PeakMemory {
 public:
  PeakMemory();
  std::size_t bytes() const;  ///< 0 if the C library does not tell a block's size

 private:
  std::ptrdiff_t before_;
};
