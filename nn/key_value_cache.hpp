#pragma once
// Keys and values that an attention layer has computed for earlier positions, so that the next
// token of a text costs one position and not all of them again.
//
//   std::vector<nn::KeyValueCache> caches(model.h.size(), nn::KeyValueCache(capacity));
//   const NoGrad no_grad;
//   model.last_logits(prompt, caches);  // the prompt in one pass
//   model.last_logits(token, caches);   // then each token alone
//
// In an attention of your own, q (B, H, T, D) being of the last T positions:
//
//   const auto [keys, values, offset] = cache.append(k, v);
//   y = scaled_dot_product_attention(q, keys, values, {.is_causal = true, .causal_offset =
//   offset});

#include <cstddef>
#include <memory>
#include <span>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// The keys and values of one attention layer.  A copy shares their memory until one of the two
/// appends: one prompt can be continued in several ways.
class KeyValueCache {
 public:
  /// With room for `capacity` positions.
  explicit KeyValueCache(Size capacity) : capacity_(capacity) {}

  Size capacity() const { return capacity_; }
  Size length() const { return length_; }  ///< how many positions it holds

  struct Held {
    Tensor keys, values;  ///< (..., capacity, D) and (..., capacity, Dv), zeros where none are held
    Size offset;          ///< how many positions were held before: the first new one
  };
  /// Takes the keys k (..., T, D) and values v (..., T, Dv) of the next T positions, and returns
  /// all that it holds.  Nothing is copied but k and v, provided that what the last call returned
  /// is gone by now.  ShapeError unless k and v fit each other and what is held, DTypeError if they
  /// have another dtype, ValueError beyond the capacity, GraphError if a gradient may be wanted:
  /// use NoGrad.
  Held append(const Tensor& k, const Tensor& v);

  /// Forgets all but the first `length` positions.  With none, what comes next may have another
  /// shape and dtype.  ValueError if fewer are held.
  void truncate(Size length);

 private:
  Size capacity_, length_ = 0;
  Size written_ = 0;                            // positions from here on are zeros
  std::shared_ptr<const Value> keys_, values_;  // null if nothing is held
};

/// xgrad::causal_self_attention of positions that come after those in the cache, which takes
/// theirs: qkv (B, T, 3C) -> (B, T, C).  Errors as of append().
Tensor causal_self_attention(const Tensor& qkv, Size n_head, KeyValueCache& cache);

/// Returns f().  If it throws, the caches hold what they held before.
template <class F>
Tensor all_or_nothing(std::span<KeyValueCache> caches, const F& f) {
  std::vector<Size> held;
  for (const KeyValueCache& cache : caches)
    held.push_back(cache.length());
  try {
    return f();
  } catch (...) {
    for (std::size_t i = 0; i < caches.size(); ++i)
      caches[i].truncate(held[i]);
    throw;
  }
}

}  // namespace xgrad::nn
