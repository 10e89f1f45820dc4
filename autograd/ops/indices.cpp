// Ops of Indices and Masks, Tensor ops that take a Mask, and views of all three.

#include "indices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include "../fail.hpp"
#include "../kernels/index.hpp"
#include "../kernels/odometer.hpp"
#include "../random.hpp"
#include "elementwise.hpp"
#include "index.hpp"
#include "reduced.hpp"
#include "rules.hpp"

namespace xgrad {

using detail::as_strided;

// ---- parts and shapes, of Tensors as well ----

// An op that takes the elements of a selection of x, which the parameters describe.
#define XGRAD_AFTER_X(...) __VA_OPT__(, ) __VA_ARGS__
#define XGRAD_VIEW(op, parameters, ...)                                       \
  Tensor op(const Tensor& x XGRAD_AFTER_X parameters) {                       \
    return as_strided(#op, x, detail::__VA_ARGS__);                           \
  }                                                                           \
  template <class T>                                                          \
  DiscreteTensor<T> op(const DiscreteTensor<T>& x XGRAD_AFTER_X parameters) { \
    return as_strided(x, detail::__VA_ARGS__);                                \
  }
XGRAD_VIEW(reshape, (const Dims& sizes), reshaped("reshape", x.shape(), sizes))
XGRAD_VIEW(view, (const Dims& sizes), reshaped("view", x.shape(), sizes))
XGRAD_VIEW(flatten, (Dim start_dim, Dim end_dim), flattened(x.shape(), start_dim, end_dim))
XGRAD_VIEW(unflatten, (Dim dim, const Dims& sizes), unflattened(x.shape(), dim, sizes))
XGRAD_VIEW(permute, (const Dims& dims), permuted(x.shape(), dims))
XGRAD_VIEW(transpose, (Dim dim0, Dim dim1), transposed(x.shape(), dim0, dim1))
XGRAD_VIEW(squeeze, (), squeezed(x.shape()))
XGRAD_VIEW(squeeze, (const Dims& dims), squeezed(x.shape(), dims))
XGRAD_VIEW(unsqueeze, (Dim dim), unsqueezed(x.shape(), dim))
XGRAD_VIEW(slice, (Dim dim, OptionalDim start, OptionalDim end, Dim step),
           sliced("slice", x.shape(), dim, start, end, step))
XGRAD_VIEW(narrow, (Dim dim, Dim start, Dim length), narrowed(x.shape(), dim, start, length))
XGRAD_VIEW(select, (Dim dim, Dim index), selected("select", x.shape(), dim, index))
#undef XGRAD_VIEW
#undef XGRAD_AFTER_X

XGRAD_RULE(reshape, "a in another shape", {"g in the shape of a"}, detail::elements_move);
XGRAD_RULE(permute, "a with its dimensions in another order", {"g permuted back"},
           detail::elements_move);
XGRAD_RULE(transpose, "aᵀ", {"gᵀ"}, detail::elements_move);
XGRAD_RULE(slice, "a[start:end:step]", {"g where the part was, else 0"}, detail::part_of_x);
XGRAD_RULE(select, "a[index]", {"g where the part was, else 0"}, detail::part_of_x);

template <class T>
DiscreteTensor<T> expand(const DiscreteTensor<T>& x, const Dims& sizes) {
  return as_strided(x, detail::expanded(x.shape(), sizes));
}
template <class T>
DiscreteTensor<T> index(const DiscreteTensor<T>& x, const std::vector<Index>& indices) {
  const auto [selection, lists] = detail::indexed(x.shape(), indices);
  return detail::chosen(as_strided(x, selection), lists);
}
template Indices index(const Indices&, const std::vector<Index>&);
template Mask index(const Mask&, const std::vector<Index>&);

template <class T>
DiscreteTensor<T> index_select(const DiscreteTensor<T>& x, Dim dim, const Indices& index) {
  const std::size_t d = normalize_dim(dim, x.dim(), "index_select");
  auto y = empty_array<T>(detail::selected_shape("index_select", x.shape(), d, index));
  const kernels::Axis axis = kernels::axis_of(x.shape(), d);
  detail::check_range("index_select", index, axis.n);
  kernels::index_select(axis, x.data(), index.data(), index.numel(), y.data());
  return y;
}

template <class T>
static DiscreteTensor<T> kept_where(const Mask& mask, const DiscreteTensor<T>& x) {
  if constexpr (std::is_same_v<T, bool>)
    return x & mask;
  else
    return where(mask, x, 0);
}
template <class T>
DiscreteTensor<T> tril(const DiscreteTensor<T>& x, Dim diagonal) {
  return kept_where(detail::triangle("tril", x.shape(), diagonal), x);
}
template <class T>
DiscreteTensor<T> triu(const DiscreteTensor<T>& x, Dim diagonal) {
  return kept_where(detail::triangle("triu", x.shape(), diagonal), x);
}

// ---- sums, extremes and places ----

namespace {

std::int64_t signed_of(std::uint64_t v) { return static_cast<std::int64_t>(v); }
std::uint64_t unsigned_of(std::int64_t v) { return static_cast<std::uint64_t>(v); }

constexpr auto larger_id = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
constexpr auto smaller_id = [](std::int64_t a, std::int64_t b) { return std::min(a, b); };

template <class F>
Indices elementwise_indices(const char* op, const IndexOperand& a, const IndexOperand& b,
                            const F& f) {
  return detail::broadcast(op, a.value.shape(), a.value.data(), b.value.shape(), b.value.data(), f);
}

// f(... f(f(start, x0), x1) ...) over dims.
template <class R, class T, class F>
DiscreteTensor<R> folded(const char* op, const DiscreteTensor<T>& x, const Dims& dims, bool keepdim,
                         R start, const F& f) {
  const Reduced over(x.shape(), dims, op);
  auto y = empty_array<R>(over.after(keepdim));
  std::ranges::fill(y, start);
  if (x.numel() == 0)
    return y;
  const Shape kept = over.keepdim_shape();
  const kernels::Rows<1> rows(x.shape(), {&kept});
  kernels::Odometer<1> row(rows.outer);
  const T* from = x.data();
  for (std::size_t r = 0; r < rows.count; ++r, row.advance()) {
    R* to = y.data() + row[0];
    for (std::size_t i = 0; i < rows.length; ++i, ++from, to += rows.step[0])
      *to = f(*to, *from);
  }
  return y;
}

template <class T>
DiscreteTensor<T> extreme_of(const char* op, const DiscreteTensor<T>& x, bool largest) {
  if (x.numel() == 0)
    fail<ShapeError>("{}: x {} has no elements to choose from", op, to_string(x.shape()));
  const auto f = [largest](T a, T b) { return largest ? std::max(a, b) : std::min(a, b); };
  return folded(op, x, {}, false, *x.data(), f);
}

}  // namespace

template <class T>
Indices sum(const DiscreteTensor<T>& x, const Dims& dims, bool keepdim) {
  Indices y = folded("sum", x, dims, keepdim, std::int64_t{0}, [](std::int64_t a, T b) {
    return signed_of(unsigned_of(a) + unsigned_of(b));
  });
  if (x.dim() > 0 && y.numel() == 1)
    detail::check_sum(x.shape().begin()[0]);
  return y;
}
template <class T>
Indices cumsum(const DiscreteTensor<T>& x, Dim dim) {
  const auto axis = kernels::axis_of(x.shape(), normalize_dim(dim, x.dim(), "cumsum"));
  auto sums = empty_array<std::int64_t>(x.shape());
  std::int64_t* y = sums.data();
  std::copy_n(x.data(), sums.size(), y);
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (i / axis.inner % axis.n != 0)
      y[i] = signed_of(unsigned_of(y[i]) + unsigned_of(y[i - axis.inner]));
  return sums;
}
template <class T>
Indices clamp(const DiscreteTensor<T>& x, const std::optional<IndexOperand>& min,
              const std::optional<IndexOperand>& max) {
  check<ValueError>(min || max, "clamp: at least one of min and max must be given");
  Indices y = to_indices(x);
  y = min ? elementwise_indices("clamp, the maximum with min", y, *min, larger_id) : y;
  return max ? elementwise_indices("clamp, the minimum with max", y, *max, smaller_id) : y;
}
template <class T>
DiscreteTensor<T> max(const DiscreteTensor<T>& x) {
  return extreme_of("max", x, true);
}
template <class T>
DiscreteTensor<T> min(const DiscreteTensor<T>& x) {
  return extreme_of("min", x, false);
}

template <class T>
bool any(const DiscreteTensor<T>& x) {
  return std::any_of(x.data(), x.data() + x.numel(), [](T v) { return v != 0; });
}
template <class T>
bool all(const DiscreteTensor<T>& x) {
  return std::all_of(x.data(), x.data() + x.numel(), [](T v) { return v != 0; });
}
template <class T>
Mask any(const DiscreteTensor<T>& x, const Dims& dims, bool keepdim) {
  return folded("any", x, dims, keepdim, false, [](bool a, T v) { return a || v != 0; });
}
template <class T>
Mask all(const DiscreteTensor<T>& x, const Dims& dims, bool keepdim) {
  return folded("all", x, dims, keepdim, true, [](bool a, T v) { return a && v != 0; });
}

template <class T>
Indices nonzero(const DiscreteTensor<T>& x) {
  detail::check_draws();  // shards may have different numbers of rows
  const Shape& shape = x.shape();
  const auto strides = row_major_strides(shape);
  const auto n = static_cast<std::size_t>(x.numel());
  const auto count = static_cast<std::size_t>(n - std::count(x.data(), x.data() + n, T(0)));
  auto places = empty_array<std::int64_t>(Shape{count, shape.size()});
  std::int64_t* at = places.data();
  for (std::size_t i = 0; i < n; ++i)
    if (x.data()[i] != 0)
      for (std::size_t d = 0; d < shape.size(); ++d)
        *at++ = static_cast<std::int64_t>(i / strides[d]) % shape[d];
  return places;
}

// ---- to a Tensor and back ----

template <class T>
Tensor to(const DiscreteTensor<T>& x, DType dtype) {
  return dispatch(dtype, [&]<class F>() {
    auto y = empty_array<F>(x.shape());
    std::transform(x.data(), x.data() + y.size(), y.data(), [](T v) { return static_cast<F>(v); });
    return Tensor(std::move(y));
  });
}

template <class T>
Indices to_indices(const DiscreteTensor<T>& x) {
  auto y = empty_array<std::int64_t>(x.shape());
  std::copy_n(x.data(), y.size(), y.data());
  return y;
}

// ---- by masks ----

template <class X>
static X expanded_to(const Shape& shape, const X& x) {
  return x.shape() == shape ? x : expand(x, shape);
}

template <class X>
static X elements_by_mask(const X& x, const Mask& mask) {
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_select");
  return detail::rows_where(expanded_to(shape, x), expanded_to(shape, mask));
}

template <class X>
X detail::rows_where(const X& x, const Mask& mask) {
  check_draws();  // shards may have different numbers of rows
  const Shape &sizes = x.shape(), &first = mask.shape();
  if (first.size() > sizes.size() || !std::equal(first.begin(), first.end(), sizes.begin()))
    fail<ShapeError>("operator[]: the mask {} does not have the first sizes of x {}",
                     to_string(first), to_string(sizes));
  Shape rows{mask.numel()};
  for (std::size_t d = first.size(); d < sizes.size(); ++d)
    rows.push_back(static_cast<std::size_t>(sizes[d]));
  return index_select(reshape(x, rows), 0, nonzero(flatten(mask)).flatten());
}
template Tensor detail::rows_where(const Tensor&, const Mask&);
template Indices detail::rows_where(const Indices&, const Mask&);
template Mask detail::rows_where(const Mask&, const Mask&);

Tensor masked_select(const Tensor& x, const Mask& mask) { return elements_by_mask(x, mask); }
template <class T>
DiscreteTensor<T> masked_select(const DiscreteTensor<T>& x, const Mask& mask) {
  return elements_by_mask(x, mask);
}

#include "discrete_ops_instantiated.inc"

// Indices computed from Indices, Masks and Tensors, element by element.

// ---- arithmetic ----

IndexOperand::IndexOperand(Dim i, int) : value(reshape(Indices{i.value}, {})) {}

template <class F>
static Indices divide(const char* op, const IndexOperand& a, const IndexOperand& b, const F& f) {
  const Indices& by = b.value;
  const auto zero = std::find(by.data(), by.data() + by.numel(), 0) - by.data();
  if (zero < by.numel() && a.value.numel() > 0) {
    const auto at = position(by.shape(), static_cast<std::size_t>(zero));
    fail<ValueError>("{}: the divisor is 0 at {} of {}", op, to_string(Shape(at.begin(), at.end())),
                     to_string(by.shape()));
  }
  return elementwise_indices(op, a, b, f);
}

// b may be -1, and the least int64 / -1 overflows.
static std::int64_t remainder_of(std::int64_t a, std::int64_t b) {
  const std::int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static std::int64_t quotient_of(std::int64_t a, std::int64_t b) {
  if (b == -1)
    return signed_of(0 - unsigned_of(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

#define XGRAD_WRAPPING(op)                                                                \
  Indices operator op(const IndexOperand& a, const IndexOperand& b) {                     \
    return elementwise_indices("operator" #op, a, b, [](std::int64_t x, std::int64_t y) { \
      return signed_of(unsigned_of(x) op unsigned_of(y));                                 \
    });                                                                                   \
  }
XGRAD_WRAPPING(+)
XGRAD_WRAPPING(-)
XGRAD_WRAPPING(*)
#undef XGRAD_WRAPPING
Indices operator/(const IndexOperand& a, const IndexOperand& b) {
  return divide("operator/", a, b, quotient_of);
}
Indices operator%(const IndexOperand& a, const IndexOperand& b) {
  return divide("operator%", a, b, remainder_of);
}
Indices operator-(const Indices& a) { return 0 - a; }

// ---- choosing ----

Indices maximum(const IndexOperand& a, const IndexOperand& b) {
  return elementwise_indices("maximum", a, b, larger_id);
}
Indices minimum(const IndexOperand& a, const IndexOperand& b) {
  return elementwise_indices("minimum", a, b, smaller_id);
}
Mask maximum(const Mask& a, const Mask& b) { return a | b; }
Mask minimum(const Mask& a, const Mask& b) { return a & b; }

Tensor where(const Mask& condition, double a, double b, DType dtype) {
  return where(condition, scalar(a, dtype), scalar(b, dtype));
}
// a - b and the sum wrap around, so the result is exact
Indices where(const Mask& condition, const IndexOperand& a, const IndexOperand& b) {
  const Shape both = broadcast_shapes(a.value.shape(), b.value.shape(), "where");
  broadcast_shapes(condition.shape(), both, "where");
  return b + to_indices(condition) * (a - b);
}

Indices one_hot(const Indices& x, Dim num_classes) {
  if (num_classes == -1) {
    check<ValueError>(x.numel() > 0, "one_hot: x {} has no elements to infer num_classes from",
                      to_string(x.shape()));
    num_classes = std::clamp<std::int64_t>(max(x).item(), 0, PTRDIFF_MAX / 8) + 1;
  }
  check<ValueError>(num_classes > 0, "one_hot: num_classes is {}", num_classes);
  detail::check_range("one_hot", x, to_size(num_classes));
  return to_indices(unsqueeze(x, -1) == arange_indices(0, num_classes));
}

// ---- from a Tensor ----

Indices to_indices(const Tensor& x) {
  detail::check_operands("to_indices", std::array{x});
  auto y = empty_array<std::int64_t>(x.shape());
  detail::compute("to_indices", std::array{x}, [&]<class T>() {
    const T* const from = x.data<T>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const T v = from[i];
      if (!(v >= T(-0x1p63) && v < T(0x1p63) && v == std::trunc(v))) {
        const auto at = position(x.shape(), i);
        fail<ValueError>("to_indices: {} at {} of x {} is not an integer that an int64 holds", v,
                         to_string(Shape(at.begin(), at.end())), to_string(x.shape()));
      }
      y.data()[i] = static_cast<std::int64_t>(v);
    }
  });
  return y;
}

}  // namespace xgrad
