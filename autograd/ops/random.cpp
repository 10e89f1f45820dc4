// Random Tensors and Indices, in PyTorch's order of draws.

#include <xgrad/autograd/random.hpp>

#include <numeric>
#include <utility>
#include <xgrad/autograd/check.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {
namespace {

template <class Fill>
Tensor drawn(const Shape& shape, DType dtype, const Fill& fill) {
  return dispatch(dtype, [&]<class T>() {
    auto a = empty_array<T>(shape);
    fill(std::span<T>(a.data(), a.size()));
    return Tensor(std::move(a));
  });
}

Tensor uniform(const Shape& shape, Generator& generator, DType dtype) {
  return drawn(shape, dtype, [&](auto out) { fill_uniform(out, generator); });
}

Tensor normal(const Shape& shape, Generator& generator, DType dtype) {
  return drawn(shape, dtype, [&](auto out) { fill_normal(out, generator); });
}

}  // namespace

Tensor rand(const Dims& sizes, DType dtype) { return rand(sizes, default_generator(), dtype); }
Tensor rand(const Dims& sizes, Generator& generator, DType dtype) {
  return uniform(to_shape(sizes, "rand"), generator, dtype);
}
Tensor randn(const Dims& sizes, DType dtype) { return randn(sizes, default_generator(), dtype); }
Tensor randn(const Dims& sizes, Generator& generator, DType dtype) {
  return normal(to_shape(sizes, "randn"), generator, dtype);
}
Tensor rand_like(const Tensor& x) { return uniform(x.shape(), default_generator(), x.dtype()); }
Tensor randn_like(const Tensor& x) { return normal(x.shape(), default_generator(), x.dtype()); }

Indices randint(std::int64_t low, std::int64_t high, const Dims& sizes) {
  return randint(low, high, sizes, default_generator());
}

Indices randint(std::int64_t low, std::int64_t high, const Dims& sizes, Generator& generator) {
  check<ValueError>(low < high, "randint: low {} is not below high {}", low, high);
  auto a = empty_array<std::int64_t>(to_shape(sizes, "randint"));
  // Unsigned: the distance may not fit a signed number, and wraps back when low is added.
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const bool wide = range >= std::uint64_t{1} << 32;
  for (std::int64_t& i : a)
    i = static_cast<std::int64_t>((wide ? generator.random64() : generator.random()) % range +
                                  static_cast<std::uint64_t>(low));
  return a;
}

Indices randperm(std::size_t n) { return randperm(n, default_generator()); }

// Each place in turn swaps with itself or one after it; the last has no choice and draws nothing.
Indices randperm(std::size_t n, Generator& generator) {
  auto a = empty_array<std::int64_t>(Shape{n});
  std::iota(a.begin(), a.end(), std::int64_t{0});
  for (std::size_t i = 0; i + 1 < n; ++i)
    std::swap(a.data()[i], a.data()[i + generator.random() % (n - i)]);
  return a;
}

}  // namespace xgrad
