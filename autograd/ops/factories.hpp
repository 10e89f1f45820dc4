#pragma once
// Factories: Tensors and Indices made of numbers, memory or random draws.  Part of the catalogue:
// include ops.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include "../tensor.hpp"

namespace xgrad {

class Generator;
Generator& default_generator();  // random.hpp

// ---- constants (tensor.cpp): float32 unless told otherwise ----

Tensor tensor(const Values& values,
              DType dtype = DType::float32);  ///< tensor({{1, 2}, {3, 4}}); ShapeError if ragged
namespace detail {
void count_nested(Shape& shape, std::size_t size, std::size_t depth);  // ShapeError if ragged
/// Appends the numbers of a vector, or of nested vectors, in order, and finds their shape.
/// ShapeError for an integer beyond int64.
template <class Number, class T>
void append_nested(const std::vector<T>& list, std::vector<Number>& numbers, Shape& shape,
                   std::size_t depth = 0) {
  count_nested(shape, list.size(), depth);
  for (const T& item : list)
    if constexpr (Integer<T> && Integer<Number>)
      numbers.push_back(Dim(item));
    else if constexpr (std::is_arithmetic_v<T>)
      numbers.push_back(static_cast<Number>(item));
    else
      append_nested(item, numbers, shape, depth + 1);
}
Tensor tensor_of(const std::vector<double>& numbers, const Shape& shape, DType dtype);
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_number<std::vector<T>> = is_number<T>;
template <class T>
concept NumberOrVectors = is_number<T>;
}  // namespace detail
/// The same from a std::vector of numbers, or nested vectors.
template <detail::NumberOrVectors T>
Tensor tensor(const std::vector<T>& values, DType dtype = DType::float32) {
  std::vector<double> numbers;
  Shape shape;
  detail::append_nested(values, numbers, shape);
  return detail::tensor_of(numbers, shape, dtype);
}
Tensor zeros(const Dims& sizes, DType dtype = DType::float32);
Tensor ones(const Dims& sizes, DType dtype = DType::float32);
Tensor full(const Dims& sizes, double value, DType dtype = DType::float32);
Indices full_indices(const Dims& sizes, Dim value);
Mask full_mask(const Dims& sizes, bool value);
Tensor eye(Dim n, DType dtype = DType::float32);
Tensor eye(Dim n, Dim m, DType dtype = DType::float32);
/// start, start + step, ... up to but not including end; ceil((end - start) / step) elements.
Tensor arange(double start, double end, double step = 1, DType dtype = DType::float32);
Tensor arange(double start, double end, DType dtype);
Tensor arange(double end, DType dtype = DType::float32);  ///< 0, 1, ...
Indices arange_indices(Dim start, Dim end);               ///< start ... end - 1
Indices arange_indices(Dim end);                          ///< 0 ... end - 1
/// `steps` evenly spaced numbers from start to end, both included.
Tensor linspace(double start, double end, Dim steps, DType dtype = DType::float32);
Tensor zeros_like(const Tensor& x);
inline Tensor empty(const Dims& sizes, DType dtype = DType::float32) { return zeros(sizes, dtype); }
inline Tensor empty_like(const Tensor& x) { return zeros_like(x); }
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, double value);
Tensor scalar(double value, DType dtype = DType::float32);  ///< a 0-d Tensor
/// A Tensor that takes over this memory without a copy and may write to it in place; its owner is
/// released with the last view (torch.from_blob).  Elements are row-major.  While another handle on
/// the memory exists, elements are copied before they are written.
Tensor from_blob(std::shared_ptr<float> data, const Dims& sizes);
Tensor from_blob(std::shared_ptr<double> data, const Dims& sizes);

// ---- random (ops/random.cpp) ----

/// Random Tensors, in PyTorch's order of draws; from default_generator() unless one is given
/// (random.hpp).
Tensor rand(const Dims& sizes, DType dtype = DType::float32);
Tensor rand(const Dims& sizes, Generator& generator, DType dtype = DType::float32);
Tensor randn(const Dims& sizes, DType dtype = DType::float32);
Tensor randn(const Dims& sizes, Generator& generator, DType dtype = DType::float32);
Tensor rand_like(const Tensor& x);
Tensor randn_like(const Tensor& x);
struct RandintOptions {
  std::int64_t low = 0, high = 0;
  Dims size = {};
};
/// Integers from low to high - 1; low is optional: randint({.high = 10, .size = {2, 3}}).
Indices randint(const RandintOptions& options, Generator& generator = default_generator());
Indices randint(Dim low, Dim high, const Dims& sizes, Generator& generator = default_generator());
Indices randint(Dim high, const Dims& sizes, Generator& generator = default_generator());
Indices randperm(Dim n, Generator& generator = default_generator());
/// For each element p, 1 with probability p, else 0 (torch.bernoulli): p is compared with a uniform
/// of its own type.  ValueError unless all are in [0, 1].
Tensor bernoulli(const Tensor& p, Generator& generator = default_generator());
/// Indices drawn with these weights, which need not sum to 1 (torch.multinomial): (V,) -> (n,) or
/// (B, V) -> (B, n), n above 0.  Without replacement an index occurs at most once.  ValueError if a
/// weight is negative or not finite, or a row has fewer than n (with replacement: 1) positive ones.
Indices multinomial(const Tensor& weights, Dim n, bool replacement = false,
                    Generator& generator = default_generator());

template <class T>
template <class V>
  requires IntegersOrVectors<V, T>
DiscreteTensor<T>::DiscreteTensor(const std::vector<V>& values) {
  std::vector<std::int64_t> numbers;
  Shape shape;
  detail::append_nested(values, numbers, shape);
  auto a = empty_array<T>(shape);
  std::transform(numbers.begin(), numbers.end(), a.begin(),
                 [](std::int64_t v) { return static_cast<T>(v); });
  array_ = std::make_shared<const Array<T>>(std::move(a));
}

}  // namespace xgrad
