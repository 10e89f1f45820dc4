#pragma once
// Functions with right gradients, which no checker may call wrong; and ops with any gradient.

#include <cstdint>
#include <functional>
#include <vector>
#include <xgrad/autograd/check/tensor_function.hpp>
#include <xgrad/autograd/engine.hpp>

namespace xgrad::testing {

struct Awkward {
  const char* name;
  TensorFunction f;
  std::vector<Tensor> inputs;
};

/// At kinks, at infinite places, steep, very large or very small.
std::vector<Awkward> awkward_functions();
/// Two to six ops of (3, 4) -> (3, 4), of numbers between 1e-6 and 1e6, equal ones and zeros.
Awkward random_composition(std::uint64_t seed);

/// The op "planted", y = forward(x); `backward` computes its gradient from the cotangent and x.
using UnaryForward = std::function<Tensor(const Tensor& x)>;
using UnaryBackward = std::function<Tensor(const Tensor& cotangent, const Tensor& x)>;
inline TensorFunction one_op(const UnaryForward& forward, const UnaryBackward& backward) {
  return [=](const std::vector<Tensor>& in) {
    return record(
        "planted", {in[0]}, [=](std::span<const Tensor> v) { return forward(v[0]); },
        [=, x = Saved(in[0])](Context& ctx) { ctx.add(0, backward(ctx.gradient(), x.tensor())); });
  };
}

}  // namespace xgrad::testing
