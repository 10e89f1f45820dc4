// scaled_dot_product_attention: the kernel in both directions; under create_graph, the derivative
// composed of catalogue ops.

#include <xgrad/autograd/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/attention.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/matmul.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace {

using detail::AttentionSetup;
using detail::AttentionTensors;
using detail::leading;
using kernels::Matrices;

constexpr const char* attention_op = "scaled_dot_product_attention";

// ---- the kernel on Tensors (..., T, D) ----

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
kernels::Attention<T> problem(const AttentionSetup& setup, const Shape& batch, const Tensor& q,
                              const Tensor& k, const Tensor& v, const Tensor& bias) {
  kernels::Attention<T> p{static_cast<std::size_t>(numel(batch)),
                          static_cast<std::size_t>(q.size(-2)),
                          static_cast<std::size_t>(k.size(-2)),
                          static_cast<std::size_t>(q.size(-1)),
                          static_cast<std::size_t>(v.size(-1)),
                          static_cast<T>(setup.scale),
                          setup.causal,
                          matrices(q.data<T>(), q.shape(), batch),
                          matrices(k.data<T>(), k.shape(), batch),
                          matrices(v.data<T>(), v.shape(), batch),
                          {},
                          {},
                          {},
                          static_cast<T>(setup.keep_scale),
                          setup.causal_offset};
  if (bias.defined())
    p.bias = mask_matrices(bias.data<T>(), bias.shape(), batch);
  if (setup.allowed)
    p.allowed = mask_matrices(setup.allowed->data(), setup.allowed->shape(), batch);
  if (setup.keep)
    p.keep = matrices(setup.keep->data(), setup.keep->shape(), batch);
  return p;
}

// Where the kernel writes the gradient of one input: into the sink's buffer, or, if the input is
// broadcast, into an array that is added afterwards.
template <class T>
struct Target {
  std::optional<Array<T>> own;
  Matrices<T> rows;
  T beta = 0;

  void to_buffer(Sink& sink, std::size_t i, const Shape& shape, const Shape& batch) {
    const Buffer<T> buffer = sink.buffer<T>(i);
    rows = matrices(buffer.data, shape, batch);
    beta = buffer.beta;
  }
  void to_own(const Shape& shape, const Shape& batch) {
    const Shape full = detail::with_matrix(batch, shape[shape.size() - 2], shape.back());
    own = empty_array<T>(full);
    rows = matrices(own->data(), full, batch);
  }
  void add(Sink& sink, std::size_t i) {
    if (own)
      sink.add(i, Tensor(std::move(*own)));
  }
};

template <class T>
void fused_backward(Sink& sink, const AttentionSetup& setup, const std::array<Saved, 4>& saved) {
  const Tensor q = saved[0].tensor(), k = saved[1].tensor(), v = saved[2].tensor(),
               bias = saved[3].tensor();
  const Shape batch = batch_of(q, k, v);
  const auto p = problem<T>(setup, batch, q, k, v, bias);
  std::array<Target<T>, 4> targets;
  for (std::size_t i = 0; i < 3; ++i)
    if (sink.needs(i)) {
      const Shape& shape = saved[i].value->shape;
      if (std::cmp_not_equal(numel(leading(shape, 2)), p.items))
        targets[i].to_own(shape, batch);
      else
        targets[i].to_buffer(sink, i, shape, batch);
    }
  if (sink.needs(3))
    targets[3].to_own({p.t, p.s}, batch);
  auto& [tq, tk, tv, tb] = targets;
  kernels::attention_backward<T>(
      p, matrices(sink.gradient().data<T>(), sink.gradient().shape(), batch),
      {tq.rows, tk.rows, tv.rows, tq.beta, tk.beta, tv.beta, tb.rows});
  for (std::size_t i = 0; i < 4; ++i)
    targets[i].add(sink, i);
}

void composed_backward(Sink& sink, const AttentionSetup& setup, const std::array<Saved, 4>& saved) {
  const AttentionTensors g = detail::compose_attention_backward(
      attention_op, setup,
      {saved[0].tensor(), saved[1].tensor(), saved[2].tensor(), saved[3].tensor()},
      sink.gradient());
  sink.add(0, g.q);
  sink.add(1, g.k);
  sink.add(2, g.v);
  if (sink.needs(3))
    sink.add(3, g.bias);
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                 const AttentionSetup& setup) {
  if (Mode::current().decompose) {
    const Scope scope(attention_op);
    return detail::compose_attention(setup, {q, k, v, bias});
  }
  const auto run = [setup](std::span<const Tensor> in) {
    const Shape batch = batch_of(in[0], in[1], in[2]);
    const Shape shape = detail::with_matrix(batch, in[0].size(-2), in[2].size(-1));
    return dispatch(in[0].dtype(), [&]<class T>() {
      auto out = empty_array<T>(shape);
      kernels::attention_forward<T>(problem<T>(setup, batch, in[0], in[1], in[2], in[3]),
                                    matrices(out.data(), shape, batch));
      return Tensor(std::move(out));
    });
  };
  const std::array<Saved, 4> saved{q, k, v, bias};
  return record(attention_op, {q, k, v, bias}, run,
                [setup, saved](Sink& sink) {
                  if (sink.create_graph())
                    composed_backward(sink, setup, saved);
                  else
                    dispatch(sink.gradient().dtype(),
                             [&]<class T>() { fused_backward<T>(sink, setup, saved); });
                },
                {.broadcasts = true});
}

// ---- checks ----

// The shape of the scores.
Shape check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                      bool has_mask, const AttentionOptions& options) {
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
  detail::check_operands(attention_op, std::array{q, k, v, bias.defined() ? bias : q});
  check<ValueError>(!(has_mask && options.is_causal),
                    "{}: a mask and is_causal were given; put the causal mask into the mask",
                    attention_op);
  check<ValueError>(options.is_causal || options.causal_offset == 0,
                    "{}: causal_offset is {} but is_causal is false", attention_op,
                    options.causal_offset);
  batch_of(q, k, v);
  return detail::with_matrix(
      broadcast_shapes(leading(q.shape(), 2), leading(k.shape(), 2), attention_op), q.size(-2),
      k.size(-2));
}

void check_mask(const Shape& mask, const Shape& scores) {
  if (mask.size() > scores.size() || broadcast_shapes(scores, mask, attention_op) != scores)
    fail<ShapeError>("{}: mask {} does not broadcast to the scores {}", attention_op,
                     to_string(mask), to_string(scores));
}

AttentionSetup make_setup(const Tensor& q, const Shape& scores, const AttentionOptions& options) {
  const double d = static_cast<double>(std::max<std::size_t>(1, q.size(-1)));
  AttentionSetup setup{options.is_causal, options.scale.value_or(1 / std::sqrt(d)), {}, {}};
  setup.causal_offset = options.causal_offset;
  detail::draw_dropout(attention_op, options.dropout_p, scores, setup);
  return setup;
}

// A mask's shape with at least two dimensions.
Shape two_dimensional(const Shape& shape) {
  return shape.size() >= 2 ? shape : Shape{1, shape.empty() ? 1 : shape[0]};
}

// The mask with two or more dimensions and all S columns.
Mask with_columns(const Mask& mask, std::size_t s) {
  Shape shape = two_dimensional(mask.shape());
  const std::size_t columns = shape.back(), rows = numel(leading(shape, 1));
  shape.back() = s;
  auto wide = empty_array<bool>(shape);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < s; ++j)
      wide.data()[r * s + j] = mask.data()[r * columns + (columns == 1 ? 0 : j)];
  return Mask(std::move(wide));
}

}  // namespace

// ---- the catalogue's ----

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  const Shape scores = check_attention(q, k, v, {}, false, options);
  return attention(q, k, v, {}, make_setup(q, scores, options));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Mask& mask, const AttentionOptions& options) {
  const Shape scores = check_attention(q, k, v, {}, true, options);
  check_mask(mask.shape(), scores);
  AttentionSetup setup = make_setup(q, scores, options);
  setup.allowed =
      mask.dim() >= 2 && mask.size(-1) == scores.back() ? mask : with_columns(mask, scores.back());
  return attention(q, k, v, {}, setup);
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options) {
  check<ValueError>(mask.defined(), "{}: mask is undefined; leave it out", attention_op);
  const Shape scores = check_attention(q, k, v, mask, true, options);
  check_mask(mask.shape(), scores);
  Shape wide = two_dimensional(mask.shape());
  wide.back() = scores.back();
  const Tensor bias = mask.shape() == wide ? mask : expand(mask, wide);
  return attention(q, k, v, bias, make_setup(q, scores, options));
}

}  // namespace xgrad
