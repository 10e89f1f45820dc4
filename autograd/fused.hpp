#pragma once
// A fused op is a composition of ops, and kernels that compute the same in one pass.
//
// - In an ordinary run the kernels run: forward<T>(inputs) and backward<T>(sink, saved inputs).
// - Under create_graph the derivative is that of the composition, at the saved inputs.
// - Under Decompose the composition itself is recorded, in a Scope of the op's name.
//
// So a derivative is written once, and beside it what makes it fast.  The composition is a function
// of its inputs alone, as a forward is.  Without kernels (XGRAD_KERNELS=OFF) it is all there is.

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace detail {

/// Adds the gradients of the composition at the saved inputs.  They have a graph if that of the run
/// is wanted.  Two inputs that are one node are differentiated apart.
void differentiate(Sink& sink, std::span<const Saved> saved,
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
  const auto formula = [saved = std::move(saved), composition, backward](Sink& sink) {
    ops_or_kernel(
        sink, [&] { detail::differentiate(sink, saved, composition); },
        [&]<class T>() { backward.template operator()<T>(sink, saved); });
  };
  if constexpr (has_kernels)
    return record(op, std::span(inputs), forward, formula);
  else
    return record(op, std::span(inputs), composition, formula);
}

}  // namespace xgrad
