// causal_self_attention: heads are read from and written to the packed arrays in place.

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/attention.hpp>
#include <xgrad/autograd/ops/attention.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace {

using detail::AttentionSetup;
using kernels::Matrices;

constexpr const char* packed_op = "causal_self_attention";

// Sizes of qkv (B, T, 3C) with C = H * D.
struct Packed {
  std::size_t b, t, h, d;
  Packed(const Shape& qkv, std::size_t n_head)
      : b(qkv[0]), t(qkv[1]), h(n_head), d(qkv[2] / (3 * n_head)) {}
  std::size_t c() const { return h * d; }

  // The heads (T, D) of one of `parts` blocks of C channels that lie side by side in x.
  template <class E>
  Matrices<E> heads(E* x, std::size_t part, std::size_t parts) const {
    Matrices<E> result{x + part * c(), parts * c()};
    for (std::size_t i = 0; i < b; ++i)
      for (std::size_t j = 0; j < h; ++j)
        result.offsets.push_back(i * t * parts * c() + j * d);
    return result;
  }
};

template <class T>
kernels::Attention<T> problem(const AttentionSetup& setup, const Packed& sizes, const T* qkv) {
  const auto [b, t, h, d] = sizes;
  kernels::Attention<T> p{b * h,
                          t,
                          t,
                          d,
                          d,
                          static_cast<T>(setup.scale),
                          true,
                          sizes.heads(qkv, 0, 3),
                          sizes.heads(qkv, 1, 3),
                          sizes.heads(qkv, 2, 3),
                          {},
                          {},
                          {},
                          static_cast<T>(setup.keep_scale)};
  if (setup.keep) {
    p.keep = {setup.keep->data(), t};
    for (std::size_t item = 0; item < b * h; ++item)
      p.keep.offsets.push_back(item * t * t);
  }
  return p;
}

template <class T>
void fused_backward(Sink& sink, const AttentionSetup& setup, const Packed& sizes,
                    const Saved& qkv) {
  const Buffer<T> d_qkv = sink.buffer<T>(0);
  kernels::attention_backward<T>(problem(setup, sizes, qkv.value->data<T>()),
                                 sizes.heads(sink.gradient().data<T>(), 0, 1),
                                 {sizes.heads(d_qkv.data, 0, 3),
                                  sizes.heads(d_qkv.data, 1, 3),
                                  sizes.heads(d_qkv.data, 2, 3),
                                  d_qkv.beta,
                                  d_qkv.beta,
                                  d_qkv.beta,
                                  {}});
}

Tensor composed(const AttentionSetup& setup, const Packed& sizes, const Tensor& qkv) {
  const Scope scope(packed_op);
  const Shape by_head{sizes.b, sizes.t, sizes.h, sizes.d};
  const auto parts = split(qkv, sizes.c(), -1);
  const auto heads = [&](std::size_t i) {  // (B, H, T, D)
    return transpose(reshape(parts[i], by_head), 1, 2);
  };
  const Tensor y = detail::compose_attention(setup, {heads(0), heads(1), heads(2), {}});
  return reshape(transpose(y, 1, 2), {sizes.b, sizes.t, sizes.c()});
}

Tensor composed_backward(const AttentionSetup& setup, const Packed& sizes, const Tensor& qkv,
                         const Tensor& gradient) {
  const auto [b, t, h, d] = sizes;
  const Tensor parts = permute(reshape(qkv, {b, t, 3, h, d}), {2, 0, 3, 1, 4});  // (3, B, H, T, D)
  const Tensor g = transpose(reshape(gradient, {b, t, h, d}), 1, 2);             // (B, H, T, D)
  const detail::AttentionTensors d_parts = detail::compose_attention_backward(
      packed_op, setup, {select(parts, 0, 0), select(parts, 0, 1), select(parts, 0, 2), {}}, g);
  const Tensor stacked = stack({d_parts.q, d_parts.k, d_parts.v});           // (3, B, H, T, D)
  return reshape(permute(stacked, {1, 3, 0, 2, 4}), {b, t, 3 * sizes.c()});  // (B, T, 3C)
}

}  // namespace

Tensor causal_self_attention(const Tensor& qkv, std::size_t n_head, double dropout_p) {
  check<ValueError>(n_head > 0, "{}: n_head is 0", packed_op);
  if (qkv.dim() != 3 || qkv.size(2) % (3 * n_head) != 0)
    fail<ShapeError>("{}: qkv {} is not (B, T, 3C) with C a multiple of {} heads", packed_op,
                     to_string(qkv.shape()), n_head);
  const Packed sizes(qkv.shape(), n_head);
  const double d = static_cast<double>(std::max<std::size_t>(1, sizes.d));
  AttentionSetup setup{true, 1 / std::sqrt(d), {}, {}};
  detail::draw_dropout(packed_op, dropout_p, {sizes.b, sizes.h, sizes.t, sizes.t}, setup);
  if (Mode::current().decompose)
    return composed(setup, sizes, qkv);
  const auto run = [setup, n_head](std::span<const Tensor> in) {
    const Packed packed(in[0].shape(), n_head);
    return dispatch(in[0].dtype(), [&]<class T>() {
      auto out = empty_array<T>({packed.b, packed.t, packed.c()});
      kernels::attention_forward<T>(problem(setup, packed, in[0].data<T>()),
                                    packed.heads(out.data(), 0, 1));
      return Tensor(std::move(out));
    });
  };
  return record(packed_op, {qkv}, run, [setup, sizes, saved = Saved(qkv)](Sink& sink) {
    if (sink.create_graph())
      sink.add(0, composed_backward(setup, sizes, saved.tensor(), sink.gradient()));
    else
      dispatch(sink.gradient().dtype(),
               [&]<class T>() { fused_backward<T>(sink, setup, sizes, saved); });
  });
}

}  // namespace xgrad
