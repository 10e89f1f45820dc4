// Elements by index, running sums, and the largest k.

#include <fmt/ranges.h>

#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/index.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

using kernels::Axis;

// ---- checks ----

namespace {

// Every index must be in [0, limit); the error says which is not, and where it stands.
void check_range(const char* op, const Indices& index, std::size_t limit) {
  const auto outside = [limit](std::int64_t i) { return static_cast<std::uint64_t>(i) >= limit; };
  const std::int64_t* const end = index.data() + index.numel();
  const std::int64_t* const bad = std::find_if(index.data(), end, outside);
  if (bad == end)
    return;
  Shape place = index.shape();
  auto flat = static_cast<std::size_t>(bad - index.data());
  for (std::size_t d = place.size(); d-- > 0; flat /= index.shape()[d])
    place[d] = flat % index.shape()[d];
  fail<ValueError>("{}: index {} at {} of the indices {} is out of range: expected 0 to {}", op,
                   *bad, to_string(place), to_string(index.shape()),
                   static_cast<std::int64_t>(limit) - 1);
}

void check_same_dtype(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() != src.dtype())
    fail<DTypeError>("{}: x is {} but src is {}; convert one with to()", op, to_string(x.dtype()),
                     to_string(src.dtype()));
}

// A 0-d shape counts as one of a single element, as in PyTorch.
Shape at_least_1d(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

// What index_select makes of x, and index_add takes as src.
Shape selected_shape(const char* op, const Tensor& x, std::size_t d, const Indices& index) {
  if (index.dim() > 1)
    fail<ShapeError>("{}: the index has shape {} but must be 1-dimensional", op,
                     to_string(index.shape()));
  if (x.dim() == 0) {
    check<ShapeError>(index.numel() == 1, "{}: {} indices for a 0-d tensor, which takes one", op,
                      index.numel());
    return x.shape();
  }
  Shape shape = x.shape();
  shape[d] = index.numel();
  return shape;
}

// The index of gather and scatter_add: of the tensor's rank, and no larger off dim.  One without
// elements fits anything.
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

}  // namespace

// ---- rows ----

Tensor index_select(const Tensor& x, std::int64_t dim, const Indices& index) {
  const std::size_t d = normalize_dim(dim, x.dim(), "index_select");
  const Shape shape = selected_shape("index_select", x, d, index);
  const Axis axis = kernels::axis_of(x.shape(), d);
  check_range("index_select", index, axis.n);
  return record(
      "index_select", {x},
      [index, axis, shape](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(shape);
          kernels::index_select(axis, in[0].data<T>(), index.data(), index.numel(), y.data());
          return Tensor(std::move(y));
        });
      },
      [index, dim, before = x.shape()](Sink& sink) {
        const Tensor& g = sink.gradient();
        sink.add(0, index_add(zeros(before, g.dtype()), dim, index, g));
      });
}

Tensor index_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src) {
  const std::size_t d = normalize_dim(dim, x.dim(), "index_add");
  check_same_dtype("index_add", x, src);
  const Shape expected = selected_shape("index_add", x, d, index);
  if (src.shape() != expected)
    fail<ShapeError>("index_add: src has shape {} but x {} with {} along dimension {} takes {}",
                     to_string(src.shape()), to_string(x.shape()),
                     counted(index.numel(), "index", "indices"), d, to_string(expected));
  const Axis axis = kernels::axis_of(x.shape(), d);
  check_range("index_add", index, axis.n);
  return record(
      "index_add", {x, src},
      [index, axis](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = copy_of(in[0].data<T>(), in[0].shape());
          kernels::index_add(axis, y.data(), index.data(), index.numel(), in[1].data<T>());
          return Tensor(std::move(y));
        });
      },
      [index, dim](Sink& sink) {
        sink.add(0, sink.gradient());
        if (sink.needs(1))
          sink.add(1, index_select(sink.gradient(), dim, index));
      });
}

// The gradient is added up in place, in the gradient that other uses of the weight may have left.
Tensor embedding(const Indices& indices, const Tensor& weight) {
  if (weight.dim() != 2)
    fail<ShapeError>("embedding: the weight has shape {} but must be (V, C)",
                     to_string(weight.shape()));
  const std::size_t rows = weight.shape()[0], width = weight.shape()[1];
  check_range("embedding", indices, rows);
  return record(
      "embedding", {weight},
      [indices](std::span<const Tensor> in) {
        const Shape& from = in[0].shape();
        Shape shape = indices.shape();
        shape.push_back(from[1]);
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(shape);
          kernels::index_select({1, from[0], from[1]}, in[0].data<T>(), indices.data(),
                                indices.numel(), y.data());
          return Tensor(std::move(y));
        });
      },
      [indices, rows, width](Sink& sink) {
        const Tensor& g = sink.gradient();
        if (sink.create_graph()) {
          const Indices flat = copy_of(indices.data(), Shape{indices.numel()});
          const Tensor by_row = reshape(g, {indices.numel(), width});
          sink.add(0, index_add(zeros({rows, width}, g.dtype()), 0, flat, by_row));
        } else if (sink.needs(0)) {
          dispatch(g.dtype(), [&]<class T>() {
            const Buffer<T> buffer = sink.buffer<T>(0);
            if (buffer.beta == 0)
              std::fill_n(buffer.data, rows * width, T(0));
            kernels::index_add({1, rows, width}, buffer.data, indices.data(), indices.numel(),
                               g.data<T>());
          });
        }
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
      [index, d, from](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(index.shape());
          kernels::gather(in[0].data<T>(), from, d, index.data(), at_least_1d(index.shape()),
                          y.data());
          return Tensor(std::move(y));
        });
      },
      [index, dim, before = x.shape()](Sink& sink) {
        const Tensor& g = sink.gradient();
        sink.add(0, scatter_add(zeros(before, g.dtype()), dim, index, g));
      });
}

namespace {

// The part of src that an index of this shape reaches.
Tensor reached(Tensor src, const Shape& index) {
  if (numel(index) == 0)
    return reshape(narrow(reshape(src, -1), 0, 0, 0), index);
  for (std::size_t d = 0; d < index.size(); ++d)
    if (src.dim() > 0 && index[d] < src.shape()[d])
      src = narrow(src, static_cast<std::int64_t>(d), 0, index[d]);
  return src.shape() == index ? src : reshape(src, index);
}

}  // namespace

Tensor scatter_add(const Tensor& x, std::int64_t dim, const Indices& index, const Tensor& src) {
  const std::size_t d = normalize_dim(dim, x.dim(), "scatter_add");
  check_same_dtype("scatter_add", x, src);
  check_fits("scatter_add", index, "x", x.shape(), d);
  check_fits("scatter_add", index, "src", src.shape(), {});
  const Shape into = at_least_1d(x.shape());
  check_range("scatter_add", index, into[d]);
  return record(
      "scatter_add", {x, reached(src, index.shape())},
      [index, d, into](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = copy_of(in[0].data<T>(), in[0].shape());
          kernels::scatter_add(y.data(), into, d, index.data(), at_least_1d(index.shape()),
                               in[1].data<T>());
          return Tensor(std::move(y));
        });
      },
      [index, dim](Sink& sink) {
        sink.add(0, sink.gradient());
        if (sink.needs(1))
          sink.add(1, gather(sink.gradient(), dim, index));
      });
}

// ---- scans and selection ----

// The derivative of a running sum from the front is one from the back.
static Tensor cumsum(const Tensor& x, Axis axis, bool reverse) {
  return record(
      "cumsum", {x},
      [axis, reverse](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = empty_array<T>(in[0].shape());
          kernels::cumsum(axis, in[0].data<T>(), reverse, y.data());
          return Tensor(std::move(y));
        });
      },
      [axis, reverse](Sink& sink) { sink.add(0, cumsum(sink.gradient(), axis, !reverse)); });
}

Tensor cumsum(const Tensor& x, std::int64_t dim) {
  return cumsum(x, kernels::axis_of(x.shape(), normalize_dim(dim, x.dim(), "cumsum")), false);
}

Extremum topk(const Tensor& x, std::size_t k, std::int64_t dim, bool largest) {
  const std::size_t d = normalize_dim(dim, x.dim(), "topk");
  const Axis axis = kernels::axis_of(x.shape(), d);
  if (k > axis.n)
    fail<ValueError>("topk: k is {} but x {} has {} along dimension {}", k, to_string(x.shape()),
                     counted(axis.n, "element", "elements"), dim);
  Shape shape = x.shape();
  if (shape.empty() && k == 0)
    shape = Shape{0};
  else if (!shape.empty())
    shape[d] = k;
  const auto run = [axis, k, largest, shape](const Tensor& in) {
    auto places = empty_array<std::int64_t>(shape);
    return dispatch(in.dtype(), [&]<class T>() {
      auto values = empty_array<T>(shape);
      kernels::topk(axis, in.data<T>(), k, largest, values.data(), places.data());
      return Extremum{Tensor(std::move(values)), Indices(std::move(places))};
    });
  };
  const Indices indices = run(x).indices;
  Tensor values = record(
      "topk", {x}, [run](std::span<const Tensor> in) { return run(in[0]).values; },
      [indices, dim, before = x.shape()](Sink& sink) {
        const Tensor& g = sink.gradient();
        sink.add(0, scatter_add(zeros(before, g.dtype()), dim, indices, g));
      });
  return {std::move(values), indices};
}

}  // namespace xgrad
