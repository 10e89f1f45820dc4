#pragma once
// Memory that runs out at a chosen moment.

#include <cstddef>

/// While it lives, the allocation number `k` (from 0) of this thread by operator new fails.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t k);
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
};
