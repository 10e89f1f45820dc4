#pragma once
// The declarations of autograd/ops.hpp and of the headers that it includes from autograd/ops/, read
// from their text: tests ask whether they have covered all of them.

#include <set>
#include <string>

namespace xgrad::testing {

/// The names of the functions that return a Tensor, an Extremum or Tensors, but for factories: what
/// can be differentiated.
std::set<std::string> declared_ops();

}  // namespace xgrad::testing
