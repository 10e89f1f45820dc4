#pragma once
// The declarations of autograd/ops.hpp and of its headers in autograd/ops/, parsed from their text,
// so that tests can check that they cover all.

#include <set>
#include <string>

namespace xgrad::testing {

/// The names of functions that return a Tensor, an Extremum or Tensors, without factories: the
/// differentiable ones.
std::set<std::string> declared_ops();

}  // namespace xgrad::testing
