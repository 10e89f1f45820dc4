#include "autograd/ops/op_table.hpp"

#include <xgrad/autograd/random.hpp>

namespace xgrad::testing {

Tensor sample_randn(const Dims& sizes, std::uint64_t seed) {
  Generator generator(seed);
  return sample_from(to_shape(sizes, "sample_randn"),
                     [&](std::size_t) { return generator.normal(); });
}

Tensor sample_uniform(const Dims& sizes, double low, double high, std::uint64_t seed) {
  Generator generator(seed);
  return sample_from(to_shape(sizes, "sample_uniform"),
                     [&](std::size_t) { return low + (high - low) * generator.uniform_double(); });
}

Tensor sample_from(const Shape& shape, const std::function<double(std::size_t)>& f) {
  auto a = empty_array<double>(shape);
  for (std::size_t i = 0; i < a.size(); ++i)
    a.data()[i] = f(i);
  return Tensor(std::move(a));
}

}  // namespace xgrad::testing
