// Computing with Indices and Masks.

#include <limits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/xtensor.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/positions.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Int = std::int64_t;
__extension__ typedef __int128 WideInt;
constexpr Int least = std::numeric_limits<Int>::min(), most = std::numeric_limits<Int>::max();

std::vector<double> numbers_of(const Tensor& x) { return numbers(x); }
template <class T>
std::vector<double> numbers_of(const DiscreteTensor<T>& x) {
  return {x.data(), x.data() + x.numel()};
}

// Some are 0, negative or equal.
Indices some_ids(const Shape& shape) {
  auto a = empty_array<Int>(shape);
  for (std::size_t i = 0; i < a.size(); ++i)
    a.data()[i] = static_cast<Int>(i * 5 % 7) - 2;
  return a;
}
Mask some_mask(const Shape& shape) { return some_ids(shape) > 0; }

const std::vector<Shape> shapes = {{},     {1},       {5},       {2, 3},       {1, 3, 1},
                                   {0},    {0, 3},    {2, 0, 2}, {2, 3, 4, 5}, {70, 90},
                                   {1, 1}, {4, 2, 6}, {3, 1, 2}, {17}};

// f of Indices, and of a Mask, equals f of the same numbers as a Tensor: elements and shape, or the
// error.
template <class F>
void check_as_tensor(const F& f, const std::vector<Shape>& of = shapes) {
  const auto check = [&f](const auto& x) {
    INFO("x " << to_string(x.shape()));
    const Tensor same = x.to(DType::float64);
    const std::string error = message_of([&] { f(same); });
    CHECK(message_of([&] { f(x); }) == error);
    if (error != nothing_thrown)
      return;
    const auto y = f(x);
    const Tensor expected = f(same);
    CHECK(y.shape() == expected.shape());
    CHECK(numbers_of(y) == numbers_of(expected));
  };
  for (const Shape& shape : of) {
    check(some_ids(shape));
    check(some_mask(shape));
  }
}

template <class F>
void check_pairwise(const Indices& y, const Indices& a, const Indices& b, const F& f) {
  const Shape shape = testing::common_shape(a.shape(), b.shape());
  REQUIRE(y.shape() == shape);
  for (Size i = 0; i < y.numel(); ++i) {
    const auto at = testing::position(static_cast<std::size_t>(i), shape);
    const Int x = a.data()[testing::broadcast_from(at, a.shape())],
              by = b.data()[testing::broadcast_from(at, b.shape())];
    INFO(x << " and " << by);
    CHECK(y.data()[i] == f(x, by));
  }
}

// The bits of a number that fits int64, without overflow on the way.
Int low_bits(WideInt v) { return static_cast<Int>(static_cast<std::uint64_t>(v)); }

WideInt floor_of(WideInt a, WideInt b) {
  const WideInt q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

TEST_CASE("Indices and Masks are arranged as Tensors are", "[indices]") {
  check_as_tensor([](const auto& x) { return reshape(x, {-1, 3}); });
  check_as_tensor([](const auto& x) { return x.reshape(Dims{x.numel(), 1}); });
  check_as_tensor([](const auto& x) { return x.view(-1); });
  check_as_tensor([](const auto& x) { return flatten(x); });
  check_as_tensor([](const auto& x) { return x.flatten(-2); });
  check_as_tensor([](const auto& x) { return x.permute({-1, 0}); });
  check_as_tensor([](const auto& x) { return x.permute({2, 0, 1}); });
  check_as_tensor([](const auto& x) { return x.transpose(0, -1); });
  check_as_tensor([](const auto& x) { return x.transpose(-1, -2); });
  check_as_tensor([](const auto& x) { return squeeze(x); });
  check_as_tensor([](const auto& x) { return x.squeeze({0, -1}); });
  check_as_tensor([](const auto& x) { return x.unsqueeze(-1); });
  check_as_tensor([](const auto& x) { return unsqueeze(x, 1); });
  check_as_tensor([](const auto& x) { return x.expand({2, 3}); });
  check_as_tensor([](const auto& x) { return expand(x, {2, -1, 3, -1}); });
  check_as_tensor([](const auto& x) { return x.slice(-1, 1, {}, 2); });
  check_as_tensor([](const auto& x) { return slice(x, 1, -2, 9); });
  check_as_tensor([](const auto& x) { return x.narrow(0, 1, 1); });
  check_as_tensor([](const auto& x) { return narrow(x, -1, -2, 2); });
  check_as_tensor([](const auto& x) { return x.select(-1, -1); });
  check_as_tensor([](const auto& x) { return x[1]; });
  check_as_tensor([](const auto& x) { return x[Slice{1, {}, 2}]; });
  check_as_tensor([](const auto& x) { return index(x, {Ellipsis{}, -1, NewAxis{}}); });
  check_as_tensor([](const auto& x) { return index(x, {Slice{0, 1}, 0}); });
  check_as_tensor([](const auto& x) { return index(x, {Indices{0, -1}, Slice{}, Indices{1}}); });
  check_as_tensor([](const auto& x) { return index(x, {Ellipsis{}, Indices{{1, 0, -2}}}); });
  check_as_tensor([](const auto& x) { return x.unflatten(-1, {-1, 3}); });
  check_as_tensor([](const auto& x) { return x.index_select(0, {0, 1, 0}); });
  check_as_tensor([](const auto& x) { return index_select(x, -1, {1}); });
  check_as_tensor([](const auto& x) { return tril(x); });
  check_as_tensor([](const auto& x) { return x.triu(1); });
  check_as_tensor([](const auto& x) { return x.tril(-1); });
  check_as_tensor([](const auto& x) { return cat({x, x}); });
  check_as_tensor([](const auto& x) { return cat({x, x, x}, -1); });
  check_as_tensor([](const auto& x) { return stack({x, x}, 1); });
  check_as_tensor([](const auto& x) { return stack({x}); });
  check_as_tensor([](const auto& x) { return x.masked_select(some_mask({3})); });
  check_as_tensor([](const auto& x) { return masked_select(x, some_mask(x.shape())); });
  check_as_tensor([](const auto& x) { return x[some_mask({2, 3})]; });
  check_as_tensor([](const auto& x) { return x[some_mask(x.shape())]; });
}

TEST_CASE("Indices that are joined need not be alike where Tensors need not", "[indices]") {
  const auto joined = [](const auto& a, const auto& b) { return cat({a, b}, 1); };
  const Indices a = some_ids({2, 3}), b = some_ids({2, 2}), none = arange_indices(0, 0);
  CHECK(numbers_of(joined(a, b)) == numbers_of(joined(a.to(DType::float64), b.to(DType::float64))));
  CHECK(cat({none, a}).shape() == Shape{2, 3});
  CHECK(message_of<ShapeError>([&] { joined(a, some_ids({3, 2})); }) ==
        "cat: Tensor 0 has shape (2, 3) and Tensor 1 has (3, 2): only sizes at dimension 1 may "
        "differ");
  CHECK(message_of<ShapeError>([&] { stack({a, b}); }).starts_with("stack: Tensor 0"));
  CHECK(message_of<ValueError>([] { cat(std::vector<Mask>()); }) == "cat: no Tensors are given");
}

TEST_CASE("contiguous parts are not copied", "[indices]") {
  const Indices ids = some_ids({4, 3});
  const auto begins_at = [&ids](const Indices& part, std::ptrdiff_t offset) {
    return part.data() == ids.data() + offset;
  };
  CHECK(begins_at(ids.flatten(), 0));
  CHECK(begins_at(ids.unsqueeze(0), 0));
  CHECK(begins_at(ids[2], 6));
  CHECK(begins_at(ids[Slice{1, 3}], 3));
  // a view outlives its array
  const Mask last = [] { return some_mask({3, 2})[2]; }();
  CHECK(numbers_of(last) == numbers_of(some_mask({3, 2}).select(0, 2)));
}

TEST_CASE("arithmetic of Indices", "[indices]") {
  const std::vector<std::pair<Indices, Indices>> operands = {
      {{least, -7, -2, -1, 0, 1, 5, most}, {-1}},
      {{{least}, {-7}, {0}, {7}, {most}}, {least, most, -3, -2, -1, 1, 2, 3}},
      {some_ids({2, 3, 4}), {{3}, {-2}, {5}}},
      {some_ids({0, 3}), {1, 2, 3}},
      {some_ids({}), some_ids({})}};
  for (const auto& [a, b] : operands) {
    check_pairwise(a + b, a, b, [](WideInt x, Int y) { return low_bits(x + y); });
    check_pairwise(a - b, a, b, [](WideInt x, Int y) { return low_bits(x - y); });
    check_pairwise(a * b, a, b, [](WideInt x, Int y) { return low_bits(x * y); });
    check_pairwise(a / b, a, b, [](WideInt x, Int y) { return low_bits(floor_of(x, y)); });
    check_pairwise(a % b, a, b, [](WideInt x, Int y) { return low_bits(x - floor_of(x, y) * y); });
  }
}

TEST_CASE("Indices with numbers, on both sides", "[indices]") {
  Indices ids = {3, -4, 0};
  CHECK(numbers(ids + 1) == std::vector<Int>{4, -3, 1});
  CHECK(numbers(1 - ids) == std::vector<Int>{-2, 5, 1});
  CHECK(numbers(ids * std::size_t{2}) == std::vector<Int>{6, -8, 0});
  CHECK(numbers(ids / 2) == std::vector<Int>{1, -2, 0});
  CHECK(numbers(ids % 3) == std::vector<Int>{0, 2, 0});
  CHECK(numbers(-ids) == std::vector<Int>{-3, 4, 0});
  CHECK(numbers_of(ids == 3) == std::vector<double>{1, 0, 0});
  CHECK(numbers_of(0 != ids) == std::vector<double>{1, 1, 0});
  CHECK(numbers_of(ids < 0) == std::vector<double>{0, 1, 0});
  CHECK(numbers_of(ids <= 0) == std::vector<double>{0, 1, 1});
  CHECK(numbers_of(0 < ids) == std::vector<double>{1, 0, 0});
  CHECK(numbers_of(ids >= ids[0]) == std::vector<double>{1, 0, 0});
  CHECK((ids == ids.unsqueeze(1)).shape() == Shape{3, 3});
  const Indices before = ids;
  ids += 1;
  ids *= ids;
  ids -= Indices{1, 1, 1};
  ids /= 2;
  ids %= 4;
  CHECK(numbers(ids) == std::vector<Int>{7 % 4, 4 % 4, 0});
  CHECK(before[0].item() == 3);
}

TEST_CASE("errors of arithmetic", "[indices]") {
  const Indices ids = {1, 2};
  CHECK(message_of<ShapeError>([&] {
          ids + Indices{1, 2, 3};
        }).starts_with("operator+: shapes (2,) and (3,)"));
  CHECK(message_of<ShapeError>([&] {
          (void)(ids < Indices{1, 2, 3});
        }).starts_with("operator<: shapes (2,) and (3,)"));
  CHECK(message_of<ShapeError>([&] {
          clamp(ids, Indices{1, 2, 3}, 5);
        }).starts_with("clamp, the maximum with min: shapes (2,) and (3,)"));
  CHECK(message_of<ShapeError>([&] {
          clamp(ids, 0, Indices{1, 2, 3});
        }).starts_with("clamp, the minimum with max: shapes (2,) and (3,)"));
  CHECK(message_of<ValueError>([&] { ids / Indices{{1, 1}, {1, 0}}; }) ==
        "operator/: the divisor is 0 at (1, 1) of (2, 2)");
  CHECK(message_of<ValueError>([&] { ids % 0; }) == "operator%: the divisor is 0 at () of ()");
  CHECK((arange_indices(0, 0) / 0).numel() == 0);
}

TEST_CASE("sums, extremes and truth of Indices and Masks", "[indices]") {
  const auto of = [](const auto& x, const Dims& dims, bool keepdim) {
    const Tensor all = x.to(DType::float64), true_ones = where(all != 0, 1, 0, DType::float64);
    const Tensor sums = sum(all, dims, keepdim), trues = sum(true_ones, dims, keepdim),
                 counts = sum(ones_like(all), dims, keepdim);
    CHECK(x.sum(dims, keepdim).shape() == sums.shape());
    CHECK(numbers_of(sum(x, dims, keepdim)) == numbers_of(sums));
    CHECK(x.any(dims, keepdim).shape() == sums.shape());
    CHECK(numbers_of(any(x, dims, keepdim)) == numbers_of(trues > 0));
    CHECK(numbers_of(x.all(dims, keepdim)) == numbers_of(trues == counts));
  };
  for (const Shape& shape : shapes)
    for (const bool keepdim : {false, true}) {
      std::vector<Dims> lists(1);
      for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{0, 2}, Dims{-1, 1}})
        if (shape.size() > 2 || (dims.size() == 1 && !shape.empty()))
          lists.push_back(dims);
      for (const Dims& dims : lists) {
        of(some_ids(shape), dims, keepdim);
        of(some_mask(shape), dims, keepdim);
      }
    }
  const Indices ids = some_ids({2, 3, 4});
  CHECK(ids.max().item() == 4);
  CHECK(min(ids).item() == -2);
  CHECK(ids.max().shape() == Shape{});
  CHECK(Mask{true, false}.max().item());
  CHECK(Indices{least, -1}.sum().item() == most);
  CHECK(any(Indices{0, 2}));
  CHECK_FALSE(Indices{0, 2}.all());
  CHECK_FALSE(any(arange_indices(0, 0)));
  CHECK(all(Mask(empty_array<bool>(Shape{0, 2}))));
  CHECK(message_of<ShapeError>([] { max(arange_indices(0, 0)); }) ==
        "max: x (0,) has no elements to choose from");
  CHECK(message_of<ValueError>([&] { ids.sum({0, -3}); }).starts_with("sum: dimension -3 appears"));
  CHECK(message_of<ValueError>([&] { ids.any(3); }).starts_with("any:"));
}

TEST_CASE("nonzero", "[indices]") {
  for (const Shape& shape : shapes) {
    const Indices x = some_ids(shape), places = nonzero(x);
    std::vector<Int> expected;
    for (Size i = 0; i < x.numel(); ++i)
      if (x.data()[i] != 0)
        for (const std::size_t p : testing::position(static_cast<std::size_t>(i), shape))
          expected.push_back(static_cast<Int>(p));
    CHECK(numbers(places) == expected);
    CHECK(places.shape() == Shape{any(x) ? (x != 0).sum().item() : 0, x.dim()});
    CHECK(numbers((x != 0).nonzero()) == expected);
  }
}

TEST_CASE("Indices and Masks as Tensors, and back", "[indices]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Indices ids = {{0, -3}, {1 << 24, 5}};
    const Tensor x = ids.to(dtype);
    CHECK(x.dtype() == dtype);
    CHECK(numbers(to_indices(x)) == numbers(ids));
    CHECK(to_indices(x).shape() == Shape{2, 2});
    CHECK(same_bits(to(Mask{true, false}, dtype), tensor({1, 0}, dtype)));
    CHECK(same_bits(where(Mask{true, false}, 0.1, -2, dtype), tensor({0.1, -2}, dtype)));
    CHECK(numbers(tensor({-0x1p63, -0.0}, dtype).to_indices()) == std::vector<Int>{least, 0});
    for (const double bad : {0x1p63, -0x1.1p63, 0.5, -1.5, inf, -inf, not_a_number})
      check_contains(
          message_of<ValueError>([&] { to_indices(tensor({{0, 1}, {bad, bad}}, dtype)); }),
          {"to_indices: ", " at (1, 0) of x (2, 2) is not an integer"});
  }
  CHECK(where(Mask{true}, 1, 0).dtype() == DType::float32);
  CHECK(numbers(to_indices(Mask{true, false})) == std::vector<Int>{1, 0});
  CHECK(numbers(to_indices(Indices{4, 2})) == std::vector<Int>{4, 2});
  CHECK(to_indices(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(message_of<ValueError>([] { to_indices(Tensor()); }).starts_with("to_indices"));
  const Tensor rounded = Indices{(Int{1} << 53) + 1, most}.to(DType::float64);
  CHECK(numbers(rounded) == std::vector<double>{0x1p53, 0x1p63});
}

TEST_CASE("where of Indices", "[indices]") {
  const Indices ids = {4, 0, 4, most};
  CHECK(numbers(where(ids == 4, -100, ids)) == std::vector<Int>{-100, 0, -100, most});
  CHECK(numbers(where(ids == most, least, ids)) == std::vector<Int>{4, 0, 4, least});
  const Indices y = where(Mask{{true}, {false}}, ids, Indices{1, 2, 3, 4});
  CHECK(y.shape() == Shape{2, 4});
  CHECK(numbers(y) == std::vector<Int>{4, 0, 4, most, 1, 2, 3, 4});
  CHECK(where(some_mask({0, 1}), ids, 0).shape() == Shape{0, 4});
  CHECK(message_of<ShapeError>([&] {
          where(Mask{true, false}, ids, 0);
        }).starts_with("where: shapes (2,) and (4,)"));
  CHECK(message_of<ShapeError>([&] {
          where(Mask{true}, ids, Indices{1, 2});
        }).starts_with("where: shapes (4,) and (2,)"));
}

TEST_CASE("one_hot", "[indices]") {
  const Indices ids = {{2, 0}, {1, 2}};
  for (const Int classes : {-1, 3, 5}) {
    const Indices y = one_hot(ids, classes);
    const Int n = std::max<Int>(classes, 3);
    REQUIRE(y.shape() == Shape{2, 2, n});
    for (Int i = 0; i < y.numel(); ++i)
      CHECK(y.data()[i] == (ids.data()[i / n] == i % n ? 1 : 0));
  }
  CHECK(one_hot(some_ids({0, 2}), 3).shape() == Shape{0, 2, 3});
  CHECK(numbers(one_hot(Indices{1}[0])) == std::vector<Int>{0, 1});
  CHECK(message_of<ValueError>([] { one_hot({0, 3}, 3); }) ==
        "one_hot: index 3 at (1,) of the indices (2,) is out of range: expected 0 to 2");
  check_contains(message_of<ValueError>([] { one_hot({0, -1}); }), {"one_hot: index -1 at (1,)"});
  check_contains(message_of<ValueError>([] { one_hot({0, 1}, 0); }), {"one_hot: num_classes is 0"});
  check_contains(message_of<ValueError>([] { one_hot(arange_indices(0, 0)); }),
                 {"one_hot: x (0,) has no elements"});
}

TEST_CASE("braces in brackets are a slice, not a mask", "[indices]") {
  CHECK(numbers(arange_indices(0, 5)[{1, 3}]) == std::vector<Int>{1, 2});
  CHECK(same_bits(arange(5)[{1, 3}], tensor({1, 2})));
}

TEST_CASE("ops without a name are a line of xtensor", "[indices]") {
  const Indices ids = {0, 2, 1};
  CHECK(numbers(Indices(ids.array() ^ Int{1})) == std::vector<Int>{1, 3, 0});
}
