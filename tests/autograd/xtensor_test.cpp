// xtensor in and out: every kind of container, layout, view and adaptor.

#include <fmt/format.h>

#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/xgrad.hpp>
#if __has_include(<xtensor/io/xio.hpp>)
#include <xtensor/generators/xbuilder.hpp>
#include <xtensor/io/xio.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xstrided_view.hpp>
#else
#include <xtensor/xbuilder.hpp>
#include <xtensor/xio.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xstrided_view.hpp>
#endif

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using List = std::vector<double>;
constexpr auto column_major = xt::layout_type::column_major;

}  // namespace

TEMPLATE_TEST_CASE("a row-major container that is moved in is not copied", "[xtensor]", float,
                   double) {
  using T = TestType;
  const auto taken = [](auto container) {
    const T* const at = container.data();
    const Shape shape(container.shape().begin(), container.shape().end());
    const Tensor x = std::move(container);
    CHECK(x.shape() == shape);
    CHECK(x.dtype() == dtype_of<T>);
    return x.numel() > 0 && x.data<T>() == at;
  };
  CHECK(taken(xt::xarray<T>{{1, 2, 3}, {4, 5, 6}}));
  CHECK(taken(xt::xtensor<T, 2>{{1, 2, 3}, {4, 5, 6}}));
  CHECK(taken(xt::xtensor<T, 1>{1, 2}));
  CHECK(taken(xt::xarray<T>(T(7))));  // 0-d
  CHECK(taken(XArray<T>{{1, 2}}));
  CHECK(taken(xt::xarray<T, xt::layout_type::dynamic>(std::vector<std::size_t>{2, 2},
                                                      xt::layout_type::row_major)));
  // others are copied
  CHECK_FALSE(taken(xt::xarray<T, column_major>{{1, 2}, {3, 4}}));
  CHECK_FALSE(taken(xt::xtensor<T, 1, column_major>{1, 2}));
  CHECK_FALSE(
      taken(xt::xarray<T, xt::layout_type::dynamic>(std::vector<std::size_t>{2, 2}, column_major)));
  CHECK_FALSE(taken(xt::xarray<T>::from_shape({0, 3})));
}

TEST_CASE("an array that is not moved in is copied, in row-major order", "[xtensor]") {
  xt::xarray<float> a = {{1, 2, 3}, {4, 5, 6}};
  const xt::xarray<float> constant = a;
  const Tensor x = a, y = constant, z = std::move(constant);
  a(0, 0) = 100;
  CHECK(numbers(x) == List{1, 2, 3, 4, 5, 6});
  CHECK(numbers(y) == numbers(x));
  CHECK(numbers(z) == numbers(x));
  CHECK(constant.size() == 6);

  const xt::xarray<float, column_major> columns = {{1, 2, 3}, {4, 5, 6}};
  CHECK(numbers(Tensor(columns)) == List{1, 2, 3, 4, 5, 6});
  CHECK(numbers(Tensor(xt::xtensor<double, 2, column_major>(columns))) == numbers(x));
  const xt::xtensor_fixed<float, xt::xshape<2, 2>> fixed = {{1, 2}, {3, 4}};
  CHECK(numbers(Tensor(fixed)) == List{1, 2, 3, 4});
  CHECK(numbers(Tensor(xt::xtensor_fixed<float, xt::xshape<2, 2>>(fixed))) == List{1, 2, 3, 4});
  CHECK(numbers(Tensor(xt::view(columns, xt::all(), xt::range(1, 3)))) == List{2, 3, 5, 6});
  CHECK(numbers(Tensor(xt::view(columns, 1))) == List{4, 5, 6});
  CHECK(numbers(Tensor(xt::transpose(columns))) == List{1, 4, 2, 5, 3, 6});
  CHECK(numbers(Tensor(xt::strided_view(columns, {xt::ellipsis(), 0}))) == List{1, 4});
  CHECK(numbers(Tensor(xt::broadcast(fixed, {2, 2, 2}))) == List{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(numbers(Tensor(columns * 2.0F + 1.0F)) == List{3, 5, 7, 9, 11, 13});
  CHECK(numbers(Tensor(xt::sum(columns, {1}))) == List{6, 15});
  CHECK(numbers(Tensor(xt::eye<double>(2))) == List{1, 0, 0, 1});
  CHECK(Tensor(xt::xarray<double>::from_shape({2, 0})).shape() == Shape{2, 0});
  CHECK(Tensor(xt::xarray<double>(3.5)).item() == 3.5);
  CHECK(numbers(Tensor(xt::cast<float>(xt::xarray<int>{1, 2}))) == List{1, 2});

  std::vector<float> raw = {1, 2, 3, 4};
  const auto adaptor = xt::adapt(raw, {2, 2});
  CHECK(numbers(Tensor(adaptor)) == List{1, 2, 3, 4});
  // an adaptor does not own its elements, so even a temporary one is copied
  const Tensor shown = xt::adapt(raw.data(), 4, xt::no_ownership(), std::vector<std::size_t>{4});
  raw[0] = 9;
  CHECK(numbers(shown) == List{1, 2, 3, 4});
}

TEST_CASE("integers and truth values become Indices and Masks", "[xtensor]") {
  xt::xtensor<std::int64_t, 1> ids = {3, 1};
  const std::int64_t* const at = ids.data();
  const Indices taken = std::move(ids);
  CHECK(taken.data() == at);
  const Indices narrow = xt::xarray<int>{{1, 2}, {3, 4}};
  CHECK(narrow.shape() == Shape{2, 2});
  CHECK(narrow.data()[3] == 4);
  const xt::xarray<bool> flags = {true, false};
  const Mask mask = flags;
  CHECK(!mask.data()[1]);
  const Mask computed = narrow.array() > 2;
  CHECK(computed.data()[2]);
  static_assert(!std::is_constructible_v<Tensor, xt::xarray<int>>);
  static_assert(!std::is_constructible_v<Tensor, xt::xarray<bool>>);
  static_assert(!std::is_constructible_v<Indices, xt::xarray<bool>>);
  static_assert(!std::is_constructible_v<Indices, xt::xarray<float>>);
  static_assert(!std::is_constructible_v<Mask, xt::xarray<int>>);
}

TEST_CASE("a value comes out as an expression on the same memory", "[xtensor]") {
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const auto a = x.array<float>();
  CHECK(a.data() == x.data<float>());
  CHECK(a.dimension() == 2);
  CHECK(a(1, 0) == 4);
  const xt::xarray<float> copy = x.array<float>();
  CHECK(copy == a);
  const xt::xtensor<float, 2> of_rank = x.array<float>();
  CHECK(of_rank(1, 2) == 6);
  CHECK(xt::view(x.array<float>(), 1, xt::range(1, 3))(0) == 5);
  CHECK(xt::mean(x.array<float>())() == Approx(3.5));
  const xt::xarray<float> rows = xt::sum(x.array<float>(), {1});
  CHECK(rows(1) == 15);
  std::ostringstream text;
  text << xt::print_options::precision(2) << x.array<float>();
  CHECK(text.str() == "{{ 1.,  2.,  3.},\n { 4.,  5.,  6.}}");
  CHECK(x.array<float>()(0, 1) == 2);
  CHECK_THROWS_AS(x.array<double>(), DTypeError);
  CHECK_THROWS_AS(Tensor().array<float>(), ValueError);
  static_assert(std::is_const_v<std::remove_reference_t<decltype(a(0, 0))>>);
  static_assert(
      std::is_const_v<std::remove_pointer_t<decltype(x.array<float>().data())>>);  // read-only

  // It keeps the values of its time, even if the Tensor is destroyed.
  const auto old = x[1].array<float>();
  x.update([](auto& values) { values.fill(0); });
  CHECK(a(1, 0) == 4);
  CHECK(old(2) == 6);
  CHECK(scalar(5).array<float>()() == 5);
  CHECK(zeros({0, 2}).array<float>().size() == 0);
  const auto expression = tensor({1, 2}).array<float>() * 2.0F + x.array<float>()(0, 0);
  CHECK(expression(1) == 4);
}

TEST_CASE("an op in xtensor expressions, forward and backward", "[xtensor]") {
  const auto square = [](const Tensor& x) {
    return record(
        "square", {x},
        [](std::span<const Tensor> in) { return Tensor(xt::square(in[0].array<double>())); },
        [x = Saved(x)](Context& ctx) {
          ctx.add(0, 2.0 * x.tensor().array<double>() * ctx.gradient().array<double>());
        });
  };
  const Tensor x = randn({3, 4}, DType::float64).requires_grad_();
  const auto report = gradcheck([&](const std::vector<Tensor>& in) { return square(in[0]); }, {x});
  INFO(report.message);
  CHECK(report);
}

TEST_CASE("fmt prints Tensors, Indices and Masks", "[xtensor]") {
  CHECK(fmt::format("{}", tensor({1, 2})) == "tensor([1., 2.])");
  CHECK(fmt::format("{}", Indices{1, 2}) == "tensor([1, 2])");
  CHECK(fmt::format("{:>30}|", Mask{true}) == "                tensor([True])|");
}

TEST_CASE("unsigned integers that no int64 holds are refused", "[xtensor]") {
  constexpr std::uint64_t largest = 9223372036854775807U;
  const Indices fits = xt::xarray<std::uint64_t>{1, largest};
  CHECK(fits.data()[1] == 9223372036854775807);
  CHECK_THROWS_WITH(Indices(xt::xarray<std::uint64_t>{1, largest + 1}),
                    ContainsSubstring("beyond 9223372036854775807"));
  const xt::xarray<std::uint64_t> kept{~std::uint64_t{0}};
  CHECK_THROWS_AS(Indices(kept), ValueError);
  CHECK_THROWS_AS(Indices(kept * std::uint64_t{1}), ValueError);
  CHECK(Indices(xt::xarray<std::uint32_t>{~std::uint32_t{0}}).item() == 4294967295);
  CHECK(Indices(xt::xarray<std::int64_t>{-1}).item() == -1);
}

// xtensor computes wrong elements where it broadcasts a lazy reduction that keeps its dimensions.
TEST_CASE("a lazy reduction that is broadcast is refused, however it is wrapped", "[xtensor]") {
  const xt::xarray<float> a = {{1, 1, 2}, {3, 1, 2}};
  const auto refused = []<class E>(const E&) { return detail::broadcasts_reduction<E>; };
  const auto lazy = [&] { return xt::sum(a, {1}, xt::keep_dims); };
  const auto quotient = [&] { return a / lazy(); };
  CHECK(refused(quotient()));
  CHECK(refused(2.F * xt::sqrt(quotient())));
  CHECK(refused(xt::sum(quotient(), {1})));
  CHECK(refused(xt::view(quotient(), xt::all(), 1)));
  CHECK(refused(xt::view(xt::exp(quotient()), 1) + 1.F));
  CHECK(refused(xt::strided_view(quotient(), {xt::all(), 1})));
  CHECK(refused(xt::transpose(quotient())));
  CHECK(refused(xt::broadcast(lazy(), {2, 3})));
  CHECK(refused(a - xt::broadcast(1.F / lazy(), {2, 3})));
  const auto sum = xt::eval(lazy());
  CHECK_FALSE(refused(lazy()));
  CHECK_FALSE(refused(1.F / xt::sqrt(lazy())));
  CHECK_FALSE(refused(xt::sum(lazy(), {0})));
  CHECK_FALSE(refused(a / sum));
  CHECK_FALSE(refused(xt::sum(a / sum, {1}, xt::keep_dims)));
  CHECK_FALSE(refused(xt::view(a, xt::all(), 1) / xt::sum(a, {1})));
  CHECK_FALSE(refused(xt::broadcast(sum, {2, 3})));
  CHECK(numbers(Tensor(1.F / lazy())) == List{0.25, 1.F / 6});
  CHECK(numbers(Tensor(xt::sum(lazy(), {0}))) == List{10});
}
