#pragma once
// Elementwise updates of Tensors in place, without a graph: the step of an optimizer.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>
#include "tensor.hpp"

namespace xgrad {

/// An update of Tensors of one shape and dtype, not yet made: element_update()
/// (update_formula.hpp).
struct ElementUpdate {
  std::vector<Tensor> tensors = {};
  std::size_t written = 0;  ///< the first ones are written, the others only read
  /// Updates elements [begin, end); `data` points to each Tensor's elements.
  std::function<void(DType, void* const* data, std::size_t begin, std::size_t end)> loop = {};
};

/// Makes all updates, divided among threads.  All or nothing: checks and allocations, which may
/// fail, come before the first write.  A Tensor that shares its elements is copied first.  No
/// Tensor may be written by two updates, or read by one and written by another.  ShapeError, which
/// begins with `name`, if an update's Tensors differ in shape or dtype; GraphError for writing to
/// the result of an op.
void update_elements(std::string_view name, std::span<const ElementUpdate> updates);

}  // namespace xgrad
