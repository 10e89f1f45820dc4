#pragma once
// Golden values of the ops: what tests/golden/ops.py had PyTorch compute, and the same calls of
// ours.

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::testing {

/// The inputs of a case, of one dtype; tests/golden/cases.py says what each kind is.
struct GoldenInputs {
  std::vector<Tensor> tensors, fixed;
  std::vector<Indices> ids;
  std::vector<Mask> masks;
  const Tensor& operator[](std::size_t i) const { return tensors.at(i); }
};

/// What a call returns: Tensors, and integers that must be equal.
struct GoldenOutputs {
  std::vector<Tensor> tensors;
  std::vector<Indices> indices;
  GoldenOutputs(Tensor y) : tensors{std::move(y)} {}
  GoldenOutputs(std::vector<Tensor> ys) : tensors(std::move(ys)) {}
  GoldenOutputs(Extremum y) : tensors{std::move(y.values)}, indices{std::move(y.indices)} {}
  GoldenOutputs(Indices y) : indices{std::move(y)} {}
  GoldenOutputs(const Mask& y);  ///< as 0 and 1
};

using GoldenCall = std::function<GoldenOutputs(const GoldenInputs&)>;

/// Calls by the name of their case, "op/sample".
class GoldenCalls {
 public:
  /// The same call for several samples of one op.  ValueError for a name that stands twice.
  void add(const std::string& op, std::initializer_list<std::string> samples,
           const GoldenCall& call);
  const std::map<std::string, GoldenCall>& by_name() const { return calls_; }

 private:
  std::map<std::string, GoldenCall> calls_;
};

// One function per file of calls.
void add_elementwise_calls(GoldenCalls& calls);
void add_reduce_calls(GoldenCalls& calls);
void add_shape_calls(GoldenCalls& calls);    // parts, indexing and matrix products, too

/// The values of one case: those of "op/sample/grad0" are at tensors["grad"][0].
struct GoldenCase {
  std::map<std::string, std::map<std::size_t, Tensor>> tensors;
  std::map<std::string, std::map<std::size_t, Indices>> indices;

  bool has(const std::string& kind) const { return tensors.contains(kind); }
  /// How many tensors of a kind there are.
  std::size_t count(const std::string& kind) const {
    const auto at = tensors.find(kind);
    return at == tensors.end() ? 0 : at->second.size();
  }
  /// In this dtype; undefined if it is not there.
  Tensor get(const std::string& kind, std::size_t i, DType dtype) const {
    const auto at = tensors.find(kind);
    return at == tensors.end() || !at->second.contains(i) ? Tensor() : to(at->second.at(i), dtype);
  }
  std::vector<Indices> integers(const std::string& kind) const {
    std::vector<Indices> all;
    if (const auto at = indices.find(kind); at != indices.end())
      for (const auto& [i, x] : at->second)
        all.push_back(x);
    return all;
  }
};

/// The cases of tests/golden/ops.safetensors by name.
const std::map<std::string, GoldenCase>& golden_cases();

/// How far each value is off, and what it is: "out0", "grad1", "second0", ...  That is the largest
/// difference of an element, relative to the largest magnitude in the golden tensor.
using Deviations = std::vector<std::pair<std::string, double>>;

/// Makes the call of a case in this dtype and compares its outputs, its gradients, which the
/// ordinary backward and the one under create_graph compute, and its second gradients.
Deviations deviations(const GoldenCase& golden, const GoldenCall& call, DType dtype);

}  // namespace xgrad::testing
