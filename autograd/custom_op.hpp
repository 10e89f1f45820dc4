#pragma once
// Ops of your own.  This header includes everything that such an op needs.  <xgrad/xgrad.hpp> does
// not include it, because the SIMD code would add 1.5 s to the compilation of every source.
//
// An elementwise op is a formula for its value and one for the derivative of each operand:
//
//   #include <xgrad/autograd/custom_op.hpp>
//   using namespace xgrad;
//
//   // soft_relu(x) = log(1 + exp(x)), written so that exp does not overflow
//   Tensor soft_relu(const Tensor& x) {
//     return elementwise(
//         "soft_relu", x,
//         [](const auto& a) { return maximum(a, c(a, 0)) + log(c(a, 1) + exp(-abs(a))); },
//         partial<Uses::A>([](const auto& g, const auto& a) { return g * sigmoid(a); }));
//   }
//
// A formula is a generic lambda.  On SIMD registers it becomes one fast loop over broadcast arrays
// of either dtype; on Tensors the derivative becomes a graph that can be differentiated again.  It
// may use + - * /, the functions named in kernels/simd.hpp, where(condition, a, b) with comparisons
// joined by & and |, and c(x, number) for a constant of x's type.  partial<Uses::A, Uses::Y> says
// that the derivative is a formula of the gradient g, the operand a and the output y, in that
// order; only these are kept for the backward pass.  PassThrough{} is the derivative g itself.
//
// Any other op calls record() with its name, its inputs, a forward and a backward:
//
//   // (..., n) -> (..., n): every row divided by its length
//   Tensor unit_rows(const Tensor& x) {
//     const auto forward = [](std::span<const Tensor> in) {
//       return in[0] / vector_norm(in[0], 2, {-1}, true);
//     };
//     const auto backward = [x = Saved(x)](Context& ctx) {
//       const Tensor g = ctx.gradient(), y = ctx.output();
//       ctx.add(0, (g - y * sum(g * y, {-1}, true)) / vector_norm(x.tensor(), 2, {-1}, true));
//     };
//     return record("unit_rows", {x}, forward, backward, {.saves_output = true});
//   }
//
// The rules:
// - The forward makes a new Tensor from its inputs alone, and may be called again with others.
//   Random numbers are drawn before record() and captured.  It may be a raw loop over
//   in[0].data<T>(): []<class T>(std::span<const Tensor> in) receives the element type.
// - The backward captures Saved, never a Tensor, which could be updated before the gradient is
//   computed.  gradcheck() and debug builds reject a captured input.  It captures no Tensor with a
//   graph but the inputs: a captured output would make a cycle that is never freed (saves_output).
// - ctx.add(i, gradient) adds to the gradient of input i.  A backward made of ops serves both an
//   ordinary run, where nothing is recorded, and create_graph.  ctx.needs(i) says whether the
//   gradient of input i is needed: ask before costly work.  The gradient has the input's shape;
//   with
//   {.broadcasts = true} the engine sums it to that shape.
// - A backward that loops over numbers makes no graph.  ops_or_kernel(ctx, ops, kernel) takes both
//   forms; fused() (fused.hpp) derives the first from a composition of ops.
// - Check inputs first and throw a ShapeError or ValueError that names the op and the shapes.
//
// Then test it with gradcheck() and gradgradcheck() (gradcheck.hpp):
//
//   const auto f = [](const std::vector<Tensor>& in) { return unit_rows(in[0]); };
//   const Tensor x = randn({2, 5}, DType::float64).requires_grad_();
//   assert(gradcheck(f, {x}) && gradgradcheck(f, {x}));
//
// If a gradient is wrong, gradcheck(f, {x}).message says where and why: a missing factor, a wrong
// sign, a transposed Jacobian, ...

#include "check/gradcheck.hpp"
#include "engine.hpp"
#include "error.hpp"
#include "fused.hpp"
#include "ops.hpp"
#include "ops/elementwise.hpp"
#include "xtensor.hpp"
