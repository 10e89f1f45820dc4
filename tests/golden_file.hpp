#pragma once
// Values that PyTorch computed, in tests/golden/*.safetensors, and how far ours are from them.

#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/io/safetensors.hpp>

namespace golden {

/// A file of golden values that knows which of them were asked for.
class File {
 public:
  explicit File(const std::string& name);  ///< "layers" is tests/golden/layers.safetensors
  bool contains(const std::string& name) const {
    return content_.tensors.count(name) != 0 || content_.indices.count(name) != 0;
  }
  const xgrad::Tensor& tensor(const std::string& name) const;
  const xgrad::Indices& indices(const std::string& name) const;
  /// The names that nobody asked for: values that nothing was compared with.
  std::vector<std::string> unused() const;

 private:
  xgrad::io::TensorFile content_;
  mutable std::set<std::string> used_;
};

/// How an error is measured.
enum class Unit {
  bits,      ///< the largest difference; none is allowed
  ulp,       ///< units in the last place of the golden value
  absolute,  ///< the largest difference
  relative,  ///< the largest difference, relative to the largest magnitude in the golden tensor
};

/// One comparison of a value of ours with PyTorch's.
struct Comparison {
  std::string kind;  ///< the layer, optimizer or transform
  std::string name;  ///< of the golden value
  Unit unit;
  bool is_double = true;
  double error = 0;
  double limit = 0;
};

/// How far ours is from the golden value; infinite if shapes or dtypes differ, or one has a NaN.
double distance(const xgrad::Tensor& ours, const xgrad::Tensor& expected, Unit unit);

/// Compares, and looks the limit up: 1e-12 relative for doubles and 1e-5 for floats, 2 ulp, 1e-6
/// absolute.
Comparison compare(std::string kind, const std::string& name, const xgrad::Tensor& ours,
                   const xgrad::Tensor& expected, Unit unit = Unit::relative);
Comparison compare(std::string kind, const std::string& name, const xgrad::Indices& ours,
                   const xgrad::Indices& expected);

/// One CHECK for each.
void check(const std::vector<Comparison>& comparisons);
/// A table: how many comparisons of each kind, and the largest error of doubles and of floats.
void print_summary(const std::string& title, const std::vector<Comparison>& comparisons);

}  // namespace golden
