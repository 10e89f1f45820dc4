// Tensors from numbers, their values, and updates; Indices and Masks.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/xtensor.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using List = std::vector<double>;

}  // namespace

// ---- factories ----

TEST_CASE("a Tensor from braces", "[tensor]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6.5}});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dtype() == DType::float32);
  CHECK(!x.requires_grad());
  CHECK(numbers(x) == List{1, 2, 3, 4, 5, 6.5});
  CHECK(tensor(2.5).shape() == Shape{});
  CHECK(tensor(2.5).item() == 2.5);
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({{}, {}}).shape() == Shape{2, 0});
  CHECK(tensor({{1}}).shape() == Shape{1, 1});
  CHECK(tensor({{{1}, {2}}}).shape() == Shape{1, 2, 1});
  CHECK(element<double>(tensor({0.1}, DType::float64), 0) == 0.1);
  CHECK(element<float>(tensor({0.1}), 0) == 0.1F);
}

TEST_CASE("ragged braces are errors", "[tensor]") {
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
  CHECK_THROWS_WITH(tensor({{1, 2}, {3}}), ContainsSubstring("a list of 1 next to a list of 2"));
  CHECK_THROWS_AS(tensor({{1, 2}, 3}), ShapeError);
  CHECK_THROWS_AS(tensor({1, {2, 3}}), ShapeError);
  CHECK_THROWS_AS(tensor({{1, 2}, {}}), ShapeError);
  CHECK_THROWS_AS((Indices{{1, 2}, {3}}), ShapeError);
  CHECK_THROWS_AS((Mask{{true}, false}), ShapeError);
}

TEST_CASE("Tensors of one value", "[tensor]") {
  CHECK(numbers(zeros({2, 2})) == List(4, 0));
  CHECK(numbers(ones(3, DType::float64)) == List(3, 1));
  CHECK(numbers(full({2}, -1.5)) == List(2, -1.5));
  CHECK(zeros({}).shape() == Shape{});
  CHECK(zeros({2, 0}).shape() == Shape{2, 0});
  const Tensor x = zeros({2, 1}, DType::float64);
  for (const Tensor& y : {zeros_like(x), ones_like(x), full_like(x, 3)}) {
    CHECK(y.shape() == Shape{2, 1});
    CHECK(y.dtype() == DType::float64);
  }
  CHECK(numbers(zeros_like(x)) == List{0, 0});
  CHECK(numbers(ones_like(x)) == List{1, 1});
  CHECK(numbers(full_like(x, 3)) == List{3, 3});
  CHECK_THROWS_AS(zeros({2, -1}), ShapeError);
  CHECK_THROWS_AS(ones({1 << 30, 1 << 30, 1 << 30}), ShapeError);
  CHECK(numbers(eye(2)) == List{1, 0, 0, 1});
  CHECK(numbers(eye(2, 3)) == List{1, 0, 0, 0, 1, 0});
  CHECK(eye(3, 0).shape() == Shape{3, 0});
  CHECK(numbers(full_indices({2, 1}, -7)) == std::vector<std::int64_t>{-7, -7});
  CHECK(all(full_mask({2, 2}, true)));
  CHECK_FALSE(any(full_mask(3, false)));
  CHECK_THROWS_AS(full_indices({2, -1}, 0), ShapeError);
}

TEST_CASE("Indices and Masks of std::vectors", "[tensor]") {
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;  // no double equals it
  const std::vector<std::int64_t> ids{0, -2, large};
  CHECK(numbers(Indices(ids)) == ids);
  CHECK(to_string(Indices{std::vector<std::vector<int>>{{1, 2}, {3, 4}}}) ==
        to_string(Indices{{1, 2}, {3, 4}}));
  CHECK(Indices(std::vector<std::size_t>()).shape() == Shape{0});
  CHECK(to_string(Mask(std::vector<bool>{true, false})) == "tensor([ True, False])");
  CHECK_THROWS_AS(Indices(std::vector<std::uint64_t>{1, ~std::uint64_t{0}}), ShapeError);
  CHECK_THROWS_AS(Indices(std::vector<std::vector<int>>{{1, 2}, {3}}), ShapeError);
}

TEST_CASE("a transpose by PyTorch's other name", "[tensor]") {
  CHECK(numbers(tensor({{1, 2}, {3, 4}}).T()) == List{1, 3, 2, 4});
  CHECK(numbers(tensor({1, 2}).T()) == List{1, 2});
  CHECK_THROWS_AS(zeros({2, 2, 2}).T(), ShapeError);
}

TEST_CASE("ranges", "[tensor]") {
  CHECK(numbers(arange(3)) == List{0, 1, 2});
  CHECK(numbers(arange(1, 2, 0.25)) == List{1, 1.25, 1.5, 1.75});
  CHECK(numbers(arange(1, 2.1, 0.5)) == List{1, 1.5, 2});
  CHECK(numbers(arange(2, 0, -1)) == List{2, 1});
  CHECK(arange(1, 1).shape() == Shape{0});
  CHECK_THROWS_AS(arange(0, 1, 0), ValueError);
  CHECK_THROWS_AS(arange(0, 1, -1), ValueError);
  CHECK_THROWS_AS(arange(0, std::numeric_limits<double>::infinity()), ValueError);
  CHECK_THROWS_AS(arange(std::nan("")), ValueError);
  CHECK(numbers(linspace(0, 1, 5)) == List{0, 0.25, 0.5, 0.75, 1});
  CHECK(numbers(linspace(3, 1, 2)) == List{3, 1});
  CHECK(numbers(linspace(3, 4, 1)) == List{3});
  CHECK(linspace(0, 1, 0).shape() == Shape{0});
  // Both ends are exact for any step.
  CHECK(numbers(linspace(-0.1, 0.7, 11, DType::float64)).back() == 0.7);
  CHECK(numbers(arange_indices(-1, 2)) == std::vector<std::int64_t>{-1, 0, 1});
  CHECK(arange_indices(2, 2).shape() == Shape{0});
  CHECK_THROWS_AS(arange_indices(2, 1), ValueError);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(arange_indices(-most - 1, most), ShapeError);
  CHECK_THROWS_AS(arange_indices(-1, most), ShapeError);
  for (const std::int64_t n : {-most - 1, -most, most})
    CHECK(diag(ones({2, 3}), n).shape() == Shape{0});
}

TEST_CASE("scalars of one value share it, and stay apart when one is changed", "[tensor]") {
  Tensor a = scalar(2);
  const Tensor b = scalar(2);
  CHECK(a.shape() == Shape{});
  a.update([](auto& x) { *x.data() = 7; });
  CHECK(a.item() == 7);
  CHECK(b.item() == 2);
  CHECK(scalar(2).item() == 2);
  a.requires_grad_();
  CHECK(!scalar(7).requires_grad());
  CHECK(std::signbit(scalar(-0.0).item()));
  CHECK(!std::signbit(scalar(0.0).item()));
  CHECK(scalar(0.1, DType::float64).item() == 0.1);
  CHECK(scalar(0.1).item() == static_cast<double>(0.1F));
  for (int i = 0; i < 1000; ++i)
    CHECK(scalar(i).item() == i);
  CHECK(std::isnan(scalar(std::nan("")).item()));
}

// The numbers are torch.manual_seed(0); torch.rand(3), ...
TEST_CASE("random Tensors are PyTorch's", "[tensor][random]") {
  manual_seed(0);
  const List uniform = numbers(rand({3}));
  CHECK(uniform == List{0.49625658988952637, 0.7682217955589294, 0.08847743272781372});
  CHECK(numbers(randint(0, 10, {2, 2})) == std::vector<std::int64_t>{0, 3, 9, 7});
  CHECK(numbers(randint(-5, 1'000'000'000'000, {2})) ==
        std::vector<std::int64_t>{964935716205, 923817003669});
  CHECK(numbers(randperm(6)) == std::vector<std::int64_t>{2, 0, 5, 4, 3, 1});
  const List normal = numbers(randn({2}, DType::float64));
  CHECK(normal[0] == Approx(-0.7192575784693592).epsilon(1e-14));
  CHECK(normal[1] == Approx(-0.40334352493217457).epsilon(1e-14));

  manual_seed(0);
  CHECK(numbers(rand_like(zeros({3}))) == uniform);
  Generator generator(0);
  CHECK(numbers(rand({3}, generator)) == uniform);
  CHECK(rand({0}).shape() == Shape{0});
  CHECK(numbers(randn_like(zeros({2}, DType::float64))).size() == 2);
  CHECK(numbers(randint(3, 4, {2})) == std::vector<std::int64_t>{3, 3});
  CHECK(randperm(0).shape() == Shape{0});
  CHECK_THROWS_AS(randint(3, 3, {2}), ValueError);
  generator.manual_seed(0);
  CHECK(numbers(randint({.high = 10, .size = {3}}, generator)) ==
        std::vector<std::int64_t>{4, 9, 3});
  CHECK(numbers(randint({.low = 3, .high = 4, .size = 2})) == std::vector<std::int64_t>{3, 3});
  CHECK_THROWS_AS(randn({-1}), ShapeError);
}

TEST_CASE("a permutation has every number once", "[tensor][random]") {
  std::vector<std::int64_t> all(1000), drawn = numbers(randperm(1000));
  std::iota(all.begin(), all.end(), 0);
  CHECK(drawn != all);
  std::sort(drawn.begin(), drawn.end());
  CHECK(drawn == all);
}

// ---- values ----

TEST_CASE("the value of a Tensor", "[tensor]") {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  CHECK(x.array<float>()(1, 0) == 3);
  CHECK(x.dim() == 2);
  CHECK(x.numel() == 4);
  CHECK(x.size(-1) == 2);
  CHECK(-x.size(-1) == -2);
  CHECK(-x.shape()[-1] == -2);
  CHECK(-x.dim() == -std::ssize(x.shape()));
  CHECK(-x.numel() < 0);
  CHECK(-numel(x.shape()) < 0);
  CHECK((x.sum() * static_cast<double>(-x.size(-1))).item() == -20);
  CHECK(x.size(0) - 5 == -3);
  CHECK(std::sqrt(x.size(-1)) == std::sqrt(2.0));
  CHECK(x.shape() == Shape{x.size(0), std::size_t{2}});
  CHECK_THROWS_WITH((Shape{2, x.size(-1) - 3}), "a size is -1");
  CHECK_THROWS_AS(x.shape()[-3], ValueError);
  CHECK_THROWS_AS(x.shape()[2], ValueError);
  CHECK_THROWS_AS(x.size(2), ValueError);
  CHECK_THROWS_AS(x.array<double>(), DTypeError);
  CHECK_THROWS_WITH(x.data<double>(), ContainsSubstring("float32"));
  CHECK(tensor({{5}}).item() == 5);
  CHECK(tensor({5}, DType::float64).item() == 5);
  CHECK_THROWS_AS(x.item(), ShapeError);
  CHECK_THROWS_WITH(x.item(), ContainsSubstring("(2, 2)"));
  CHECK_THROWS_AS(tensor({}).item(), ShapeError);
  CHECK(!Tensor().defined());
  CHECK_THROWS_AS(Tensor().shape(), ValueError);
  CHECK_THROWS_AS(Tensor().item(), ValueError);
  const XArray<float> a = {{1.0F, 2.0F}};
  CHECK(numbers(Tensor(a + 1.0F)) == List{2, 3});
}

TEST_CASE("an update changes this Tensor and no other", "[tensor]") {
  const auto double_it = [](auto& a) { a *= 2; };
  Tensor x = tensor({1, 2}).requires_grad_();
  const Tensor alias = x;              // a handle on the same Tensor
  const Tensor constant = x.detach();  // another Tensor, which shares the value
  const Tensor whole = reshape(x, {2});
  const Tensor y = x * x;
  x.update(double_it);
  CHECK(numbers(x) == List{2, 4});
  CHECK(numbers(alias) == List{2, 4});
  CHECK(numbers(constant) == List{1, 2});
  CHECK(numbers(whole) == List{1, 2});
  // The graph holds the values that the forward saw.
  CHECK(numbers(grad({y}, {x}, {.grad_outputs = {ones({2})}})[0]) == List{2, 4});

  const float* const place = x.data<float>();
  *detail::writable_data<float>(x) = 5;  // unshared now: written in place
  CHECK(x.data<float>() == place);
  const Tensor window = x[1];
  detail::writable_data<float>(x)[1] = 6;
  CHECK(x.data<float>() != place);
  CHECK(numbers(x) == List{5, 6});
  CHECK(window.item() == 4);
}

TEST_CASE("forbidden updates", "[tensor]") {
  Tensor x = tensor({1, 2}).requires_grad_();
  Tensor y = x * 2;
  CHECK_THROWS_AS(y.update([](auto& a) { a += 1; }), GraphError);
  CHECK_THROWS_WITH(y.update([](auto& a) { a += 1; }), ContainsSubstring("'mul'"));
  CHECK(numbers(y) == List{2, 4});
  CHECK_THROWS_AS(x.update([](auto& a) { a = std::remove_cvref_t<decltype(a)>{1, 2, 3}; }),
                  ShapeError);
  CHECK_THROWS_AS(Tensor().update([](auto&) {}), ValueError);
}

TEST_CASE("copy_ and fill_ change a value as update() does", "[tensor]") {
  Tensor w = tensor({{1, 2}, {3, 4}}).requires_grad_();
  const Tensor alias = w, window = w.detach();
  Tensor y = w * w;
  w.copy_(tensor({5, 6}, DType::float64));  // converted and broadcast
  CHECK(numbers(alias) == std::vector<double>{5, 6, 5, 6});
  CHECK(w.dtype() == DType::float32);
  CHECK(numbers(window) == std::vector<double>{1, 2, 3, 4});
  w.fill_(-1);
  sum(y).backward();
  CHECK(numbers(w.grad()) == std::vector<double>{2, 4, 6, 8});  // of the old value
  w.copy_(tensor({5, 6}));
  CHECK(w.is_leaf());
  w.copy_(w * 2);
  CHECK(numbers(w) == std::vector<double>{10, 12, 10, 12});
  w.fill_(0.1);
  CHECK(w.data<float>()[3] == 0.1f);
  w.zero_();
  CHECK(w.sum().item() == 0);
  CHECK_THROWS_AS(w.copy_(ones({3})), ShapeError);
  CHECK_THROWS_AS(w.copy_(ones({1, 2, 2})), ShapeError);
  CHECK_THROWS_AS(w.copy_({}), ValueError);
  CHECK_THROWS_AS(Tensor().fill_(1), ValueError);
  CHECK_THROWS_WITH(y.zero_(), ContainsSubstring("'mul'"));
  CHECK(w.sum().item() == 0);
}

TEST_CASE("operators rebind a handle, and leave others alone", "[tensor]") {
  const Tensor x = leaf({1, 2});
  Tensor a = x;
  a += x;
  a *= 10;
  a -= 1;
  a /= tensor({1, 4}, DType::float64);
  CHECK(numbers(a) == List{19, 9.75});
  CHECK(numbers(x) == List{1, 2});
  CHECK(numbers(grad({sum(a)}, {x})[0]) == List{20, 5});
}

// ---- Indices and Masks ----

TEST_CASE("Indices and Masks", "[tensor]") {
  const Indices ids = {{0, 1, 2}, {3, 4, 5}};
  CHECK(ids.shape() == Shape{2, 3});
  CHECK(ids.array()(1, 2) == 5);
  CHECK(ids.size(-1) == 3);
  CHECK(ids.dim() == 2);
  CHECK(numbers(Indices{3}) == std::vector<std::int64_t>{3});
  CHECK(Indices().shape() == Shape{0});
  CHECK(Indices{7}.item() == 7);
  CHECK_THROWS_AS(ids.item(), ShapeError);
  CHECK_THROWS_WITH(ids.item(), ContainsSubstring("(2, 3)"));
  for (const double value : {1.5, 1e300, not_a_number})
    CHECK_THROWS_AS((Indices{1, value}), ValueError);
  CHECK(numbers(Indices(ids.array() + std::int64_t{1})).back() == 6);
  const Mask mask = {{true, false}};
  CHECK(mask.shape() == Shape{1, 2});
  CHECK(mask.array()(0, 0));
  CHECK(!mask.array()(0, 1));
  CHECK(Mask{true}.item());
  CHECK(Mask{2}.item());
}

// With 32-bit addresses a size_t holds only the lower half of these sizes, which would be 3.
TEST_CASE("a size beyond the addresses is refused, not cut off", "[tensor]") {
  constexpr Size beyond = (Size{1} << 32) + 3;
  const auto whole = [](const auto& made) {
    try {
      return made() % beyond == 0;
    } catch (const ShapeError&) {
      return sizeof(std::size_t) == 4;
    }
  };
  CHECK(whole([] { return Shape{beyond}[0]; }));
  CHECK(whole([] { return to_shape({0, beyond}, "test")[1]; }));
  CHECK(whole([] { return zeros({0, beyond}).size(1); }));
  CHECK(whole([] { return expand(zeros({0, 1}), {0, beyond}).size(1); }));
  CHECK(whole([] { return repeat(zeros({0, 2}), {1, beyond}).size(1); }));
  CHECK(whole([] { return repeat_interleave(zeros({0, 2}), beyond, 1).size(1); }));
  if constexpr (sizeof(std::size_t) == 4)  // a sum of sizes and bytes does not wrap around
    CHECK_THROWS_WITH(zeros({Size{1} << 29}), ContainsSubstring("too many elements"));
}

TEST_CASE("an unsigned integer beyond int64 is refused, and not negative", "[tensor]") {
  constexpr std::uint64_t largest = 9223372036854775807U, beyond = largest + 1;
  CHECK(Indices{largest}.item() == 9223372036854775807);
  CHECK(numbers(Indices{-9007199254740993, 1})[0] == -9007199254740993);  // no double equals it
  CHECK_THROWS_WITH(numel(Shape{std::size_t{1} << 31, std::size_t{1} << 31}),
                    ContainsSubstring("too many elements"));
  CHECK_THROWS_WITH((Indices{0, beyond}), ContainsSubstring("not an integer that an int64 holds"));
  CHECK_THROWS_AS((Indices{{1, 2}, {3, ~std::uint64_t{0}}}), ValueError);
  CHECK(tensor({beyond}, DType::float64).item() == 0x1p63);
  const Tensor x = ones({2, 3});
  CHECK_THROWS_WITH(reshape(x, {~std::uint64_t{0}}), ContainsSubstring("18446744073709551615"));
  CHECK_THROWS_AS(reshape(x, ~std::uint64_t{0}), ShapeError);
  CHECK_THROWS_AS(sum(x, {~std::uint64_t{0}}), ShapeError);
  CHECK_THROWS_AS(zeros({beyond, 0}), ShapeError);
  enum Unsigned : std::uint64_t { last = ~std::uint64_t{0} };
  enum Signed : std::int64_t { inferred = -1 };
  CHECK_THROWS_WITH(reshape(x, {last}), ContainsSubstring("18446744073709551615"));
  CHECK(reshape(x, {inferred}).shape() == Shape{6});
  CHECK_THROWS_AS((Shape{2, beyond}), ShapeError);
  CHECK(reshape(x, {-1}).shape() == Shape{6});
}

TEST_CASE("the lower triangle of a Mask", "[tensor]") {
  const auto lower = [](std::int64_t diagonal) {
    const Mask mask = tril(Mask{{true, true, true}, {true, false, true}}, diagonal);
    return std::vector<bool>(mask.data(), mask.data() + mask.numel());
  };
  CHECK(lower(0) == std::vector<bool>{true, false, false, true, false, false});
  CHECK(lower(1) == std::vector<bool>{true, true, false, true, false, true});
  CHECK(lower(-2) == std::vector<bool>(6, false));
  CHECK_THROWS_AS(tril(Mask{true}), ShapeError);
}

// ---- indexing ----

TEST_CASE("indexing takes integers of any type", "[tensor]") {
  const Tensor x = arange(12).reshape({3, 4});
  const std::size_t i = 2;
  const short j = -1;
  CHECK(index(x, {i, j}).item() == 11);
  CHECK(numbers(index(x, {0, Slice{1, 3}})) == List{1, 2});
  CHECK(numbers(x[1][Slice{1, 3}]) == numbers(index(x, {1, Slice{1, 3}})));
  CHECK(x[Slice{0, 1}].shape() == Shape{1, x.size(1)});
  CHECK(numbers(x[Slice{.start = -1}]) == numbers(x[-1]));
  CHECK(numbers(x[Slice{.step = 2}]) == numbers(stack({x[0], x[2]})));
  CHECK(numbers(index(x, {Slice{.step = 2}, i})) == List{2, 10});
  CHECK(index(x, {NewAxis{}, Ellipsis{}, 0}).shape() == Shape{1, 3});
  CHECK(numbers(x[1]) == List{4, 5, 6, 7});
  CHECK(x[-1][0].item() == 8);
  CHECK_THROWS_AS(x[3], ValueError);
}

TEST_CASE("a cat that takes a Tensor twice", "[tensor]") {
  const Tensor x = tensor({1, 2}).requires_grad_();
  const Tensor y = cat({x, x, x * x});
  CHECK(numbers(grad({y}, {x}, {.grad_outputs = {tensor({1, 2, 3, 4, 5, 6})}})[0]) == List{14, 30});
}

TEST_CASE("t() turns a matrix and leaves less alone", "[tensor]") {
  CHECK(numbers(tensor({{1, 2}, {3, 4}}).t()) == List{1, 3, 2, 4});
  CHECK(tensor({1, 2}).t().shape() == Shape{2});
  CHECK(scalar(1).t().shape() == Shape{});
  CHECK_THROWS_AS(zeros({2, 2, 2}).t(), ShapeError);
}
