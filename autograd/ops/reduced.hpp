#pragma once
// Lists of dimensions, the dimensions that an op reduces, and kernels over them.

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>
#include "../fail.hpp"
#include "../kernels/odometer.hpp"
#include "../ops.hpp"

namespace xgrad {

// For each dimension, whether a list names it.
using Listed = std::vector<bool>;

// ValueError naming op if a dimension is named twice.  A 0-d shape counts as one of a single
// dimension, as in PyTorch.
inline Listed listed_dims(const Dims& dims, std::size_t rank, const char* op) {
  Listed listed(std::max<std::size_t>(rank, 1), false);
  for (const std::int64_t dim : dims) {
    Listed::reference once = listed[normalize_dim(dim, rank, op)];
    if (once)
      fail<ValueError>("{}: dimension {} appears twice in the list ({})", op, dim,
                       fmt::join(dims, ", "));
    once = true;
  }
  return listed;
}

// The dimensions that an op reduces, and the resulting shapes.
class Reduced {
 public:
  // An empty list means all, as in PyTorch 1.13.
  Reduced(const Shape& x, const Dims& dims, const char* op)
      : x_(x), listed_(listed_dims(dims, x.size(), op)) {
    if (dims.empty())
      std::fill(listed_.begin(), listed_.end(), true);
  }
  // The dimensions along which `target` broadcasts to x.
  Reduced(const Shape& x, const Shape& target) : x_(x), listed_(x.size()) {
    const std::size_t missing = x.size() - target.size();
    for (std::size_t d = 0; d < x.size(); ++d)
      listed_[d] = d < missing || target[d - missing] != x[d];
  }

  bool contains(std::size_t d) const { return listed_[d]; }
  const Shape& before() const { return x_; }
  Shape keepdim_shape() const {  // with the reduced dimensions as 1
    Shape shape = x_;
    for (std::size_t d = 0; d < x_.size(); ++d)
      if (contains(d))
        shape[d] = 1;
    return shape;
  }
  Shape after(bool keepdim) const {
    if (keepdim)
      return keepdim_shape();
    Shape shape;
    for (std::size_t d = 0; d < x_.size(); ++d)
      if (!contains(d))
        shape.push_back(x_[d]);
    return shape;
  }
  std::size_t count() const {  // elements that make one of the result
    std::size_t n = 1;
    for (std::size_t d = 0; d < x_.size(); ++d)
      if (contains(d))
        n *= x_[d];
    return n;
  }

  // Calls f(axis, is_last) for each group of neighbouring reduced dimensions, the last first, and
  // at least once.  Each call gets the result of the one before.
  template <class F>
  void for_each_axis(const F& f) const {
    kernels::Axis axis{static_cast<std::size_t>(numel(x_)), 1, 1};
    bool open = false;  // there are reduced dimensions that f has not had
    for (std::size_t d = x_.size(); d-- > 0;) {
      if (x_[d] == 1)
        continue;
      if (!contains(d) && open && any_before(d)) {
        f(axis, false);
        axis.n = 1;
        open = false;
      }
      // Kept dimensions before the last group are its outer ones.
      if (!contains(d) && open)
        break;
      (contains(d) ? axis.n : axis.inner) *= x_[d];
      open = open || contains(d);
      axis.outer = 1;
      for (std::size_t k = 0; k < d; ++k)
        axis.outer *= x_[k];
    }
    f(axis, true);
  }

 private:
  bool any_before(std::size_t d) const {
    while (d-- > 0)
      if (contains(d) && x_[d] != 1)
        return true;
    return false;
  }

  Shape x_;
  Listed listed_;
};

// x reduced by kernels of the form k(axis, from, to): `first` on x, then `rest` on its result.
template <class T, class First, class Rest>
Array<T> reduce(const Tensor& x, const Reduced& dims, const Shape& shape, const First& first,
                const Rest& rest) {
  auto y = empty_array<T>(shape);
  kernels::Scratch<T> before;
  bool started = false;
  dims.for_each_axis([&](kernels::Axis axis, bool is_last) {
    kernels::Scratch<T> after(is_last ? 0 : axis.outer * axis.inner);
    T* const to = is_last ? y.data() : after.data();
    if (started)
      rest(axis, before.data(), to);
    else
      first(axis, x.data<T>(), to);
    before = std::move(after);
    started = true;
  });
  return y;
}

template <class T>
Array<T> reduce(const Tensor& x, const Reduced& dims, const Shape& shape,
                void (*kernel)(kernels::Axis, const T*, T*)) {
  return reduce<T>(x, dims, shape, kernel, kernel);
}

// x with the reduced dimensions last: dims.keepdim_shape() rows of dims.count() elements.
inline Tensor rows_of(const Tensor& x, const Reduced& dims) {
  Dims order;
  for (const bool reduced : {false, true})
    for (Size d = 0; d < x.dim(); ++d)
      if (dims.contains(d) == reduced)
        order.push_back(static_cast<std::int64_t>(d));
  return std::is_sorted(order.begin(), order.end()) ? x : permute(x, order);
}

// x less its mean over dims, to the rounding of the deviations.
Tensor deviations(const Tensor& x, const Dims& dims);

// A gradient (or result) with the reduced dimensions as 1, so that it broadcasts to x's shape.
inline Tensor as_keepdim(const Tensor& y, const Reduced& dims) {
  return dims.keepdim_shape() == y.shape() ? y : reshape(y, dims.keepdim_shape());
}

}  // namespace xgrad
