// Attention in which several heads of queries share keys and values: these broadcast along a
// dimension that is theirs, so nothing is copied.

#include <xgrad/autograd/ops/grouped_attention.hpp>

#include <xgrad/autograd/fail.hpp>

namespace xgrad {
namespace {

constexpr const char* grouped_op = "scaled_dot_product_attention";

// (..., H, T, D) -> (..., groups, H / groups, T, D)
Shape in_groups(Shape shape, std::size_t groups) {
  shape[-3] /= groups;
  shape.insert(shape.end() - 3, groups);
  return shape;
}

// The same of a mask that has a dimension for heads, all or one.
Shape mask_in_groups(const Shape& mask, std::size_t heads, std::size_t groups) {
  if (mask.size() < 3)
    return mask;
  const std::size_t own = mask.end()[-3];
  if (own != 1 && own != heads)
    fail<ShapeError>("{}: mask {} has {} heads but q has {}", grouped_op, to_string(mask), own,
                     heads);
  return in_groups(mask, own == 1 ? 1 : groups);
}

}  // namespace

Tensor detail::grouped_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                 AttentionOptions options, const Tensor& bias,
                                 const Mask* allowed) {
  const auto heads_of = [](const Tensor& x) -> std::size_t { return x.dim() < 3 ? 0 : x.size(-3); };
  const std::size_t heads = heads_of(q), groups = heads_of(k);
  if (q.dim() < 3 || groups == 0 || heads % groups != 0 || heads_of(v) != groups)
    fail<ShapeError>(
        "{}: q {}, k {}, v {}: with enable_gqa, the heads of q, the third dimension from the end, "
        "are a multiple of those of k and v",
        grouped_op, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()));
  options.enable_gqa = false;
  const Tensor queries = reshape(q, in_groups(q.shape(), groups));
  const Tensor keys = unsqueeze(k, -3), values = unsqueeze(v, -3);
  Tensor y;  // (..., groups, H / groups, T, Dv)
  if (allowed != nullptr) {
    const Mask mask = reshape(*allowed, mask_in_groups(allowed->shape(), heads, groups));
    y = scaled_dot_product_attention(queries, keys, values, mask, options);
  } else if (bias.defined()) {
    const Tensor mask = reshape(bias, mask_in_groups(bias.shape(), heads, groups));
    y = scaled_dot_product_attention(queries, keys, values, mask, options);
  } else {
    y = scaled_dot_product_attention(queries, keys, values, options);
  }
  return flatten(y, -4, -3);
}

}  // namespace xgrad
