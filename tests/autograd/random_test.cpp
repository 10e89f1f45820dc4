// The generator compared with numbers that PyTorch 1.13 drew, in this order, from the same seeds.

#include <xgrad/autograd/random.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

namespace {

struct Golden {
  std::uint64_t seed;
  std::vector<std::uint64_t> integers;  // torch.empty(6).random_(0, 2**32 - 1)
  std::vector<float> floats;            // torch.rand
  std::vector<double> doubles;
  std::vector<float> normals_3;          // torch.randn
  std::vector<double> normals_2_double;  // begins with the value kept from the three before
  std::vector<float> normals_19;         // a ragged tail
  std::vector<double> normals_19_double;
  std::vector<float> normals_16;
  std::vector<std::uint64_t> below_1000, below_2_40;  // torch.randint
  std::vector<std::size_t> permutation;               // torch.randperm(10)
  std::vector<float> bernoulli_08;                    // torch.empty(20).bernoulli_(0.8)
  std::vector<double> bernoulli_03_double;
  std::vector<double> exponentials;
  std::vector<std::size_t> multinomials;  // torch.multinomial of (0.1, 0.4, 0, 0.2, 0.3), 1
  std::vector<float> between;             // torch.empty(6).uniform_(-0.1, 0.3)
  std::vector<double> between_double;
  std::vector<float> scaled_3, scaled_17;  // torch.empty(n).normal_(0.5, 2)
  std::vector<float> dropped;              // dropout(torch.ones(12), 0.3)
  float last;                              // torch.rand(1)
};

const std::vector<Golden> golden = {
    {
        .seed = 42,
        .integers = {1608637542, 3421126067, 4083286876, 787846414, 3143890026, 3348747335},
        .floats = {0.256572485, 0.793641329, 0.940771461, 0.133185923, 0.934598088},
        .doubles = {0.74863722709827951, 0.54172271069343025, 0.43523626380682534,
                    0.59123597530011096, 0.0195932486460203},
        .normals_3 = {-1.42853367, -0.280972958, 0.748928428},
        .normals_2_double = {1.1164225635898333, 1.2930886372913752},
        .normals_19 = {-0.871236145, -0.223365918, 1.71736145, -0.48799172, 1.19136906, -0.81400764,
                       -0.735992789, -0.837124646, -0.922390044, 1.8113178, 0.160564929,
                       -0.0978068933, 1.844594, -1.18453741, 1.38354933, -1.20244563, 0.70781225,
                       -1.07588589, 0.535654664},
        .normals_19_double = {-1.2405276437359183, -0.32069813902911876, 1.9312142505772192,
                              -0.23210767943346114, -0.03265155768725795, -2.4472388194699217,
                              -0.44197455027756111, -0.90174211480828148, -1.0639335147664135,
                              0.64918521007640462, -0.063813943993146729, -1.3457475275202437,
                              1.1755166198951001, -2.632792384051851, 0.57814758064101524,
                              0.34666368467190317, -0.91230034627727219, -0.47527976454512172,
                              -0.13499022826985557},
        .normals_16 = {0.0732547641, 0.818653047, 1.48047388, 0.344929487, -1.42412651,
                       -0.116326042, -0.972673893, 0.958457768, -1.43352103, -0.566526771,
                       -0.425283402, 0.262518734, -1.43912423, 0.521381676, 0.348751694,
                       0.967594147},
        .below_1000 = {332, 977, 566, 553, 800, 883, 966, 880},
        .below_2_40 = {306873053963, 691899517984, 203456115190},
        .permutation = {2, 6, 9, 8, 4, 1, 0, 3, 7, 5},
        .bernoulli_08 = {1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0},
        .bernoulli_03_double = {0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1},
        .exponentials = {0.24230352579373712, 1.6881408558199198, 2.685191781152823,
                         0.11540365448862892},
        .multinomials = {3, 4, 4, 4, 1, 4, 1, 0, 1, 4, 3, 1},
        .between = {0.281961799, -0.0704103038, 0.0236081611, 0.21665059, 0.056426432,
                    0.0590599552},
        .between_double = {0.033133454505095687, 0.28480527822690088, 0.20085828534821065,
                           0.073057132697209287},
        .scaled_3 = {1.32744837F, 2.27772355F, 3.05162716F},
        .scaled_17 = {-0.315012217F, -0.440441668F, -0.717287064F, 0.40761596F, -2.79147959F,
                      -0.892044663F, 0.97178489F, 2.15617228F, 0.720886171F, 2.56963539F,
                      -0.752875566F, -0.530184507F, 1.88057995F, 4.58058405F, -2.09588647F,
                      1.73213851F, -0.00168758631F},
        .dropped = {1.42857146F, 1.42857146F, 0, 0, 0, 1.42857146F, 1.42857146F, 1.42857146F, 0,
                    1.42857146F, 0, 1.42857146F},
        .last = 0.471693099F,
    },
    {
        .seed = 1337,
        .integers = {1125387415, 2407456957, 681542492, 913057000, 1194544295, 2332513753},
        .floats = {0.585123479, 0.696675897, 0.176138997, 0.259526372, 0.708562136},
        .doubles = {0.64749539467951067, 0.13495205692543411, 0.94694267883994854,
                    0.6634026123400788, 0.25233239473108038},
        .normals_3 = {1.02477205, -1.19720018, 0.989257991},
        .normals_2_double = {-0.85544079576215204, -0.46273076853990419},
        .normals_19 = {-0.251275241, 1.01014483, 0.121546753, -1.51083457, 2.10477304, 2.762959,
                       -1.74652922, 0.4109191, -0.242185265, 0.420811921, 0.277596444, 0.778898299,
                       1.53326881, 1.60973644, -0.403228134, -0.274928361, 1.47384012, 0.0688263848,
                       1.33270776},
        .normals_19_double = {1.0114256792552139, 0.38297372787601053, 0.53381382597195792,
                              -1.2400426813368353, -0.6089914500658905, -0.81097407105845731,
                              0.93158297143190316, 0.26657751987562495, 1.2592136227803701,
                              1.2597092391471971, 0.73135447627791772, 0.76088606228076738,
                              1.370097238267697, 0.7231663348773657, 0.19538274478653242,
                              0.055090887511538233, -0.69624025773658593, -0.16975285359962186,
                              0.076006820736597619},
        .normals_16 = {0.289316267, 0.83577317, -0.244991109, 0.271223307, 0.0936363861,
                       -0.88343215, 2.28743649, 0.961138546, -0.380765647, 0.377507746, 0.11191228,
                       2.31427932, -0.79890573, -0.564302742, -0.99127394, 0.169989198},
        .below_1000 = {553, 796, 831, 785, 334, 799, 575, 10},
        .below_2_40 = {801832427271, 919175400643, 804746481035},
        .permutation = {5, 4, 9, 8, 6, 3, 1, 2, 0, 7},
        .bernoulli_08 = {1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        .bernoulli_03_double = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0},
        .exponentials = {1.1401301503554115, 0.91105091475116795, 0.43666390676481831,
                         0.60143537983781559},
        .multinomials = {4, 1, 4, 1, 4, 3, 0, 1, 4, 1, 1, 4},
        .between = {-0.0126703503, 0.114726476, 0.0908124447, 0.200266361, 0.291284293,
                    -0.0192453396},
        .between_double = {0.11356874092953073, 0.25931888232610856, 0.042658205436026636,
                           0.21832591007923124},
        .scaled_3 = {-2.48670697, -0.0307689924, 0.713673592},
        .scaled_17 = {-1.58282542, 2.54133821, 6.9163208, -7.02481604, -0.566019893, 1.71427751,
                      -3.34368801, 2.99062204, 2.62417173, 1.60248327, -1.97271752, 2.38177705,
                      2.02168512, 0.155387163, -0.198809862, 0.606190383, -0.83108902},
        .dropped = {0, 1.42857146, 0, 0, 0, 1.42857146, 0, 0, 0, 1.42857146, 1.42857146, 0},
        .last = 0.592101634F,
    },
};

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

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

constexpr double float_normal = 1e-6, double_normal = 1e-15;

}  // namespace

TEST_CASE("random: every transform gives PyTorch's numbers", "[random]") {
  for (const Golden& expected : golden) {
    INFO("seed " << expected.seed);
    Generator g(expected.seed);
    CHECK(drawn(6, [&] { return g.random_below(0xffffffff); }) == expected.integers);
    CHECK(filled<float>(5, [&](auto out) { fill_uniform(out, g); }) == expected.floats);
    CHECK(filled<double>(5, [&](auto out) { fill_uniform(out, g); }) == expected.doubles);
    const auto normals = [&](auto out) { fill_normal(out, g); };
    CHECK(largest_difference(filled<float>(3, normals), expected.normals_3) < float_normal);
    CHECK(largest_difference(filled<double>(2, normals), expected.normals_2_double) <
          double_normal);
    CHECK(largest_difference(filled<float>(19, normals), expected.normals_19) < float_normal);
    CHECK(largest_difference(filled<double>(19, normals), expected.normals_19_double) <
          double_normal);
    CHECK(largest_difference(filled<float>(16, normals), expected.normals_16) < float_normal);
    CHECK(drawn(8, [&] { return g.random_below(1000); }) == expected.below_1000);
    CHECK(drawn(3, [&] { return g.random_below(std::uint64_t{1} << 40); }) == expected.below_2_40);
    std::vector<std::size_t> p(10);
    std::iota(p.begin(), p.end(), std::size_t{0});
    for (std::size_t i = 0; i + 1 < p.size(); ++i)
      std::swap(p[i], p[i + g.random_below(p.size() - i)]);
    CHECK(p == expected.permutation);
    CHECK(filled<float>(20, [&](auto out) { fill_bernoulli(out, 0.8, g); }) ==
          expected.bernoulli_08);
    CHECK(filled<double>(20, [&](auto out) { fill_bernoulli(out, 0.3, g); }) ==
          expected.bernoulli_03_double);
    CHECK(largest_difference(drawn(4, [&] { return g.exponential(); }), expected.exponentials) <
          double_normal);
    const std::vector<float> weights{0.1F, 0.4F, 0, 0.2F, 0.3F};
    CHECK(drawn(12, [&] { return multinomial(weights, g); }) == expected.multinomials);
    CHECK(filled<float>(6, [&](auto out) { fill_uniform(out, -0.1, 0.3, g); }) == expected.between);
    CHECK(largest_difference(filled<double>(4, [&](auto out) { fill_uniform(out, -0.1, 0.3, g); }),
                             expected.between_double) < double_normal);
    const auto scaled = [&](auto out) { fill_normal(out, 0.5, 2, g); };
    CHECK(largest_difference(filled<float>(3, scaled), expected.scaled_3) < 4 * float_normal);
    CHECK(largest_difference(filled<float>(17, scaled), expected.scaled_17) < 4 * float_normal);
    const Tensor dropped = dropout(ones({12}), 0.3, true, g);
    const float* const first = dropped.data<float>();
    CHECK(std::vector<float>(first, first + 12) == expected.dropped);
    CHECK(g.uniform_float() == expected.last);
  }
}

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
