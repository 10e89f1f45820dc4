#pragma once
// Elementwise updates of Tensors in place, without a graph: the step of an optimizer.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// An update of Tensors of one shape and dtype, still to be made: element_update()
/// (update_formula.hpp).
struct ElementUpdate {
  std::vector<Tensor> tensors = {};
  std::size_t written = 0;  ///< the first ones get new elements, the others are read
  /// Updates elements [begin, end), given where each Tensor's elements are.
  std::function<void(DType, void* const* data, std::size_t begin, std::size_t end)> loop = {};
};

/// Makes all updates together, cut over threads.  All or nothing: checks and allocations, which can
/// fail, does so before the first element changes.  A Tensor that shares its elements gets its own
/// first. No Tensor may be written by two updates, and none read that another one writes.
/// ShapeError, which begins with `name`, if an update's Tensors differ in shape or dtype;
/// GraphError for writing to the result of an op.
void update_elements(std::string_view name, std::span<const ElementUpdate> updates);

/// The first Tensor of each list becomes the sum of the list in the order of a binary tree: the sum
/// of the first half of the list, and of the rest, added.  The others are used up.  Undefined
/// Tensors are left out.  ShapeError if a list's Tensors differ in shape or dtype.
void foreach_tree_sum_(std::span<std::vector<Tensor>> lists);

}  // namespace xgrad
