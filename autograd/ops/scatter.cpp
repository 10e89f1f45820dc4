// A copy with some elements replaced or added to, by index.  Parts by position: slice_cat.cpp.

#include <algorithm>
#include <numeric>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/index.hpp>
#include <xgrad/autograd/kernels/odometer.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/index_common.hpp>

namespace xgrad {

using detail::at_least_1d;
using detail::changed_copy;
using detail::check_fits;
using detail::check_range;
using detail::check_same_dtype;

namespace {

// Which of n elements were overwritten by later ones.  `there_and_back` writes each element's
// number to where the element goes, and reads them all back: given (numbers, what was read).
template <class F>
Mask overwritten(const Shape& shape, const F& there_and_back) {
  std::vector<double> numbers(numel(shape)), read(numel(shape));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  there_and_back(numbers.data(), read.data());
  auto mask = empty_array<bool>(shape);
  std::ranges::transform(numbers, read, mask.data(), std::not_equal_to<>());
  return mask;
}

// The gradient of what was written, of which only what has stayed gets any.
Tensor without(const Mask& mask, const Tensor& g) {
  return any(mask) ? masked_fill(g, mask, 0) : g;
}

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
      [index, dim](Sink& sink) {
        sink.add(0, sink.gradient());
        if (sink.needs(1))
          sink.add(1, gather(sink.gradient(), dim, index));
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
      [index, dim, d = s.d, into = s.into](Sink& sink) {
        const Tensor& g = sink.gradient();
        if (sink.needs(0))
          sink.add(0, scatter(g, dim, index, 0));
        if (!sink.needs(1))
          return;
        const auto there_and_back = [&](const double* numbers, double* read) {
          std::vector<double> last(numel(into));
          const Shape shape = at_least_1d(index.shape());
          kernels::scatter(last.data(), into, d, index.data(), shape, numbers);
          kernels::gather(last.data(), into, d, index.data(), shape, read);
        };
        sink.add(1, without(overwritten(index.shape(), there_and_back), gather(g, dim, index)));
      });
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Indices& index, double value) {
  return scatter(x, dim, index, full(index.shape(), value, x.dtype()));
}

// ---- rows ----

namespace {

// x (n, width) with src (rows.numel(), width) at these rows.
Tensor put_rows(const Tensor& x, const Indices& rows, const Tensor& src) {
  const kernels::Axis axis{1, static_cast<std::size_t>(x.shape()[0]),
                           static_cast<std::size_t>(x.shape()[1])};
  return record(
      "index_put", {x, src},
      [axis, rows]<class T>(std::span<const Tensor> in) {
        return changed_copy<T>(in, [&](T* y, const T* from) {
          kernels::index_copy(axis, y, rows.data(), rows.numel(), from);
        });
      },
      [axis, rows](Sink& sink) {
        const Tensor& g = sink.gradient();
        if (sink.needs(0))
          sink.add(0, put_rows(g, rows, zeros({rows.numel(), axis.inner}, g.dtype())));
        if (!sink.needs(1))
          return;
        const auto there_and_back = [&](const double* numbers, double* read) {
          std::vector<double> last(axis.n);
          const kernels::Axis single{1, axis.n, 1};
          kernels::index_copy(single, last.data(), rows.data(), rows.numel(), numbers);
          kernels::index_select(single, last.data(), rows.data(), rows.numel(), read);
        };
        sink.add(1,
                 without(overwritten({static_cast<std::size_t>(rows.numel()), 1}, there_and_back),
                         index_select(g, 0, rows)));
      });
}

// The number of the row that each element of the indices, broadcast to `shape`, names in an array
// of `sizes`.
Indices rows_of(const std::vector<Indices>& indices, const Shape& shape, const Shape& sizes) {
  auto rows = empty_array<std::int64_t>({numel(shape)});
  if (rows.size() == 0)
    return rows;
  std::fill_n(rows.data(), rows.size(), std::int64_t{0});
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const Indices& index = indices[k];
    const auto n = static_cast<std::int64_t>(sizes[k]);
    const std::vector<std::size_t> strides = row_major_strides(index.shape());
    const std::size_t missing = shape.size() - index.dim();
    std::vector<kernels::Dimension<1>> walk;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool moves = d >= missing && index.shape()[d - missing] != 1;
      walk.push_back({static_cast<std::size_t>(shape[d]),
                      {moves ? static_cast<std::ptrdiff_t>(strides[d - missing]) : 0}});
    }
    kernels::Odometer<1> at(walk);
    for (std::size_t i = 0; i < rows.size(); ++i, at.advance()) {
      const std::int64_t wanted = index.data()[at[0]];
      if (wanted < -n || wanted >= n)
        fail<ValueError>(
            "index_put: {} in the indices of dimension {} is out of range: that of x has size {}",
            wanted, k, n);
      rows.data()[i] = rows.data()[i] * n + (wanted < 0 ? wanted + n : wanted);
    }
  }
  return rows;
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
  return reshape(accumulate ? index_add(to, 0, rows, from) : put_rows(to, rows, from), sizes);
}

}  // namespace xgrad
