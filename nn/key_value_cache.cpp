#include <xgrad/nn/key_value_cache.hpp>

#include <algorithm>
#include <array>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {
namespace {

// (..., T, D) with another T.
Shape with_positions(Shape shape, Size positions) {
  shape[-2] = positions;
  return shape;
}

void check_fits(const char* name, const Tensor& x, const Value* held, Size length) {
  if (held == nullptr)
    return;
  const Shape expected = with_positions(held->shape, length);
  if (with_positions(x.shape(), length) != expected)
    fail<ShapeError>("KeyValueCache: {} {} does not continue what is held, {}", name,
                     to_string(x.shape()), to_string(expected));
  if (x.dtype() != held->dtype)
    fail<DTypeError>("KeyValueCache: {} is {} but what is held is {}", name, to_string(x.dtype()),
                     to_string(held->dtype));
}

// Puts x (..., T, D) at positions `offset` and after of `held` (..., capacity, D).
void put(const Tensor& x, Size offset, const Value& held) {
  const Size width = x.size(-1), rows = x.size(-2), capacity = held.shape[-2];
  const Size matrices = rows * width == 0 ? 0 : x.numel() / (rows * width);
  dispatch(held.dtype, [&]<class T>() {
    for (Size i = 0; i < matrices; ++i)
      std::copy_n(x.data<T>() + i * rows * width, rows * width,
                  held.writable_data<T>() + (i * capacity + offset) * width);
  });
}

}  // namespace

KeyValueCache::Held KeyValueCache::append(const Tensor& k, const Tensor& v) {
  const Shape &keys = k.shape(), &values = v.shape();
  if (keys.size() < 2 || keys.size() != values.size() ||
      !std::equal(keys.begin(), keys.end() - 1, values.begin()))
    fail<ShapeError>("KeyValueCache: k {} and v {} are not (..., T, D) and (..., T, Dv)",
                     to_string(keys), to_string(values));
  if (k.dtype() != v.dtype())
    fail<DTypeError>("KeyValueCache: k is {} but v is {}", to_string(k.dtype()),
                     to_string(v.dtype()));
  const bool first = length_ == 0;
  check_fits("k", k, first ? nullptr : keys_.get(), length_);
  check_fits("v", v, first ? nullptr : values_.get(), length_);
  const Size positions = keys[-2];
  if (positions > capacity_ - length_)
    fail<ValueError>("KeyValueCache: {} positions are held and {} more do not fit its capacity, {}",
                     length_, positions, capacity_);
  if (any_requires_grad(std::array{k, v}))
    throw GraphError("KeyValueCache: gradients do not flow through a cache; use NoGrad");

  const auto room = [&](const Tensor& x) {
    return zeros(with_positions(x.shape(), capacity_), x.dtype()).impl().value;
  };
  if (first) {
    auto empty = room(k);
    values_ = room(v);
    keys_ = std::move(empty);
    written_ = 0;
  }
  make_sole_owner(keys_);
  make_sole_owner(values_);
  put(k, length_, *keys_);
  put(v, length_, *values_);
  const Size end = length_ + positions;
  if (written_ > end)  // positions that were forgotten
    for (const auto& [x, held] : {std::pair(&k, keys_.get()), std::pair(&v, values_.get())})
      put(zeros(with_positions(x->shape(), written_ - end), x->dtype()), end, *held);
  written_ = end;
  Held held{Tensor(keys_, nullptr), Tensor(values_, nullptr), static_cast<Size>(length_)};
  length_ += positions;
  return held;
}

void KeyValueCache::truncate(Size length) {
  check<ValueError>(length >= 0 && length <= length_,
                    "KeyValueCache: {} of {} positions cannot be kept", length, length_);
  length_ = length;
  if (length == 0)
    keys_ = values_ = nullptr;
}

Tensor causal_self_attention(const Tensor& qkv, Size n_head, KeyValueCache& cache) {
  check<ValueError>(n_head > 0, "causal_self_attention: n_head is {}; it must be at least 1",
                    n_head);
  if (qkv.dim() != 3 || qkv.size(2) % (3 * n_head) != 0)
    fail<ShapeError>(
        "causal_self_attention: qkv {} is not (B, T, 3C) with C a multiple of {} heads",
        to_string(qkv.shape()), n_head);
  const Size B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3, H = n_head;
  const Tensor parts = permute(reshape(qkv, {B, T, 3, H, C / H}), {2, 0, 3, 1, 4});
  return all_or_nothing({&cache, 1}, [&] {  // parts: (3, B, H, T, D)
    const auto [keys, values, offset] = cache.append(parts[1], parts[2]);
    const Tensor y = scaled_dot_product_attention(
        parts[0], keys, values, {.is_causal = true, .causal_offset = offset});  // (B, H, T, D)
    return reshape(transpose(y, 1, 2), {B, T, C});
  });
}

}  // namespace xgrad::nn
