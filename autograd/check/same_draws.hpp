#pragma once
// Repeated calls of a checked function: with the same random numbers, on the same inputs.

#include <string>
#include <vector>
#include "../random.hpp"
#include "../tensor.hpp"
#include "tensor_function.hpp"

namespace xgrad::detail {

/// Saves default_generator() so that calls of a function can draw the same numbers again; the
/// destructor restores it.
class SameDraws {
 public:
  SameDraws() = default;
  SameDraws(const SameDraws&) = delete;
  SameDraws& operator=(const SameDraws&) = delete;
  ~SameDraws() { again(); }
  void again() const { default_generator() = before_; }
  /// f, drawing the same numbers in each call.
  TensorFunction of(const TensorFunction& f) const {
    return [this, f](const std::vector<Tensor>& in) {
      again();
      return f(in);
    };
  }

 private:
  Generator before_ = default_generator();
};

/// Saves values to detect whether a function changes its inputs; the destructor restores them.
class Snapshot {
 public:
  /// Uses the names "input 0", ... by default.
  explicit Snapshot(const std::vector<Tensor>& inputs, const std::vector<std::string>& names = {});
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() { changes(""); }
  /// "WHO changes input 0 at (1), which was 2 and is 3: ...", or empty.  Restores all values.
  std::string changes(const std::string& who = "the function") const;

 private:
  struct Entry {
    std::string name;
    Tensor x, before;
  };
  std::vector<Entry> kept_;
};

/// "the function is not deterministic: two calls gave ...", if the results of two calls with the
/// same draws differ; else empty.  A nondeterministic function has no gradient to check.
std::string two_results(const std::vector<Tensor>& first, const std::vector<Tensor>& second);

}  // namespace xgrad::detail
