// Ops that arrange all elements anew.  Those that use each element once are a Selection: here is
// only which, and what may go wrong.

#include <algorithm>

#include <fmt/format.h>
#include <numeric>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/copy.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>
#include <xgrad/autograd/ops/selection.hpp>

namespace xgrad {

using detail::pick;
using detail::Selection;

// ---- the same elements in another shape ----

namespace {

std::string list(const Dims& sizes) { return fmt::format("({})", fmt::join(sizes, ", ")); }

// The shape that sizes name for n elements, where one of them may be -1.
Shape infer_shape(const char* op, const Tensor& x, Dims sizes) {
  const auto inferred = std::ranges::find(sizes, -1);
  const std::size_t n = x.numel();
  if (inferred != sizes.end()) {
    *inferred = 1;
    if (std::ranges::count(sizes, -1) > 0) {
      *inferred = -1;
      fail<ShapeError>("{}: sizes {} have more than one -1", op, list(sizes));
    }
    const std::size_t known = numel(to_shape(sizes, op));
    if (known == 0 || n % known != 0) {
      *inferred = -1;
      if (known == 0 && n == 0)
        fail<ShapeError>("{}: x {} has no elements, so the -1 in sizes {} could be any number", op,
                         to_string(x.shape()), list(sizes));
      fail<ShapeError>("{}: sizes {} do not divide the {} of x {}", op, list(sizes),
                       counted(n, "element", "elements"), to_string(x.shape()));
    }
    *inferred = static_cast<std::int64_t>(n / known);
  }
  Shape shape = to_shape(sizes, op);
  if (std::cmp_not_equal(numel(shape), n))
    fail<ShapeError>("{}: x {} has {} but sizes {} make {}", op, to_string(x.shape()),
                     counted(n, "element", "elements"), list(sizes), numel(shape));
  return shape;
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& sizes) {
  return pick("reshape", x, Selection(infer_shape("reshape", x, sizes)));
}

Tensor view(const Tensor& x, const Dims& sizes) {
  return pick("view", x, Selection(infer_shape("view", x, sizes)));
}

Tensor flatten(const Tensor& x, std::int64_t start_dim, std::int64_t end_dim) {
  const std::size_t first = normalize_dim(start_dim, x.dim(), "flatten");
  const std::size_t last = normalize_dim(end_dim, x.dim(), "flatten");
  check<ValueError>(first <= last, "flatten: start_dim {} comes after end_dim {}", start_dim,
                    end_dim);
  Dims sizes(x.shape());
  for (std::size_t d = last; d > first; --d) {
    sizes[d - 1] *= sizes[d];
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  }
  if (sizes.empty())
    sizes.push_back(1);
  return pick("flatten", x, Selection(to_shape(sizes, "flatten")));
}

Tensor squeeze(const Tensor& x) {
  Shape shape;
  std::ranges::copy_if(x.shape(), std::back_inserter(shape), [](std::size_t n) { return n != 1; });
  return pick("squeeze", x, Selection(shape));
}

Tensor squeeze(const Tensor& x, const Dims& dims) {
  const Listed listed = listed_dims(dims, x.dim(), "squeeze");
  Shape shape;
  for (Size d = 0; d < x.dim(); ++d)
    if (x.shape()[d] != 1 || !listed[d])
      shape.push_back(x.shape()[d]);
  return pick("squeeze", x, Selection(shape));
}

Tensor unsqueeze(const Tensor& x, std::int64_t dim) {
  Selection s(x.shape());
  s.insert(normalize_dim(dim, x.dim() + 1, "unsqueeze"));
  return pick("unsqueeze", x, Selection(s.shape));
}

Tensor expand(const Tensor& x, const Dims& sizes) {
  const Shape& from = x.shape();
  if (sizes.size() < from.size())
    fail<ShapeError>("expand: sizes {} are fewer than the dimensions of x {}", list(sizes),
                     to_string(from));
  const std::size_t added = sizes.size() - from.size();
  Dims wanted = sizes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1 && d < added)
      fail<ShapeError>("expand: -1 in sizes {} at dimension {}, which x {} does not have",
                       list(sizes), d, to_string(from));
    if (sizes[d] == -1)
      wanted[d] = static_cast<std::int64_t>(from[d - added]);
    else if (d >= added && from[d - added] != 1 && from[d - added] != sizes[d])
      fail<ShapeError>(
          "expand: size {} at dimension {} of sizes {} does not fit x {}, which has {} there, not "
          "1",
          sizes[d], d, list(sizes), to_string(from), from[d - added]);
  }
  const auto forward = [shape = to_shape(wanted, "expand"),
                        added]<class T>(std::span<const Tensor> in) {
    const Shape& old = in[0].shape();
    if (shape == old)
      return in[0].detach();
    const auto dense = row_major_strides(shape), source = row_major_strides(old);
    kernels::Walk walk;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool repeated = d < added || old[d - added] == 1;
      walk.axes.push_back({static_cast<std::size_t>(shape[d]),
                           repeated ? 0 : static_cast<std::ptrdiff_t>(source[d - added]),
                           static_cast<std::ptrdiff_t>(dense[d])});
    }
    auto y = empty_array<T>(shape);
    kernels::copy(walk, in[0].data<T>(), y.data());
    return Tensor(std::move(y));
  };
  return record("expand", {x}, forward, [](Context& ctx) { ctx.add(0, ctx.gradient()); },
                {.broadcasts = true});
}

// ---- another order ----

Tensor permute(const Tensor& x, const Dims& dims) {
  if (std::cmp_not_equal(dims.size(), x.dim()))
    fail<ValueError>("permute: dims {} do not name each dimension of x {}", list(dims),
                     to_string(x.shape()));
  std::vector<std::size_t> order;
  for (const std::int64_t dim : dims) {
    order.push_back(normalize_dim(dim, x.dim(), "permute"));
    if (std::find(order.begin(), order.end() - 1, order.back()) != order.end() - 1)
      fail<ValueError>("permute: dims {} name dimension {} twice", list(dims), order.back());
  }
  Selection s(x.shape());
  s.permute(order);
  return pick("permute", x, std::move(s));
}

Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1) {
  const std::size_t a = normalize_dim(dim0, x.dim(), "transpose");
  const std::size_t b = normalize_dim(dim1, x.dim(), "transpose");
  std::vector<std::size_t> order(x.dim());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (a != b)
    std::swap(order[a], order[b]);
  Selection s(x.shape());
  s.permute(order);
  return pick("transpose", x, std::move(s));
}

Tensor flip(const Tensor& x, const Dims& dims) {
  Selection s(x.shape());
  const Listed listed = listed_dims(dims, x.dim(), "flip");
  for (Size d = 0; d < x.dim(); ++d)
    if (listed[d] && x.numel() > 0)
      s.slice(d, x.shape()[d] - 1, x.shape()[d], -1);
  return pick("flip", x, std::move(s));
}

// ---- triangles ----

namespace {

// True at (i, j) of a matrix where j - i is at most the diagonal's number (tril), or at least
// (triu).
Mask triangle(const char* op, const Shape& shape, std::int64_t diagonal) {
  if (shape.size() < 2)
    fail<ShapeError>("{}: x {} has no last two dimensions to be a matrix", op, to_string(shape));
  const bool lower = op == std::string_view("tril");
  auto kept = empty_array<bool>({shape[-2], shape[-1]});
  bool* at = kept.data();
  for (std::int64_t i = 0; i < shape[-2]; ++i)
    for (std::int64_t j = 0; j < shape[-1]; ++j)
      *at++ = lower ? j - i <= diagonal : j - i >= diagonal;
  return kept;
}

Tensor keep(const char* op, const Tensor& x, const Mask& triangle) {
  return record(
      op, {x}, [triangle](std::span<const Tensor> in) { return where(triangle, in[0], 0.0); },
      [op, triangle](Context& ctx) { ctx.add(0, keep(op, ctx.gradient(), triangle)); });
}

}  // namespace

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return keep("tril", x, triangle("tril", x.shape(), diagonal));
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return keep("triu", x, triangle("triu", x.shape(), diagonal));
}

Mask tril(const Mask& x, std::int64_t diagonal) {
  return x & triangle("tril", x.shape(), diagonal);
}

}  // namespace xgrad
