// Ops that rearrange elements.  An op that uses each element once is a Selection: this file makes
// it and checks the arguments.

#include "shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include "../fail.hpp"
#include "../graph.hpp"
#include "../ops.hpp"
#include "index.hpp"
#include "reduced.hpp"
#include "rules.hpp"

namespace xgrad {

// ---- the same elements in another shape ----

static std::string list(const Dims& sizes) { return fmt::format("({})", fmt::join(sizes, ", ")); }

namespace detail {
// The shape with these sizes, of which one may be -1, of n elements of `whole()`.
template <class F>
static Shape infer_shape(const char* op, std::size_t n, const Dims& sizes, const F& whole) {
  Dims all = sizes;
  if (const auto inferred = std::ranges::find(all, -1); inferred != all.end()) {
    *inferred = 1;
    if (std::ranges::count(all, -1) > 0)
      fail<ShapeError>("{}: sizes {} have more than one -1", op, list(sizes));
    const std::size_t known = numel(to_shape(all, op));
    if (known == 0 && n == 0)
      fail<ShapeError>("{}: {} has no elements, so the -1 in sizes {} could be any number", op,
                       whole(), list(sizes));
    if (known == 0 || n % known != 0)
      fail<ShapeError>("{}: sizes {} do not divide the {} of {}", op, list(sizes),
                       counted(n, "element", "elements"), whole());
    *inferred = static_cast<std::int64_t>(n / known);
  }
  Shape shape = to_shape(all, op);
  if (std::cmp_not_equal(numel(shape), n))
    fail<ShapeError>("{}: {} has {} but sizes {} make {}", op, whole(),
                     counted(n, "element", "elements"), list(sizes), numel(shape));
  return shape;
}

Selection reshaped(const char* op, const Shape& x, const Dims& sizes) {
  const auto whole = [&] { return fmt::format("x {}", to_string(x)); };
  return Selection(infer_shape(op, static_cast<std::size_t>(numel(x)), sizes, whole));
}

Selection unflattened(const Shape& x, std::int64_t dim, const Dims& sizes) {
  const std::size_t d = normalize_dim(dim, x.size(), "unflatten");
  check<ShapeError>(!x.empty() && !sizes.empty(), "unflatten: x {} is 0-d, or sizes {} are none",
                    to_string(x), list(sizes));
  const auto whole = [&] { return fmt::format("dimension {} of x {}", d, to_string(x)); };
  const Shape parts = infer_shape("unflatten", static_cast<std::size_t>(x[d]), sizes, whole);
  Shape shape = x;
  shape.erase(shape.begin() + d);
  for (std::size_t i = parts.size(); i-- > 0;)
    shape.insert(shape.begin() + d, static_cast<std::size_t>(parts[i]));
  return Selection(shape);
}

Selection flattened(const Shape& x, std::int64_t start_dim, std::int64_t end_dim) {
  const std::size_t first = normalize_dim(start_dim, x.size(), "flatten");
  const std::size_t last = normalize_dim(end_dim, x.size(), "flatten");
  check<ValueError>(first <= last, "flatten: start_dim {} comes after end_dim {}", start_dim,
                    end_dim);
  Dims sizes(x);
  for (std::size_t d = last; d > first; --d) {
    sizes[d - 1] *= sizes[d];
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  }
  if (sizes.empty())
    sizes.push_back(1);
  return Selection(to_shape(sizes, "flatten"));
}

Selection squeezed(const Shape& x) {
  Shape shape;
  std::ranges::copy_if(x, std::back_inserter(shape), [](std::size_t n) { return n != 1; });
  return Selection(shape);
}

Selection squeezed(const Shape& x, const Dims& dims) {
  const Listed listed = listed_dims(dims, x.size(), "squeeze");
  Shape shape;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (x[d] != 1 || !listed[d])
      shape.push_back(x[d]);
  return Selection(shape);
}

Selection unsqueezed(const Shape& x, std::int64_t dim) {
  Selection s(x);
  s.insert(normalize_dim(dim, x.size() + 1, "unsqueeze"));
  return Selection(s.shape);
}

Selection expanded(const Shape& x, const Dims& sizes) {
  if (sizes.size() < x.size())
    fail<ShapeError>("expand: sizes {} are fewer than the dimensions of x {}", list(sizes),
                     to_string(x));
  const std::size_t added = sizes.size() - x.size();
  Dims wanted = sizes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1 && d < added)
      fail<ShapeError>("expand: -1 in sizes {} at dimension {}, which x {} does not have",
                       list(sizes), d, to_string(x));
    if (sizes[d] == -1)
      wanted[d] = x[d - added];
    else if (d >= added && x[d - added] != 1 && x[d - added] != sizes[d])
      fail<ShapeError>(
          "expand: size {} at dimension {} of sizes {} does not fit x {}, which has {} there, not "
          "1",
          sizes[d], d, list(sizes), to_string(x), x[d - added]);
  }
  const Selection dense(x);
  Selection s(to_shape(wanted, "expand"));
  for (std::size_t d = 0; d < sizes.size(); ++d)
    s.strides[d] = d < added || x[d - added] == 1 ? 0 : dense.strides[d - added];
  return s;
}

}  // namespace detail

using detail::as_strided;
using detail::Selection;

Tensor reshape_as(const Tensor& x, const Tensor& other) { return reshape(x, other.shape()); }
Tensor view_as(const Tensor& x, const Tensor& other) { return view(x, other.shape()); }

XGRAD_RULE(expand, "a, repeated without a copy", {"Σ g over the copies"},
           "An element that occurs several times gets the sum of its copies' gradients.");
Tensor expand(const Tensor& x, const Dims& sizes) {
  const auto forward =
      [s = detail::expanded(x.shape(), sizes)]<class T>(std::span<const Tensor> in) {
        return s.shape == in[0].shape() ? in[0].detach()
                                        : Tensor(detail::strided_copy(s, in[0].data<T>()));
      };
  return record("expand", {x}, forward, [](Context& ctx) { ctx.add(0, ctx.gradient()); },
                {.broadcasts = true});
}

Tensor broadcast_to(const Tensor& x, const Dims& sizes) { return expand(x, sizes); }
Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.shape()); }
Tensor contiguous(const Tensor& x) { return x; }

// ---- another order ----

Selection detail::permuted(const Shape& x, const Dims& dims) {
  if (dims.size() != x.size())
    fail<ValueError>("permute: dims {} do not name each dimension of x {}", list(dims),
                     to_string(x));
  std::vector<std::size_t> order;
  for (const std::int64_t dim : dims) {
    order.push_back(normalize_dim(dim, x.size(), "permute"));
    if (std::find(order.begin(), order.end() - 1, order.back()) != order.end() - 1)
      fail<ValueError>("permute: dims {} name dimension {} twice", list(dims), order.back());
  }
  Selection s(x);
  s.permute(order);
  return s;
}

Selection detail::transposed(const Shape& x, std::int64_t dim0, std::int64_t dim1) {
  const std::size_t a = normalize_dim(dim0, x.size(), "transpose");
  const std::size_t b = normalize_dim(dim1, x.size(), "transpose");
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (a != b)
    std::swap(order[a], order[b]);
  Selection s(x);
  s.permute(order);
  return s;
}

Tensor swapaxes(const Tensor& x, Dim axis0, Dim axis1) { return transpose(x, axis0, axis1); }

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  if (source.size() != destination.size())
    fail<ValueError>("movedim: source {} and destination {} must be as many dimensions",
                     list(source), list(destination));
  const Listed moved = listed_dims(source, x.dim(), "movedim"),
               taken = listed_dims(destination, x.dim(), "movedim");
  std::vector<std::int64_t> order(moved.size());
  for (std::size_t i = 0; i < source.size(); ++i)
    order[normalize_dim(destination[i], x.dim(), "movedim")] = source[i];
  std::size_t next = 0;
  for (std::size_t d = 0; d < order.size(); ++d)
    if (!taken[d]) {
      while (moved[next])
        ++next;
      order[d] = static_cast<std::int64_t>(next++);
    }
  return x.dim() == 0 ? x : permute(x, order);
}

Tensor flip(const Tensor& x, const Dims& dims) {
  Selection s(x.shape());
  const Listed listed = listed_dims(dims, x.dim(), "flip");
  for (Size d = 0; d < x.dim(); ++d)
    if (listed[d] && x.numel() > 0)
      s.slice(d, x.shape()[d] - 1, x.shape()[d], -1);
  return as_strided("flip", x, std::move(s));
}

// ---- diagonals and triangles ----

Tensor diag(const Tensor& x, Dim diagonal) {
  if (x.dim() != 1 && x.dim() != 2)
    fail<ShapeError>("diag: x {} is neither a vector nor a matrix", to_string(x.shape()));
  constexpr std::int64_t most = std::int64_t{1} << 60;  // no sum or -diagonal overflows
  const std::int64_t right = std::clamp<std::int64_t>(diagonal, 0, most),
                     down = -std::clamp<std::int64_t>(diagonal, -most, 0);
  const Dim size = x.numel() + right + down;  // of the matrix made from a vector
  const Shape matrix = x.dim() == 1 ? to_shape({size, size}, "diag") : x.shape();
  const std::int64_t n = std::min(matrix[0] - down, matrix[1] - right);
  Selection s(matrix);
  s.shape = {std::max<std::int64_t>(n, 0)};
  s.offset = n <= 0 ? 0 : down * matrix[1] + right;
  s.strides.assign(1, static_cast<std::ptrdiff_t>(matrix[1] + 1));
  return x.dim() == 1 ? detail::place(x, matrix, s) : as_strided("diag", x, s);
}

Mask detail::triangle(const char* op, const Shape& shape, std::int64_t diagonal) {
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

static Tensor keep(const char* op, const Tensor& x, const Mask& triangle) {
  return record(
      op, {x}, [triangle](std::span<const Tensor> in) { return where(triangle, in[0], 0.0); },
      [op, triangle](Context& ctx) { ctx.add(0, keep(op, ctx.gradient(), triangle)); });
}

Tensor tril(const Tensor& x, Dim diagonal) {
  return keep("tril", x, detail::triangle("tril", x.shape(), diagonal));
}

Tensor triu(const Tensor& x, Dim diagonal) {
  return keep("triu", x, detail::triangle("triu", x.shape(), diagonal));
}

// A dimension n repeated r times is (r, n), n expanded r times; only the result is copied.
Tensor repeat(const Tensor& x, const Dims& sizes) {
  if (std::cmp_less(sizes.size(), x.dim()))
    fail<ShapeError>("repeat: sizes ({}) are fewer than the dimensions of x {}",
                     fmt::join(sizes, ", "), to_string(x.shape()));
  const Shape times = to_shape(sizes, "repeat");
  const std::size_t added = times.size() - x.dim();
  Shape split, repeated, out;
  for (std::size_t d = 0; d < times.size(); ++d) {
    const std::size_t n = d < added ? std::size_t{1} : x.shape()[d - added];
    if (times[d] != 1) {
      split.push_back(1);
      repeated.push_back(times[d]);
    }
    split.push_back(n);
    repeated.push_back(n);
    out.push_back(times[d] * n);
  }
  return reshape(expand(reshape(x, split), repeated), out);
}

Tensor repeat_interleave(const Tensor& x, Dim repeats, OptionalDim dim) {
  check<ValueError>(repeats >= 0, "repeat_interleave: repeats is {}, which is negative", repeats);
  if (!dim || x.dim() == 0)
    return repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  const std::size_t d = normalize_dim(*dim, x.dim(), "repeat_interleave");
  Shape repeated = x.shape(), out = x.shape();
  repeated.insert(repeated.begin() + d + 1, to_size(repeats));
  out[d] *= to_size(repeats);  // if this wraps around, expand() throws
  return reshape(expand(unsqueeze(x, static_cast<std::int64_t>(d) + 1), repeated), out);
}

Tensor repeat_interleave(const Tensor& x, const Indices& repeats, OptionalDim dim) {
  if (repeats.dim() > 1)
    fail<ShapeError>("repeat_interleave: repeats has shape {} but must be 1-dimensional",
                     to_string(repeats.shape()));
  if (!dim || x.dim() == 0)
    return x.dim() == 1 ? repeat_interleave(x, repeats, 0)
                        : repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  const std::size_t d = normalize_dim(*dim, x.dim(), "repeat_interleave");
  const std::size_t n = x.shape()[d];
  if (repeats.numel() == 1 && n != 1)
    return repeat_interleave(x, repeats.item(), dim);
  if (std::cmp_not_equal(repeats.numel(), n))
    fail<ShapeError>("repeat_interleave: {} for dimension {} of x {}, which has size {}",
                     counted(repeats.numel(), "repeat", "repeats"), d, to_string(x.shape()), n);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    check<ValueError>(repeats.data()[i] >= 0,
                      "repeat_interleave: repeats[{}] is {}, which is negative", i,
                      repeats.data()[i]);
    if (__builtin_add_overflow(total, repeats.data()[i], &total))
      fail<ShapeError>("repeat_interleave: the repeats of dimension {} of x {} are too many", d,
                       to_string(x.shape()));
  }
  auto index = empty_array<std::int64_t>(to_shape(Dims(total), "repeat_interleave"));
  std::int64_t* at = index.data();
  for (std::size_t i = 0; i < n; ++i)
    at = std::fill_n(at, repeats.data()[i], static_cast<std::int64_t>(i));
  return index_select(x, static_cast<std::int64_t>(d), Indices(std::move(index)));
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Meshgrid indexing) {
  const bool exchanged = indexing == Meshgrid::xy && axes.size() > 1;
  Shape grid;
  for (const Tensor& axis : axes) {
    if (axis.dim() > 1)
      fail<ShapeError>("meshgrid: axis {} has shape {} but must be 0-d or 1-d", grid.size(),
                       to_string(axis.shape()));
    if (axis.dtype() != axes[0].dtype())
      fail<DTypeError>("meshgrid: axis 0 is {} but axis {} is {}", to_string(axes[0].dtype()),
                       grid.size(), to_string(axis.dtype()));
    grid.push_back(axis.numel());
  }
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Shape line(axes.size(), 1);
    line[k] = grid[k];
    const Tensor y = expand(reshape(axes[k], line), grid);
    out.push_back(exchanged ? transpose(y, 0, 1) : y);
  }
  return out;
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  if (dims.empty() && shifts.size() == 1)
    return reshape(roll(reshape(x, -1), shifts, 0), x.shape());
  check<ValueError>(!shifts.empty(), "roll: shifts is empty; it needs one for each of dims");
  check<ValueError>(shifts.size() == dims.size(), "roll: {} for {}",
                    counted(shifts.size(), "shift", "shifts"),
                    counted(dims.size(), "dimension", "dimensions"));
  check<ShapeError>(dims.empty() || x.dim() > 0, "roll: x is 0-d and has no dimension {}",
                    dims.empty() ? 0 : dims[0]);
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = normalize_dim(dims[i], x.dim(), "roll");
    const std::int64_t n = x.numel() == 0 ? 1 : x.shape()[d], to = (shifts[i] % n + n) % n;
    if (to != 0)
      y = cat({narrow(y, dims[i], n - to, to), narrow(y, dims[i], 0, n - to)}, dims[i]);
  }
  return y;
}

Tensor pad(const Tensor& x, const Dims& pad, double value) {
  if (pad.size() % 2 != 0 || std::cmp_greater(pad.size() / 2, x.dim()))
    fail<ValueError>("pad: ({}) are no pairs for the last dimensions of x {}", fmt::join(pad, ", "),
                     to_string(x.shape()));
  Tensor part = x;
  Shape shape = x.shape();
  std::vector<std::size_t> starts(shape.size());
  for (std::size_t i = 0; i < pad.size(); i += 2) {
    const std::size_t d = shape.size() - 1 - i / 2;
    const std::int64_t left = pad[i], right = pad[i + 1], n = x.shape()[d];
    constexpr std::int64_t most = std::int64_t{1} << 60;  // sums of three stay in the range
    check<ShapeError>(std::max(left, right) < most && std::min(left, right) > -most,
                      "pad: {} and {} are beyond any dimension's size", left, right);
    if (n + std::min<std::int64_t>(left, 0) + std::min<std::int64_t>(right, 0) < 0)
      fail<ShapeError>("pad: {} and {} cut more from dimension {} of x {} than there is", left,
                       right, d, to_string(x.shape()));
    const std::int64_t first = std::max<std::int64_t>(-left, 0);
    part = narrow(part, static_cast<std::int64_t>(d), first,
                  n - first - std::max<std::int64_t>(-right, 0));
    shape[d] = to_shape(n + left + right, "pad")[0];
    starts[d] = static_cast<std::size_t>(std::max<std::int64_t>(left, 0));
  }
  Selection s(shape);
  for (std::size_t d = 0; d < shape.size(); ++d)
    s.slice(d, starts[d], static_cast<std::size_t>(part.shape()[d]));
  return detail::as_strided_scatter("pad", full(shape, value, x.dtype()), part, std::move(s));
}

}  // namespace xgrad
