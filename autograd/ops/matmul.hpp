#pragma once
// Matrix products: one product() whose operands may be transposed, the matrices of broadcast
// batches, and matrices in bfloat16.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

/// op(a) op(b) over broadcast batches, where op swaps the last two dimensions if asked: no
/// transpose is ever copied, neither here nor in the derivative, which is made of this op again.
/// op(a) (..., m, k), op(b) (..., k, n) -> (..., m, n); a (k) is one row, b (k, n) -> (n).
/// A bias (n,), unless undefined, is added to each row: then b has no batch.  ShapeError and
/// DTypeError name `op`.
Tensor product(const char* op, const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
               const Tensor& bias = {});

/// The matrices (or other blocks) of a batch as an operand sees them through broadcasting.
struct Blocks {
  std::size_t count;                 ///< blocks that the operand has
  std::vector<std::size_t> of_item;  ///< for each item of the batch, in order, which block it uses
};
/// Blocks of an operand whose leading dimensions `own` broadcast to `batch`.
Blocks broadcast_blocks(const Shape& own, const Shape& batch);

/// The dimensions before the last `n`.
Shape leading(const Shape& shape, std::size_t n);
/// The shape of a batch of matrices.
Shape with_matrix(const Shape& batch, std::size_t rows, std::size_t columns);

}  // namespace xgrad::detail

namespace xgrad {

/// A matrix in bfloat16.  Copies share its memory, which nothing changes once it is filled.
class Bfloat16Matrix {
 public:
  Bfloat16Matrix() = default;  ///< undefined
  /// (rows, columns), not yet filled: before it is used, put() comes to all of it.
  explicit Bfloat16Matrix(const Shape& shape);

  bool defined() const { return !shape_.empty(); }
  const Shape& shape() const { return shape_; }
  /// Equal for two that share their memory.
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
