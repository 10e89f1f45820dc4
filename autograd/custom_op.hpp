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
// A formula is a generic lambda that is read twice: on SIMD registers, where it becomes one fast
// loop over broadcast arrays of either dtype, and on Tensors, where the derivative becomes a graph
// and so can be differentiated again.  It may use what both have: + - * /, the functions named in
// kernels/simd.hpp, where(condition, a, b) with comparisons joined by & and |, and c(x, number) for
// a constant of x's type.  partial<Uses::A, Uses::Y> says that the derivative is a formula of the
// gradient g, the operand a and the output y, in that order; only what is named is kept for the
// backward pass.  PassThrough{} stands for a derivative that is g itself.
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
// - The forward is a function of its inputs alone and makes a new Tensor; it may be run again on
//   others.  Random numbers are drawn before record() and captured.  It may be raw loops over
//   in[0].data<T>(): []<class T>(std::span<const Tensor> in) is given the element type.
// - The backward captures Saved, never a Tensor: a Tensor can be updated before the gradient is
//   wanted.  gradcheck() and debug builds refuse one that is an input.  The only
//   Tensors with a graph that it captures are the op's inputs.  Where it needs the op's output it
//   asks for it with saves_output, because capturing it would make a cycle that is never freed.
// - ctx.add(i, gradient) adds to the gradient of input i.  Written with the ops of ops.hpp, as
//   here, a backward serves both an ordinary run, where it records nothing, and create_graph.
//   ctx.needs(i) says whether input i wants a gradient: ask before costly work.  The gradient has
//   the input's shape, unless the op declares {.broadcasts = true}: then it is summed to it.
// - A backward that loops over numbers gives no graph.  ops_or_kernel(ctx, ops, kernel) takes both
//   forms; fused() (graph.hpp) derives the first from a composition of ops.
// - Check inputs first and throw a ShapeError or ValueError that names the op and the shapes.
//
// Then let gradcheck() and gradgradcheck() (gradcheck.hpp) judge it:
//
//   const auto f = [](const std::vector<Tensor>& in) { return unit_rows(in[0]); };
//   const Tensor x = randn({2, 5}, DType::float64).requires_grad_();
//   assert(gradcheck(f, {x}) && gradgradcheck(f, {x}));
//
// Where they do not agree, gradcheck(f, {x}).message says where and why: a missing factor, a wrong
// sign, a transposed Jacobian, ...

#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/xtensor.hpp>
