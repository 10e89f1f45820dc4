#pragma once
// Small Tensors that tests make, and the numbers in them.

#include <limits>
#include <vector>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A float64 leaf that requires a gradient.
inline xgrad::Tensor leaf(const xgrad::Values& values) {
  return xgrad::tensor(values, xgrad::DType::float64).requires_grad_();
}

/// Standard normal values, the same in every run.
inline xgrad::Tensor normal(const xgrad::Dims& sizes, std::uint64_t seed,
                            xgrad::DType dtype = xgrad::DType::float64) {
  xgrad::Generator generator(seed);
  return xgrad::randn(sizes, generator, dtype);
}

/// The elements of a Tensor of either dtype.
inline std::vector<double> numbers(const xgrad::Tensor& x) { return xgrad::detail::elements(x); }
inline std::vector<std::int64_t> numbers(const xgrad::Indices& x) {
  return {x.data(), x.data() + x.numel()};
}

/// Changes element i.
inline void set_element(xgrad::Tensor x, std::size_t i, double value) {
  std::vector<double> values = numbers(x);
  values.at(i) = value;
  x.copy_(xgrad::reshape(xgrad::Tensor(std::move(values)), x.shape()));
}

/// Their sum, in float64.
inline double total(const xgrad::Tensor& x) {
  return x.detach().to(xgrad::DType::float64).sum().item();
}

/// The same dtype, shape and bits, or both undefined.
inline bool same_bits(const xgrad::Tensor& a, const xgrad::Tensor& b) {
  return a.defined() && b.defined() ? xgrad::detail::same_bits(a, b) : a.defined() == b.defined();
}
