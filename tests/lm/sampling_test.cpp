// next_token_probabilities() compared with plain loops, and drawn tokens compared with it.

#include <cmath>
#include <limits>
#include <string>
#include <vector>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/gpt.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

std::vector<double> softmaxed(const std::vector<double>& logits) {
  double sum = 0;
  for (const double v : logits)
    sum += std::exp(v);
  std::vector<double> p;
  for (const double v : logits)
    p.push_back(std::exp(v) / sum);
  return p;
}

void normalise(std::vector<double>& p) {
  double sum = 0;
  for (const double v : p)
    sum += v;
  for (double& v : p)
    v /= sum;
}

// The number of tokens likelier than the i-th; among equals, lower ids count as likelier.
std::size_t rank_of(const std::vector<double>& p, std::size_t i) {
  std::size_t rank = 0;
  for (std::size_t j = 0; j < p.size(); ++j)
    rank += p[j] > p[i] || (p[j] == p[i] && j < i) ? 1 : 0;
  return rank;
}

// The documented steps in their simplest form.
std::vector<double> by_plain_loops(std::vector<double> logits, const lm::GenerateOptions& options) {
  if (options.temperature == 0) {
    std::vector<double> p(logits.size(), 0.0);
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] = rank_of(logits, i) == 0 ? 1 : 0;
    return p;
  }
  for (double& v : logits)
    v /= options.temperature;
  std::vector<double> p = softmaxed(logits);
  if (options.top_k) {
    const std::vector<double> before = p;
    double last = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (rank_of(before, i) + 1 == std::min<std::size_t>(*options.top_k, p.size()))
        last = before[i];
    for (double& v : p)
      v = v < last ? 0 : v;
    normalise(p);
  }
  const std::vector<double> before = p;
  for (std::size_t i = 0; i < p.size(); ++i) {
    double likelier = 0;
    for (std::size_t j = 0; j < p.size(); ++j)
      likelier += rank_of(before, j) < rank_of(before, i) ? before[j] : 0;
    if (options.top_p < 1 && likelier >= options.top_p)
      p[i] = 0;
  }
  normalise(p);
  double largest = 0;
  for (const double v : p)
    largest = std::max(largest, v);
  for (double& v : p)
    v = v < options.min_p * largest ? 0 : v;
  normalise(p);
  return p;
}

std::vector<double> to_vector(const Tensor& x) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < x.numel(); ++i)
    values.push_back(x.reshape({-1})[i].item());
  return values;
}

std::string said(const lm::GenerateOptions& o) {
  return "temperature " + std::to_string(o.temperature) + ", top_k " +
         std::to_string(o.top_k.value_or(0)) + ", top_p " + std::to_string(o.top_p) + ", min_p " +
         std::to_string(o.min_p);
}

void check_probabilities(const Tensor& logits, const lm::GenerateOptions& options) {
  INFO(said(options));
  const Tensor p = lm::next_token_probabilities(logits, options);
  REQUIRE(p.shape() == logits.shape());
  const std::int64_t V = logits.size(-1);
  for (std::int64_t row = 0; row < logits.numel() / V; ++row) {
    const std::vector<double> expected =
        by_plain_loops(to_vector(logits.reshape({-1, V})[row]), options);
    const std::vector<double> found = to_vector(p.reshape({-1, V})[row]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("row " << row << ", token " << i);
      CHECK(found[i] == Approx(expected[i]).margin(1e-6));
      CHECK((found[i] == 0) == (expected[i] == 0));
    }
  }
}

// Pearson's statistic of counts, and the value that it exceeds by chance in one of a thousand cases
// (Wilson and Hilferty's approximation).
struct ChiSquared {
  double statistic, critical;
};
ChiSquared chi_squared(const std::vector<double>& counts, const std::vector<double>& p) {
  double draws = 0, statistic = 0, kinds = -1;
  for (const double n : counts)
    draws += n;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (p[i] == 0)
      continue;
    REQUIRE(draws * p[i] >= 5);  // else the approximation is invalid
    statistic += (counts[i] - draws * p[i]) * (counts[i] - draws * p[i]) / (draws * p[i]);
    ++kinds;
  }
  const double spread = 2 / (9 * kinds);
  return {statistic, kinds * std::pow(1 - spread + 3.0902 * std::sqrt(spread), 3)};
}

}  // namespace

TEST_CASE("The probabilities of the next token are those of plain loops", "[sampling]") {
  manual_seed(7);
  const Tensor logits = 2 * randn({2, 3, 9});
  for (const double temperature : {0.0, 0.5, 1.0, 3.0})
    for (const Size top_k : {1, 4, 9, 1000})
      for (const double top_p : {0.05, 0.6, 0.95, 1.0})
        for (const double min_p : {0.0, 0.1, 1.0})
          check_probabilities(
              logits, {.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p});
}

TEST_CASE("The filters act in the documented order", "[sampling]") {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const Tensor logits = log(Tensor(std::vector<float>{0.5F, 0.25F, 0.125F, 0.125F}));
  const auto p = [&](const lm::GenerateOptions& options) {
    return to_vector(lm::next_token_probabilities(logits, options));
  };
  const auto check = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == Approx(expected[i]).margin(1e-6));
  };
  check(p({}), {0.5, 0.25, 0.125, 0.125});
  // The first of two tokens has 2/3: enough for 0.6; among all four it has less.
  check(p({.top_k = 2, .top_p = 0.6}), {1, 0, 0, 0});
  check(p({.top_p = 0.6}), {2 / 3., 1 / 3., 0, 0});
  // At temperature 1/2 they have 16, 4, 1 and 1 of 22: 0.7 is less than the first of them.
  check(p({.temperature = 0.5, .top_p = 0.7}), {1, 0, 0, 0});
  check(p({.temperature = 0.5, .min_p = 0.2}), {0.8, 0.2, 0, 0});
  check(p({.min_p = 0.2}), {0.5, 0.25, 0.125, 0.125});
  // Ties: top_k keeps those equal to the last; top_p the lower ids.
  check(p({.top_k = 3}), {0.5, 0.25, 0.125, 0.125});
  check(p({.top_p = 0.8}), {4 / 7., 2 / 7., 1 / 7., 0});
}

TEST_CASE("Probabilities of extreme temperatures and logits", "[sampling]") {
  const Tensor logits(std::vector<float>{-3, 7, 7, -200});
  const std::vector<double> first = {0, 1, 0, 0};
  // If float32 cannot hold the quotients, the limit counts.
  for (const double temperature : {0.0, 1e-300, 1e-38})
    CHECK(to_vector(lm::next_token_probabilities(logits, {.temperature = temperature})) == first);
  for (const double temperature : {1e30, 1e300})
    CHECK(to_vector(lm::next_token_probabilities(logits, {.temperature = temperature})) ==
          std::vector<double>(4, 0.25));
  const Tensor negative(std::vector<float>{-3e38F, -1e38F});
  CHECK(to_vector(lm::next_token_probabilities(negative, {.temperature = 0.1})) ==
        std::vector<double>{0, 1});
  CHECK(to_vector(lm::next_token_probabilities(Tensor(std::vector<float>{5}))) ==
        std::vector<double>{1});
  // Many equal ones, whose sum reaches 1 before the last: top_p = 1 keeps them all.
  const Tensor p = lm::next_token_probabilities(zeros({30000}));
  CHECK(p.min().item() > 0);
  const Tensor wide = zeros({2, 3}, DType::float64);
  CHECK(lm::next_token_probabilities(wide).dtype() == DType::float32);
  Tensor trained = randn({2, 3});
  trained.requires_grad_();
  CHECK_FALSE(lm::next_token_probabilities(trained).requires_grad());
}

TEST_CASE("Options and logits that give no distribution", "[sampling]") {
  const Tensor logits = zeros({3});
  const auto refused = [&](const lm::GenerateOptions& options, const std::string& says) {
    CHECK_THROWS_WITH(lm::next_token_probabilities(logits, options), ContainsSubstring(says));
    const lm::GPT model({.block_size = 2, .vocab_size = 3, .n_layer = 1, .n_head = 1, .n_embd = 2});
    Generator generator(1);
    CHECK_THROWS_AS(model.generate({{1}}, 0, generator, options), ValueError);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double temperature : {-1.0, nan, infinity})
    refused({.temperature = temperature}, "it must be 0 or above");
  refused({.top_k = 0}, "top_k is 0");
  for (const double top_p : {0.0, -0.1, 1.1, nan})
    refused({.top_p = top_p}, "it must be above 0 and at most 1");
  for (const double min_p : {-0.1, 1.1, nan})
    refused({.min_p = min_p}, "it must be from 0 to 1");
  // Numbers that float32 cannot hold still count.
  const Tensor wide(std::vector<double>{1e300, 1e300, -1e308});
  CHECK(numbers(lm::next_token_probabilities(wide)) == std::vector<double>{0.5, 0.5, 0});
  CHECK(numbers(
            lm::next_token_probabilities(wide, {.temperature = 1e-9, .top_k = 2, .min_p = 0.1})) ==
        std::vector<double>{0.5, 0.5, 0});
  for (const double bad : {nan, infinity, -infinity})
    CHECK_THROWS_WITH(lm::next_token_probabilities(full({3}, bad)),
                      ContainsSubstring("logits are not finite"));
  CHECK_THROWS_WITH(lm::next_token_probabilities(zeros({2, 0})), ContainsSubstring("(2, 0)"));
  CHECK_THROWS_AS(lm::next_token_probabilities(full({}, 1)), ShapeError);
}

TEST_CASE("Draws have the distribution that they are said to have", "[sampling][generate]") {
  manual_seed(11);
  lm::GPT model({.block_size = 4, .vocab_size = 8, .n_layer = 1, .n_head = 1, .n_embd = 8});
  for (Tensor p : nn::parameters(model))
    p.copy_(p * 5);  // far from uniform
  constexpr std::size_t draws = 4000;
  auto ids = empty_array<std::int64_t>(Shape{draws, 2});
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = static_cast<std::int64_t>(1 + i % 2);
  const Indices prompt(std::move(ids));
  const NoGrad no_grad;
  const std::vector<double> logits = to_vector(model.last_logits({{1, 2}}));
  for (const lm::GenerateOptions& options : std::vector<lm::GenerateOptions>{
           {},
           {.temperature = 1.5},
           {.top_k = 4},
           {.top_p = 0.8},
           {.min_p = 0.3},
           {.temperature = 1.3, .top_k = 6, .top_p = 0.95, .min_p = 0.1}}) {
    INFO(said(options));
    Generator generator(3);
    const Indices drawn = model.generate(prompt, 1, generator, options);
    std::vector<double> counts(8, 0.0);
    for (std::size_t i = 0; i < draws; ++i)
      ++counts[static_cast<std::size_t>(drawn.data()[3 * i + 2])];
    const std::vector<double> p = by_plain_loops(logits, options);
    for (std::size_t i = 0; i < p.size(); ++i) {
      INFO("token " << i);
      CHECK((p[i] > 0 || counts[i] == 0));
    }
    const ChiSquared fits = chi_squared(counts, p);
    CHECK(fits.statistic < fits.critical);
    // The test is sensitive: a temperature that is half as high again fails it.
    lm::GenerateOptions other = options;
    other.temperature *= 1.5;
    const ChiSquared misfits = chi_squared(counts, by_plain_loops(logits, other));
    CHECK(misfits.statistic > misfits.critical);
  }
}

TEST_CASE("Generation ends where it is told to", "[generate]") {
  manual_seed(11);
  const lm::GPT model({.block_size = 4, .vocab_size = 8, .n_layer = 1, .n_head = 1, .n_embd = 8});
  Generator one(3), two(3);
  std::size_t steps = 0;
  const Indices ended = model.generate({{1}, {2}}, 30, one, {.stop = [&] { return ++steps == 6; }});
  CHECK(ended.shape() == Shape{2, 7});
  const Indices whole = model.generate({{1}, {2}}, 6, two);
  CHECK(std::equal(ended.data(), ended.data() + 14, whole.data()));
  CHECK(one.state() == two.state());
}

TEST_CASE("A function changes the logits before each draw", "[generate]") {
  manual_seed(11);
  const lm::GPT model({.block_size = 9, .vocab_size = 8, .n_layer = 1, .n_head = 1, .n_embd = 8});
  Generator generator(3);
  std::vector<Shape> tokens, logits;
  const auto none_but_5 = [&](const Indices& before, const Tensor& x) {
    tokens.push_back(before.shape());
    logits.push_back(x.shape());
    const Tensor never = full({1, 8}, -std::numeric_limits<double>::infinity());
    return where(Indices({0, 1, 2, 3, 4, 5, 6, 7}) == 5, x, never);
  };
  const Indices all = model.generate({{1, 2}, {0, 3}}, 2, generator,
                                     {.top_k = 3, .min_p = 0.1, .logits_processor = none_but_5});
  CHECK(numbers(all.flatten()) == std::vector<std::int64_t>{1, 2, 5, 5, 0, 3, 5, 5});
  CHECK(tokens == std::vector<Shape>{{2, 2}, {2, 3}});
  CHECK(logits == std::vector<Shape>{{2, 8}, {2, 8}});
  // Without padding, each sequence alone.
  tokens.clear();
  model.generate({{1, 2}, {0, 3}}, 2, generator,
                 {.left_padding = {0, 1}, .logits_processor = none_but_5});
  CHECK(tokens == std::vector<Shape>{{1, 2}, {1, 1}, {1, 3}, {1, 2}});

  const auto message = [&](const std::function<Tensor(const Tensor&)>& change) {
    return message_of<Error>([&] {
      model.generate({{1}}, 1, generator,
                     {.logits_processor = [&](auto&, const Tensor& x) { return change(x); }});
    });
  };
  CHECK_THAT(message([](const Tensor&) { return Tensor(); }), ContainsSubstring("no Tensor"));
  CHECK_THAT(message([](const Tensor& x) { return select(x, 0, 0); }),
             ContainsSubstring("logits_processor returned (8,); it must be (1, 8)"));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    CHECK_THAT(
        message([&](const Tensor& x) { return cat({x.narrow(1, 0, 7), full({1, 1}, bad)}, 1); }),
        ContainsSubstring("or are NaN or infinity"));
  CHECK_THAT(message([](const Tensor& x) {
               return full_like(x, -std::numeric_limits<double>::infinity());
             }),
             ContainsSubstring("exclude all tokens"));
}

TEST_CASE("Tokens that have occurred are penalised, and n-grams excluded", "[sampling]") {
  constexpr double never = -std::numeric_limits<double>::infinity();
  const Indices tokens{{1, 2, 1, 2, 1}, {3, 0, 0, 0, 3}};
  const Tensor logits = tensor({{0.5, -1., 2., 3.}, {4., 1., 1., -8.}});
  CHECK(numbers(lm::repetition_penalty(2)(tokens, logits)) ==
        std::vector<double>{0.5, -2, 1, 3, 2, 1, 1, -16});
  CHECK(numbers(lm::no_repeat_ngram(1)(tokens, logits)) ==
        std::vector<double>{0.5, never, never, 3, never, 1, 1, never});
  CHECK(numbers(lm::no_repeat_ngram(2)(tokens, logits)) ==
        std::vector<double>{0.5, -1, never, 3, never, 1, 1, -8});
  CHECK(numbers(lm::no_repeat_ngram(3)(tokens, logits)) ==
        std::vector<double>{0.5, -1, never, 3, 4, 1, 1, -8});
  CHECK(numbers(lm::no_repeat_ngram(6)(tokens, logits)) == numbers(logits));
  for (const double bad : {0.0, -1.0, never, -never, never - never})
    CHECK_THROWS_WITH(lm::repetition_penalty(bad), ContainsSubstring("not positive and finite"));
  CHECK_THROWS_WITH(lm::no_repeat_ngram(0), ContainsSubstring("n is 0"));
  CHECK_THROWS_WITH(lm::no_repeat_ngram(2)({{4}, {0}}, logits),
                    ContainsSubstring("id is 4; it must be from 0 to 3"));
  CHECK_THROWS_AS(lm::no_repeat_ngram(2)({{1}}, logits), ShapeError);
  CHECK(numbers(lm::next_token_probabilities(tensor({0., never, 0.}))) ==
        std::vector<double>{0.5, 0, 0.5});
}

TEST_CASE("A sequence ends at eos_token_id, with a cache and without", "[generate][cache]") {
  for (const Size block_size : {4, 64}) {
    manual_seed(11);
    const lm::GPT model(
        {.block_size = block_size, .vocab_size = 8, .n_layer = 1, .n_head = 1, .n_embd = 8});
    const std::vector<std::int64_t> ends = {6, 2};
    Generator one(3), two(3);
    const Indices prompt{{6}, {1}, {2}};  // prompts may contain them
    std::size_t steps = 0;
    const Indices ended = model.generate(
        prompt, 100, one, {.eos_token_id = ends, .on_token = [&](auto) { ++steps; }});
    // The same draws; after its end, each sequence continues with the first of the ids.
    const Indices whole = model.generate(prompt, steps, two);
    CHECK(one.state() == two.state());
    CHECK(steps < 100);
    REQUIRE(ended.shape() == whole.shape());
    std::size_t last = 0;
    for (std::size_t b = 0; b < 3; ++b) {
      const std::int64_t *const row = ended.data() + b * (steps + 1), *const all = whole.data() +
                                                                                   b * (steps + 1);
      std::size_t n = 1;
      while (n < steps && all[n] != 6 && all[n] != 2)
        ++n;
      last = std::max(last, n);
      CHECK(std::equal(row, row + n + 1, all));
      CHECK(std::all_of(row + n + 1, row + steps + 1, [](std::int64_t id) { return id == 6; }));
    }
    CHECK(last == steps);
    CHECK(model.generate(prompt, 5, one, {.eos_token_id = {-1, 8}}).size(1) == 6);
  }
}
