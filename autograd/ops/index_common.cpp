#include <xgrad/autograd/ops/index_common.hpp>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>

namespace xgrad::detail {

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

void check_same_dtype(const char* op, const Tensor& x, const char* name, const Tensor& src) {
  if (x.dtype() != src.dtype())
    fail<DTypeError>("{}: x is {} but {} is {}; convert one with to()", op, to_string(x.dtype()),
                     name, to_string(src.dtype()));
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
