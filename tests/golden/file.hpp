#pragma once
// Values that PyTorch computed, in tests/golden/*.safetensors, and our errors.

#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/io/safetensors.hpp>

namespace xgrad::testing {

/// A file of golden values that records which were used.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name);  ///< "layers" is tests/golden/layers.safetensors
  bool contains(const std::string& name) const {
    return content_.tensors.count(name) != 0 || content_.indices.count(name) != 0;
  }
  const Tensor& tensor(const std::string& name) const;
  const Indices& indices(const std::string& name) const;
  /// The names of unused values, with which nothing was compared.
  std::vector<std::string> unused() const;

 private:
  io::TensorFile content_;
  mutable std::set<std::string> used_;
};

/// The measure of an error.
enum class ErrorUnit {
  bits,      ///< the largest difference, which must be 0
  ulp,       ///< units in the last place of the golden value
  absolute,  ///< the largest difference
  relative,  ///< the largest difference, relative to the largest magnitude in the golden tensor
};

/// One comparison of a value of ours with PyTorch's.
struct GoldenComparison {
  std::string name;  ///< of the golden value; begins with the layer, optimizer or transform
  ErrorUnit unit;
  bool is_double = true;
  double error = 0;
  double limit = 0;
  std::string worst = {};  ///< if the error is above the limit: the element, ours and PyTorch's
};

/// The error against the golden value; infinite if shapes or dtypes differ, or only one has a NaN.
double distance(const Tensor& ours, const Tensor& expected, ErrorUnit unit);

/// Compares with the usual limit: 1e-12 relative for doubles and 1e-5 for floats, 2 ulp, 1e-6
/// absolute.
GoldenComparison compare_golden(const std::string& name, const Tensor& ours, const Tensor& expected,
                                ErrorUnit unit = ErrorUnit::relative);
GoldenComparison compare_golden(const std::string& name, const Indices& ours,
                                const Indices& expected);

/// One CHECK for each.
void check_golden(const std::vector<GoldenComparison>& comparisons);
/// A table: for each kind, the numbers of cases and of compared values, the largest error of
/// doubles and of floats, and the place of the latter.  The case of a value "a/b/c" is "a/b".
void print_golden_summary(const std::string& title,
                          const std::vector<GoldenComparison>& comparisons);

}  // namespace xgrad::testing
