#pragma once
// Finds the first place where two functions that should be equal differ.
//
// A mistake in the forward (a forgotten 1 / sqrt(d), a mask after the softmax) has the right
// gradient of the wrong function, so gradcheck() rightly reports nothing.  A second implementation,
// trusted or written more plainly, reveals it:
//
//   std::cout << compare(my_attention, plain_attention, {x}).message << '\n';
//
//   the results differ, most at (0, 3, 1): yours 0.31, the reference's 0.12; 9 of the reference's
//   12 intermediates are among yours: `table` lists both
//     the reference's op 5, mul, is the first that you do not have: (1, 4, 4) float64, -0.2 ... 0.7
//     yours differs first at op 5, softmax: (1, 4, 4) float64, 0.09 ... 0.5
//   your input of softmax is 2.82843 (√8) times the reference's

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../trace.hpp"
#include "tensor_function.hpp"

namespace xgrad {

/// |mine - reference| <= atol + rtol * max |reference|, with the maximum over the whole Tensor.
struct CompareOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
};

/// An op of one of two functions.
struct ComparedOp {
  std::size_t number = 0;  ///< from 1, in running order
  std::string op, scope;
  Tensor value;  ///< its output
};

/// The result.  Converts to true if the results agree.
struct Comparison {
  bool ok = true;
  std::size_t matched = 0, ops = 0;  ///< of the reference's ops: matched, and all
  /// The first op whose value mine lacks; the op of the result, if mine has its value and returns
  /// another.
  std::optional<ComparedOp> reference;
  std::optional<ComparedOp> mine;  ///< the same, with the two functions exchanged
  std::string hint;                ///< a description of the difference, if there is one
  std::string message;             ///< a summary of all this
  /// If the results differ: the ops of both, as in to_string(Trace), with a mark on each whose
  /// value the other lacks.
  std::string table;
  explicit operator bool() const { return ok; }
};

/// Runs both functions on the same inputs and, if their results differ, looks for the first
/// intermediate of the reference that mine lacks, on the way to the first differing result.  Ops
/// are aligned by their values, in any order and under any name, fused ops as compositions (see
/// Decompose), even if axes are merged or (up to five) permuted.  A value that only one of them has
/// does not count if the values computed from it agree.  Each function is called twice and must
/// give the same.  Both draw the same numbers from default_generator(), which is reset afterwards.
Comparison compare(const TensorFunction& mine, const TensorFunction& reference,
                   const std::vector<Tensor>& inputs, const CompareOptions& options = {});

/// A run of another program, which wrote its values to a file: io::load_reference() reads those of
/// PyTorch.
struct ReferenceRun {
  std::vector<Tensor> inputs = {};    ///< those of floating-point numbers
  std::vector<Indices> indices = {};  ///< those of integers; truth values are 0 and 1
  std::vector<std::pair<std::string, Tensor>> state = {};  ///< nn::StateDict of its module
  std::vector<Trace::Event> events = {};  ///< in running order; `forward` may be empty
  std::vector<Tensor> results = {};       ///< outputs of events, or inputs
};
/// The same on the inputs of that run; a function of `indices` captures them.
Comparison compare(const TensorFunction& mine, const ReferenceRun& reference,
                   const CompareOptions& options = {});

}  // namespace xgrad
