// A copy with some elements replaced or added to, by index.  Parts by position: slice_cat.cpp.

#include <algorithm>
#include <numeric>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/index.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/index_common.hpp>

namespace xgrad {

using detail::at_least_1d;
using detail::changed_copy;
using detail::check_fits;
using detail::check_range;
using detail::check_same_dtype;

namespace {

// ---- elements ----

// The part of src that an index of this shape reaches.
Tensor reached(Tensor src, const Shape& index) {
  if (numel(index) == 0)
    return reshape(narrow(reshape(src, -1), 0, 0, 0), index);
  for (std::size_t d = 0; d < index.size(); ++d)
    if (src.dim() > 0 && index[d] < src.shape()[d])
      src = narrow(src, static_cast<std::int64_t>(d), 0, index[d]);
  return src.shape() == index ? src : reshape(src, index);
}

// What both check; the part of src that is used.
struct Scatter {
  const char* op;
  std::size_t d;
  Shape into;
  Tensor src;
  Scatter(const char* name, const Tensor& x, std::int64_t dim, const Indices& index,
          const Tensor& from)
      : op(name), d(normalize_dim(dim, x.dim(), name)), into(at_least_1d(x.shape())) {
    check_same_dtype(op, x, "src", from);
    check_fits(op, index, "x", x.shape(), d);
    check_fits(op, index, "src", from.shape(), {});
    check_range(op, index, into[d]);
    src = reached(from, index.shape());
  }
};

// Which elements of the index were overwritten by later ones: each writes its number to where it
// goes, and does not find it there.
Mask overwritten(const Indices& index, std::size_t d, const Shape& into) {
  const Shape shape = at_least_1d(index.shape());
  std::vector<double> numbers(numel(shape)), read(numel(shape)), last(numel(into));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  kernels::scatter(last.data(), into, d, index.data(), shape, numbers.data());
  kernels::gather<double>(last.data(), into, d, index.data(), shape, read.data());
  auto mask = empty_array<bool>(index.shape());
  std::ranges::transform(numbers, read, mask.data(), std::not_equal_to<>());
  return mask;
}

}  // namespace

Tensor scatter_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src) {
  const Scatter s("scatter_add", x, dim, index, src);
  return record(
      "scatter_add", {x, s.src},
      [index, d = s.d, into = s.into]<class T>(std::span<const Tensor> in) {
        return changed_copy<T>(in, [&](T* y, const T* from) {
          kernels::scatter_add(y, into, d, index.data(), at_least_1d(index.shape()), from);
        });
      },
      [index, dim](Context& ctx) {
        ctx.add(0, ctx.gradient());
        if (ctx.needs(1))
          ctx.add(1, gather(ctx.gradient(), dim, index));
      });
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src) {
  const Scatter s("scatter", x, dim, index, src);
  return record(
      "scatter", {x, s.src},
      [index, d = s.d, into = s.into]<class T>(std::span<const Tensor> in) {
        return changed_copy<T>(in, [&](T* y, const T* from) {
          kernels::scatter(y, into, d, index.data(), at_least_1d(index.shape()), from);
        });
      },
      [index, dim, d = s.d, into = s.into](Context& ctx) {
        const Tensor& g = ctx.gradient();
        if (ctx.needs(0))
          ctx.add(0, scatter(g, dim, index, 0));
        if (!ctx.needs(1))
          return;
        const Mask lost = overwritten(index, d, into);
        const Tensor found = gather(g, dim, index);
        ctx.add(1, any(lost) ? masked_fill(found, lost, 0) : found);
      });
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Indices& index, double value) {
  return scatter(x, dim, index, full(index.shape(), value, x.dtype()));
}

// ---- rows ----

namespace {

// The number of the row that each element of the indices, broadcast to `shape`, names in an array
// of `sizes`.
Indices rows_of(const std::vector<Indices>& indices, const Shape& shape, const Shape& sizes) {
  if (numel(shape) == 0)
    return arange_indices(0, 0);
  Indices rows = IndexOperand(0).value;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const Indices& index = indices[k];
    const std::int64_t n = sizes[k];
    if (const Mask outside = (index < -n) | (index >= n); outside.any())
      fail<ValueError>(
          "index_put: {} in the indices of dimension {} is out of range: that of x has size {}",
          index[outside][0].item(), k, n);
    rows = rows * n + where(index < 0, index + n, index);
  }
  return rows.flatten();
}

}  // namespace

Tensor index_put(const Tensor& x, const std::vector<Indices>& indices, const Tensor& values,
                 bool accumulate) {
  check<ValueError>(values.defined(), "index_put: values are undefined");
  check_same_dtype("index_put", x, "values", values);
  if (indices.empty() || std::cmp_greater(indices.size(), x.dim()))
    fail<ValueError>("index_put: {} for x {}, which has {}; one to that many are needed",
                     counted(indices.size(), "list of indices", "lists of indices"),
                     to_string(x.shape()), counted(x.dim(), "dimension", "dimensions"));
  Shape shape;
  for (const Indices& index : indices)
    shape = broadcast_shapes(shape, index.shape(), "index_put");
  const Shape& sizes = x.shape();
  const auto split = sizes.begin() + static_cast<std::ptrdiff_t>(indices.size());
  const std::size_t places = numel(shape), n = numel({sizes.begin(), split}),
                    width = numel({split, sizes.end()});
  const Indices rows = rows_of(indices, shape, sizes);
  Shape wanted = shape;
  std::for_each(split, sizes.end(), [&](std::size_t size) { wanted.push_back(size); });
  bool fits = std::cmp_less_equal(values.dim(), wanted.size());
  for (Size d = 1; fits && d <= values.dim(); ++d) {
    const std::size_t size = values.shape()[values.dim() - d];
    fits = size == 1 || size == wanted[wanted.size() - d];
  }
  if (!fits)
    fail<ShapeError>("index_put: values {} do not broadcast to {}, the shape of what they replace",
                     to_string(values.shape()), to_string(wanted));
  const Tensor all = values.shape() == wanted ? values : expand(values, wanted);
  const Tensor from = reshape(all, {places, width}), to = reshape(x, {n, width});
  if (accumulate)
    return reshape(index_add(to, 0, rows, from), sizes);
  return reshape(scatter(to, 0, rows.unsqueeze(1).expand({places, width}), from), sizes);
}

}  // namespace xgrad
