#include <fmt/format.h>

#include <memory>
#include <vector>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

int main() {
  // In: a container that is moved in is not copied; all else is, once.
  xt::xarray<float> matrix = {{1, 2, 3}, {4, 5, 6}};
  const Tensor half = 0.5F * matrix;             // any expression
  Tensor w = std::move(matrix);                  // a container that is moved in
  const Tensor x(std::vector<float>{1, 0, -1});  // a vector, too
  const std::shared_ptr<float> memory(new float[2]{10, 20}, std::default_delete<float[]>());
  const Tensor b = from_blob(memory, {2});       // memory, with its owner
  const Indices ids = xt::xarray<int>{1, 0};     // integers
  const Mask large = half.array<float>() > 1.F;  // truth values

  const Tensor y = linear(x, w.requires_grad_(), b);
  y.sum().backward();
  fmt::print("{}\n{}\n{}\n{}\n", y, w.grad(), ids, large);

  // Out: a read-only xtensor expression on the same memory.
  const auto values = w.array<float>();
  const xt::xarray<float> column = xt::view(values, xt::all(), 1);
  fmt::print("{} {} {}\n", values(1, 0), xt::mean(values)(), column(1));

  // A new value.  Arrays taken out before keep the old one.
  w.update([](auto& array) { xt::view(array, 0) *= 10; });
  fmt::print("{} {}\n", w, values(0, 2));
}
