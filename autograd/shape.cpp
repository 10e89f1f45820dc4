#include "shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fail.hpp"

namespace xgrad {

void Dim::too_large(std::uint64_t v) { fail<ShapeError>("a size or dimension is {}", v); }

// An array has at most a sixteenth as many elements as there are addresses.
constexpr Size most = Size{1} << (8 * sizeof(std::size_t) - 4);

std::size_t to_size(Dim size) {
  check<ShapeError>(std::in_range<std::size_t>(size.value), "a size is {}{}", size.value,
                    size.value < 0 ? "" : ": it has too many elements");
  return static_cast<std::size_t>(size.value);
}

Shape::iterator Shape::insert(const_iterator at, std::size_t size) {
  const auto d = at - begin();
  push_back(size);
  std::rotate(begin() + d, end() - 1, end());
  return begin() + d;
}

Shape::iterator Shape::erase(const_iterator at) {
  const auto d = at - begin();
  std::copy(begin() + d + 1, end(), begin() + d);
  --rank_;
  return begin() + d;
}

Dims::Dims(std::initializer_list<Dim> list) : std::vector<std::int64_t>(list.begin(), list.end()) {}
Dims::Dims(const Shape& shape) : std::vector<std::int64_t>(shape.begin(), shape.end()) {}

void Shape::out_of_range(std::int64_t d) const {
  check<ValueError>(!empty(), "the shape () of a 0-d tensor has no dimensions");
  fail<ValueError>("shape {} has no dimension {}: expected {} to {}", to_string(*this), d,
                   -std::ssize(*this), std::ssize(*this) - 1);
}

Size numel(const Shape& shape) {
  Size n = 1;  // without zeros: strides and the sizes of views are its factors
  bool overflows = false;
  for (const std::size_t size : shape)
    overflows = __builtin_mul_overflow(n, std::max<std::size_t>(size, 1), &n) || overflows;
  if (overflows || n > most) [[unlikely]]
    fail<ShapeError>("a Tensor of shape {} would have too many elements", to_string(shape));
  return std::ranges::find(shape, std::size_t{0}) == shape.end() ? n : 0;
}

std::string to_string(const Shape& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

const char* to_string(DType dtype) { return dtype == DType::float32 ? "float32" : "float64"; }

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b)
    return a;
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank, 0);
  for (std::size_t i = 1; i <= rank; ++i) {
    const std::size_t m = i <= a.size() ? a[a.size() - i] : 1;
    const std::size_t n = i <= b.size() ? b[b.size() - i] : 1;
    if (m != n && m != 1 && n != 1)
      fail<ShapeError>(
          "{}: shapes {} and {} do not broadcast: sizes {} and {} at dimension -{} differ and "
          "neither is 1",
          op, to_string(a), to_string(b), m, n, i);
    out[rank - i] = m == 1 ? n : m;
  }
  return out;
}

Shape to_shape(const Dims& sizes, const char* op) {
  Shape shape(sizes.size(), 0);
  Size n = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      fail<ShapeError>("{}: size {} at dimension {} is negative", op, sizes[i], i);
    const Size factor = std::max<Size>(sizes[i], 1);
    if (n > most / factor)
      fail<ShapeError>("{}: shape {} has too many elements", op, fmt::join(sizes, ", "));
    n *= factor;
    shape[i] = static_cast<std::size_t>(sizes[i]);
  }
  return shape;
}

std::size_t normalize_dim(std::int64_t dim, std::size_t rank, const char* op) {
  const auto n = static_cast<std::int64_t>(
      std::max<std::size_t>(rank, 1));  // a 0-d tensor takes 0 and -1, as in PyTorch
  if (dim < -n || dim >= n)
    fail<ValueError>("{}: dimension {} is out of range for a {}-d tensor: expected {} to {}", op,
                     dim, rank, -n, n - 1);
  return static_cast<std::size_t>(dim < 0 ? dim + n : dim);
}

std::vector<std::size_t> position(const Shape& shape, std::size_t flat) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d])
    index[d] = flat % shape[d];
  return index;
}

std::vector<std::size_t> row_major_strides(const Shape& shape) {
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

}  // namespace xgrad
