// Stage 4: the gradient of a sum that broadcasts.
//
//   y_btc = x_btc + bias_c: one bias for all positions of all sequences.

#include "exercise.hpp"

using namespace exercise;

// x (B, T, C), bias (C,) -> (B, T, C)
Tensor my_add(const Tensor& x, const Tensor& bias) {
  const auto forward = [](std::span<const Tensor> in) { return in[0] + in[1]; };
  const auto backward = [](Context& ctx) {
    const Tensor g = ctx.gradient();  // (B, T, C): how the loss changes with each element of y
    ctx.add(0, todo());               // that of x
    ctx.add(1, todo());               // that of bias
  };
  return record("my_add", {x, bias}, forward, backward);
}
