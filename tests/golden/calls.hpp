#pragma once
// Our calls of the table of samples (tests/golden/table.py), and calls that must throw.

#include <span>
#include <string>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad::testing {

/// The inputs of a sample in one dtype; table.py describes each.
struct OpInputs {
  Tensor x, y, z, u, v;  ///< differentiated
  Tensor w, c;           ///< constants
  Indices i, j, k;
  Mask m, n;
};

/// The results of a call: Tensors, and integers that must be equal.
struct OpOutputs {
  std::vector<Tensor> tensors;
  std::vector<Indices> indices;
  OpOutputs(Tensor y) : tensors{std::move(y)} {}
  OpOutputs(std::vector<Tensor> ys) : tensors(std::move(ys)) {}
  OpOutputs(Extremum y) : tensors{std::move(y.values)}, indices{std::move(y.indices)} {}
  OpOutputs(Indices y) : indices{std::move(y)} {}
  OpOutputs(const Mask& y);  ///< as 0 and 1
};

/// Draws the inputs of a large sample, as table.py does.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : generator_(seed) {}
  Tensor randn(const Dims& sizes);
  Tensor uniform(double low, double high, const Dims& sizes);

 private:
  Generator generator_;
};

struct OpCall {
  const char* name;                 ///< "softmax/last"
  OpOutputs (*f)(const OpInputs&);  ///< null: as in the line before
  bool differences = true;          ///< derivatives are compared with differences, too
  double tolerance32 = 1e-5;        ///< of float32, relative to the largest magnitude
  std::uint64_t seed = 0;
  std::vector<Tensor> (*draw)(Draws&) =
      nullptr;  ///< of a large sample, whose inputs are not in the file
};

/// A call that must throw this error, whose message contains every fragment.
struct BadCall {
  const char* text;
  enum Error { ShapeError, DTypeError, ValueError, GraphError } error;
  void (*call)();
  std::vector<std::string> fragments;
};

struct OpGroup {
  std::string name;
  std::vector<OpCall> calls;  ///< f is null in none
  std::span<const BadCall> bad_calls;
};

/// "elementwise", "reduce", "shape", "network".
const std::vector<OpGroup>& op_groups();

}  // namespace xgrad::testing
