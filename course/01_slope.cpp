// Stage 1: a number and its slope.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

double f(double x) { return x * x * x - 2 * x; }

}  // namespace

int main() {
  const double x = 2;

  // Move x a little, and see how much f moves, per unit.
  for (const double step : {1.0, 0.1, 0.01, 0.001})
    fmt::print("step {:<5}  (f(x + step) - f(x)) / step = {:.4f}\n", step,
               (f(x + step) - f(x)) / step);
  fmt::print("\n");

  // To both sides, the errors of the two halves cancel.
  for (const double eps : {0.1, 0.001, 1e-6, 1e-9, 1e-12}) {
    const double slope = (f(x + eps) - f(x - eps)) / (2 * eps);
    fmt::print("eps {:<5}  slope {:.6f}, off by {:.0e}\n", eps, slope, std::abs(slope - 10));
  }
  fmt::print("\n");

  // The engine computes it by rules, without any step.
  const Tensor a = scalar(2, DType::float64).requires_grad_();
  const Tensor y = a * a * a - 2 * a;
  y.backward();
  fmt::print("f(2) = {}, slope {}\n", y.item(), a.grad().item());
}
