// The generator: long fills, seeds, states and errors.  golden/random_test.cpp compares every
// transform with PyTorch's draws.

#include <xgrad/autograd/random.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

namespace {

template <class T, class F>
std::vector<T> filled(std::size_t n, F fill) {
  std::vector<T> values(n);
  fill(std::span<T>(values));
  return values;
}

template <class F>
auto drawn(std::size_t n, F draw) {
  std::vector<decltype(draw())> values(n);
  for (auto& value : values)
    value = draw();
  return values;
}

}  // namespace

TEST_CASE("random: a long fill equals single draws", "[random]") {
  // Longer than the 624 words of a block, and doubles that begin on an odd one.
  const std::size_t n = 2000;
  Generator fast(7), slow(7);
  CHECK(filled<float>(n + 1, [&](auto out) { fill_uniform(out, fast); }) ==
        drawn(n + 1, [&] { return slow.uniform_float(); }));
  CHECK(filled<double>(n, [&](auto out) { fill_uniform(out, fast); }) ==
        drawn(n, [&] { return slow.uniform_double(); }));
  CHECK(filled<float>(n, [&](auto out) { fill_bernoulli(out, 0.37, fast); }) ==
        drawn(n, [&] { return slow.uniform_double() < 0.37 ? 1.0F : 0.0F; }));
  const auto exponentials = filled<double>(n, [&](auto out) { fill_exponential(out, 1, fast); });
  for (const double x : exponentials)
    CHECK(x == Approx(slow.exponential()).epsilon(1e-14));
  CHECK(fast.state() == slow.state());

  std::vector<std::uint32_t> blocks;
  while (blocks.size() < n) {
    const auto block = fast.random_block(n - blocks.size());
    REQUIRE(!block.empty());
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  CHECK(blocks == drawn(n, [&] { return slow.random(); }));
}

TEST_CASE("random: long fills of normals follow Box-Muller in blocks of 16", "[random]") {
  const std::size_t n = 16 * 37;
  Generator g(3), uniforms(3);
  const auto z = filled<float>(n, [&](auto out) { fill_normal(out, g); });
  const auto u = filled<float>(n, [&](auto out) { fill_uniform(out, uniforms); });
  double worst = 0;
  for (std::size_t block = 0; block < n; block += 16)
    for (std::size_t i = block; i < block + 8; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - double{u[i]}));
      const double theta = 6.283185307179586 * double{u[i + 8]};
      worst = std::max({worst, std::abs(z[i] - radius * std::cos(theta)),
                        std::abs(z[i + 8] - radius * std::sin(theta))});
    }
  CHECK(worst < 3e-6);  // an angle rounded to float, times a radius of at most 5.8
}

TEST_CASE("random: seeding starts over", "[random]") {
  Generator g(11);
  const double first = g.normal();
  CHECK(g.normal() != first);
  (void)g.normal();  // one is kept now
  g.manual_seed(11);
  CHECK(g.normal() == first);
  g.manual_seed((std::uint64_t{5} << 32) + 11);  // the high bits do not count
  CHECK(g.normal() == first);

  manual_seed(11);
  CHECK(default_generator().normal() == first);
}

TEST_CASE("random: bernoulli's ends are exact", "[random]") {
  Generator g(1);
  CHECK(filled<float>(100, [&](auto out) { fill_bernoulli(out, 0, g); }) ==
        std::vector<float>(100, 0.0F));
  CHECK(filled<float>(100, [&](auto out) { fill_bernoulli(out, 1, g); }) ==
        std::vector<float>(100, 1.0F));
}

TEST_CASE("random: state goes around and carries the kept normal", "[random]") {
  for (const std::size_t draws : {0, 1, 5, 623, 624, 700}) {
    Generator g(21), other(99);
    for (std::size_t i = 0; i < draws; ++i)
      (void)g.random();
    if (draws % 2 == 1)
      (void)g.normal();
    const std::string state = g.state();
    other.set_state(state);
    CHECK(other.state() == state);
    for (int i = 0; i < 3; ++i)
      CHECK(other.normal() == g.normal());
    for (int i = 0; i < 1300; ++i)
      REQUIRE(other.random() == g.random());
    CHECK(g.state() != state);
  }
}

TEST_CASE("random: a text that is not a state is rejected and changes nothing", "[random]") {
  Generator g(21);
  (void)g.normal();
  const std::string good = g.state();
  std::string upper = good;
  upper.replace(upper.find_last_of("abcdef"), 1, "A");
  std::string position = good;
  position.replace(10, 3, "271");  // 625 of 624
  std::string not_finite = good;
  not_finite.replace(14, 16, "7ff8000000000000");
  const std::string dead = "mt19937-1 000 - " + std::string(624 * 8, '0');
  for (const std::string& bad : {std::string(), std::string("hello"), good + "\n", good + "0",
                                 " " + good, good.substr(0, good.size() - 1), good.substr(1),
                                 "mt19937-2" + good.substr(9), upper, position, not_finite, dead}) {
    CHECK_THROWS_AS(g.set_state(bad), FileError);
    CHECK(g.state() == good);
  }
}

TEST_CASE("random: arguments out of range are errors", "[random]") {
  Generator g(1);
  std::vector<float> out(4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double p : {-0.1, 1.1, nan})
    CHECK_THROWS_AS(fill_bernoulli(out, p, g), ValueError);
  CHECK_THROWS_AS(fill_normal(out, 0, -1, g), ValueError);
  CHECK_THROWS_AS(fill_normal(out, 0, nan, g), ValueError);
  CHECK_THROWS_AS(fill_uniform(out, 1, 0, g), ValueError);
  CHECK_THROWS_AS(fill_uniform(out, 0, std::numeric_limits<double>::infinity(), g), ValueError);
  for (const double rate : {0.0, -1.0, nan})
    CHECK_THROWS_WITH(fill_exponential(out, rate, g),
                      ContainsSubstring("is not positive and finite"));
  CHECK_THROWS_AS(g.random_below(0), ValueError);
  const float float_inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& weights :
       {std::vector<float>{}, {0, 0}, {1, -1}, {1, float_inf}, {std::nanf(""), 1}})
    CHECK_THROWS_AS(multinomial(weights, g), ValueError);
  CHECK_THROWS_WITH(bernoulli(tensor({0.5, 1.5}), g),
                    ContainsSubstring("bernoulli: p 1.5 at place 1 is not between 0 and 1"));
  CHECK_THROWS_WITH(multinomial(tensor({{1, 1}, {2, -1}}), 1, true, g),
                    ContainsSubstring("multinomial: weight -1 at 1 of row 1 is negative"));
  CHECK_THROWS_WITH(multinomial(tensor({1, 0, 2}), 3, false, g),
                    ContainsSubstring("2 of the 3 weights of row 0 are positive; at least 3"));
  CHECK_THROWS_AS(multinomial(zeros({3}), 1, true, g), ValueError);
  CHECK_THROWS_AS(multinomial(ones({3}), 0, true, g), ValueError);
  CHECK_THROWS_AS(multinomial(ones({1, 1, 3}), 1, true, g), ShapeError);
  CHECK_THROWS_AS(multinomial(zeros({2, 0}), 1, true, g), ValueError);
  CHECK(g.state() == Generator(1).state());  // nothing was drawn
}

TEST_CASE("multinomial, which skips logarithms, draws as if it computed all", "[random]") {
  Generator g(7), same(7), numbers(1);
  for (const double spread : {0.0, 1e-6, 1.0, 10.0, 60.0})
    for (int i = 0; i < 300; ++i) {
      std::vector<float> weights(i == 0 ? 1 : 97);
      for (float& w : weights)
        w = static_cast<float>(std::exp(spread * (numbers.uniform_double() - 1)));
      weights.back() = i % 2 == 0 ? weights.back() : 0;
      INFO("spread " << spread << ", draw " << i);
      const Indices expected = multinomial(Tensor(std::vector{weights}), 1, false, same);
      CHECK(multinomial(weights, g) == static_cast<std::size_t>(expected.data()[0]));
    }
  CHECK(g.state() == same.state());
}

TEST_CASE("Generators are equal if they go on alike, whatever they drew before", "[random]") {
  Generator a(7), b(5), c(3);
  a.manual_seed(5);
  CHECK(a == b);
  a.random();
  c.set_state(a.state());
  CHECK(a == c);
  CHECK_FALSE(a == b);
}
