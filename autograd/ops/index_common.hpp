#pragma once
// What the ops that take Indices have in common.

#include <optional>
#include <span>
#include <utility>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

/// Every index must be in [0, limit); the ValueError says which is not, and where it stands.
void check_range(const char* op, const Indices& index, std::size_t limit);

/// DTypeError unless the argument called `name` has x's dtype.
void check_same_dtype(const char* op, const Tensor& x, const char* name, const Tensor& src);

/// A 0-d shape counts as one of a single element, as in PyTorch.
Shape at_least_1d(const Shape& shape);

/// What index_select makes of an x of this shape, and index_add takes as src.
Shape selected_shape(const char* op, const Shape& x, std::size_t dim, const Indices& index);

/// The index of gather and scatter: of the tensor's rank, and no larger off dim.  One without
/// elements fits anything.
void check_fits(const char* op, const Indices& index, const char* name, const Shape& tensor,
                std::optional<std::size_t> dim);

/// A copy of in[0] that `change(y, src)` has written to, given the memory of in[1].
template <class T, class F>
Array<T> changed_copy(std::span<const Tensor> in, const F& change) {
  auto y = copy_of(in[0].data<T>(), in[0].shape());
  change(y.data(), in[1].data<T>());
  return y;
}

}  // namespace xgrad::detail
