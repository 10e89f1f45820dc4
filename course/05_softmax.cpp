// Stage 5: softmax and its Jacobian.

#include <fmt/format.h>

#include <xgrad/xgrad.hpp>

using namespace xgrad;

int main() {
  const Tensor x = tensor({1, 2, 3}, DType::float64);
  const Tensor y = softmax(x, 0);
  fmt::print("y = {}, their sum {:.4f}\n\n", y, sum(y).item());

  // All y_i depend on all x_j: a matrix of slopes, J_ij = d y_i / d x_j.
  const Tensor J = jacobian([](const Tensor& in) { return softmax(in, 0); }, x);
  fmt::print("{}\n\n", J);

  // The formula: y_i (1 if i = j, else 0) - y_i y_j.
  const Tensor formula = eye(3).to(DType::float64) * y - outer(y, y);
  fmt::print("formula: {}\nits rows' sums are zero: {}\n\n", allclose(J, formula),
             allclose(sum(J, {1}), zeros({3}, DType::float64)));

  // Backward needs gᵀ J, and no matrix for that: y (g - the sum of y g).
  const Tensor g = tensor({1, 0, 0}, DType::float64);
  fmt::print("with the matrix:    {}\nwithout the matrix: {}\n", matmul(g, J),
             y * (g - sum(y * g, {0}, true)));
}
