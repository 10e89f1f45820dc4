#pragma once
// The table of samples: our calls, PyTorch's numbers for them, and our errors.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "golden/calls.hpp"

namespace xgrad::testing {

using Inputs = std::vector<Tensor>;

/// PyTorch's numbers for one sample: those of "op/sample/grad0" are at tensors["grad"][0].
/// Table.rows (table.py) describes each kind.
struct SampleNumbers {
  std::map<std::string, std::map<std::size_t, Tensor>> tensors;
  std::map<std::string, std::map<std::size_t, Indices>> indices;

  bool has(const std::string& kind) const { return tensors.contains(kind); }
  std::size_t count(const std::string& kind) const {
    const auto at = tensors.find(kind);
    return at == tensors.end() ? 0 : at->second.size();
  }
  /// In this dtype; undefined if missing.
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

/// All in tests/golden/ops, by "op/sample".
const std::map<std::string, SampleNumbers>& sample_numbers();

/// A comparison with PyTorch: its name ("out0", "grad1", "second0", ...) and the largest
/// difference of an element, relative to the largest magnitude of PyTorch's.
using Deviations = std::vector<std::pair<std::string, double>>;

/// Compares a call in this dtype with PyTorch: outputs, gradients, which the ordinary backward and
/// the one under create_graph compute, and second gradients.  ValueError if the file has no
/// numbers for it.
Deviations deviations(const OpCall& call, DType dtype);

/// A sample as a function of its differentiated inputs alone, in their dtype.
struct OpSample {
  std::string op, name;
  Inputs inputs;                           ///< float64
  std::function<Tensor(const Inputs&)> f;  ///< several outputs are joined into one line
  bool gradients = true;                   ///< PyTorch has gradients, too
  bool differences = true;                 ///< and differences agree
  double tolerance32 = 1e-5;
};

/// For each element n if it is NaN, + or - if it is infinite, else a point; undefined ones are
/// blank.
std::string signs_of(const std::vector<Tensor>& xs);

/// The samples of a group that have differentiated inputs and Tensors as outputs.
const std::vector<OpSample>& op_samples(const OpGroup& group);

}  // namespace xgrad::testing
