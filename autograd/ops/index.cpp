// Elements by index, and in order.

#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/index.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/index_common.hpp>
#include <xgrad/autograd/ops/rules.hpp>

namespace xgrad {

using kernels::Axis;

using detail::at_least_1d;
using detail::changed_copy;
using detail::check_fits;
using detail::check_range;
using detail::check_same_dtype;
using detail::selected_shape;

// ---- rows ----

Tensor index_select(const Tensor& x, std::int64_t dim, const Indices& index) {
  const std::size_t d = normalize_dim(dim, x.dim(), "index_select");
  const Shape shape = selected_shape("index_select", x.shape(), d, index);
  const Axis axis = kernels::axis_of(x.shape(), d);
  check_range("index_select", index, axis.n);
  return record(
      "index_select", {x},
      [index, axis, shape]<class T>(std::span<const Tensor> in) {
        auto y = empty_array<T>(shape);
        kernels::index_select(axis, in[0].data<T>(), index.data(), index.numel(), y.data());
        return y;
      },
      [index, dim, before = x.shape()](Context& ctx) {
        const Tensor& g = ctx.gradient();
        ctx.add(0, index_add(zeros(before, g.dtype()), dim, index, g));
      });
}

Tensor index_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src) {
  const std::size_t d = normalize_dim(dim, x.dim(), "index_add");
  check_same_dtype("index_add", x, "src", src);
  const Shape expected = selected_shape("index_add", x.shape(), d, index);
  if (src.shape() != expected)
    fail<ShapeError>("index_add: src has shape {} but x {} with {} along dimension {} takes {}",
                     to_string(src.shape()), to_string(x.shape()),
                     counted(index.numel(), "index", "indices"), d, to_string(expected));
  const Axis axis = kernels::axis_of(x.shape(), d);
  check_range("index_add", index, axis.n);
  return record(
      "index_add", {x, src},
      [index, axis]<class T>(std::span<const Tensor> in) {
        return changed_copy<T>(in, [&](T* y, const T* from) {
          kernels::index_add(axis, y, index.data(), index.numel(), from);
        });
      },
      [index, dim](Context& ctx) {
        ctx.add(0, ctx.gradient());
        if (ctx.needs(1))
          ctx.add(1, index_select(ctx.gradient(), dim, index));
      });
}

XGRAD_RULE(embedding, "rows of a, one for each id", {"Σ g over the positions of each id"},
           "A row gets the sum over the positions of its id; rows of other ids get 0.");
// The gradient is added up in place, in the gradient that other uses of the weight may have left.
Tensor embedding(const Indices& indices, const Tensor& weight,
                 std::optional<std::int64_t> padding_idx) {
  if (weight.dim() != 2)
    fail<ShapeError>("embedding: the weight has shape {} but must be (V, C)",
                     to_string(weight.shape()));
  if (padding_idx) {
    const Size V = weight.size(0), row = *padding_idx + (*padding_idx < 0 ? V : 0);
    check<ValueError>(row >= 0 && row < V, "embedding: padding_idx {} is not within -{} ... {}",
                      *padding_idx, V, V - 1);
    const Tensor y = embedding(indices, weight);
    return where(unsqueeze(indices == row, -1), y.detach(), y);
  }
  const std::size_t rows = weight.shape()[0], width = weight.shape()[1];
  check_range("embedding", indices, rows);
  return record(
      "embedding", {weight},
      [indices]<class T>(std::span<const Tensor> in) {
        const Shape& from = in[0].shape();
        Shape shape = indices.shape();
        shape.push_back(from[1]);
        auto y = empty_array<T>(shape);
        kernels::index_select(
            {1, static_cast<std::size_t>(from[0]), static_cast<std::size_t>(from[1])},
            in[0].data<T>(), indices.data(), indices.numel(), y.data());
        return y;
      },
      [indices, rows, width](Context& ctx) {
        const Tensor& g = ctx.gradient();
        ops_or_kernel(
            ctx,
            [&] {
              const Tensor by_row = reshape(g, {indices.numel(), width});
              ctx.add(0, index_add(zeros({rows, width}, g.dtype()), 0, indices.flatten(), by_row));
            },
            [&]<class T>() {
              const GradientBuffer<T> buffer = ctx.buffer<T>(0);
              if (buffer.beta == 0)
                std::fill_n(buffer.data, rows * width, T(0));
              kernels::index_add({1, rows, width}, buffer.data, indices.data(), indices.numel(),
                                 g.data<T>());
            });
      });
}

// ---- elements ----

Tensor gather(const Tensor& x, std::int64_t dim, const Indices& index) {
  const std::size_t d = normalize_dim(dim, x.dim(), "gather");
  check_fits("gather", index, "x", x.shape(), d);
  const Shape from = at_least_1d(x.shape());
  check_range("gather", index, from[d]);
  return record(
      "gather", {x},
      [index, d, from]<class T>(std::span<const Tensor> in) {
        auto y = empty_array<T>(index.shape());
        kernels::gather(in[0].data<T>(), from, d, index.data(), at_least_1d(index.shape()),
                        y.data());
        return y;
      },
      [index, dim, before = x.shape()](Context& ctx) {
        const Tensor& g = ctx.gradient();
        ctx.add(0, scatter_add(zeros(before, g.dtype()), dim, index, g));
      });
}

// ---- order ----

Extremum topk(const Tensor& x, Size k, std::int64_t dim, bool largest) {
  const std::size_t d = normalize_dim(dim, x.dim(), "topk");
  const Axis axis = kernels::axis_of(x.shape(), d);
  if (k < 0 || std::cmp_greater(k, axis.n))
    fail<ValueError>("topk: k is {} but x {} has {} along dimension {}", k, to_string(x.shape()),
                     counted(axis.n, "element", "elements"), dim);
  Shape shape = x.shape();
  if (shape.empty() && k == 0)
    shape = Shape{0};
  else if (!shape.empty())
    shape[d] = k;
  auto places = empty_array<std::int64_t>(shape);
  detail::compute("topk", std::array{x}, [&]<class T>() {
    kernels::topk(axis, x.data<T>(), static_cast<std::size_t>(k), largest, places.data());
  });
  const Indices indices = std::move(places);
  return {gather(x, dim, indices), indices};
}

Extremum sort(const Tensor& x, std::int64_t dim, bool descending) {
  const std::size_t d = normalize_dim(dim, x.dim(), "sort");
  return topk(x, static_cast<Size>(kernels::axis_of(x.shape(), d).n), dim, descending);
}

Indices argsort(const Tensor& x, std::int64_t dim, bool descending) {
  return sort(x.detach(), dim, descending).indices;
}

}  // namespace xgrad
