// Every transform of the generator compared with PyTorch's draws from the same seeds, in the order
// of golden/generator.py.

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/init.hpp>

#include "golden/file.hpp"
#include "helpers/catch.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

constexpr DType both[] = {DType::float32, DType::float64};

// The draws of one case, compared in order.
struct Draws {
  const GoldenFile& file;
  std::string transform;
  std::uint64_t seed;
  Generator g{seed};
  int k = 0;

  std::string next() { return fmt::format("{}/{}/{}", transform, k++, seed); }
  void exact(const Tensor& x) { file.check(next(), x, ErrorUnit::bits); }
  void exact(const Indices& x) { file.check(next(), x); }
  void ulp(const Tensor& x) { file.check(next(), x, ErrorUnit::ulp); }
  void normal(const Tensor& x) {
    // Emscripten's C library has another log, sin and cos of float64; a mean may cancel digits.
    const bool wide = x.dtype() == DType::float64;
#ifdef __EMSCRIPTEN__
    const std::optional<double> limit = wide ? std::optional(8.0) : std::nullopt;
#else
    const std::optional<double> limit;
#endif
    file.check(next(), x, wide ? ErrorUnit::ulp : ErrorUnit::absolute, limit);
  }
};

// A Tensor of n elements that fill(span) wrote.
template <class F>
Tensor filled(std::size_t n, DType dtype, const F& fill) {
  return dispatch(dtype, [&]<class T>() {
    std::vector<T> values(n);
    fill(std::span(values));
    return Tensor(std::move(values));
  });
}

Tensor last(const Tensor& x, std::int64_t n) { return slice(x, 0, -n, std::nullopt); }
Tensor thinned(const Tensor& x) { return slice(x, 0, std::nullopt, std::nullopt, 1001); }

Indices one(std::int64_t value) { return Indices(copy_of(&value, Shape{})); }

void rand_case(Draws& d) {
  for (const DType dtype : both)
    for (const std::size_t n : {1, 7, 33})
      d.exact(rand({n}, d.g, dtype));
  const Tensor big = rand({100003}, d.g).to(DType::float64);
  d.exact(last(big, 5));
  d.exact(sum(big));
}

void uniform_case(Draws& d) {
  constexpr std::pair<double, double> ranges[] = {{-0.1, 0.3}, {0, 1}, {-2, 3}, {5, 5}};
  for (const DType dtype : both)
    for (const auto& [low, high] : ranges)
      d.exact(nn::init::uniform_(zeros({20}, dtype), low, high, d.g));
}

void randn_case(Draws& d) {
  for (const DType dtype : both) {
    for (const std::size_t n : {1, 2, 3, 15, 16, 17, 31, 32, 33, 48, 100})
      d.normal(randn({n}, d.g, dtype));
    d.normal(thinned(randn({100003}, d.g, dtype)));
  }
}

void normal_case(Draws& d) {
  for (const DType dtype : both)
    for (const std::size_t n : {5, 16, 37}) {
      d.normal(nn::init::normal_(zeros({n}, dtype), 0.5, 2, d.g));
      d.normal(nn::init::normal_(zeros({n}, dtype), 0.3, 0.7, d.g));
      d.normal(nn::init::normal_(zeros({n}, dtype), 0, 0.02, d.g));
    }
}

void trunc_normal_case(Draws& d) {
  constexpr double options[][4] = {{0, 1, -2, 2},    {0.5, 0.02, 0.45, 0.6}, {1, 2, -1, 4},
                                   {0, 0.02, -2, 2}, {0, 1, -9, 9},          {0, 1, 3, 6},
                                   {0, 1, -3, 0}};
  for (const DType dtype : both)
    for (const auto& [mean, std, a, b] : options)
      d.normal(nn::init::trunc_normal_(zeros({60}, dtype), mean, std, a, b, d.g));
}

void exponential_case(Draws& d) {
  for (const DType dtype : both)
    for (const double rate : {1.0, 2.5, 0.1})
      d.ulp(filled(25, dtype, [&](auto out) { fill_exponential(out, rate, d.g); }));
}

void bernoulli_case(Draws& d) {
  for (const DType dtype : both) {
    for (const double p : {0.8, 0.3, 0.0, 1.0})
      d.exact(filled(40, dtype, [&](auto out) { fill_bernoulli(out, p, d.g); }));
    const Tensor p = rand({40}, d.g, dtype);
    d.exact(bernoulli(p, d.g));
  }
}

void dropout_case(Draws& d) {
  for (const DType dtype : both)
    for (const double p : {0.1, 0.3, 0.5, 1.0})
      d.exact(dropout(ones({5, 7}, dtype), p, true, d.g));
}

void randint_case(Draws& d) {
  constexpr std::int64_t one_64 = 1;
  constexpr std::pair<std::int64_t, std::int64_t> ranges[] = {
      {0, 2},
      {0, 1000},
      {-5, 7},
      {0, (one_64 << 28) - 1},
      {0, one_64 << 28},
      {0, (one_64 << 32) - 1},
      {0, one_64 << 32},
      {-7, one_64 << 40},
      {-(one_64 << 62), (one_64 << 62) + 5}};
  for (const auto& [low, high] : ranges)
    d.exact(randint(low, high, {12}, d.g));
  const Indices big = randint(0, 1000, {100003}, d.g);
  d.exact(one(std::accumulate(big.data(), big.data() + big.numel(), std::int64_t{0})));
}

void randperm_case(Draws& d) {
  for (const std::size_t n : {0, 1, 2, 20, 63})
    d.exact(randperm(n, d.g));
  const Indices big = randperm(20011, d.g);
  auto some = empty_array<std::int64_t>(Shape{20});
  for (std::size_t i = 0; i < 20; ++i)
    some.data()[i] = big.data()[1001 * i];
  d.exact(Indices(std::move(some)));
  std::int64_t weighted = 0;
  for (Size i = 0; i < big.numel(); ++i)
    weighted += static_cast<std::int64_t>(i) * big.data()[i];
  d.exact(one(weighted));
}

void multinomial_case(Draws& d) {
  for (const DType dtype : both) {
    const Tensor weights = tensor({0.1, 0.4, 0, 0.2, 0.3}, dtype);
    for (int i = 0; i < 6; ++i)
      d.exact(multinomial(weights, 1, false, d.g));
    d.exact(multinomial(weights, 1, true, d.g));
    d.exact(multinomial(weights, 4, false, d.g));
    d.exact(multinomial(weights, 30, true, d.g));
    const Tensor rows = rand({3, 100}, d.g, dtype) * 7;
    d.exact(multinomial(rows, 1, false, d.g));
    d.exact(multinomial(rows, 20, false, d.g));
    d.exact(multinomial(rows, 20, true, d.g));
  }
}

// compare(x, parameter) on sizes below and above 16, with more than two dimensions, in both dtypes.
template <class F>
void initialised(std::initializer_list<double> parameters, const F& compare) {
  for (const DType dtype : both)
    for (const Dims& sizes : {Dims{3, 4}, Dims{5, 7}, Dims{3, 4, 2}})
      for (const double parameter : parameters)
        compare(zeros(sizes, dtype), parameter);
}
const std::initializer_list<double> gains = {1, 5.0 / 3, std::sqrt(2.0)};
const std::initializer_list<double> leaky_slopes = {0, 0.2, std::sqrt(5.0)};

void xavier_uniform_case(Draws& d) {
  initialised(gains, [&](const Tensor& x, double gain) {
    d.exact(nn::init::xavier_uniform_(x, gain, d.g));
  });
}
void xavier_normal_case(Draws& d) {
  initialised(gains, [&](const Tensor& x, double gain) {
    d.normal(nn::init::xavier_normal_(x, gain, d.g));
  });
}
void kaiming_uniform_case(Draws& d) {
  initialised(leaky_slopes, [&](const Tensor& x, double a) {
    d.exact(nn::init::kaiming_uniform_(x, {.a = a}, d.g));
  });
}
void kaiming_normal_case(Draws& d) {
  initialised(leaky_slopes, [&](const Tensor& x, double a) {
    d.normal(nn::init::kaiming_normal_(x, {.a = a}, d.g));
  });
}
void kaiming_options_case(Draws& d) {
  using nn::init::Fan, nn::init::Nonlinearity;
  const nn::init::KaimingOptions kinds[] = {{.nonlinearity = Nonlinearity::relu},
                                            {.mode = Fan::out, .nonlinearity = Nonlinearity::tanh},
                                            {.mode = Fan::out, .nonlinearity = Nonlinearity::selu},
                                            {.nonlinearity = Nonlinearity::linear},
                                            {.nonlinearity = Nonlinearity::sigmoid}};
  initialised({0, 1, 2, 3, 4}, [&](const Tensor& x, double i) {
    d.exact(nn::init::kaiming_uniform_(x, kinds[static_cast<std::size_t>(i)], d.g));
  });
}

void interleaved_case(Draws& d) {
  constexpr DType f64 = DType::float64;
  d.normal(randn({3}, d.g));  // keeps its fourth value
  d.exact(rand({2}, d.g));
  d.exact(randint(0, 100, {3}, d.g));
  d.normal(randn({16}, d.g));
  d.exact(randperm(5, d.g));
  d.normal(randn({2}, d.g, f64));  // begins with the kept value
  d.ulp(filled(3, DType::float32, [&](auto out) { fill_exponential(out, 1, d.g); }));
  d.normal(randn({20}, d.g, f64));
  d.exact(filled(2, DType::float32, [&](auto out) { fill_bernoulli(out, 0.5, d.g); }));
  d.normal(nn::init::normal_(zeros({4}), 3, 0.1, d.g));
  d.normal(nn::init::trunc_normal_(zeros({3}), 0, 1, -2, 2, d.g));
  d.exact(dropout(ones({9}), 0.2, true, d.g));
  d.normal(randn({1}, d.g));
  d.exact(multinomial(ones({9}), 3, false, d.g));
  d.g.manual_seed(5);  // forgets the kept value
  d.normal(randn({1}, d.g, f64));
  d.exact(last(rand({623}, d.g), 3));
  d.exact(rand({3}, d.g, f64));
}

struct Case {
  const char* transform;
  void (*draw)(Draws&);
  bool changed = false;  // between PyTorch 1.13 and 2.15, whose draws are ours
};
constexpr Case cases[] = {
    {"rand", rand_case},
    {"uniform_", uniform_case},
    {"randn", randn_case},
    {"normal_", normal_case},
    {"trunc_normal_", trunc_normal_case, true},
    {"exponential", exponential_case},
    {"bernoulli", bernoulli_case},
    {"dropout", dropout_case},
    {"randint", randint_case, true},
    {"randperm", randperm_case},
    {"multinomial", multinomial_case, true},
    {"xavier_uniform_", xavier_uniform_case},
    {"xavier_normal_", xavier_normal_case},
    {"kaiming_uniform_", kaiming_uniform_case},
    {"kaiming_normal_", kaiming_normal_case},
    {"kaiming_options", kaiming_options_case},
    {"interleaved", interleaved_case, true},
};

}  // namespace

TEST_CASE("golden random: every transform draws PyTorch's numbers", "[random][golden]") {
  const GoldenFile same("generator"), changed("generator_2_15");
  for (const Case& c : cases)
    for (const std::uint64_t seed : {42, 1337}) {
      Draws draws{c.changed ? changed : same, c.transform, seed};
      c.draw(draws);
    }
  CHECK(same.unused() == std::vector<std::string>{});
  CHECK(changed.unused() == std::vector<std::string>{});
}
