#include <xgrad/autograd/ops/bfloat16_matrix.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/bfloat16.hpp>
#include <xgrad/autograd/ops/index_common.hpp>

namespace xgrad {

Bfloat16Matrix::Bfloat16Matrix(const Shape& shape) : shape_(shape) {
  const std::size_t rows = shape[0], columns = shape[1], whole = kernels::bfloat16_columns;
  stride_ = (columns + whole - 1) / whole * whole;
  const std::size_t n = rows * stride_;
  Allocator<std::uint16_t> allocator;
  memory_ = {allocator.allocate(n),
             [n](std::uint16_t* block) { Allocator<std::uint16_t>().deallocate(block, n); }};
  for (std::size_t i = 0; i < rows; ++i)
    std::fill_n(memory_.get() + i * stride_ + columns, stride_ - columns, std::uint16_t{0});
}

bool Bfloat16Matrix::put(std::size_t row, std::size_t column, const Tensor& x) {
  const std::size_t n = x.size(0), m = x.size(1);
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i)
    finite &= kernels::to_bfloat16(m, x.data<float>() + i * m,
                                   memory_.get() + (row + i) * stride_ + column);
  return finite;
}

Tensor Bfloat16Matrix::linear(const Tensor& x, const Tensor& bias) const {
  if (x.dim() == 0 || std::cmp_not_equal(x.size(-1), shape_[1]))
    fail<ShapeError>("linear: x {} does not fit weight {}: its last dimension must be {}",
                     to_string(x.shape()), to_string(shape_), shape_[1]);
  if (bias.defined() && bias.shape() != Shape{shape_[0]})
    fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ({},)",
                     to_string(bias.shape()), to_string(shape_), shape_[0]);
  const std::array inputs{x, bias};
  for (const Tensor& in : inputs)
    check<DTypeError>(!in.defined() || in.dtype() == DType::float32,
                      "linear: a weight in bfloat16 is for float32, and this is float64");
  if (any_requires_grad(inputs))
    throw GraphError(
        "linear: a weight in bfloat16 has no gradient; use NoGrad, or a model in float32");
  const auto forward = [w = *this](std::span<const Tensor> in) {
    Shape shape = in[0].shape();
    shape.back() = w.shape_[0];
    auto y = empty_array<float>(shape);
    kernels::linear_bfloat16(numel(shape) / std::max<std::size_t>(w.shape_[0], 1), w.shape_[0],
                             w.shape_[1], in[0].data<float>(), w.memory_.get(), w.stride_,
                             in[1].defined() ? in[1].data<float>() : nullptr, y.data());
    return Tensor(std::move(y));
  };
  return record("linear_bfloat16", inputs, forward, [](Context&) {});
}

Tensor Bfloat16Matrix::rows(const Indices& indices) const {
  detail::check_range("embedding", indices, shape_[0]);
  Shape shape = indices.shape();
  shape.push_back(shape_[1]);
  auto y = empty_array<float>(shape);
  float* to = y.data();
  for (const std::int64_t row : std::span(indices.data(), indices.numel())) {
    const std::uint16_t* const from = memory_.get() + static_cast<std::size_t>(row) * stride_;
    to = std::transform(from, from + shape_[1], to, kernels::from_bfloat16);
  }
  return Tensor(std::move(y));
}

}  // namespace xgrad
