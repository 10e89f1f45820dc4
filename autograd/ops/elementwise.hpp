#pragma once
// Elementwise ops that are made of formulas; and a loop on two arrays of any type that broadcast,
// for comparisons, Indices and Masks.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include "../buffer.hpp"
#include "../fused.hpp"
#include "../kernels/elementwise.hpp"
#include "../kernels/odometer.hpp"
#include "../kernels/simd.hpp"
#include "../ops.hpp"

namespace xgrad {

// Elementwise ops made of formulas: one for the value, one for each operand's derivative.  simd.hpp
// lists what formulas may use; custom_op.hpp describes user-defined ops.

/// The constant v as a 0-d Tensor of x's dtype: for formulas called with Tensors.
Tensor c(const Tensor& x, double v);

/// sigmoid's derivative, and the pair: see simd.hpp.
Tensor sigmoid_slope(const Tensor& x);
inline Logistic<Tensor> logistic(const Tensor& x) { return {sigmoid(x), sigmoid_slope(x)}; }

/// The values that a derivative formula uses besides the gradient g: operands A, B, C, output Y.
/// Only these are kept for the backward; using another does not compile.
enum class Uses { A = 0, B = 1, C = 2, Y = 3 };

/// A derivative: formula(g, ...) is the gradient of one operand; the values in Uses follow g in
/// that order.
template <class F, Uses... U>
struct Partial {
  F formula;
};
template <Uses... U, class F>
Partial<F, U...> partial(F formula) {
  return {formula};
}

/// The derivative of an operand whose gradient is g itself.
struct PassThrough {};
/// A derivative that is 0 everywhere, as rounding has.
struct ZeroGradient {};

namespace detail {

/// f(a, b) with broadcasting.  ShapeError naming op.
template <class T, class F>
auto broadcast(const char* op, const Shape& a_shape, const T* a, const Shape& b_shape, const T* b,
               const F& f) {
  auto out = empty_array<std::invoke_result_t<F, T, T>>(broadcast_shapes(a_shape, b_shape, op));
  if (out.size() == 0)
    return out;
  const kernels::Rows<2> rows(out.shape(), {&a_shape, &b_shape});
  kernels::Odometer<2> row(rows.outer);
  for (std::size_t r = 0; r < rows.count; ++r, row.advance()) {
    const T* const x = a + row[0];
    const T* const y = b + row[1];
    auto* const to = out.data() + r * rows.length;
    // a loop for each pair of steps, so that each is vectorised
    if (rows.step[0] == rows.step[1])
      std::transform(x, x + rows.length, y, to, f);
    else if (rows.step[0] == 0)
      std::transform(y, y + rows.length, to, [&f, c = *x](T v) { return f(c, v); });
    else
      std::transform(x, x + rows.length, to, [&f, c = *y](T v) { return f(v, c); });
  }
  return out;
}

template <class P>
struct Needs {
  static constexpr bool any(Uses) { return false; }
};
template <class F, Uses... U>
struct Needs<Partial<F, U...>> {
  static constexpr bool any(Uses use) { return ((U == use) || ...); }
};

// On Tensors: the gradient of operand i as a graph of its own.
template <class F, Uses... U>
Tensor derivative(const Partial<F, U...>& p, const Context& ctx, std::span<const Saved> saved) {
  [[maybe_unused]] const auto get = [&](Uses use) {
    return use == Uses::Y ? ctx.output() : saved[static_cast<std::size_t>(use)].tensor();
  };
  return p.formula(ctx.gradient(), get(U)...);
}

// On SIMD registers: one loop over arrays.
template <class T, class F, Uses... U>
Tensor derivative_array(const Partial<F, U...>& p, const Context& ctx,
                        std::span<const Saved> saved) {
  const Tensor output = (... || (U == Uses::Y)) ? ctx.output() : Tensor();
  [[maybe_unused]] const auto get = [&](Uses use) {
    if (use == Uses::Y)
      return kernels::Operand<T>{output.shape(), output.data<T>()};
    const Value& value = *saved[static_cast<std::size_t>(use)].value;
    return kernels::Operand<T>{value.shape, value.data<T>()};
  };
  const Tensor& g = ctx.gradient();
  auto result = empty_array<T>(g.shape());
  kernels::map<T, 1 + sizeof...(U)>(g.shape(), result.data(),
                                    {kernels::Operand<T>{g.shape(), g.data<T>()}, get(U)...},
                                    p.formula);
  return Tensor(std::move(result));
}

template <class P>
void add_derivative(Context& ctx, std::size_t i, const P& p, std::span<const Saved> saved) {
  if (!ctx.needs(i))
    return;
  if constexpr (std::is_same_v<P, PassThrough>)
    ctx.add(i, ctx.gradient());
  else if constexpr (std::is_same_v<P, ZeroGradient>)
    ctx.add(i, zeros_like(ctx.gradient()));
  else
    ops_or_kernel(
        ctx, [&] { ctx.add(i, derivative(p, ctx, saved)); },
        [&]<class T>() { ctx.add(i, derivative_array<T>(p, ctx, saved)); });
}

/// ValueError naming op and the operand, if one is undefined; DTypeError if their dtypes differ.
void check_operands(const char* op, std::span<const Tensor> inputs);
/// DTypeError unless the argument called `name` has x's dtype.
void check_same_dtype(const char* op, const Tensor& x, const char* name, const Tensor& other);

/// A result without a derivative: f<T>(), with the operands' element type.  Errors as above.
template <std::size_t N, class F>
auto compute(const char* op, const std::array<Tensor, N>& inputs, const F& f) {
  check_operands(op, inputs);
  return dispatch(inputs[0].dtype(), f);
}

}  // namespace detail

/// y = forward(a, b, ...), elementwise with broadcasting; one derivative for each operand.
template <std::size_t N, class F, class... P>
Tensor elementwise(const char* op, const std::array<Tensor, N>& in, F forward, P... partials) {
  static_assert(sizeof...(P) == N, "an elementwise op has one derivative for each operand");
  detail::check_operands(op, in);
  const auto run = [op, forward]<class T>(std::span<const Tensor> x) {
    Shape shape = x[0].shape();
    for (std::size_t k = 1; k < N; ++k)
      if (x[k].shape() != shape)
        shape = broadcast_shapes(shape, x[k].shape(), op);
    auto y = empty_array<T>(shape);
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      kernels::map<T, N>(shape, y.data(),
                         {kernels::Operand<T>{x[K].shape(), x[K].template data<T>()}...}, forward);
    }(std::make_index_sequence<N>());
    return y;
  };
  // An operand is kept if a needed derivative uses it.  If none uses any (add), there is not even
  // room for them.
  constexpr auto uses = [](std::size_t k) {
    return (detail::Needs<P>::any(static_cast<Uses>(k)) || ...);
  };
  constexpr bool uses_operands = uses(0) || uses(1) || uses(2);
  std::array<Saved, uses_operands ? N : 0> saved;
  bool saves_output = false;
  std::size_t i = 0;
  (
      [&] {
        if (in[i++].requires_grad()) {
          for (std::size_t k = 0; k < saved.size(); ++k)
            if (detail::Needs<P>::any(static_cast<Uses>(k)) && !saved[k])
              saved[k] = in[k];
          saves_output = saves_output || detail::Needs<P>::any(Uses::Y);
        }
      }(),
      ...);
  const auto formulas = std::make_tuple(partials...);
  return record(op, std::span(in), run,
                [saved = std::move(saved), formulas](Context& ctx) {
                  [&]<std::size_t... K>(std::index_sequence<K...>) {
                    (detail::add_derivative(ctx, K, std::get<K>(formulas), saved), ...);
                  }(std::make_index_sequence<N>());
                },
                {.broadcasts = N > 1, .saves_output = saves_output});
}

/// y = forward(x).
template <class F, class P>
Tensor elementwise(const char* op, const Tensor& x, F forward, P partial) {
  return elementwise<1>(op, {x}, forward, partial);
}

/// y = forward(a, b).
template <class F, class PA, class PB>
Tensor elementwise(const char* op, const Tensor& a, const Tensor& b, F forward, PA da, PB db) {
  return elementwise<2>(op, {a, b}, forward, da, db);
}

}  // namespace xgrad
