#pragma once
// Repeated calls of a checked function: with the same random numbers (detail::SameDraws), on the
// same inputs.

#include <string>
#include <vector>
#include "../random.hpp"
#include "../tensor.hpp"

namespace xgrad::detail {

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
