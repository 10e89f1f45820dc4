#pragma once
// Copying between strided arrays: the base of permute, slice, cat and expand.

#include <cstddef>
#include <utility>
#include <vector>

namespace xgrad::kernels {

/// A walk through two arrays in step: a size and each array's stride, in elements, for each axis.
struct Walk {
  struct StridedDim {
    std::size_t size;
    std::ptrdiff_t from, to;
  };
  std::vector<StridedDim> axes;     ///< outermost first; none: one element
  std::ptrdiff_t from = 0, to = 0;  ///< offsets of the first elements
};

/// to = from, also of int64.  Strides may be negative, and in `from` zero; no two elements of `to`
/// coincide.
template <class T>
void copy(Walk walk, const T* from, T* to);
inline void copy(Walk walk, const bool* from, bool* to) {  ///< the same, as bytes
  copy(std::move(walk), reinterpret_cast<const unsigned char*>(from),
       reinterpret_cast<unsigned char*>(to));
}
/// to += from.
template <class T>
void add(Walk walk, const T* from, T* to);

/// to[0 ... n) = value.
template <class T>
void fill(T* to, std::size_t n, T value);

}  // namespace xgrad::kernels
