#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/copy.hpp"
#include "../ops.hpp"
#include "elementwise.hpp"
#include "index.hpp"
#include "rules.hpp"

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
  shape.erase(shape.begin() + d);
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
}

void Selection::insert(std::size_t d) {
  shape.insert(shape.begin() + d, 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(d), 0);
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

// Copies the selected elements of one array to all elements of another, in order.
static kernels::Walk to_selected(const Selection& s) {
  kernels::Walk walk{.axes = {}, .from = s.offset};
  walk.axes.reserve(s.shape.size());
  const Selection dense(s.shape);
  for (std::size_t d = 0; d < s.shape.size(); ++d)
    walk.axes.push_back({static_cast<std::size_t>(s.shape[d]), s.strides[d], dense.strides[d]});
  return walk;
}

static kernels::Walk from_selected(const Selection& s) {
  kernels::Walk walk = to_selected(s);
  std::swap(walk.from, walk.to);
  for (auto& axis : walk.axes)
    std::swap(axis.from, axis.to);
  return walk;
}

// Whether the selected elements are contiguous and in order, so that they need not be copied.
static bool is_contiguous(const Selection& s) {
  std::ptrdiff_t stride = 1;
  for (std::size_t d = s.shape.size(); d-- > 0; stride *= static_cast<std::ptrdiff_t>(s.shape[d]))
    if (s.shape[d] != 1 && s.strides[d] != stride)
      return false;
  return true;
}

static Tensor contiguous_view(const Tensor& x, const Selection& s) {
  const auto offset = numel(s.shape) == 0 ? 0 : static_cast<std::size_t>(s.offset);
  return Tensor(detail::make_pooled<Value>(x.identity().value, offset, s.shape), nullptr);
}

template <class T>
static void zero_the_rest(T* data, const Shape& shape, const Selection& s) {
  if (numel(s.shape) != numel(shape))
    kernels::fill(data, numel(shape), T(0));
}

template <class T>
Array<T> strided_copy(const Selection& s, const T* from) {
  auto y = empty_array<T>(s.shape);
  kernels::copy(to_selected(s), from, y.data());
  return y;
}

template <class T>
DiscreteTensor<T> as_strided(const DiscreteTensor<T>& x, const Selection& s) {
  if (is_contiguous(s))
    return x.contiguous_view(numel(s.shape) == 0 ? 0 : static_cast<std::size_t>(s.offset), s.shape);
  return strided_copy(s, x.data());
}
template Array<float> strided_copy(const Selection&, const float*);
template Array<double> strided_copy(const Selection&, const double*);
template Indices as_strided(const Indices&, const Selection&);
template Mask as_strided(const Mask&, const Selection&);

Tensor as_strided(const char* op, const Tensor& x, Selection s) {
  const auto forward = [s]<class T>(std::span<const Tensor> in) {
    if (is_contiguous(s))
      return contiguous_view(in[0], s);
    return Tensor(strided_copy(s, in[0].data<T>()));
  };
  return record(op, {x}, forward, [s, shape = x.shape()](Context& ctx) {
    const Tensor& g = ctx.gradient();
    const auto by_op = [&] { ctx.add(0, place(g, shape, s)); };
    if (is_contiguous(s) && numel(s.shape) == numel(shape))
      return by_op();
    ops_or_kernel(ctx, by_op, [&]<class T>() {
      // The parts of a split add to one gradient, each at its own place.
      const auto [data, beta] = ctx.buffer<T>(0);
      if (beta == 0) {
        zero_the_rest(data, shape, s);
        kernels::copy(from_selected(s), g.data<T>(), data);
      } else {
        kernels::add(from_selected(s), g.data<T>(), data);
      }
    });
  });
}

Tensor place(const Tensor& g, const Shape& shape, Selection s) {
  const auto forward = [s, shape]<class T>(std::span<const Tensor> in) {
    if (is_contiguous(s) && numel(s.shape) == numel(shape))
      return contiguous_view(in[0], Selection(shape));
    auto y = empty_array<T>(shape);
    zero_the_rest(y.data(), shape, s);
    kernels::copy(from_selected(s), in[0].data<T>(), y.data());
    return Tensor(std::move(y));
  };
  return record("place", {g}, forward,
                [s](Context& ctx) { ctx.add(0, as_strided("pick", ctx.gradient(), s)); });
}

Tensor as_strided_scatter(const char* op, const Tensor& x, const Tensor& src, Selection s) {
  check_same_dtype(op, x, "src", src);
  if (src.shape() != s.shape)
    fail<ShapeError>("{}: src has shape {} but the part of x {} that it replaces has {}", op,
                     to_string(src.shape()), to_string(x.shape()), to_string(s.shape));
  const auto forward = [s]<class T>(std::span<const Tensor> in) {
    auto y = copy_of(in[0].data<T>(), in[0].shape());
    kernels::copy(from_selected(s), in[1].data<T>(), y.data());
    return y;
  };
  return record(op, {x, src}, forward, [op, s](Context& ctx) {
    const Tensor& g = ctx.gradient();
    if (ctx.needs(0))
      ctx.add(0, as_strided_scatter(op, g, zeros(s.shape, g.dtype()), s));
    if (ctx.needs(1))
      ctx.add(1, as_strided("pick", g, s));
  });
}

}  // namespace xgrad::detail

namespace xgrad {

using detail::as_strided;
using detail::Selection;
using detail::shapes_of;

// ---- parts ----

static std::size_t checked_dim(const char* op, const Shape& x, std::int64_t dim) {
  check<ShapeError>(!x.empty(), "{}: x is 0-d and has no dimension to work on", op);
  return normalize_dim(dim, x.size(), op);
}

Selection detail::sliced(const char* op, const Shape& x, std::int64_t dim,
                         std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                         std::int64_t step) {
  const std::size_t d = checked_dim(op, x, dim);
  const auto [first, length] = slice_range(op, static_cast<std::size_t>(x[d]), start, end, step);
  Selection s(x);
  s.slice(d, first, length, length > 1 ? step : 1);
  return s;
}

Selection detail::narrowed(const Shape& x, std::int64_t dim, std::int64_t start, Dim length) {
  const std::size_t d = checked_dim("narrow", x, dim);
  const std::int64_t n = x[d], first = start < 0 ? start + n : start;
  check<ValueError>(length >= 0, "narrow: length {} is negative", length.value);
  if (first < 0 || first > n || length > n - first)
    fail<ValueError>("narrow: start {} and length {} leave dimension {} of x {}, which has size {}",
                     start, length.value, d, to_string(x), n);
  Selection s(x);
  s.slice(d, static_cast<std::size_t>(first), static_cast<std::size_t>(length.value));
  return s;
}

Selection detail::selected(const char* op, const Shape& x, std::int64_t dim, std::int64_t index) {
  const std::size_t d = checked_dim(op, x, dim);
  const std::int64_t n = x[d];
  if (index < -n || index >= n)
    fail<ValueError>("{}: index {} is out of range for dimension {} of x {}, which has size {}", op,
                     index, d, to_string(x), n);
  Selection s(x);
  s.slice(d, static_cast<std::size_t>(index < 0 ? index + n : index), 1);
  s.drop(d);
  return s;
}

Tensor select_scatter(const Tensor& x, const Tensor& src, Dim dim, Dim index) {
  return detail::as_strided_scatter("select_scatter", x, src,
                                    detail::selected("select_scatter", x.shape(), dim, index));
}

static std::vector<Tensor> split_at(const char* op, const Tensor& x, std::size_t d,
                                    const Dims& sizes) {
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  std::size_t start = 0;
  for (const Size part : sizes) {
    const auto size = static_cast<std::size_t>(part);
    Selection s(x.shape());
    s.slice(d, start, size);
    parts.push_back(as_strided(op, x, std::move(s)));
    start += size;
  }
  return parts;
}

// Equal parts, of which the last may be smaller; at least one.
static std::vector<Size> even_sizes(Size n, Size size) {
  const Size parts = size == 0 ? 1 : std::max<Size>(1, (n + size - 1) / size);
  std::vector<Size> sizes(static_cast<std::size_t>(parts), size);
  sizes.back() = n - size * (parts - 1);
  return sizes;
}

XGRAD_RULE(split, "a part of a", {"g where the part was, else 0"}, detail::part_of_x);
std::vector<Tensor> split(const Tensor& x, Size split_size, Dim dim) {
  const std::size_t d = checked_dim("split", x.shape(), dim);
  const Size n = x.shape()[d];
  if (split_size < 0 || (split_size == 0 && n > 0))
    fail<ValueError>("split: split_size {} for dimension {} of x {}", split_size, d,
                     to_string(x.shape()));
  return split_at("split", x, d, even_sizes(n, std::min(split_size, std::max<Size>(n, 1))));
}

std::vector<Tensor> split(const Tensor& x, const Dims& split_sizes, Dim dim) {
  const std::size_t d = checked_dim("split", x.shape(), dim);
  Size rest = x.size(dim);
  const bool fits = std::ranges::all_of(split_sizes, [&rest](Size size) {
    return size >= 0 && size <= rest && ((rest -= size), true);
  });
  if (!fits || rest != 0)
    fail<ValueError>("split: split_sizes ({}) do not add up to size {} of dimension {} of x {}",
                     fmt::join(split_sizes, ", "), x.size(dim), d, to_string(x.shape()));
  return split_at("split", x, d, split_sizes);
}

std::vector<Tensor> chunk(const Tensor& x, Dim chunks, Dim dim) {
  const std::size_t d = checked_dim("chunk", x.shape(), dim);
  check<ValueError>(chunks > 0, "chunk: chunks is {}; it must be at least 1", chunks);
  const Size n = x.shape()[d];
  if (n == 0)
    return split_at("chunk", x, d, std::vector<Size>(to_size(chunks)));
  return split_at("chunk", x, d, even_sizes(n, n / chunks + (n % chunks != 0 ? 1 : 0)));
}

std::vector<Tensor> unbind(const Tensor& x, Dim dim) {
  const std::size_t d = checked_dim("unbind", x.shape(), dim);
  std::vector<Tensor> parts;
  for (Size i = 0; i < x.shape()[d]; ++i)
    parts.push_back(select(x, dim, i));
  return parts;
}

void detail::check_parts(const char* op, const Tensor& x, Dim dim, std::size_t parts,
                         std::size_t wanted) {
  if (parts != wanted)
    fail<ValueError>("{}: x {} makes {} along dimension {}, but {} named", op, to_string(x.shape()),
                     counted(parts, "part", "parts"), dim,
                     wanted == 1 ? "1 is" : fmt::format("{} are", wanted));
}

// ---- joining ----

namespace {

template <class T>
const T* elements_of(const Tensor& x) {
  return x.data<T>();
}
template <class T>
const T* elements_of(const DiscreteTensor<T>& x) {
  return x.data();
}

// Concatenates the inputs along dimension d, which a stack's inputs lack.
template <class T, class X>
Array<T> join(std::span<const X> xs, const Shape& shape, std::size_t d) {
  std::size_t outer = 1, row = 1;
  for (std::size_t k = 0; k < shape.size(); ++k)
    (k < d ? outer : row) *= shape[k];
  auto y = empty_array<T>(shape);
  std::size_t start = 0;
  for (const X& x : xs) {
    const std::size_t part = outer == 0 ? 0 : x.numel() / outer;
    const auto stride = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    kernels::copy({{{outer, stride(part), stride(row)}, {part, 1, 1}}, 0, stride(start)},
                  elements_of<T>(x), y.data());
    start += part;
  }
  return y;
}

void check_can_join(const char* op, const std::vector<Tensor>& xs) {
  for (std::size_t i = 0; i < xs.size(); ++i)
    check<ValueError>(xs[i].defined(), "{}: Tensor {} is undefined", op, i);
  for (std::size_t i = 1; i < xs.size(); ++i)
    if (xs[i].dtype() != xs[0].dtype())
      fail<DTypeError>("{}: Tensor 0 is {} and Tensor {} is {}; convert one with to()", op,
                       to_string(xs[0].dtype()), i, to_string(xs[i].dtype()));
}

// The offsets of the joined parts along dimension d.
struct Joined {
  Shape shape;
  std::size_t d;
  std::vector<std::size_t> starts = {};
};

// A Tensor of shape (0,) joins anything.
bool counts(const Shape& x) { return x != Shape{0}; }

Joined joined_by_cat(const std::vector<Shape>& xs, std::int64_t dim) {
  check<ValueError>(!xs.empty(), "cat: no Tensors are given");
  const auto first = std::ranges::find_if(xs, counts);
  Shape shape = first == xs.end() ? Shape{0} : *first;
  for (std::size_t i = 0; i < xs.size(); ++i)
    check<ShapeError>(!xs[i].empty(), "cat: Tensor {} is 0-d; stack() joins such", i);
  const std::size_t d = first == xs.end() ? 0 : normalize_dim(dim, shape.size(), "cat");
  std::vector<std::size_t> starts;
  std::size_t total = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    starts.push_back(total);
    if (!counts(xs[i]))
      continue;
    Shape other = xs[i];
    if (other.size() != shape.size())
      fail<ShapeError>(
          "cat: Tensor {} has shape {} and Tensor {} has {}: {} and {} dimensions, not as many",
          first - xs.begin(), to_string(*first), i, to_string(other), shape.size(), other.size());
    other[d] = shape[d];
    if (other != shape)
      fail<ShapeError>(
          "cat: Tensor {} has shape {} and Tensor {} has {}: only sizes at dimension {} may differ",
          first - xs.begin(), to_string(*first), i, to_string(xs[i]), d);
    total = static_cast<std::size_t>(numel(Shape{total + xs[i][d]}));  // an error beyond 2^60
  }
  shape[d] = total;
  return {shape, d, std::move(starts)};
}

Joined joined_by_stack(const std::vector<Shape>& xs, std::int64_t dim) {
  check<ValueError>(!xs.empty(), "stack: no Tensors are given");
  for (std::size_t i = 1; i < xs.size(); ++i)
    if (xs[i] != xs[0])
      fail<ShapeError>("stack: Tensor 0 has shape {} and Tensor {} has {}: all must be the same",
                       to_string(xs[0]), i, to_string(xs[i]));
  Selection whole(xs[0]);
  const std::size_t d = normalize_dim(dim, xs[0].size() + 1, "stack");
  whole.insert(d);
  whole.shape[d] = xs.size();
  return {whole.shape, d};
}

template <class T>
DiscreteTensor<T> join_discrete(const std::vector<DiscreteTensor<T>>& xs, const Joined& to) {
  return join<T>(std::span(xs), to.shape, to.d);
}

}  // namespace

XGRAD_RULE(cat, "the inputs, joined", {"its own part of g"}, detail::elements_move);
Tensor cat(const std::vector<Tensor>& xs, Dim dim) {
  check_can_join("cat", xs);
  const std::vector<Shape> shapes = shapes_of(xs);
  const auto [shape, d, starts] = joined_by_cat(shapes, dim);
  return record(
      "cat", xs,
      [shape = shape, d = d]<class T>(std::span<const Tensor> in) { return join<T>(in, shape, d); },
      [shapes, starts = starts, d = d](Context& ctx) {
        for (std::size_t i = 0; i < shapes.size(); ++i)
          if (ctx.needs(i)) {
            Selection s(ctx.gradient().shape());
            s.slice(d, starts[i], counts(shapes[i]) ? static_cast<std::size_t>(shapes[i][d]) : 0);
            ctx.add(i, counts(shapes[i]) ? as_strided("narrow", ctx.gradient(), std::move(s))
                                         : zeros({0}, ctx.gradient().dtype()));
          }
      });
}
Indices cat(const std::vector<Indices>& xs, Dim dim) {
  return join_discrete(xs, joined_by_cat(shapes_of(xs), dim));
}
Mask cat(const std::vector<Mask>& xs, Dim dim) {
  return join_discrete(xs, joined_by_cat(shapes_of(xs), dim));
}

Tensor stack(const std::vector<Tensor>& xs, Dim dim) {
  check_can_join("stack", xs);
  const Joined to = joined_by_stack(shapes_of(xs), dim);
  return record(
      "stack", xs,
      [to]<class T>(std::span<const Tensor> in) { return join<T>(in, to.shape, to.d); },
      [n = xs.size(), d = to.d](Context& ctx) {
        for (std::size_t i = 0; i < n; ++i)
          if (ctx.needs(i))
            ctx.add(i, select(ctx.gradient(), static_cast<std::int64_t>(d),
                              static_cast<std::int64_t>(i)));
      });
}
Indices stack(const std::vector<Indices>& xs, Dim dim) {
  return join_discrete(xs, joined_by_stack(shapes_of(xs), dim));
}
Mask stack(const std::vector<Mask>& xs, Dim dim) {
  return join_discrete(xs, joined_by_stack(shapes_of(xs), dim));
}

}  // namespace xgrad
