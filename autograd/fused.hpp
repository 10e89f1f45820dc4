#pragma once
// A fused op is a composition of ops, and kernels that compute the same in one pass.
//
// - In an ordinary run the kernels run: forward<T>(inputs) and backward<T>(ctx, saved inputs).  A
//   gradient that is not finite is the composition's: inf - inf depends on the order of sums.
// - Under create_graph the derivative is that of the composition, at the saved inputs.
// - Under Decompose the composition itself is recorded, in a Scope of the op's name.
//
// So a derivative is written once, and beside it what makes it fast.  The composition is a function
// of its inputs alone, as a forward is.  Without kernels (CMake's XGRAD_KERNELS=OFF) it is all
// there is.

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace detail {

/// Whether no element is NaN or infinite.
bool all_finite(const Tensor& x);

/// Adds the gradients of the composition at the saved inputs.  They have a graph if that of the run
/// is wanted.  Two inputs that are one node are differentiated apart.
void differentiate(Context& ctx, std::span<const Saved> saved,
                   const std::function<Tensor(std::span<const Tensor>)>& composition);

}  // namespace detail

/// Inputs may be undefined, but not the first.
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
  if constexpr (has_kernels)
    return record(op, std::span(inputs), forward, formula);
  else
    return record(op, std::span(inputs), composition, formula);
}

}  // namespace xgrad
