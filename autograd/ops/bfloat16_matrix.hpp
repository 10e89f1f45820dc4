#pragma once

#include <cstdint>
#include <memory>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// A matrix in bfloat16.  Copies share its memory, which nothing changes once it is filled.
class Bfloat16Matrix {
 public:
  Bfloat16Matrix() = default;  ///< undefined
  /// (rows, columns), not yet filled: before it is used, put() comes to all of it.
  explicit Bfloat16Matrix(const Shape& shape);

  bool defined() const { return !shape_.empty(); }
  const Shape& shape() const { return shape_; }
  /// What tells whether two share their memory.
  const void* handle() const { return memory_.get(); }
  /// Puts x (n, m), float32, rounded to the nearest, ties to even, with x[0, 0] at (row, column).
  /// Returns whether all that is finite stays so.
  [[nodiscard]] bool put(std::size_t row, std::size_t column, const Tensor& x);

  /// x Wᵀ + bias: x (..., columns), float32 -> (..., rows).  GraphError if a gradient may be
  /// wanted: use NoGrad.
  Tensor linear(const Tensor& x, const Tensor& bias) const;
  /// The rows of these numbers, in float32: (...) -> (..., columns).  ValueError beyond the last.
  Tensor rows(const Indices& indices) const;

 private:
  Shape shape_;
  std::size_t stride_ = 0;  // between rows, which end in zeros
  std::shared_ptr<std::uint16_t> memory_;
};

}  // namespace xgrad
