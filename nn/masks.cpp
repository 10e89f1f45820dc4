#include <xgrad/nn/masks.hpp>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>

namespace xgrad::nn {

Mask future(std::size_t queries, std::size_t keys) {
  auto mask = empty_array<bool>(Shape{queries, keys});
  for (std::size_t t = 0; t < queries; ++t)
    for (std::size_t s = 0; s < keys; ++s)
      mask.data()[t * keys + s] = s > t;
  return mask;
}

Mask reshape(const Mask& mask, const Dims& sizes) {
  const Shape shape = to_shape(sizes, "reshape");
  check<ShapeError>(numel(shape) == mask.numel(), "reshape: a mask of shape {} does not fit {}",
                    to_string(mask.shape()), to_string(shape));
  auto result = empty_array<bool>(shape);
  std::copy_n(mask.data(), mask.numel(), result.data());
  return result;
}

}  // namespace xgrad::nn
