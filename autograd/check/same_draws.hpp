#pragma once

#include <string>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/tensor.hpp>

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

/// "the function is not deterministic: two calls gave ...", if the results of two calls, with the
/// same draws, differ; else empty.  What differs by itself has no gradient to check.
std::string two_results(const Tensor& first, const Tensor& second);

}  // namespace xgrad::detail
