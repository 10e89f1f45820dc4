// Stage 12: second derivatives.

#include <fmt/format.h>

#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

// (a - 1)² + 10 (b - a²)²: a bent valley with its lowest point at (1, 1)
Tensor valley(const Tensor& x) {
  const Tensor a = x[0], b = x[1];
  return (a - 1) * (a - 1) + 10 * (b - a * a) * (b - a * a);
}

}  // namespace

int main() {
  // With create_graph the gradient has a graph itself, so it can be differentiated again.
  const Tensor x = scalar(3, DType::float64).requires_grad_();
  Tensor y = x * x * x;
  for (const char* name : {"first", "second", "third"}) {
    y = grad({y}, {x}, {.create_graph = true})[0];
    fmt::print("{:<6} derivative of x³ at 3: {}\n", name, y.item());
  }
  fmt::print("\n");

  // All second derivatives of a function of two numbers.
  Tensor p = tensor({-1, 2}, DType::float64);
  fmt::print("{}\n\n", hessian(valley, p));

  // H v alone costs two backward runs, however many numbers there are.
  const Tensor v = tensor({1, 0}, DType::float64);
  fmt::print("H v = {}\n\n", hvp(valley, p, v).second);

  // Newton's method: a step goes to where the gradient would be 0 if the curvature did not change.
  for (int step = 0; step < 6; ++step) {
    const Tensor leaf = p.detach().requires_grad_();
    const Tensor g = grad({valley(leaf)}, {leaf})[0], H = hessian(valley, p);
    const double a = H[0][0].item(), b = H[0][1].item(), d = H[1][1].item();
    const Tensor inverse = tensor({{d, -b}, {-b, a}}, DType::float64) / (a * d - b * b);
    p = p - matmul(inverse, g);
    fmt::print("step {}: ({:.4f}, {:.4f}), height {:.4f}\n", step + 1, p[0].item(), p[1].item(),
               valley(p).item());
  }
}
