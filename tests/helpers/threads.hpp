#pragma once

#include <xgrad/autograd/threads.hpp>

/// While one lives, ops run on this many threads.
class Threads {
 public:
  explicit Threads(std::size_t n) : before_(xgrad::num_threads()) { xgrad::set_num_threads(n); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { xgrad::set_num_threads(before_); }

 private:
  std::size_t before_;
};
