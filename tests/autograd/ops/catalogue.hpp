#pragma once
// What autograd/ops.hpp declares, read from its text: tests ask whether they have covered all of
// it.

#include <set>
#include <string>

namespace xgrad::testing {

/// The names of the functions that return a Tensor, an Extremum or Tensors, in the sections of
/// ops.hpp from the one whose title begins with `first` up to `last`, or to the end.
std::set<std::string> declared_ops(const std::string& first, const std::string& last);

/// Those that can be differentiated: all but factories, comparisons and operators.
std::set<std::string> differentiable_ops();

}  // namespace xgrad::testing
