#include <xgrad/autograd/ops/selection.hpp>

#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/copy.hpp>

namespace xgrad::detail {

Selection::Selection(const Shape& whole) : shape(whole), strides(whole.size()) {
  std::ptrdiff_t stride = 1;
  for (std::size_t d = whole.size(); d-- > 0; stride *= static_cast<std::ptrdiff_t>(whole[d]))
    strides[d] = stride;
}

void Selection::slice(std::size_t d, std::size_t start, std::size_t length, std::ptrdiff_t step) {
  offset += static_cast<std::ptrdiff_t>(start) * strides[d];
  shape[d] = length;
  strides[d] *= step;
}

void Selection::drop(std::size_t d) {
  const auto remove = [d](auto& list) {
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(d),
                list.begin() + static_cast<std::ptrdiff_t>(d) + 1, list.end());
    list.resize(list.size() - 1);
  };
  remove(shape);
  remove(strides);
}

void Selection::insert(std::size_t d) {
  const auto add = [d](auto& list, auto value) {
    list.push_back(value);
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(d), list.end() - 1, list.end());
  };
  add(shape, std::size_t{1});
  add(strides, std::ptrdiff_t{0});
}

void Selection::permute(const std::vector<std::size_t>& dims) {
  const Selection before = *this;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    shape[d] = before.shape[dims[d]];
    strides[d] = before.strides[dims[d]];
  }
}

std::pair<std::size_t, std::size_t> slice_range(const char* op, std::size_t n,
                                                std::optional<std::int64_t> start,
                                                std::optional<std::int64_t> end,
                                                std::int64_t step) {
  check<ValueError>(step > 0, "{}: step {} is not positive; flip() reverses", op, step);
  const auto size = static_cast<std::int64_t>(n);
  const auto clip = [size](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const std::int64_t first = clip(start.value_or(0));
  const std::int64_t count = std::max<std::int64_t>(clip(end.value_or(size)) - first, 0);
  return {static_cast<std::size_t>(first),
          static_cast<std::size_t>(count / step + (count % step != 0 ? 1 : 0))};
}

namespace {

// From the selected places of one array to the elements of another, in order.
kernels::Walk to_picked(const Selection& s) {
  kernels::Walk walk{.axes = {}, .from = s.offset};
  walk.axes.reserve(s.shape.size());
  const Selection dense(s.shape);
  for (std::size_t d = 0; d < s.shape.size(); ++d)
    walk.axes.push_back({static_cast<std::size_t>(s.shape[d]), s.strides[d], dense.strides[d]});
  return walk;
}

kernels::Walk from_picked(const Selection& s) {
  kernels::Walk walk = to_picked(s);
  std::swap(walk.from, walk.to);
  for (auto& axis : walk.axes)
    std::swap(axis.from, axis.to);
  return walk;
}

// Whether what is selected lies side by side, in order, so that it need not be copied.
bool is_window(const Selection& s) {
  std::ptrdiff_t stride = 1;
  for (std::size_t d = s.shape.size(); d-- > 0; stride *= static_cast<std::ptrdiff_t>(s.shape[d]))
    if (s.shape[d] != 1 && s.strides[d] != stride)
      return false;
  return true;
}

Tensor window(const Tensor& x, const Selection& s) {
  const auto offset = numel(s.shape) == 0 ? 0 : static_cast<std::size_t>(s.offset);
  return Tensor(make_pooled<Value>(x.impl().value, offset, s.shape), nullptr);
}

template <class T>
void zero_the_rest(T* data, const Shape& shape, const Selection& s) {
  if (numel(s.shape) != numel(shape))
    kernels::fill(data, numel(shape), T(0));
}

}  // namespace

template <class T>
Array<T> picked(const Selection& s, const T* from) {
  auto y = empty_array<T>(s.shape);
  kernels::copy(to_picked(s), from, y.data());
  return y;
}

template <class T>
DiscreteTensor<T> pick(const DiscreteTensor<T>& x, const Selection& s) {
  if (is_window(s))
    return x.window(numel(s.shape) == 0 ? 0 : static_cast<std::size_t>(s.offset), s.shape);
  return picked(s, x.data());
}
template Array<float> picked(const Selection&, const float*);
template Array<double> picked(const Selection&, const double*);
template Indices pick(const Indices&, const Selection&);
template Mask pick(const Mask&, const Selection&);

Tensor pick(const char* op, const Tensor& x, Selection s) {
  const auto forward = [s]<class T>(std::span<const Tensor> in) {
    if (is_window(s))
      return window(in[0], s);
    return Tensor(picked(s, in[0].data<T>()));
  };
  return record(op, {x}, forward, [s, shape = x.shape()](Context& ctx) {
    const Tensor& g = ctx.gradient();
    const auto by_op = [&] { ctx.add(0, place(g, shape, s)); };
    if (is_window(s) && numel(s.shape) == numel(shape))
      return by_op();
    ops_or_kernel(ctx, by_op, [&]<class T>() {
      // The parts of a split add to one gradient, each to its own place.
      const auto [data, beta] = ctx.buffer<T>(0);
      if (beta == 0) {
        zero_the_rest(data, shape, s);
        kernels::copy(from_picked(s), g.data<T>(), data);
      } else {
        kernels::add(from_picked(s), g.data<T>(), data);
      }
    });
  });
}

Tensor place(const Tensor& g, const Shape& shape, Selection s) {
  const auto forward = [s, shape]<class T>(std::span<const Tensor> in) {
    if (is_window(s) && numel(s.shape) == numel(shape))
      return window(in[0], Selection(shape));
    auto y = empty_array<T>(shape);
    zero_the_rest(y.data(), shape, s);
    kernels::copy(from_picked(s), in[0].data<T>(), y.data());
    return Tensor(std::move(y));
  };
  return record("place", {g}, forward,
                [s](Context& ctx) { ctx.add(0, pick("pick", ctx.gradient(), s)); });
}

Tensor put(const char* op, const Tensor& x, const Tensor& src, Selection s) {
  if (x.dtype() != src.dtype())
    fail<DTypeError>("{}: x is {} but src is {}; convert one with to()", op, to_string(x.dtype()),
                     to_string(src.dtype()));
  if (src.shape() != s.shape)
    fail<ShapeError>("{}: src has shape {} but the part of x {} that it replaces has {}", op,
                     to_string(src.shape()), to_string(x.shape()), to_string(s.shape));
  const auto forward = [s]<class T>(std::span<const Tensor> in) {
    auto y = copy_of(in[0].data<T>(), in[0].shape());
    kernels::copy(from_picked(s), in[1].data<T>(), y.data());
    return y;
  };
  return record(op, {x, src}, forward, [op, s](Context& ctx) {
    const Tensor& g = ctx.gradient();
    if (ctx.needs(0))
      ctx.add(0, put(op, g, zeros(s.shape, g.dtype()), s));
    if (ctx.needs(1))
      ctx.add(1, pick("pick", g, s));
  });
}

}  // namespace xgrad::detail
