#pragma once
// Matrix products: one product() whose operands may be transposed, the matrices of broadcast
// batches, and matrices in bfloat16.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include "../tensor.hpp"

namespace xgrad::detail {

/// op(a) op(b) over broadcast batches; op swaps the last two dimensions if `transpose` is true.  No
/// transpose is ever copied, neither here nor in the derivative, which is made of the same op.
/// op(a) (..., m, k), op(b) (..., k, n) -> (..., m, n); a (k) is one row, b (k, n) -> (n).  A bias
/// (n,), unless undefined, is added to each row: then b has no batch.  ShapeError and DTypeError
/// name `op`.
Tensor product(const char* op, const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
               const Tensor& bias = {});

/// ShapeError, which names `op`, unless linear() takes these; the weight is a matrix.
void check_linear(const char* op, const Tensor& x, const Shape& weight, const Tensor& bias);

/// The matrices (or other blocks) that an operand has for the items of a broadcast batch.
struct Blocks {
  std::size_t count;                 ///< the operand's blocks
  std::vector<std::size_t> of_item;  ///< for each item of the batch, in order, its block
};
/// Blocks of an operand with leading dimensions `own` that broadcast to `batch`.
Blocks broadcast_blocks(const Shape& own, const Shape& batch);

/// The dimensions before the last `n`.
Shape leading(const Shape& shape, std::size_t n);
/// The shape of a batch of matrices.
Shape with_matrix(const Shape& batch, std::size_t rows, std::size_t columns);

}  // namespace xgrad::detail

namespace xgrad {

/// A matrix in bfloat16.  Copies share its memory, which does not change once it is filled.
class Bfloat16Matrix {
 public:
  Bfloat16Matrix() = default;  ///< undefined
  /// (rows, columns), uninitialised: put() must fill all of it before use.
  explicit Bfloat16Matrix(const Shape& shape);

  bool defined() const { return !shape_.empty(); }
  const Shape& shape() const { return shape_; }
  /// Equal for copies that share their memory.
  const void* handle() const { return memory_.get(); }
  /// Writes x (n, m), float32, rounded to the nearest, ties to even, to the rows and columns from
  /// (row, column) on.  Returns whether all finite elements stay finite.
  [[nodiscard]] bool put(std::size_t row, std::size_t column, const Tensor& x);

  /// x Wᵀ + bias: x (..., columns), float32 -> (..., rows).  GraphError if a gradient may be
  /// needed: use NoGrad.
  Tensor linear(const Tensor& x, const Tensor& bias) const;
  /// Rows by number, in float32: (...) -> (..., columns).  ValueError beyond the last.
  Tensor rows(const Indices& indices) const;

 private:
  Shape shape_;
  std::size_t stride_ = 0;  // between rows, which end in zeros
  std::shared_ptr<std::uint16_t> memory_;
};

}  // namespace xgrad
