// Stage 4: broadcasting and its gradient.

#include <fmt/format.h>

#include <xgrad/xgrad.hpp>

using namespace xgrad;

int main() {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}).requires_grad_();  // (2, 3)
  const Tensor bias = tensor({10, 20, 30}).requires_grad_();         // (3,)

  // The bias is used for each row.
  const Tensor y = x + bias;
  fmt::print("{}\n\n", y.detach());

  // How much the loss changes with each element of y; x was used once, bias twice.
  const Tensor g = tensor({{1, 2, 3}, {10, 20, 30}});
  y.backward(g);
  fmt::print("x:\n{}\nbias:\n{}\n\n", x.grad(), bias.grad());

  // An element that was used n times gets the sum of n gradients: sum over the dimensions that were
  // repeated.
  fmt::print("bias.grad() is the sum over the rows: {}\n\n", allclose(bias.grad(), sum(g, {0})));

  // Both may be repeated: a column and a row.
  const Tensor column = tensor({{1}, {2}}).requires_grad_();  // (2, 1)
  const Tensor row = tensor({{1, 2, 3}}).requires_grad_();    // (1, 3)
  (column * row).backward(g);
  fmt::print("column:\n{}\nrow:\n{}\n", column.grad(), row.grad());
}
