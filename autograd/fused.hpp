#pragma once
// Fused ops.  A fused op is a composition of ops, and kernels that compute the same in one pass.
//
// - An ordinary run uses the kernels: forward<T>(inputs) and backward<T>(ctx, saved inputs).  For a
//   gradient that is not finite the composition runs: inf - inf depends on the order of sums.
// - Under create_graph the composition is differentiated at the saved inputs.
// - Under Decompose the composition itself is recorded, in a Scope of the op's name.
//
// So the derivative is written once.  The composition is a pure function of its inputs, as a
// forward is.  With CMake's XGRAD_KERNELS=OFF there is nothing else.

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include "graph.hpp"

namespace xgrad {

namespace detail {

/// Whether ops have fused kernels: not with XGRAD_NO_KERNELS.
#ifdef XGRAD_NO_KERNELS
inline constexpr bool has_kernels = false;
#else
inline constexpr bool has_kernels = true;
#endif

/// Whether no element is NaN or infinite.
bool all_finite(const Tensor& x);

/// Adds the gradients of the composition at the saved inputs, with a graph under create_graph.  Two
/// inputs with the same node get separate gradients.
void differentiate(Context& ctx, std::span<const Saved> saved,
                   const std::function<Tensor(std::span<const Tensor>)>& composition);

}  // namespace detail

/// Runs ops() under create_graph, where gradients are Tensors with a graph; else kernel<T>(), with
/// the gradient's element type, which may write to buffers.
template <class Ops, class Kernel>
void ops_or_kernel(const Context& ctx, const Ops& ops, const Kernel& kernel) {
  if (!detail::has_kernels || ctx.create_graph())
    ops();
  else
    dispatch(ctx.gradient().dtype(), kernel);
}

/// All inputs but the first may be undefined.
template <std::size_t N, class C, class F, class B>
Tensor fused(const char* op, const std::array<Tensor, N>& inputs, const C& composition,
             const F& forward, const B& backward) {
  if (Mode::current().decompose) {
    const Scope scope(op);
    return composition(std::span<const Tensor>(inputs));
  }
  std::array<Saved, N> saved;
  std::ranges::copy(inputs, saved.begin());
  const auto formula = [saved = std::move(saved), composition, backward](Context& ctx) {
    const auto by_ops = [&] { detail::differentiate(ctx, saved, composition); };
    ops_or_kernel(ctx, by_ops, [&]<class T>() {
      if (detail::all_finite(ctx.gradient()))
        backward.template operator()<T>(ctx, saved);
      else
        by_ops();
    });
  };
  if constexpr (detail::has_kernels)
    return record(op, std::span(inputs), forward, formula);
  else
    return record(op, std::span(inputs), composition, formula);
}

}  // namespace xgrad
