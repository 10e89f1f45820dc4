#include "index.hpp"

#include <algorithm>
#include <numeric>
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/index.hpp"
#include "elementwise.hpp"
#include "rules.hpp"

namespace xgrad::detail {

void check_range(const char* op, const Indices& index, std::size_t limit) {
  const auto outside = [limit](std::int64_t i) { return static_cast<std::uint64_t>(i) >= limit; };
  const std::int64_t* const end = index.data() + index.numel();
  const std::int64_t* const bad = std::find_if(index.data(), end, outside);
  if (bad == end)
    return;
  const auto at = position(index.shape(), static_cast<std::size_t>(bad - index.data()));
  fail<ValueError>("{}: index {} at {} of the indices {} is out of range: expected 0 to {}", op,
                   *bad, to_string(Shape(at.begin(), at.end())), to_string(index.shape()),
                   static_cast<std::int64_t>(limit) - 1);
}

Shape at_least_1d(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

Shape selected_shape(const char* op, const Shape& x, std::size_t dim, const Indices& index) {
  if (index.dim() > 1)
    fail<ShapeError>("{}: the index has shape {} but must be 1-dimensional", op,
                     to_string(index.shape()));
  Shape shape = x;
  if (x.empty())
    check<ShapeError>(index.numel() == 1, "{}: {} indices for a 0-d tensor, which takes one", op,
                      index.numel());
  else
    shape[dim] = static_cast<std::size_t>(index.numel());
  return shape;
}

void check_fits(const char* op, const Indices& index, const char* name, const Shape& tensor,
                std::optional<std::size_t> dim) {
  if (index.numel() == 0)
    return;
  const Shape shape = at_least_1d(index.shape()), sizes = at_least_1d(tensor);
  if (shape.size() != sizes.size())
    fail<ShapeError>("{}: the index {} must have as many dimensions as {} {}", op,
                     to_string(index.shape()), name, to_string(tensor));
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != dim && shape[d] > sizes[d])
      fail<ShapeError>("{}: the index {} is larger than {} {} at dimension {}", op,
                       to_string(index.shape()), name, to_string(tensor), d);
}

}  // namespace xgrad::detail

namespace xgrad {

using kernels::Axis;

using detail::at_least_1d;
using detail::changed_copy;
using detail::check_fits;
using detail::check_range;
using detail::check_same_dtype;
using detail::selected_shape;

// ---- rows ----

Tensor index_select(const Tensor& x, Dim dim, const Indices& index) {
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

Tensor index_add(const Tensor& x, Dim dim, const Indices& index, const Tensor& src) {
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
// The gradient is added in place to the gradient of the weight's other uses.
Tensor embedding(const Indices& indices, const Tensor& weight, OptionalDim padding_idx) {
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
      [indices, rows, width]<class T>(std::span<const Tensor> in) {
        Shape shape = indices.shape();
        shape.push_back(width);
        auto y = empty_array<T>(shape);
        kernels::index_select({1, rows, width}, in[0].data<T>(), indices.data(), indices.numel(),
                              y.data());
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

Tensor gather(const Tensor& x, Dim dim, const Indices& index) {
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

Extremum topk(const Tensor& x, Dim k, Dim dim, bool largest) {
  const std::size_t d = normalize_dim(dim, x.dim(), "topk");
  const Axis axis = kernels::axis_of(x.shape(), d);
  if (k < 0 || std::cmp_greater(k.value, axis.n))
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

Extremum sort(const Tensor& x, Dim dim, bool descending) {
  const std::size_t d = normalize_dim(dim, x.dim(), "sort");
  return topk(x, static_cast<Size>(kernels::axis_of(x.shape(), d).n), dim, descending);
}

Indices argsort(const Tensor& x, Dim dim, bool descending) {
  return sort(x.detach(), dim, descending).indices;
}

// Basic indexing, as in Python: x[0, 1:3, ..., None].

namespace {

// Walks through the dimensions of an x of this shape, from the first, and applies each entry to the
// next dimension.
struct Indexer {
  const Shape& x;
  detail::Selection selection{x};
  std::size_t hidden;    // dimensions that the Ellipsis covers
  std::size_t at = 0;    // the next dimension of the selection
  std::size_t of_x = 0;  // the same, counted in x
  std::vector<detail::IndexList> lists = {};

  void operator()(std::int64_t i) {
    const auto n = static_cast<std::int64_t>(selection.shape[at]);
    if (i < -n || i >= n)
      fail<ValueError>("index: {} is out of range for dimension {} of x {}, which has size {}", i,
                       of_x, to_string(x), n);
    selection.slice(at, static_cast<std::size_t>(i < 0 ? i + n : i), 1);
    selection.drop(at);
    ++of_x;
  }
  void operator()(const Slice& slice) {
    const auto [start, length] =
        detail::slice_range("index", selection.shape[at], slice.start, slice.end, slice.step);
    selection.slice(at, start, length, length > 1 ? slice.step.value : 1);
    ++at;
    ++of_x;
  }
  void operator()(Ellipsis) {
    at += hidden;
    of_x += hidden;
  }
  void operator()(NewAxis) { selection.insert(at++); }
  void operator()(const Indices& indices) {
    if (indices.dim() == 0)
      return (*this)(indices.item());
    lists.push_back({at++, of_x++, indices});
  }
};

// ---- elements ----

// The part of src that an index of this shape uses.
Tensor reached(Tensor src, const Shape& index) {
  if (numel(index) == 0)
    return reshape(narrow(reshape(src, -1), 0, 0, 0), index);
  for (std::size_t d = 0; d < index.size(); ++d)
    if (src.dim() > 0 && index[d] < src.shape()[d])
      src = narrow(src, static_cast<std::int64_t>(d), 0, index[d]);
  return src.shape() == index ? src : reshape(src, index);
}

// The checked arguments of scatter and scatter_add, with the used part of src.
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

// Whether a later element of the index overwrites each: all write their number to the target, and
// an overwritten one does not find it there.
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

std::pair<detail::Selection, std::vector<detail::IndexList>> detail::indexed(
    const Shape& x, const std::vector<Index>& indices) {
  const auto count = [&]<class T>() {
    return static_cast<std::size_t>(std::ranges::count_if(
        indices, [](const Index& i) { return std::holds_alternative<T>(i.value); }));
  };
  const std::size_t used =
      count.operator()<std::int64_t>() + count.operator()<Slice>() + count.operator()<Indices>();
  check<ValueError>(count.operator()<Ellipsis>() <= 1, "index: there is more than one Ellipsis");
  if (used > x.size())
    fail<ValueError>("index: {} for x {}, which has {}",
                     counted(used, "integer, slice or list", "integers, slices and lists"),
                     to_string(x), counted(x.size(), "dimension", "dimensions"));
  Indexer indexer{.x = x, .hidden = x.size() - used};
  for (const Index& i : indices)
    std::visit(indexer, i.value);
  return {std::move(indexer.selection), std::move(indexer.lists)};
}

// The row number, in an array of these sizes, of each element of the lists broadcast to `shape`.
static Indices rows_of(const char* op, const std::vector<detail::IndexList>& lists,
                       const Shape& shape, const Shape& sizes) {
  if (numel(shape) == 0)
    return arange_indices(0);
  Indices rows = IndexOperand(0).value;
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const Indices& index = lists[k].indices;
    const std::int64_t n = sizes[k];
    if (const Mask outside = (index < -n) | (index >= n); outside.any())
      fail<ValueError>(
          "{}: {} in the indices of dimension {} is out of range: that of x has size {}", op,
          index[outside][0].item(), lists[k].of_x, n);
    rows = rows * n + where(index < 0, index + n, index);
  }
  return rows.flatten();
}

static Shape common_shape(const char* op, const std::vector<detail::IndexList>& lists) {
  Shape shape;
  for (const detail::IndexList& list : lists)
    shape = broadcast_shapes(shape, list.indices.shape(), op);
  return shape;
}

// The dimensions of the lists, side by side, are one dimension of rows.
template <class X>
X detail::chosen(const X& x, const std::vector<IndexList>& lists) {
  if (lists.empty())
    return x;
  Dims order;
  for (const IndexList& list : lists)
    order.push_back(static_cast<std::int64_t>(list.dim));
  const auto first = order.front(), count = static_cast<std::int64_t>(lists.size());
  if (order.back() - first + 1 != count) {  // not side by side: the lists' dimensions come first
    for (std::size_t d = 0; std::cmp_less(d, x.dim()); ++d)
      if (std::ranges::find(lists, d, &IndexList::dim) == lists.end())
        order.push_back(static_cast<std::int64_t>(d));
    std::vector<IndexList> moved = lists;
    for (std::size_t k = 0; k < moved.size(); ++k)
      moved[k].dim = k;
    return chosen(permute(x, order), moved);
  }
  const Shape shape = common_shape("index", lists);
  const auto begin = x.shape().begin() + first;
  const Indices rows = rows_of("index", lists, shape, Shape(begin, begin + count));
  return unflatten(index_select(flatten(x, first, first + count - 1), first, rows), first, shape);
}
template Indices detail::chosen(const Indices&, const std::vector<IndexList>&);
template Mask detail::chosen(const Mask&, const std::vector<IndexList>&);

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  const auto [selection, lists] = detail::indexed(x.shape(), indices);
  return detail::chosen(detail::as_strided("index", x, selection), lists);
}

// Copies with some elements replaced or added to, by index.  Parts by position: slice.cpp.

Tensor scatter_add(const Tensor& x, Dim dim, const Indices& index, const Tensor& src) {
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

Tensor scatter(const Tensor& x, Dim dim, const Indices& index, const Tensor& src) {
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

Tensor scatter(const Tensor& x, Dim dim, const Indices& index, double value) {
  return scatter(x, dim, index, full(index.shape(), value, x.dtype()));
}

// ---- rows ----

Tensor index_put(const Tensor& x, const std::vector<Indices>& indices, const Tensor& values,
                 bool accumulate) {
  check<ValueError>(values.defined(), "index_put: values are undefined");
  check_same_dtype("index_put", x, "values", values);
  if (indices.empty() || std::cmp_greater(indices.size(), x.dim()))
    fail<ValueError>("index_put: {} for x {}, which has {}; one to that many are needed",
                     counted(indices.size(), "list of indices", "lists of indices"),
                     to_string(x.shape()), counted(x.dim(), "dimension", "dimensions"));
  std::vector<detail::IndexList> lists;
  for (std::size_t k = 0; k < indices.size(); ++k)
    lists.push_back({k, k, indices[k]});
  const Shape shape = common_shape("index_put", lists);
  const Shape& sizes = x.shape();
  const auto split = sizes.begin() + static_cast<std::ptrdiff_t>(indices.size());
  const std::size_t places = numel(shape), n = numel({sizes.begin(), split}),
                    width = numel({split, sizes.end()});
  const Indices rows = rows_of("index_put", lists, shape, sizes);
  Shape wanted = shape;
  std::for_each(split, sizes.end(), [&](std::size_t size) { wanted.push_back(size); });
  bool fits = std::cmp_less_equal(values.dim(), wanted.size());
  for (Size d = 1; fits && d <= values.dim(); ++d) {
    const std::size_t size = values.shape()[values.dim() - d];
    fits = size == 1 || size == wanted[wanted.size() - d];
  }
  if (!fits)
    fail<ShapeError>("index_put: values {} do not broadcast to {}, the replaced elements' shape",
                     to_string(values.shape()), to_string(wanted));
  const Tensor all = values.shape() == wanted ? values : expand(values, wanted);
  const Tensor from = reshape(all, {places, width}), to = reshape(x, {n, width});
  if (accumulate)
    return reshape(index_add(to, 0, rows, from), sizes);
  return reshape(scatter(to, 0, rows.unsqueeze(1).expand({places, width}), from), sizes);
}

}  // namespace xgrad
