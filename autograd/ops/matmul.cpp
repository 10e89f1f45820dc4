// Matrix products.  All are one op, product(), whose derivative is made of itself.

#include <xgrad/autograd/ops/matmul.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/bfloat16.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/kernels/odometer.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/index.hpp>
#include <xgrad/autograd/ops/rules.hpp>

namespace xgrad {

// ---- batches ----

Shape detail::leading(const Shape& shape, std::size_t n) {
  return Shape(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(n));
}

Shape detail::with_matrix(const Shape& batch, std::size_t rows, std::size_t columns) {
  Shape shape(batch.size() + 2, 0);
  std::ranges::copy(batch, shape.begin());
  shape[batch.size()] = rows;
  shape[batch.size() + 1] = columns;
  return shape;
}

detail::Blocks detail::broadcast_blocks(const Shape& own, const Shape& batch) {
  Blocks blocks{static_cast<std::size_t>(numel(own)),
                std::vector<std::size_t>(static_cast<std::size_t>(numel(batch)))};
  if (blocks.of_item.empty())
    return blocks;
  const kernels::Rows<1> rows(batch, {&own});
  kernels::Odometer<1> row(rows.outer);
  auto block = blocks.of_item.begin();
  for (std::size_t r = 0; r < rows.count; ++r, row.advance())
    for (std::size_t i = 0; i < rows.length; ++i)
      *block++ = static_cast<std::size_t>(row[0]) + i * rows.step[0];
  return blocks;
}

namespace {

using detail::Blocks;
using detail::broadcast_blocks;
using detail::leading;
using detail::with_matrix;

// GemmSizes of c = op(a) op(b): op(a) (m, k), op(b) (k, n).
struct GemmSizes {
  bool transpose_a, transpose_b;
  std::size_t m, n, k;
};

// c[C(i)] = sum of op(a[A(i)]) op(b[B(i)]) over the items i of each block of c, + beta * c, and
// + bias in each row if there is one b for all.
template <class T>
void multiply(GemmSizes s, const T* a, const Blocks& a_blocks, const T* b, const Blocks& b_blocks,
              T beta, T* c, const Blocks& c_blocks, const T* bias = nullptr) {
  std::size_t items = a_blocks.of_item.size();
  if (items == 0 || s.m * s.n == 0) {
    if (beta == T(0))
      std::fill_n(c, c_blocks.count * s.m * s.n, T(0));
    return;
  }
  const auto in_order = [items](const Blocks& blocks) { return blocks.count == items; };
  if (!s.transpose_a && b_blocks.count == 1 && in_order(a_blocks) && in_order(c_blocks)) {
    s.m *= items;  // one b for all: the rows of all a stand below each other
    items = 1;
  } else if (s.transpose_a && !s.transpose_b && c_blocks.count == 1 && in_order(a_blocks) &&
             in_order(b_blocks)) {
    s.k *= items;  // one c for all: the sum over items is part of the sum over k
    items = 1;
  }
  const std::size_t lda = std::max<std::size_t>(1, s.transpose_a ? s.m : s.k);
  const std::size_t ldb = std::max<std::size_t>(1, s.transpose_b ? s.k : s.n);
  if (items == 1) {
    kernels::gemm_parallel(s.transpose_a, s.transpose_b, s.m, s.n, s.k, T(1), a, lda, b, ldb, beta,
                           c, s.n, bias);
    return;
  }
  // Items by block of c, each block's in their order.
  std::vector<std::size_t> order(items);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!in_order(c_blocks))
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return c_blocks.of_item[i]; });
  const std::size_t terms = items / c_blocks.count;
  const std::size_t work = terms * s.m * s.n * s.k;
  const auto run = [&](std::size_t block, auto&& gemm) {
    for (std::size_t term = 0; term < terms; ++term) {
      const std::size_t i = order[block * terms + term];
      gemm(s.transpose_a, s.transpose_b, s.m, s.n, s.k, T(1), a + a_blocks.of_item[i] * s.m * s.k,
           lda, b + b_blocks.of_item[i] * s.k * s.n, ldb, term == 0 ? beta : T(1),
           c + c_blocks.of_item[i] * s.m * s.n, s.n, nullptr);
    }
  };
  constexpr std::size_t piece = 262'144;  // multiplications that are worth a thread
  if (c_blocks.count < 8 && work >= 16 * piece)
    for (std::size_t block = 0; block < c_blocks.count; ++block)
      run(block, kernels::gemm_parallel<T>);
  else
    kernels::parallel_for(c_blocks.count,
                          std::max<std::size_t>(1, piece / std::max(work, piece / 64)),
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t block = begin; block < end; ++block)
                              run(block, kernels::gemm<T>);
                          });
}

// How the operands and the result of one product lie.
struct ProductLayout {
  GemmSizes sizes;
  Shape out;
  Blocks a, b, c;
};

ProductLayout layout(const char* op, const Shape& a, bool transpose_a, const Shape& b,
                     bool transpose_b) {
  if (a.size() == 1) {
    ProductLayout row = layout(op, {1, a[0]}, transpose_a, b, transpose_b);
    row.out = {row.sizes.n};
    return row;
  }
  const auto row = [](const Shape& x, bool transposed) -> std::size_t {
    return x[x.size() - (transposed ? 1 : 2)];
  };
  const auto col = [](const Shape& x, bool transposed) -> std::size_t {
    return x[x.size() - (transposed ? 2 : 1)];
  };
  const GemmSizes sizes{transpose_a, transpose_b, row(a, transpose_a), col(b, transpose_b),
                        col(a, transpose_a)};
  const Shape a_batch = leading(a, 2), b_batch = leading(b, 2);
  const Shape batch = broadcast_shapes(a_batch, b_batch, op);
  return {sizes, with_matrix(batch, sizes.m, sizes.n), broadcast_blocks(a_batch, batch),
          broadcast_blocks(b_batch, batch), broadcast_blocks(batch, batch)};
}

}  // namespace

// c = op(a) op(b) gives da = dc op(b)ᵀ and db = op(a)ᵀ dc, transposed where the operand is.
Tensor detail::product(const char* op, const Tensor& a, bool transpose_a, const Tensor& b,
                       bool transpose_b, const Tensor& bias) {
  check_operands(op, std::array{a, b, bias.defined() ? bias : a});
  const auto run = [op, transpose_a, transpose_b]<class T>(std::span<const Tensor> in) {
    const ProductLayout at = layout(op, in[0].shape(), transpose_a, in[1].shape(), transpose_b);
    auto c = empty_array<T>(at.out);
    multiply<T>(at.sizes, in[0].data<T>(), at.a, in[1].data<T>(), at.b, T(0), c.data(), at.c,
                in.size() > 2 ? in[2].data<T>() : nullptr);
    return c;
  };
  const auto saved_if = [](const Tensor& x, bool wanted) { return wanted ? Saved(x) : Saved(); };
  const auto backward = [op, transpose_a, transpose_b, a_shape = a.shape(), b_shape = b.shape(),
                         has_bias = bias.defined(), a = saved_if(a, b.requires_grad()),
                         b = saved_if(b, a.requires_grad())](Context& ctx) {
    const Tensor& g = ctx.gradient();
    const auto ops = [&] {
      if (ctx.needs(0))
        ctx.add(0, transpose_a ? product(op, b.tensor(), transpose_b, g, true)
                               : product(op, g, false, b.tensor(), !transpose_b));
      if (!ctx.needs(1))
        return;
      Tensor x = a.tensor(), dy = g;
      if (b_shape.size() == 2 && x.dim() != 2 && !transpose_a) {  // one sum, not many to be summed
        const std::size_t rows = numel(leading(x.shape(), 1));
        x = reshape(x, {rows, x.size(-1)});
        dy = reshape(dy, {rows, dy.size(-1)});
      }
      ctx.add(1, transpose_b ? product(op, dy, true, x, transpose_a)
                             : product(op, x, !transpose_a, dy, false));
    };
    const auto kernel = [&]<class T>() {
      const ProductLayout at = layout(op, a_shape, transpose_a, b_shape, transpose_b);
      const std::size_t m = at.sizes.m, n = at.sizes.n, k = at.sizes.k;
      const T* const dc = g.data<T>();
      if (ctx.needs(0)) {
        const T* const y = b.value->data<T>();
        const GradientBuffer<T> da = ctx.buffer<T>(0);
        if (transpose_a)
          multiply<T>({transpose_b, true, k, m, n}, y, at.b, dc, at.c, da.beta, da.data, at.a);
        else
          multiply<T>({false, !transpose_b, m, k, n}, dc, at.c, y, at.b, da.beta, da.data, at.a);
      }
      if (ctx.needs(1)) {
        const T* const x = a.value->data<T>();
        const GradientBuffer<T> db = ctx.buffer<T>(1);
        if (transpose_b)
          multiply<T>({true, transpose_a, n, k, m}, dc, at.c, x, at.a, db.beta, db.data, at.b);
        else
          multiply<T>({!transpose_a, false, k, n, m}, x, at.a, dc, at.c, db.beta, db.data, at.b);
      }
    };
    ops_or_kernel(ctx, ops, kernel);
    if (has_bias)
      ctx.add(2, g);  // summed to its shape
  };
  const std::array inputs{a, b, bias};
  return record(op, std::span(inputs).first(bias.defined() ? 3 : 2), run, backward,
                {.broadcasts = true});
}

// ---- the catalogue's ----

XGRAD_RULE(
    matmul, "a b", {"g bᵀ", "aᵀ g"},
    "Each factor gets the upstream gradient times the other, transposed so that the shapes fit.");
Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0)
    fail<ShapeError>(
        "matmul: a {} and b {}: both need at least one dimension; multiply by a 0-d tensor with "
        "mul()",
        to_string(a.shape()), to_string(b.shape()));
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const std::size_t inner = b.size(column ? 0 : -2);
  if (std::cmp_not_equal(a.size(-1), inner))
    fail<ShapeError>(
        "matmul: a {} and b {}: the last dimension of a, {}, must equal the {} of b, {}",
        to_string(a.shape()), to_string(b.shape()), a.size(-1), column ? "only one" : "second last",
        inner);
  Tensor c = detail::product("matmul", row ? reshape(a, {1, a.size(0)}) : a, false,
                             column ? reshape(b, {b.size(0), 1}) : b, false);
  if (!row && !column)
    return c;
  Dims out(leading(c.shape(), 2));
  if (!row)
    out.push_back(static_cast<std::int64_t>(c.size(-2)));
  if (!column)
    out.push_back(static_cast<std::int64_t>(c.size(-1)));
  return reshape(c, out);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    fail<ShapeError>("mm: a {} and b {} are not (m, k) and (k, n); matmul() takes other ranks",
                     to_string(a.shape()), to_string(b.shape()));
  return detail::product("mm", a, false, b, false);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    fail<ShapeError>(
        "bmm: a {} and b {} are not (B, m, k) and (B, k, n); matmul() broadcasts batches",
        to_string(a.shape()), to_string(b.shape()));
  return detail::product("bmm", a, false, b, false);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1 || a.size(0) != b.size(0))
    fail<ShapeError>("dot: a {} and b {} are not two vectors of one length", to_string(a.shape()),
                     to_string(b.shape()));
  return reshape(
      detail::product("dot", reshape(a, {1, a.size(0)}), false, reshape(b, {b.size(0), 1}), false),
      {});
}

static void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() != 2)
    fail<ShapeError>("linear: weight {} is not (out, in) or (in,)", to_string(weight.shape()));
  if (x.dim() == 0)
    fail<ShapeError>("linear: x is 0-d; it needs a last dimension of size {}", weight.size(1));
  if (x.size(-1) != weight.size(1))
    fail<ShapeError>("linear: x {} has last dimension {} but weight {} expects {}",
                     to_string(x.shape()), x.size(-1), to_string(weight.shape()), weight.size(1));
  if (bias.defined() && bias.shape() != Shape{weight.size(0)})
    fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ({},)",
                     to_string(bias.shape()), to_string(weight.shape()), weight.size(0));
}

XGRAD_RULE(linear, "a bᵀ + c (x Wᵀ + bias)", {"g b", "gᵀ a", "Σ g over rows"},
           "x gets g W; the weight gets gᵀ x, summed over all rows; the bias gets the sum of the "
           "rows of g.");
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() == 1) {
    if (bias.defined() && bias.dim() != 0)
      fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ()",
                       to_string(bias.shape()), to_string(weight.shape()));
    const Tensor row = bias.defined() ? reshape(bias, {1}) : bias;
    return squeeze(linear(x, unsqueeze(weight, 0), row), {-1});
  }
  check_linear(x, weight, bias);
  return detail::product("linear", x, false, weight, true, bias);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1)
    fail<ShapeError>("outer: a {} and b {} are not two vectors", to_string(a.shape()),
                     to_string(b.shape()));
  return mul(reshape(a, {a.size(0), 1}), b);
}

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
