#pragma once

#include <xgrad/autograd/random.hpp>

namespace xgrad::detail {

/// Remembers default_generator(): calls of a function can draw the same numbers again, and in the
/// end the generator is as it was.
class SameDraws {
 public:
  SameDraws() = default;
  SameDraws(const SameDraws&) = delete;
  SameDraws& operator=(const SameDraws&) = delete;
  ~SameDraws() { again(); }
  void again() const { default_generator() = before_; }

 private:
  Generator before_ = default_generator();
};

}  // namespace xgrad::detail
