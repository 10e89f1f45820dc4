// Comparisons, masks, allclose, argmax and argmin.

#include <algorithm>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Bits = std::vector<int>;
using Places = std::vector<std::int64_t>;

Bits bits(const Mask& mask) { return {mask.data(), mask.data() + mask.numel()}; }

}  // namespace

TEST_CASE("comparisons of Tensors", "[compare]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor a = tensor({1, 2, 3, not_a_number, inf}, dtype),
                 b = tensor({2, 2, 2, not_a_number, inf}, dtype);
    CHECK(bits(a == b) == Bits{0, 1, 0, 0, 1});
    CHECK(bits(a != b) == Bits{1, 0, 1, 1, 0});
    CHECK(bits(a < b) == Bits{1, 0, 0, 0, 0});
    CHECK(bits(a <= b) == Bits{1, 1, 0, 0, 1});
    CHECK(bits(a > b) == Bits{0, 0, 1, 0, 0});
    CHECK(bits(a >= b) == Bits{0, 1, 1, 0, 1});
  }
}

TEST_CASE("comparisons with a number, which is taken in the Tensor's dtype", "[compare]") {
  const Tensor a = tensor({1, 2, 3, not_a_number});
  CHECK(bits(a == 2.0) == Bits{0, 1, 0, 0});
  CHECK(bits(a != 2.0) == Bits{1, 0, 1, 1});
  CHECK(bits(a < 2.0) == Bits{1, 0, 0, 0});
  CHECK(bits(a <= 2.0) == Bits{1, 1, 0, 0});
  CHECK(bits(a > 2.0) == Bits{0, 0, 1, 0});
  CHECK(bits(a >= 2.0) == Bits{0, 1, 1, 0});
  CHECK(all(full({3}, 0.1) == 0.1));
  CHECK(all(full({3}, 0.1, DType::float64) == 0.1));
}

TEST_CASE("comparisons name an undefined operand", "[compare]") {
  const Tensor a = ones(2), none;
  CHECK(message_of([&] { (void)(a < none); }) == "operator<: operand 2 of 2 is undefined");
  CHECK(message_of([&] { (void)(none == a); }) == "operator==: operand 1 of 2 is undefined");
  CHECK(message_of([&] { (void)(none >= 2.0); }) == "operator>=: operand 1 of 1 is undefined");
  CHECK(message_of([&] { isfinite(none); }) == "isfinite: operand 1 of 1 is undefined");
  CHECK(message_of([&] { allclose(a, none); }) == "allclose: operand 2 of 2 is undefined");
}

TEST_CASE("comparisons broadcast", "[compare]") {
  const Tensor column = tensor({{1}, {2}, {3}}), row = tensor({1, 2, 3});
  const Mask m = column > row;
  CHECK(m.shape() == Shape{3, 3});
  CHECK(bits(m) == Bits{0, 0, 0, 1, 0, 0, 1, 1, 0});
  CHECK(bits(row < column) == bits(m));
  CHECK(bits(scalar(2) >= row) == Bits{1, 1, 0});
  CHECK(bits(row >= scalar(2)) == Bits{0, 1, 1});
  CHECK((scalar(1) == scalar(1)).shape() == Shape{});
  CHECK((zeros({0, 1}) == zeros({1, 4})).shape() == Shape{0, 4});

  const Tensor x = reshape(arange(24), {2, 3, 4}), y = reshape(arange(8), {2, 1, 4});
  const Mask both = x == y;
  REQUIRE(both.shape() == Shape{2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i)
    CHECK(both.data()[i] == (i == i / 12 * 4 + i % 4));
}

TEST_CASE("comparisons name misshapen operands", "[compare]") {
  CHECK_THROWS_AS(zeros({2}) < zeros({3}), ShapeError);
  CHECK(message_of([] {
          (void)(zeros({2}) < zeros({3}));
        }).starts_with("operator<: shapes (2,) and (3,)"));
  CHECK_THROWS_AS(zeros({2}) == zeros({2}, DType::float64), DTypeError);
  CHECK(message_of([] {
          (void)(zeros({2}) == zeros({2}, DType::float64));
        }).starts_with("operator==: operands are float32 and float64"));
  CHECK_THROWS_AS(Tensor() == 1.0, ValueError);
}

TEST_CASE("masks combine", "[compare]") {
  const Mask a = tensor({0, 0, 1, 1}) == 1.0, b = tensor({0, 1, 0, 1}) == 1.0;
  CHECK(bits(a & b) == Bits{0, 0, 0, 1});
  CHECK(bits(a | b) == Bits{0, 1, 1, 1});
  CHECK(bits(~a) == Bits{1, 1, 0, 0});
  const Mask column = tensor({{0}, {1}}) == 1.0;
  CHECK(bits(column & b) == Bits{0, 0, 0, 0, 0, 1, 0, 1});
  CHECK(bits(b | column) == Bits{0, 1, 0, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(a & (zeros({3}) == 0.0), ShapeError);
}

TEST_CASE("any and all", "[compare]") {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  CHECK(any(x == 3.0));
  CHECK_FALSE(any(x == 5.0));
  CHECK(all(x > 0.0));
  CHECK_FALSE(all(x > 1.0));
  CHECK_FALSE(any(zeros({0}) == 0.0));
  CHECK(all(zeros({0}) == 1.0));
}

TEST_CASE("allclose", "[compare]") {
  const Tensor a = tensor({1, 100}, DType::float64);
  CHECK(allclose(a, tensor({1.000009, 100.0009}, DType::float64)));
  CHECK_FALSE(allclose(a, tensor({1.00002, 100}, DType::float64)));
  CHECK(allclose(a, tensor({1.4, 100}, DType::float64), 0, 0.5));
  CHECK_FALSE(allclose(a, tensor({1.6, 100}, DType::float64), 0, 0.5));
  // relative to the second
  const Tensor one = full({1}, 1, DType::float64), two = full({1}, 2, DType::float64);
  CHECK(allclose(one, two, 0.5, 0));
  CHECK_FALSE(allclose(two, one, 0.5, 0));

  CHECK(allclose(tensor({inf, -inf}), tensor({inf, -inf})));
  CHECK_FALSE(allclose(tensor({inf}), tensor({-inf})));
  CHECK_FALSE(allclose(tensor({1}), tensor({inf})));
  CHECK_FALSE(allclose(tensor({not_a_number}), tensor({not_a_number})));
  CHECK_FALSE(allclose(zeros({2}), zeros({1})));
  CHECK(allclose(zeros({0}), zeros({0})));
  CHECK_THROWS_AS(allclose(zeros({2}), zeros({2}, DType::float64)), DTypeError);
  CHECK_THROWS_AS(allclose(zeros({2}), zeros({2}), -1), ValueError);
}

TEST_CASE("argmax of special values and shapes", "[compare]") {
  CHECK(argmax(tensor({1, not_a_number, inf, not_a_number})).item() == 1);
  CHECK(argmin(tensor({1, -inf, not_a_number, 0})).item() == 2);
  CHECK(numbers(argmax(tensor({{1, not_a_number}, {not_a_number, 0}}), 0)) == Places{1, 0});
  CHECK(argmax(tensor({-inf, -inf})).item() == 0);
  CHECK(numbers(argmax(full({2, 3}, -inf), 0)) == Places{0, 0, 0});
  CHECK(argmax(scalar(5)).item() == 0);
  CHECK(argmax(scalar(5), -1, true).shape() == Shape{});
  CHECK(argmax(zeros({0, 3}), 1).shape() == Shape{0});

  CHECK_THROWS_AS(argmax(zeros({0})), ShapeError);
  CHECK(message_of([] {
          argmin(zeros({2, 0}), 1);
        }).starts_with("argmin: x (2, 0) has no elements"));
  CHECK_THROWS_AS(argmax(zeros({2}), 1), ValueError);
}

TEST_CASE("argmax of many elements", "[compare]") {
  const auto n = std::size_t{70'000};
  auto a = empty_array<float>(Shape{n});
  for (std::size_t i = 0; i < n; ++i)
    a.data()[i] = static_cast<float>(i * 7919 % n);  // a permutation
  const Tensor x(std::move(a));
  std::size_t last = 0;
  while (last * 7919 % n != n - 1)
    ++last;
  CHECK(argmax(x).item() == static_cast<std::int64_t>(last));
  CHECK(argmin(x).item() == 0);
  const Tensor table = reshape(x, {70, 1000});
  const Indices columns = argmax(table, 0), rows = argmax(table, 1);
  for (std::size_t c = 0; c < 1000; ++c) {
    std::size_t best = 0;
    for (std::size_t r = 0; r < 70; ++r)
      best = x.data<float>()[r * 1000 + c] > x.data<float>()[best * 1000 + c] ? r : best;
    REQUIRE(columns.data()[c] == static_cast<std::int64_t>(best));
  }
  for (std::size_t r = 0; r < 70; ++r) {
    const float* const row = x.data<float>() + r * 1000;
    REQUIRE(rows.data()[r] == std::max_element(row, row + 1000) - row);
  }
}
