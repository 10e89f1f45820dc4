#include <fmt/core.h>

#include <memory>
#include <vector>
#include <xgrad/xgrad.hpp>
#if __has_include(<xtensor/xview.hpp>)
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>
#else  // xtensor 0.26
#include <xtensor/core/xmath.hpp>
#include <xtensor/views/xview.hpp>
#endif

using namespace xgrad;

int main() {
  // In: no copy of what is given away, else one copy.
  xt::xarray<float> weights = {{1, 2, 3}, {4, 5, 6}};
  const Tensor half = 0.5F * weights + 1.0F;     // any expression
  Tensor w = std::move(weights);                 // a container that is given away
  const Tensor x(std::vector<float>{1, 0, -1});  // so is a vector
  const std::shared_ptr<float> memory(new float[2]{10, 20}, std::default_delete<float[]>());
  const Tensor b = from_blob(memory, {2});                     // and whatever owns memory
  const Indices ids = xt::xarray<int>{1, 0, 1};                // integers
  const Mask large = xt::view(half.array<float>(), 0) > 1.5F;  // truth values

  w.requires_grad_();
  sum(linear(x, w, b)).backward();
  fmt::print("{}\n{}\n{}\n{}\n", w.grad(), half, ids, large);

  // Out: an xtensor expression on the same memory.
  const auto values = w.array<float>();
  const xt::xarray<float> last = xt::view(values, xt::all(), -1);  // a copy, for it is an array
  fmt::print("{} {} {}\n", values(1, 0), xt::mean(values)(), last(0));

  // A new value.  What came out before keeps the old one.
  w.update([](auto& array) { xt::view(array, 0) *= 10; });
  fmt::print("{} {}\n", w, values(0, 2));
}
