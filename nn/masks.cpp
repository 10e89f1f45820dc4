#include <xgrad/nn/masks.hpp>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

Mask future(std::size_t queries, std::size_t keys) { return ~tril(zeros({queries, keys}) == 0); }

Mask reshape(const Mask& mask, const Dims& sizes) {
  const Shape shape = to_shape(sizes, "reshape");
  check<ShapeError>(numel(shape) == mask.numel(), "reshape: a mask of shape {} does not fit {}",
                    to_string(mask.shape()), to_string(shape));
  auto result = empty_array<bool>(shape);
  std::copy_n(mask.data(), mask.numel(), result.data());
  return result;
}

}  // namespace xgrad::nn
