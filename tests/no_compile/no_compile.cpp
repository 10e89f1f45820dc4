// Mistakes that must not compile, one for each CASE; CASE 0 must.
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

Tensor mistake(const Tensor& x, Tensor w) {
#if CASE == 3  // dangling elements
  const float* const data = (x * w).data<float>();
  return full({1}, *data);
#elif CASE == 4
  const std::int64_t* const data = argmax(x * w).data();
  return full({1}, static_cast<double>(*data));
#elif CASE == 5  // integers are Indices
  return xt::xarray<int>{1, 2};
#elif CASE == 6  // a value is read-only
  x.array<float>()(0) = 1;
  return w;
#elif CASE == 7  // assigns to t[0]'s handle, not to t
  Tensor t = x * w;
  t[0] = zeros({3});
  return t;
#elif CASE == 8
  x.select(0, 0) = w;
  return x;
#elif CASE == 9
  const Tensor zero = zeros({});
  index(x, {0, 0}) = zero;
  return x;
#elif CASE == 10
  w.grad() = x;
  return w;
#elif CASE == 17  // integers have no fractions
  return where(argmax(x * w, 0) == 0.5, 1, 0);
#elif CASE == 11
  return x * w += x;
#elif CASE == 18  // xtensor would take wrong elements
  const auto a = x.array<float>();
  return Tensor(a / xt::sqrt(xt::sum(a, {1}, xt::keep_dims)));
#elif CASE == 12  // sizes and dimensions are integers
  return nn::Linear(2.5, 3)(x * w);
#elif CASE == 13
  return softmax(x * w, 1.7);
#elif CASE == 14
  return nn::SwiGLU(w.size(0), 8.0 / 3 * static_cast<double>(w.size(0)))(x);
#else
  Tensor y = -x;
  y = std::move(w);
  return record(
      "mine", {x}, [](std::span<const Tensor> in) { return in[0] * 2.0; },
      [y = Saved(y)](Context& ctx) { ctx.add(0, ctx.gradient() * y.tensor()); });
#endif
}
