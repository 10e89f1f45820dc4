// Series: smoothed, thinned, and drawn in characters.

#include <xgrad/pages/chart.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/error.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;
using pages::Series;

namespace {

constexpr double nan_y = std::numeric_limits<double>::quiet_NaN();
constexpr double inf_y = std::numeric_limits<double>::infinity();

/// The same numbers, with NaN equal to NaN.
bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(
      a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

TEST_CASE("series: smoothed is TensorBoard's moving average", "[series]") {
  const Series s{"s", {0, 1, 2, 3}, {4, 2, 8, 1}};
  const std::vector<double> ys = pages::smoothed(s, 0.5).ys;
  // By hand: m = 2, 2, 5, 3 over 1/2, 3/4, 7/8, 15/16.
  for (const auto& [i, expected] :
       {std::pair<std::size_t, double>{0, 4.0}, {1, 2 / 0.75}, {2, 5 / 0.875}, {3, 3 / 0.9375}})
    CHECK(ys[i] == Approx(expected).epsilon(1e-14));
  CHECK(pages::smoothed(s, 0).ys == s.ys);
  CHECK(pages::smoothed(s, 0.99).xs == s.xs);
  for (const double y : pages::smoothed({"", {0, 1, 2}, {7, 7, 7}}, 0.999999).ys)
    CHECK(y == Approx(7).epsilon(1e-9));
  // What is not finite stays where it is, and the rest is as if it were not there.
  const std::vector<double> gap =
      pages::smoothed({"", {0, 1, 2, 3, 4, 5}, {4, nan_y, 2, inf_y, 8, 1}}, 0.5).ys;
  CHECK(same_numbers(gap, {ys[0], nan_y, ys[1], inf_y, ys[2], ys[3]}));
  CHECK_THROWS_WITH(pages::smoothed(s, 1), "smoothed: weight is 1; it must be in [0, 1)");
  CHECK_THROWS_AS(pages::smoothed(s, -0.1), ValueError);
  CHECK_THROWS_AS(pages::smoothed(s, nan_y), ValueError);
}

TEST_CASE("series: thinned keeps first, last and extremes of each column", "[series]") {
  const Series s{"s", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 1, 9, 3, 4, 6, 6, 6, 6, 6, 0}};
  const Series two = pages::thinned(s, 2, 0, 10);
  CHECK(two.xs == std::vector<double>{0, 1, 2, 4, 5, 9, 10});
  CHECK(two.ys == std::vector<double>{5, 1, 9, 4, 6, 6, 0});
  CHECK(two.name == "s");
  CHECK(pages::thinned(two, 2, 0, 10).xs == two.xs);  // again changes nothing
  CHECK(pages::thinned(s, 1000, 0, 10).ys == s.ys);   // columns enough
  CHECK(pages::thinned({"", {}, {}}, 5, 0, 1).xs.empty());

  // Gaps stay gaps, and are not many points either.
  Series gaps{"", {}, {}};
  for (int i = 0; i < 1000; ++i) {
    gaps.xs.push_back(i);
    gaps.ys.push_back(i >= 400 && i < 600 ? nan_y : 1);
  }
  const Series few = pages::thinned(gaps, 10, 0, 1000);
  CHECK(few.xs.size() <= 40);
  CHECK(std::ranges::count_if(few.ys, [](double y) { return std::isnan(y); }) == 4);
  CHECK(same_numbers(pages::thinned({"", {nan_y, nan_y, 3}, {1, 2, 3}}, 4, 0, 8).xs, {nan_y, 3}));

  // A million points become few, and their extremes are among them.
  Series million{"", {}, {}};
  for (int i = 0; i < 1'000'000; ++i) {
    million.xs.push_back(i);
    million.ys.push_back(i == 765'432 ? 99 : i == 123'456 ? -99 : std::sin(i));
  }
  const Series thin = pages::thinned(million, 400, 0, 999'999);
  CHECK(thin.xs.size() <= 1604);
  CHECK(std::ranges::count(thin.ys, 99) == 1);
  CHECK(std::ranges::count(thin.ys, -99) == 1);
  CHECK(thin.xs[static_cast<std::size_t>(std::ranges::find(thin.ys, 99) - thin.ys.begin())] ==
        765'432);
}
