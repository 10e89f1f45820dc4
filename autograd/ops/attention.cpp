#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/kernels/attention.hpp>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/matmul.hpp>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad::detail {

/// scaled_dot_product_attention with enable_gqa; a mask that is not given is undefined, or null.
Tensor grouped_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         AttentionOptions options, const Tensor& bias, const Mask* allowed);

}  // namespace xgrad::detail

namespace xgrad {

// Attention in which several heads of queries share keys and values: these broadcast along a
// dimension that is theirs, so nothing is copied.

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

// Scaled dot-product attention, of q, k and v apart or packed in one array: a composition, and a
// kernel that makes the weights a block of rows at a time.

namespace {

using detail::leading;
using kernels::Matrices;

constexpr const char* attention_op = "scaled_dot_product_attention";
constexpr const char* packed_op = "causal_self_attention";

// The options of an attention.
struct AttentionSetup {
  bool causal;
  double scale;
  std::optional<Mask> allowed;  // (..., T or 1, S)
  std::optional<Mask> keep;     // (..., T, S), after dropout
  double keep_scale = 1;
  std::ptrdiff_t causal_offset = 0;  // from -T to S
};

// ---- composed ----

// softmax(q kᵀ * scale + bias) v: q (..., T, D), k (..., S, D), v (..., S, Dv), bias (..., T, S) or
// undefined.
Tensor composed_attention(const AttentionSetup& setup, const Tensor& q, Tensor k, Tensor v,
                          const Tensor& bias) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const Size t = q.size(-2), s = k.size(-2);
  // keys that no query sees count as absent
  if (const Size seen = setup.causal_offset + t; setup.causal && seen < s) {
    const Mask absent =
        reshape(arange(static_cast<double>(s)), {s, 1}) >= static_cast<double>(seen);
    k = masked_fill(k, absent, 0);
    v = masked_fill(v, absent, 0);
  }
  Tensor scores = matmul(q, transpose(k, -2, -1)) * setup.scale;  // (..., T, S)
  if (bias.defined())
    scores = scores + bias;
  if (setup.allowed)
    scores = masked_fill(scores, ~*setup.allowed, hidden);
  if (setup.causal)  // key j <= query i + causal_offset
    scores = masked_fill(scores, ~tril(zeros({t, s}) == 0, setup.causal_offset), hidden);
  const Tensor weights = softmax(scores, -1);
  return matmul(setup.keep ? where(*setup.keep, weights * setup.keep_scale, 0.0) : weights, v);
}

// Draws what dropout keeps of weights of this shape, masked ones included, as torch.dropout does.
void draw_dropout(const char* op, double p, const Shape& weights, AttentionSetup& setup) {
  check<ValueError>(p >= 0 && p <= 1, "{}: dropout_p {} is not between 0 and 1", op, p);
  setup.keep_scale = p < 1 ? 1 / (1 - p) : 0;
  if (p == 0)
    return;
  auto keep = empty_array<bool>(weights);
  fill_dropout(std::span(keep.data(), keep.size()), p, default_generator(), weights.front());
  setup.keep = Mask(std::move(keep));
}

// ---- the kernel ----

// The matrices of a batch; an operand with one row stands for any number of rows.
template <class E>
Matrices<E> matrices(E* data, const Shape& shape, const Shape& batch) {
  const std::size_t rows = shape[shape.size() - 2], columns = shape.back();
  Matrices<E> result{data, columns, detail::broadcast_blocks(leading(shape, 2), batch).of_item};
  for (std::size_t& offset : result.offsets)
    offset *= rows * columns;
  return result;
}
template <class E>
Matrices<E> mask_matrices(E* data, const Shape& shape, const Shape& batch) {
  Matrices<E> result = matrices(data, shape, batch);
  if (shape[shape.size() - 2] == 1)
    result.stride = 0;
  return result;
}

Shape batch_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  return broadcast_shapes(
      broadcast_shapes(leading(q.shape(), 2), leading(k.shape(), 2), attention_op),
      leading(v.shape(), 2), attention_op);
}

template <class T>
kernels::Attention<T> problem(const AttentionSetup& setup, const Shape& batch,
                              std::array<std::size_t, 4> sizes, Matrices<const T> q,
                              Matrices<const T> k, Matrices<const T> v) {
  kernels::Attention<T> p{.items = static_cast<std::size_t>(numel(batch)),
                          .t = sizes[0],
                          .s = sizes[1],
                          .d = sizes[2],
                          .dv = sizes[3],
                          .scale = static_cast<T>(setup.scale),
                          .causal = setup.causal,
                          .q = std::move(q),
                          .k = std::move(k),
                          .v = std::move(v),
                          .bias = {},
                          .allowed = {},
                          .keep = {},
                          .keep_scale = static_cast<T>(setup.keep_scale),
                          .causal_offset = setup.causal_offset};
  if (setup.allowed)
    p.allowed = mask_matrices(setup.allowed->data(), setup.allowed->shape(), batch);
  if (setup.keep)
    p.keep = matrices(setup.keep->data(), setup.keep->shape(), batch);
  return p;
}

// The kernel's arguments for q (..., T, D), k (..., S, D), v (..., S, Dv) and bias (..., T, S).
template <class T>
kernels::Attention<T> problem(const AttentionSetup& setup, const Shape& batch, const Tensor& q,
                              const Tensor& k, const Tensor& v, const Tensor& bias) {
  const std::size_t t = q.size(-2), s = k.size(-2), d = q.size(-1), dv = v.size(-1);
  auto p =
      problem<T>(setup, batch, {t, s, d, dv}, matrices(q.data<T>(), q.shape(), batch),
                 matrices(k.data<T>(), k.shape(), batch), matrices(v.data<T>(), v.shape(), batch));
  if (bias.defined())
    p.bias = mask_matrices(bias.data<T>(), bias.shape(), batch);
  return p;
}

// A weight of 0 times NaN or infinity is NaN in the composition.  The kernel leaves out blocks of
// such weights, so where there are others than numbers, the composition is asked.
template <class C>
Tensor finite_or(Tensor out, const C& composition, std::span<const Tensor> in) {
  return detail::all_finite(out) ? out : composition(in);
}

// Where the kernel writes the gradient of one input: into the context's buffer, or, if the input is
// broadcast, into an array that is added afterwards.
template <class T>
struct Target {
  std::optional<Array<T>> own;
  Matrices<T> rows;
  T beta = 0;

  void to_buffer(Context& ctx, std::size_t i, const Shape& shape, const Shape& batch) {
    const GradientBuffer<T> buffer = ctx.buffer<T>(i);
    rows = matrices(buffer.data, shape, batch);
    beta = buffer.beta;
  }
  void to_own(const Shape& shape, const Shape& batch) {
    const Shape full = detail::with_matrix(batch, shape[shape.size() - 2], shape.back());
    own = empty_array<T>(full);
    rows = matrices(own->data(), full, batch);
  }
  void add(Context& ctx, std::span<const Saved> in, std::size_t i) {
    if (own)
      ctx.add(i, sum_to(Tensor(std::move(*own)), in[i].value->shape));
  }
};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                 const AttentionSetup& setup) {
  const auto composition = [setup](std::span<const Tensor> in) {
    return composed_attention(setup, in[0], in[1], in[2], in[3]);
  };
  return fused(
      attention_op, std::array{q, k, v, bias}, composition,
      [setup, composition]<class T>(std::span<const Tensor> in) {
        const Shape batch = batch_of(in[0], in[1], in[2]);
        const Shape shape = detail::with_matrix(batch, in[0].size(-2), in[2].size(-1));
        auto out = empty_array<T>(shape);
        kernels::attention_forward<T>(problem<T>(setup, batch, in[0], in[1], in[2], in[3]),
                                      matrices(out.data(), shape, batch));
        return finite_or(std::move(out), composition, in);
      },
      [setup, composition]<class T>(Context& ctx, std::span<const Saved> in) {
        const Tensor query = in[0].tensor(), key = in[1].tensor(), value = in[2].tensor(),
                     &g = ctx.gradient();
        if (!detail::all_finite(query) || !detail::all_finite(key) || !detail::all_finite(value))
          return detail::differentiate(ctx, in, composition);
        const Shape batch = batch_of(query, key, value);
        const auto p = problem<T>(setup, batch, query, key, value, in[3].tensor());
        std::array<Target<T>, 4> targets;
        for (std::size_t i = 0; i < 3; ++i)
          if (ctx.needs(i)) {
            const Shape& shape = in[i].value->shape;
            if (std::cmp_not_equal(numel(leading(shape, 2)), p.items))
              targets[i].to_own(shape, batch);
            else
              targets[i].to_buffer(ctx, i, shape, batch);
          }
        if (ctx.needs(3))
          targets[3].to_own({p.t, p.s}, batch);
        auto& [tq, tk, tv, tb] = targets;
        kernels::attention_backward<T>(
            p, matrices(g.data<T>(), g.shape(), batch),
            {tq.rows, tk.rows, tv.rows, tq.beta, tk.beta, tv.beta, tb.rows});
        for (std::size_t i = 0; i < 4; ++i)
          targets[i].add(ctx, in, i);
      });
}

// ---- packed ----

// Sizes of qkv (B, T, 3C) with C = H * D.
struct Packed {
  std::size_t b, t, h, d;
  Packed(const Shape& qkv, Size n_head)
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
kernels::Attention<T> problem(const AttentionSetup& setup, const Packed& x, const T* qkv) {
  return problem<T>(setup, {x.b, x.h}, {x.t, x.t, x.d, x.d}, x.heads(qkv, 0, 3), x.heads(qkv, 1, 3),
                    x.heads(qkv, 2, 3));
}

Tensor composed_attention(const AttentionSetup& setup, const Packed& sizes, const Tensor& qkv) {
  const auto parts = split(qkv, {sizes.c(), sizes.c(), sizes.c()}, -1);
  const auto heads = [&](std::size_t i) {  // (B, H, T, D)
    return transpose(reshape(parts[i], {sizes.b, sizes.t, sizes.h, sizes.d}), 1, 2);
  };
  const Tensor y = composed_attention(setup, heads(0), heads(1), heads(2), {});
  return reshape(transpose(y, 1, 2), {sizes.b, sizes.t, sizes.c()});
}

AttentionSetup checked_setup(const Tensor& q, const Tensor& k, const Tensor& v,
                             const AttentionOptions& options, const Shape* mask = nullptr) {
  const auto shapes = [&] {
    return fmt::format("q {}, k {}, v {}", to_string(q.shape()), to_string(k.shape()),
                       to_string(v.shape()));
  };
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    fail<ShapeError>("{}: {}: each needs at least the dimensions (T, D)", attention_op, shapes());
  if (q.size(-1) != k.size(-1))
    fail<ShapeError>("{}: {}: the last dimensions of q and k, {} and {}, differ", attention_op,
                     shapes(), q.size(-1), k.size(-1));
  if (k.size(-2) != v.size(-2))
    fail<ShapeError>("{}: {}: k has {} positions but v has {}", attention_op, shapes(), k.size(-2),
                     v.size(-2));
  detail::check_operands(attention_op, std::array{q, k, v});
  check<ValueError>(mask == nullptr || !options.is_causal,
                    "{}: a mask and is_causal were given; put the causal mask into the mask",
                    attention_op);
  check<ValueError>(options.is_causal || options.causal_offset == 0,
                    "{}: causal_offset is {} but is_causal is false", attention_op,
                    options.causal_offset);
  batch_of(q, k, v);
  const Shape scores = detail::with_matrix(
      broadcast_shapes(leading(q.shape(), 2), leading(k.shape(), 2), attention_op), q.size(-2),
      k.size(-2));
  if (mask != nullptr &&
      (mask->size() > scores.size() || broadcast_shapes(scores, *mask, attention_op) != scores))
    fail<ShapeError>("{}: mask {} does not broadcast to the scores {}", attention_op,
                     to_string(*mask), to_string(scores));
  const double scale = options.scale.value_or(1 / std::sqrt(std::max<Size>(1, q.size(-1))));
  AttentionSetup setup{options.is_causal, scale, {}, {}};
  setup.causal_offset = std::clamp<Size>(options.causal_offset, -q.size(-2), k.size(-2));
  draw_dropout(attention_op, options.dropout_p, scores, setup);
  return setup;
}

}  // namespace

// ---- the catalogue's ----

XGRAD_RULE(scaled_dot_product_attention, "A c, A = softmax(a bᵀ scale + mask)",
           {"dS b scale", "dSᵀ a scale", "Aᵀ g", "dS"},
           "v gets Aᵀ g; the scores get dS = A ⊙ (dA - Σ (dA ⊙ A)) with dA = g vᵀ, and pass it to "
           "q and k.");
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  return options.enable_gqa ? detail::grouped_attention(q, k, v, options, {}, nullptr)
                            : attention(q, k, v, {}, checked_setup(q, k, v, options));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Mask& mask, const AttentionOptions& options) {
  if (options.enable_gqa)
    return detail::grouped_attention(q, k, v, options, {}, &mask);
  AttentionSetup setup = checked_setup(q, k, v, options, &mask.shape());
  const bool whole = mask.dim() >= 2 && mask.size(-1) == k.size(-2);
  setup.allowed = whole ? mask : mask & (zeros({1, k.size(-2)}) == 0);
  return attention(q, k, v, {}, setup);
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options) {
  check<ValueError>(mask.defined(), "{}: mask is undefined; leave it out", attention_op);
  if (options.enable_gqa)
    return detail::grouped_attention(q, k, v, options, mask, nullptr);
  detail::check_operands(attention_op, std::array{q, k, v, mask});
  const AttentionSetup setup = checked_setup(q, k, v, options, &mask.shape());
  const Shape wide = broadcast_shapes(mask.shape(), {1, k.size(-2)}, attention_op);
  return attention(q, k, v, mask.shape() == wide ? mask : expand(mask, wide), setup);
}

XGRAD_RULE(
    causal_self_attention, "q, k, v from a; softmax(q kᵀ / √D, causal) v",
    {"[dS k / √D, dSᵀ q / √D, Aᵀ g], side by side"},
    "As scaled_dot_product_attention, for each head; position t gets nothing from keys after it.");
Tensor causal_self_attention(const Tensor& qkv, Size n_head, double dropout_p) {
  check<ValueError>(n_head > 0, "{}: n_head is {}; it must be at least 1", packed_op, n_head);
  if (qkv.dim() != 3 || qkv.size(2) % (3 * n_head) != 0)
    fail<ShapeError>("{}: qkv {} is not (B, T, 3C) with C a multiple of {} heads", packed_op,
                     to_string(qkv.shape()), n_head);
  const Packed sizes(qkv.shape(), n_head);
  AttentionSetup setup{true, 1 / std::sqrt(std::max<std::size_t>(1, sizes.d)), {}, {}};
  draw_dropout(packed_op, dropout_p, {sizes.b, sizes.h, sizes.t, sizes.t}, setup);
  const auto composition = [setup, sizes](std::span<const Tensor> in) {
    return composed_attention(setup, sizes, in[0]);
  };
  return fused(
      packed_op, std::array{qkv}, composition,
      [setup, sizes, composition]<class T>(std::span<const Tensor> in) {
        auto out = empty_array<T>({sizes.b, sizes.t, sizes.c()});
        kernels::attention_forward<T>(problem(setup, sizes, in[0].data<T>()),
                                      sizes.heads(out.data(), 0, 1));
        return finite_or(std::move(out), composition, in);
      },
      [setup, sizes, composition]<class T>(Context& ctx, std::span<const Saved> in) {
        const Tensor x = in[0].tensor(), &g = ctx.gradient();
        if (!detail::all_finite(x))
          return detail::differentiate(ctx, in, composition);
        const auto [data, beta] = ctx.buffer<T>(0);
        const auto part_of = [&, to = data](std::size_t part) { return sizes.heads(to, part, 3); };
        kernels::attention_backward<T>(problem(setup, sizes, x.data<T>()),
                                       sizes.heads(g.data<T>(), 0, 1),
                                       {part_of(0), part_of(1), part_of(2), beta, beta, beta, {}});
      });
}

}  // namespace xgrad
