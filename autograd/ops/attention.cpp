#include "../kernels/attention.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/elementwise.hpp"
#include "../kernels/gemm.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "elementwise.hpp"
#include "matmul.hpp"
#include "rules.hpp"

namespace xgrad {

// enable_gqa: several heads of queries share each head of keys and values, broadcast along an extra
// dimension without a copy.

namespace {

constexpr const char* attention_op = "scaled_dot_product_attention";

// (..., H, T, D) -> (..., groups, H / groups, T, D)
Shape in_groups(Shape shape, std::size_t groups) {
  shape[-3] /= groups;
  shape.insert(shape.end() - 3, groups);
  return shape;
}

// The same for a mask with a dimension for heads, of size 1 or all.
Shape mask_in_groups(const Shape& mask, std::size_t heads, std::size_t groups) {
  if (mask.size() < 3)
    return mask;
  const std::size_t own = mask.end()[-3];
  if (own != 1 && own != heads)
    fail<ShapeError>("{}: mask {} has {} heads but q has {}", attention_op, to_string(mask), own,
                     heads);
  return in_groups(mask, own == 1 ? 1 : groups);
}

using detail::leading;

using kernels::Matrices;

// The options of an attention.
struct AttentionSetup {
  bool causal;
  double scale;
  std::optional<Mask> allowed;  // (..., T or 1, S)
  std::optional<Mask> keep;     // (..., T, S), after dropout
  double keep_scale = 1;
  std::ptrdiff_t causal_offset = 0;       // from -T to S
  std::optional<Indices> first_key = {};  // (..., 1, T)
  double softcap = 0;
  bool autocast = Mode::current().autocast;
};

// The layout of the matrices of q, k, v and the output: separate arrays or, packed, heads in
// adjacent columns of arrays (B, T, 3C) and (B, T, C).
struct Layout {
  Shape batch;  // of matrices; packed: (B, heads)
  std::size_t t, s, d, dv;
  bool packed = false;

  std::size_t input(std::size_t part) const { return packed ? 0 : part; }
  Shape output() const {
    return packed ? Shape{batch[0], t, batch[1] * d} : detail::with_matrix(batch, t, dv);
  }
  // q, k or v (part 0, 1 or 2) in an input or in its gradient; absent if that is null.
  template <class E>
  Matrices<E> operand(E* data, const Shape& shape, std::size_t part) const {
    if (data == nullptr)
      return {};
    return packed ? heads(data, part, 3) : matrices(data, shape, batch);
  }
  template <class E>
  Matrices<E> output(E* data) const {
    return packed ? heads(data, 0, 1) : matrices(data, output(), batch);
  }

 private:
  template <class E>
  Matrices<E> heads(E* data, std::size_t part, std::size_t parts) const {
    const std::size_t items = batch[0], n_head = batch[1], c = n_head * d;
    Matrices<E> result{data + part * c, parts * c};
    for (std::size_t i = 0; i < items; ++i)
      for (std::size_t j = 0; j < n_head; ++j)
        result.offsets.push_back(i * t * parts * c + j * d);
    return result;
  }
};

// The kernel's target for the gradient of one input: the context's buffer or, for a broadcast
// input, an array that is added afterwards.  Null if the gradient is not needed.
template <class T>
struct Target {
  T* data = nullptr;
  Shape shape;
  T beta = 0;
  std::optional<Array<T>> own;

  void to_buffer(Context& ctx, std::size_t i, const Shape& input) {
    const GradientBuffer<T> buffer = ctx.buffer<T>(i);
    data = buffer.data;
    shape = input;
    beta = buffer.beta;
  }
  void to_own(const Shape& full) {
    own = empty_array<T>(full);
    data = own->data();
    shape = full;
  }
};

}  // namespace

// scaled_dot_product_attention with enable_gqa; an absent mask is undefined, or null.
static Tensor grouped_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                AttentionOptions options, const Tensor& bias, const Mask* allowed) {
  const auto heads_of = [](const Tensor& x) -> std::size_t { return x.dim() < 3 ? 0 : x.size(-3); };
  const std::size_t heads = heads_of(q), groups = heads_of(k);
  if (q.dim() < 3 || groups == 0 || heads % groups != 0 || heads_of(v) != groups)
    fail<ShapeError>(
        "{}: q {}, k {}, v {}: with enable_gqa, the heads of q, the third dimension from the end, "
        "are a multiple of those of k and v",
        attention_op, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()));
  options.enable_gqa = false;
  if (options.first_key) {
    const Indices first = unsqueeze(*options.first_key, -1);  // (..., H, T, 1)
    options.first_key = squeeze(reshape(first, mask_in_groups(first.shape(), heads, groups)), {-1});
  }
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

// Scaled dot-product attention, with q, k, v separate or packed in one array: a composition, and a
// kernel that computes the weights a block of rows at a time.

constexpr const char* packed_op = "causal_self_attention";

// ---- composed ----

// softmax(q kᵀ * scale + bias) v: q (..., T, D), k (..., S, D), v (..., S, Dv), bias (..., T, S) or
// undefined.
static Tensor composed_attention(const AttentionSetup& setup, const Tensor& q, Tensor k, Tensor v,
                                 const Tensor& bias) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const Size t = q.size(-2), s = k.size(-2);
  std::optional<Mask> visible;  // (..., T, S): first_key <= key <= query + causal_offset
  if (setup.causal)
    visible = tril(zeros({t, s}) == 0, setup.causal_offset);
  if (setup.first_key)
    visible = *visible & ~(arange_indices(0, s) < transpose(*setup.first_key, -2, -1));
  // keys that no query sees count as absent
  if (visible && (setup.first_key || setup.causal_offset + t < s)) {
    const Mask absent = unsqueeze(~any(*visible, {-2}), -1);
    k = masked_fill(k, absent, 0);
    v = masked_fill(v, absent, 0);
  }
  Tensor scores = matmul(q, transpose(k, -2, -1)) * setup.scale;  // (..., T, S)
  if (setup.softcap != 0)
    scores = tanh(scores / setup.softcap) * setup.softcap;
  if (bias.defined())
    scores = scores + bias;
  if (setup.allowed)
    scores = masked_fill(scores, ~*setup.allowed, hidden);
  if (visible)
    scores = masked_fill(scores, ~*visible, hidden);
  const Tensor weights = softmax(scores, -1);
  return matmul(setup.keep ? where(*setup.keep, weights * setup.keep_scale, 0.0) : weights, v);
}

// Draws dropout for weights of this shape, masked ones included, as torch.dropout does.
static void draw_dropout(const char* op, double p, const Shape& weights, AttentionSetup& setup) {
  check<ValueError>(p >= 0 && p <= 1, "{}: dropout_p {} is not between 0 and 1", op, p);
  setup.keep_scale = p < 1 ? 1 / (1 - p) : 0;
  if (p == 0)
    return;
  auto keep = empty_array<bool>(weights);
  fill_dropout(std::span(keep.data(), keep.size()), p, default_generator(), weights.front());
  setup.keep = Mask(std::move(keep));
}

// ---- the kernel ----

// The matrices of a batch; an operand with one row broadcasts over rows.
template <class E>
static Matrices<E> matrices(E* data, const Shape& shape, const Shape& batch) {
  const std::size_t rows = shape[shape.size() - 2], columns = shape.back();
  Matrices<E> result{data, columns, detail::broadcast_blocks(leading(shape, 2), batch).of_item};
  for (std::size_t& offset : result.offsets)
    offset *= rows * columns;
  return result;
}
template <class E>
static Matrices<E> mask_matrices(E* data, const Shape& shape, const Shape& batch) {
  Matrices<E> result = matrices(data, shape, batch);
  if (shape[shape.size() - 2] == 1)
    result.stride = 0;
  return result;
}

static Shape batch_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  return broadcast_shapes(
      broadcast_shapes(leading(q.shape(), 2), leading(k.shape(), 2), attention_op),
      leading(v.shape(), 2), attention_op);
}

// The kernel's arguments for q (..., T, D), k (..., S, D), v (..., S, Dv) and bias (..., T, S) or
// undefined; or for qkv (B, T, 3C).
template <class T>
static kernels::Attention<T> problem(const AttentionSetup& setup, const Layout& layout,
                                     std::span<const Tensor> in) {
  const auto operand = [&](std::size_t part) {
    const Tensor& x = in[layout.input(part)];
    return layout.operand(x.data<T>(), x.shape(), part);
  };
  kernels::Attention<T> p{.items = static_cast<std::size_t>(numel(layout.batch)),
                          .t = layout.t,
                          .s = layout.s,
                          .d = layout.d,
                          .dv = layout.dv,
                          .scale = static_cast<T>(setup.scale),
                          .causal = setup.causal,
                          .q = operand(0),
                          .k = operand(1),
                          .v = operand(2),
                          .bias = {},
                          .allowed = {},
                          .keep = {},
                          .keep_scale = static_cast<T>(setup.keep_scale),
                          .causal_offset = setup.causal_offset,
                          .softcap = static_cast<T>(setup.softcap),
                          .autocast = setup.autocast && std::is_same_v<T, float>};
  if (!layout.packed && in[3].defined())
    p.bias = mask_matrices(in[3].data<T>(), in[3].shape(), layout.batch);
  if (setup.allowed)
    p.allowed = mask_matrices(setup.allowed->data(), setup.allowed->shape(), layout.batch);
  if (setup.first_key)
    p.first = matrices(setup.first_key->data(), setup.first_key->shape(), layout.batch);
  if (setup.keep)
    p.keep = matrices(setup.keep->data(), setup.keep->shape(), layout.batch);
  return p;
}

// Operands of products: under Autocast in float32 rounded to bfloat16.
static Tensor operand(const AttentionSetup& setup, const Tensor& x) {
  if (!setup.autocast || x.dtype() != DType::float32)
    return x;
  auto y = empty_array<float>(x.shape());
  kernels::rounded_to_bfloat16(y.size(), 1, x.data<float>(), y.data());
  return Tensor(std::move(y));
}
template <std::size_t N>
static std::array<Tensor, N> operands_of(const AttentionSetup& setup, std::span<const Tensor> in) {
  std::array<Tensor, N> result;
  for (std::size_t i = 0; i < N; ++i)
    result[i] = i < 3 ? operand(setup, in[i]) : in[i];
  return result;
}

// A weight of 0 times NaN or infinity is NaN in the composition.  The kernel skips blocks of such
// weights, so outputs that are not all finite come from the composition.
template <class C>
static Tensor finite_or(Tensor out, const C& composition, std::span<const Tensor> in) {
  return detail::all_finite(out) ? out : composition(in);
}

template <std::size_t N>
static Tensor attention(const char* op, const std::array<Tensor, N>& inputs, const Layout& layout,
                        const AttentionSetup& setup) {
  constexpr std::size_t operands = std::min<std::size_t>(N, 3);  // of the inputs, then the bias
  const auto composition = [setup, layout](std::span<const Tensor> in) {
    const Autocast same(setup.autocast);
    if (!layout.packed)
      return composed_attention(setup, in[0], in[1], in[2], in[3]);
    const std::size_t batch = layout.batch[0], heads = layout.batch[1], c = heads * layout.d;
    const auto parts = split(in[0], {c, c, c}, -1);
    const auto part = [&](std::size_t i) {  // (B, H, T, D)
      return transpose(reshape(parts[i], {batch, layout.t, heads, layout.d}), 1, 2);
    };
    const Tensor y = composed_attention(setup, part(0), part(1), part(2), {});
    return reshape(transpose(y, 1, 2), {batch, layout.t, c});
  };
  return fused(
      op, inputs, composition,
      [setup, layout, composition]<class T>(std::span<const Tensor> in) {
        auto out = empty_array<T>(layout.output());
        kernels::attention_forward(problem<T>(setup, layout, operands_of<N>(setup, in)),
                                   layout.output(out.data()));
        return finite_or(std::move(out), composition, in);
      },
      [setup, layout, composition]<class T>(Context& ctx, std::span<const Saved> saved) {
        std::array<Tensor, N> in;
        std::ranges::transform(saved, in.begin(), &Saved::tensor);
        if (!std::all_of(in.begin(), in.begin() + operands, detail::all_finite))
          return detail::differentiate(ctx, saved, composition);
        std::array<Target<T>, 4> targets;
        for (std::size_t i = 0; i < operands; ++i)
          if (const Shape& shape = in[i].shape(); !ctx.needs(i))
            continue;
          else if (layout.packed || numel(leading(shape, 2)) == numel(layout.batch))
            targets[i].to_buffer(ctx, i, shape);
          else
            targets[i].to_own(detail::with_matrix(layout.batch, shape.end()[-2], shape.back()));
        if (!layout.packed && ctx.needs(3))
          targets[3].to_own(detail::with_matrix(layout.batch, layout.t, layout.s));
        const auto target = [&](std::size_t part) -> const Target<T>& {
          return targets[layout.input(part)];
        };
        const auto rows = [&](std::size_t part) {
          return layout.operand(target(part).data, target(part).shape, part);
        };
        const Tensor dy = operand(setup, ctx.gradient());
        kernels::attention_backward<T>(problem<T>(setup, layout, operands_of<N>(setup, in)),
                                       layout.output(dy.data<T>()),
                                       {rows(0), rows(1), rows(2), target(0).beta, target(1).beta,
                                        target(2).beta, layout.packed ? Matrices<T>() : rows(3)});
        for (std::size_t i = 0; i < N; ++i)
          if (targets[i].own)
            ctx.add(i, sum_to(Tensor(std::move(*targets[i].own)), in[i].shape()));
      });
}

static Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                        const AttentionSetup& setup) {
  const Layout layout{batch_of(q, k, v), static_cast<std::size_t>(q.size(-2)),
                      static_cast<std::size_t>(k.size(-2)), static_cast<std::size_t>(q.size(-1)),
                      static_cast<std::size_t>(v.size(-1))};
  return attention(attention_op, std::array{q, k, v, bias}, layout, setup);
}

// `first` as (..., 1, T).  ShapeError unless it broadcasts to scores (..., T, S).
static Indices checked_first_key(const char* op, const Indices& first, const Shape& scores) {
  const Shape rows(scores.begin(), scores.end() - 1);
  if (first.dim() == 0 || first.shape().size() > rows.size() ||
      broadcast_shapes(rows, first.shape(), op) != rows)
    fail<ShapeError>("{}: first_key {} does not broadcast to the queries {}", op,
                     to_string(first.shape()), to_string(rows));
  Shape whole = first.shape();
  whole.back() = rows.back();
  return unsqueeze(first.shape() == whole ? first : expand(first, whole), -2);
}

static AttentionSetup checked_setup(const Tensor& q, const Tensor& k, const Tensor& v,
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
  check<ValueError>(options.is_causal || !options.first_key,
                    "{}: first_key is given but is_causal is false", attention_op);
  const double softcap =  // as a number of q's dtype
      q.dtype() == DType::float32 ? static_cast<float>(options.softcap) : options.softcap;
  check<ValueError>(
      softcap >= 0 && std::isfinite(softcap) && (softcap > 0) == (options.softcap > 0),
      "{}: softcap is {}; it must be above 0 in {}, and finite, or 0 for none", attention_op,
      options.softcap, to_string(q.dtype()));
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
  setup.softcap = options.softcap;
  setup.causal_offset = std::clamp<Size>(options.causal_offset, -q.size(-2), k.size(-2));
  if (options.first_key)
    setup.first_key = checked_first_key(attention_op, *options.first_key, scores);
  draw_dropout(attention_op, options.dropout_p, scores, setup);
  return setup;
}

// ---- of the catalogue ----

XGRAD_RULE(scaled_dot_product_attention, "A c, A = softmax(a bᵀ scale + mask)",
           {"dS b scale", "dSᵀ a scale", "Aᵀ g", "dS"},
           "v gets Aᵀ g; the scores get dS = A ⊙ (dA - Σ (dA ⊙ A)) with dA = g vᵀ, and pass it to "
           "q and k.");
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  return options.enable_gqa ? grouped_attention(q, k, v, options, {}, nullptr)
                            : attention(q, k, v, {}, checked_setup(q, k, v, options));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Mask& mask, const AttentionOptions& options) {
  if (options.enable_gqa)
    return grouped_attention(q, k, v, options, {}, &mask);
  AttentionSetup setup = checked_setup(q, k, v, options, &mask.shape());
  const bool whole = mask.dim() >= 2 && mask.size(-1) == k.size(-2);
  setup.allowed = whole ? mask : mask & (zeros({1, k.size(-2)}) == 0);
  return attention(q, k, v, {}, setup);
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options) {
  check<ValueError>(mask.defined(), "{}: mask is undefined; omit it", attention_op);
  if (options.enable_gqa)
    return grouped_attention(q, k, v, options, mask, nullptr);
  detail::check_operands(attention_op, std::array{q, k, v, mask});
  const AttentionSetup setup = checked_setup(q, k, v, options, &mask.shape());
  const Shape wide = broadcast_shapes(mask.shape(), {1, k.size(-2)}, attention_op);
  return attention(q, k, v, mask.shape() == wide ? mask : expand(mask, wide), setup);
}

XGRAD_RULE(
    causal_self_attention, "q, k, v from a; softmax(q kᵀ / √D, causal) v",
    {"[dS k / √D, dSᵀ q / √D, Aᵀ g], concatenated"},
    "As scaled_dot_product_attention, for each head; position t gets nothing from keys after it.");
Tensor causal_self_attention(const Tensor& qkv, Dim n_head, double dropout_p,
                             const std::optional<Indices>& first_key) {
  check<ValueError>(n_head > 0, "{}: n_head is {}; it must be at least 1", packed_op, n_head);
  if (qkv.dim() != 3 || qkv.size(2) % (3 * n_head) != 0)
    fail<ShapeError>("{}: qkv {} is not (B, T, 3C) with C a multiple of {} heads", packed_op,
                     to_string(qkv.shape()), n_head);
  const std::size_t heads = to_size(n_head), d = qkv.size(2) / (3 * heads), t = qkv.size(1);
  const Layout layout{{qkv.size(0), heads}, t, t, d, d, true};
  AttentionSetup setup{true, 1 / std::sqrt(std::max<std::size_t>(1, d)), {}, {}};
  const Shape scores = detail::with_matrix(layout.batch, t, t);
  if (first_key)
    setup.first_key = checked_first_key(packed_op, *first_key, scores);
  draw_dropout(packed_op, dropout_p, scores, setup);
  return attention(packed_op, std::array{qkv}, layout, setup);
}

}  // namespace xgrad
