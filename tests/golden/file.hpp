#pragma once
// Values that PyTorch computed, in files below tests/golden, and our errors.

#include <optional>
#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/io/safetensors.hpp>

namespace xgrad::testing {

/// The measure of an error, and its usual limit.
enum class ErrorUnit {
  bits,      ///< the largest difference, which must be 0
  ulp,       ///< units in the last place of the golden value: 2
  absolute,  ///< the largest difference: 1e-6
  relative,  ///< that relative to the golden tensor's largest magnitude: 1e-12, for floats 1e-5
};

/// Golden values of a file, or of all files in folders, that records which were used.
class GoldenFile {
 public:
  /// "generator" is tests/golden/generator.safetensors, "layers" the folder tests/golden/layers.
  explicit GoldenFile(const std::string& name) : GoldenFile(std::vector{name}) {}
  explicit GoldenFile(const std::vector<std::string>& names);
  bool contains(const std::string& name) const {
    return content_.tensors.count(name) != 0 || content_.indices.count(name) != 0;
  }
  const Tensor& tensor(const std::string& name) const;
  const Indices& indices(const std::string& name) const;
  /// Checks a value of ours against the golden one.
  void check(const std::string& name, const Tensor& ours, ErrorUnit unit = ErrorUnit::relative,
             std::optional<double> limit = {}) const;
  void check(const std::string& name, const Indices& ours) const;
  const io::TensorFile& content() const { return content_; }
  /// The names of unused values, with which nothing was compared.
  std::vector<std::string> unused() const;

 private:
  io::TensorFile content_;
  mutable std::set<std::string> used_;
};

/// The error against the golden value; infinite if shapes or dtypes differ, or only one has a NaN.
double distance(const Tensor& ours, const Tensor& expected, ErrorUnit unit);

}  // namespace xgrad::testing
