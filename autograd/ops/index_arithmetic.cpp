// Indices computed from Indices, Masks and Tensors, element by element.

#include <algorithm>
#include <array>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/broadcast.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/index_common.hpp>

namespace xgrad {

// ---- arithmetic ----

IndexOperand::IndexOperand(Dim i, int)
    : value([&i] {
        auto one = empty_array<std::int64_t>(Shape{});
        *one.data() = i.value;
        return one;
      }()) {}

namespace {

std::int64_t signed_of(std::uint64_t v) { return static_cast<std::int64_t>(v); }
std::uint64_t unsigned_of(std::int64_t v) { return static_cast<std::uint64_t>(v); }

template <class F>
Indices elementwise_indices(const char* op, const IndexOperand& a, const IndexOperand& b,
                            const F& f) {
  return detail::broadcast(op, a.value.shape(), a.value.data(), b.value.shape(), b.value.data(), f);
}

template <class F>
Indices divide(const char* op, const IndexOperand& a, const IndexOperand& b, const F& f) {
  const Indices& by = b.value;
  const auto zero = std::find(by.data(), by.data() + by.numel(), 0) - by.data();
  if (zero < by.numel() && a.value.numel() > 0) {
    const auto at = position(by.shape(), static_cast<std::size_t>(zero));
    fail<ValueError>("{}: the divisor is 0 at {} of {}", op, to_string(Shape(at.begin(), at.end())),
                     to_string(by.shape()));
  }
  return elementwise_indices(op, a, b, f);
}

// b may be -1, by which the least int64 cannot be divided.
std::int64_t remainder_of(std::int64_t a, std::int64_t b) {
  const std::int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
std::int64_t quotient_of(std::int64_t a, std::int64_t b) {
  if (b == -1)
    return signed_of(0 - unsigned_of(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

Indices operator+(const IndexOperand& a, const IndexOperand& b) {
  return elementwise_indices("operator+", a, b, [](std::int64_t x, std::int64_t y) {
    return signed_of(unsigned_of(x) + unsigned_of(y));
  });
}
Indices operator-(const IndexOperand& a, const IndexOperand& b) {
  return elementwise_indices("operator-", a, b, [](std::int64_t x, std::int64_t y) {
    return signed_of(unsigned_of(x) - unsigned_of(y));
  });
}
Indices operator*(const IndexOperand& a, const IndexOperand& b) {
  return elementwise_indices("operator*", a, b, [](std::int64_t x, std::int64_t y) {
    return signed_of(unsigned_of(x) * unsigned_of(y));
  });
}
Indices operator/(const IndexOperand& a, const IndexOperand& b) {
  return divide("operator/", a, b, quotient_of);
}
Indices operator%(const IndexOperand& a, const IndexOperand& b) {
  return divide("operator%", a, b, remainder_of);
}
Indices operator-(const Indices& a) { return 0 - a; }

// ---- choosing ----

Tensor where(const Mask& condition, double a, double b, DType dtype) {
  return where(condition, scalar(a, dtype), scalar(b, dtype));
}
// a - b and the sum wrap around, so they are exact together
Indices where(const Mask& condition, const IndexOperand& a, const IndexOperand& b) {
  const Shape both = broadcast_shapes(a.value.shape(), b.value.shape(), "where");
  broadcast_shapes(condition.shape(), both, "where");
  return b + to_indices(condition) * (a - b);
}

Indices one_hot(const Indices& x, std::int64_t num_classes) {
  if (num_classes == -1) {
    check<ValueError>(x.numel() > 0, "one_hot: x {} has no elements to tell the number of classes",
                      to_string(x.shape()));
    num_classes = std::clamp<std::int64_t>(max(x).item(), 0, std::int64_t{1} << 60) + 1;
  }
  check<ValueError>(num_classes > 0, "one_hot: num_classes is {}", num_classes);
  detail::check_range("one_hot", x, static_cast<std::size_t>(num_classes));
  return to_indices(unsqueeze(x, -1) == arange_indices(0, num_classes));
}

// ---- from a Tensor ----

Indices to_indices(const Tensor& x) {
  detail::check_operands("to_indices", std::array{x});
  auto y = empty_array<std::int64_t>(x.shape());
  detail::compute("to_indices", std::array{x}, [&]<class T>() {
    const T* const from = x.data<T>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const T v = from[i];
      if (!(v >= T(-0x1p63) && v < T(0x1p63) && v == std::trunc(v))) {
        const auto at = position(x.shape(), i);
        fail<ValueError>("to_indices: {} at {} of x {} is not an integer that an int64 holds", v,
                         to_string(Shape(at.begin(), at.end())), to_string(x.shape()));
      }
      y.data()[i] = static_cast<std::int64_t>(v);
    }
  });
  return y;
}

}  // namespace xgrad
