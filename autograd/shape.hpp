#pragma once
// Shapes, dtypes, and lists of sizes and dimensions as users write them.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace xgrad {

/// A number of elements or of dimensions, signed as in PyTorch: -x.size(0) is a negative number.
using Size = std::int64_t;

template <class I>
concept Integer = std::is_integral_v<I> && !std::is_same_v<I, bool>;

template <class I>
concept IntegerOrEnumerator =
    Integer<I> || (std::is_enum_v<I> && std::is_convertible_v<I, std::int64_t>);

/// One size, dimension or position as users write it: any integer type, negative where that has a
/// meaning, and nothing that has a fraction.  ShapeError beyond int64.
struct Dim {
  std::int64_t value;
  template <IntegerOrEnumerator I>
  constexpr Dim(I v) : value(static_cast<std::int64_t>(v)) {
    if (value < 0 && v > I{}) [[unlikely]]
      too_large(static_cast<std::uint64_t>(v));
  }
  constexpr operator std::int64_t() const { return value; }

 private:
  [[noreturn]] static void too_large(std::uint64_t v);
};

/// How fmt prints one.
constexpr std::int64_t format_as(Dim dim) { return dim.value; }

/// The same, or none.  (A std::optional of an integer would take a fraction and truncate it.)
class OptionalDim : public std::optional<std::int64_t> {
 public:
  constexpr OptionalDim(std::nullopt_t = std::nullopt) {}
  template <Integer I>
  constexpr OptionalDim(I v) : std::optional<std::int64_t>(Dim(v).value) {}
  constexpr OptionalDim(Dim v) : std::optional<std::int64_t>(v.value) {}
  constexpr OptionalDim(const std::optional<std::int64_t>& v) : std::optional<std::int64_t>(v) {}
};

/// ShapeError if it is negative or beyond the machine's addresses.
std::size_t to_size(Dim size);

/// The sizes of an array's dimensions; empty for a 0-d array, which holds one element.  Up to six
/// are stored inside, because shapes are made and copied with every op.
class Shape {
 public:
  using value_type = std::size_t;
  using size_type = std::size_t;
  using iterator = std::size_t*;
  using const_iterator = const std::size_t*;

  Shape() = default;
  /// rank sizes that are `size`.  (No constructor takes the rank alone: Clang 14 to 16 would call
  /// it for Shape{n} in a generic lambda.)
  Shape(std::size_t rank, std::size_t size) {
    resize(rank);
    std::fill(begin(), end(), size);
  }
  /// ShapeError if one is negative.
  Shape(std::initializer_list<Dim> sizes) {
    resize(sizes.size());
    std::transform(sizes.begin(), sizes.end(), begin(), to_size);
  }
  template <std::forward_iterator I>
  Shape(I first, I last) {
    resize(static_cast<std::size_t>(std::distance(first, last)));
    std::copy(first, last, begin());
  }
  Shape(const Shape& other) : rank_(other.rank_), few_(other.few_) {
    if (other.many_ != nullptr) [[unlikely]]
      *this = Shape(other.begin(), other.end());
  }
  Shape(Shape&& other) noexcept
      : rank_(std::exchange(other.rank_, 0)), few_(other.few_), many_(std::move(other.many_)) {}
  Shape& operator=(Shape other) noexcept {
    rank_ = other.rank_;
    few_ = other.few_;
    many_ = std::move(other.many_);
    return *this;
  }

  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  iterator begin() { return many_ != nullptr ? many_.get() : few_.data(); }
  iterator end() { return begin() + rank_; }
  const_iterator begin() const { return many_ != nullptr ? many_.get() : few_.data(); }
  const_iterator end() const { return begin() + rank_; }
  /// The size of dimension d; -1 is the last.  ValueError if there is no such dimension.
  template <std::integral I>
  std::size_t& operator[](I d) {
    return begin()[checked(d)];
  }
  template <std::integral I>
  Size operator[](I d) const {
    return static_cast<Size>(begin()[checked(d)]);
  }
  std::size_t& front() { return (*this)[0]; }
  Size front() const { return (*this)[0]; }
  std::size_t& back() { return (*this)[-1]; }
  Size back() const { return (*this)[-1]; }

  /// New sizes are 0.
  void resize(std::size_t rank) {
    if (rank > few_.size() && rank > rank_) {
      auto more = std::make_unique<std::size_t[]>(rank);
      std::copy(begin(), end(), more.get());
      many_ = std::move(more);
    } else if (rank > rank_) {
      std::fill(begin() + rank_, begin() + rank, std::size_t{0});
    }
    rank_ = rank;
  }
  void push_back(std::size_t size) {
    resize(rank_ + 1);
    back() = size;
  }
  iterator insert(const_iterator at, std::size_t size);
  iterator erase(const_iterator at);
  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  template <std::integral I>
  std::size_t checked(I d) const {
    const std::size_t from_front = static_cast<std::size_t>(d) + (std::cmp_less(d, 0) ? rank_ : 0);
    if (from_front >= rank_) [[unlikely]]
      out_of_range(static_cast<std::int64_t>(d));
    return from_front;
  }
  [[noreturn]] void out_of_range(std::int64_t d) const;

  std::size_t rank_ = 0;
  std::array<std::size_t, 6> few_{};
  std::unique_ptr<std::size_t[]> many_;
};

/// The type of a Tensor's elements.  A property of the value, not of the C++ type, as in PyTorch.
enum class DType : std::uint8_t { float32, float64 };

template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, float> ? DType::float32 : DType::float64;

/// Calls `f.operator()<float>()` or `f.operator()<double>()`, by dtype.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::float32 ? f.template operator()<float>() : f.template operator()<double>();
}

/// The product of the sizes; 1 for a 0-d shape.  ShapeError if it exceeds 2^60, zeros apart, or
/// 2^28 where addresses have 32 bits.
Size numel(const Shape& shape);

/// "(2, 5, 7)", "(3,)", "()".
std::string to_string(const Shape& shape);

/// "float32", "float64".
const char* to_string(DType dtype);

/// The shape of a op b by NumPy's rules: aligned at the last dimension, sizes equal or 1.  Throws
/// ShapeError naming op.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

/// A list of sizes or dimensions: {2, -1}, a Shape, a vector of integers, or a single integer.
class Dims : public std::vector<std::int64_t> {
 public:
  Dims() = default;
  Dims(std::initializer_list<Dim> list);
  Dims(const Shape& shape);
  template <Integer I>
  Dims(const std::vector<I>& list) {
    reserve(list.size());
    for (const I one : list)
      push_back(Dim(one));
  }
  template <Integer I>
  Dims(I one) : Dims(Dim(one)) {}
  Dims(Dim one) : std::vector<std::int64_t>{one.value} {}
};

/// A list of sizes as a shape.  Throws ShapeError naming op if one is negative or their product
/// overflows.
Shape to_shape(const Dims& sizes, const char* op);

/// A dimension counted from the front: -1 is the last of rank.  Throws ValueError naming op if it
/// is out of range.
std::size_t normalize_dim(std::int64_t dim, std::size_t rank, const char* op);

/// The indices of the flat-th element of a shape, in row-major order.
std::vector<std::size_t> position(const Shape& shape, std::size_t flat);

/// The row-major strides of a shape, in elements.
std::vector<std::size_t> row_major_strides(const Shape& shape);

}  // namespace xgrad
