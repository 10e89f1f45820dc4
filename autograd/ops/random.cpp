// Random Tensors and Indices, in PyTorch's order of draws.

#include "../random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>
#include "../fail.hpp"
#include "elementwise.hpp"

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

Indices randint(Dim low, Dim high, const Dims& sizes, Generator& generator) {
  return randint({low, high, sizes}, generator);
}
Indices randint(Dim high, const Dims& sizes, Generator& generator) {
  return randint(0, high, sizes, generator);
}

Indices randint(const RandintOptions& options, Generator& generator) {
  const auto& [low, high, sizes] = options;
  check<ValueError>(low < high, "randint: low {} is not below high {}", low, high);
  auto a = empty_array<std::int64_t>(to_shape(sizes, "randint"));
  // Unsigned: the distance may overflow a signed number, and wraps back when low is added.
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  for (std::int64_t& i : a)
    i = static_cast<std::int64_t>(generator.random_below(range) + static_cast<std::uint64_t>(low));
  return a;
}

// Each place in turn swaps with itself or a later one; the last has no choice and draws nothing.
Indices randperm(Dim n, Generator& generator) {
  auto a = empty_array<std::int64_t>(to_shape(n, "randperm"));
  std::iota(a.begin(), a.end(), std::int64_t{0});
  for (std::size_t i = 0; i + 1 < a.size(); ++i)
    std::swap(a.data()[i], a.data()[i + generator.random() % (a.size() - i)]);
  return a;
}

Tensor bernoulli(const Tensor& p, Generator& generator) {
  return detail::compute("bernoulli", std::array{p}, [&]<class T>() {
    const T* const data = p.data<T>();
    for (Size i = 0; i < p.numel(); ++i)
      check<ValueError>(data[i] >= 0 && data[i] <= 1,
                        "bernoulli: p {} at place {} is not between 0 and 1", data[i], i);
    auto a = empty_array<T>(p.shape());
    fill_uniform(std::span<T>(a.data(), a.size()), generator);
    std::transform(a.begin(), a.end(), data, a.begin(), [](T u, T limit) { return T(u < limit); });
    return Tensor(std::move(a));
  });
}

template <class T>
static void check_weights(std::span<const T> row, std::size_t r, std::size_t needed) {
  std::size_t positive = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    check<ValueError>(row[i] >= 0 && std::isfinite(row[i]),
                      "multinomial: weight {} at {} of row {} is negative or not finite", row[i], i,
                      r);
    positive += row[i] > 0;
  }
  check<ValueError>(positive >= needed,
                    "multinomial: {} of the {} weights of row {} are positive; at least {} must be",
                    positive, row.size(), r, needed);
}

// The n largest of weight / exponential, in falling order.
template <class T>
static void draw_different(std::span<const T> weights, std::span<std::int64_t> out,
                           Generator& generator) {
  std::vector<T> ratio(weights.size());
  fill_exponential(std::span(ratio), 1, generator);
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ratio[i] = weights[i] / ratio[i];
    if (weights[i] > 0)
      order.push_back(static_cast<std::int64_t>(i));
  }
  std::ranges::partial_sort_copy(order, out, [&](std::int64_t i, std::int64_t j) {
    const T a = ratio[static_cast<std::size_t>(i)], b = ratio[static_cast<std::size_t>(j)];
    return a > b || (a == b && i < j);
  });
}

// The positions of uniforms among the partial sums, the last of which is 1.
template <class T>
static void draw_again(std::span<const T> weights, std::span<std::int64_t> out,
                       Generator& generator) {
  std::vector<T> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  const T total = sums.back();
  for (T& sum : sums)
    sum /= total;
  sums.back() = 1;
  for (std::int64_t& index : out)
    index = std::ranges::lower_bound(sums, generator.uniform_double()) - sums.begin();
}

Indices multinomial(const Tensor& weights, Dim size, bool replacement, Generator& generator) {
  if (weights.dim() != 1 && weights.dim() != 2)
    fail<ShapeError>("multinomial: weights are {}; they must be (V,) or (B, V)",
                     to_string(weights.shape()));
  check<ValueError>(size > 0, "multinomial: n is {}; it must be at least 1", size);
  const std::size_t n = to_size(size);
  Shape shape = weights.shape();
  const std::size_t V = shape.back(), rows = weights.dim() == 2 ? shape[0] : 1;
  shape.back() = n;
  auto drawn = empty_array<std::int64_t>(shape);
  detail::compute("multinomial", std::array{weights}, [&]<class T>() {
    const auto row = [&](std::size_t r) { return std::span(weights.data<T>() + r * V, V); };
    for (std::size_t r = 0; r < rows; ++r)
      check_weights(row(r), r, replacement ? 1 : n);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span out(drawn.data() + r * n, n);
      n > 1 && replacement ? draw_again(row(r), out, generator)
                           : draw_different(row(r), out, generator);
    }
  });
  return drawn;
}

}  // namespace xgrad
