// Dropout's masks by counter: Philox's known answers, and what masks depend on.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/kernels/philox.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/gpt.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

using Four = std::array<std::uint32_t, 4>;

Four philox(const Four& counter, std::uint64_t key) {
  std::array<std::uint64_t, 4> words;
  std::ranges::copy(counter, words.begin());
  kernels::philox4x32_10(words, key);
  Four low;
  std::ranges::transform(words, low.begin(),
                         [](std::uint64_t w) { return static_cast<std::uint32_t>(w); });
  return low;
}

/// Rows of a mask, 1 where something is kept.
std::vector<float> rows_kept(std::uint64_t seed, std::uint64_t mask, std::size_t rows,
                             std::size_t width, double p = 0.3) {
  Generator generator;
  generator.use_counter_dropout(seed, mask);
  std::vector<float> all(rows * width);
  fill_dropout(std::span(all), p, generator, rows);
  for (float& scale : all)
    scale = scale != 0 ? 1.F : 0.F;
  return all;
}

/// The sum over cells of (count - expected)^2 / expected, and how many cells are free.
struct MaskStatistics {
  double sum = 0, freedom = 0;

  void add(double count, double expected) {
    sum += (count - expected) * (count - expected) / expected;
  }
  /// Of two masks, or rows: how often both keep, one of them, none.
  void add_pair(std::span<const float> a, std::span<const float> b, double p = 0.3) {
    double cells[2][2] = {};
    for (std::size_t i = 0; i < a.size(); ++i)
      ++cells[a[i] != 0][b[i] != 0];
    for (const std::size_t i : {0, 1})
      for (const std::size_t j : {0, 1})
        add(cells[i][j],
            static_cast<double>(a.size()) * (i == 0 ? p : 1 - p) * (j == 0 ? p : 1 - p));
    freedom += 3;
  }
  /// Neither end is rarer than once in a thousand (Wilson and Hilferty, 1931).
  void check() const {
    const double h = 2 / (9 * freedom), z = (std::cbrt(sum / freedom) - (1 - h)) / std::sqrt(h);
    CAPTURE(sum, freedom);
    CHECK(std::abs(z) < 3.3);
  }
};

}  // namespace

TEST_CASE("Philox 4x32-10 gives the known answers of Random123", "[random][counter]") {
  CHECK(philox({0, 0, 0, 0}, 0) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, ~std::uint64_t{0}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("an element of a mask is its word of Philox, whatever the rest", "[random][counter]") {
  constexpr std::uint64_t seed = 0x123456789abcdef, mask = 0xfedcba9876543210;
  const auto expected = [&](std::uint64_t i, double p) {
    const auto low = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    const Four four = philox({low(i / 4), low(i / 4 >> 32), low(mask), low(mask >> 32)}, seed);
    return four[i % 4] < (1 - p) * 0x1p32;
  };
  for (const std::size_t n : {0, 1, 5, 1024, 40000})
    for (const double p : {0.0, 0.3, 0.5, 0.999999, 1 - 0x1p-50, 1.0}) {
      const Threads threads(1 + n % 3);
      Generator generator;
      generator.use_counter_dropout(seed, mask);
      Generator doubles = generator, bools = generator;
      bools.normal();
      std::vector<float> f(n);
      std::vector<double> d(n);
      const auto b = std::make_unique<bool[]>(n);
      fill_dropout(std::span(f), p, generator);
      fill_dropout(std::span(d), p, doubles);
      fill_dropout(std::span(b.get(), n), p, bools);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const bool keeps = p < 1 && expected(i, p);
        wrong += b[i] != keeps || (keeps ? f[i] != 1 / static_cast<float>(1 - p) : f[i] != 0) ||
                 (keeps ? d[i] != 1 / (1 - p) : d[i] != 0);
      }
      CHECK(wrong == 0);
      CHECK(generator.counter_dropout()->masks == mask + (p < 1 ? 1 : 0));
    }
}

TEST_CASE("a shard has its rows of the batch's mask, and draws nothing else", "[random][counter]") {
  const detail::SameDraws after;
  default_generator().use_counter_dropout(3);
  for (const std::size_t width : {1, 7, 3001}) {
    constexpr std::size_t rows = 7;
    const std::vector<float> whole = rows_kept(3, 0, rows, width);
    for (std::size_t begin = 0; begin < rows; ++begin)
      for (std::size_t end = begin + 1; end <= rows; ++end) {
        const detail::ShardDraws shard(default_generator(), begin, end);
        std::vector<double> part((end - begin) * width);
        fill_dropout(std::span(part), 0.3, default_generator(), end - begin);
        for (double& scale : part)
          scale = scale != 0 ? 1.0 : 0.0;
        CHECK(std::equal(part.begin(), part.end(),
                         whole.begin() + static_cast<std::ptrdiff_t>(begin * width)));
        const std::string state = default_generator().state();
        Generator own;
        own.use_counter_dropout(3);
        CHECK_THROWS_AS(fill_dropout(std::span(part), 0.3, own, end - begin), detail::DrawRefused);
        CHECK_THROWS_AS(dropout(ones({rows + 1}), 0.3), detail::DrawRefused);
        CHECK_THROWS_AS(dropout(scalar(1), 0.3), detail::DrawRefused);
        CHECK_THROWS_AS(rand(1), detail::DrawRefused);
        CHECK(default_generator().state() == state);
      }
    CHECK(default_generator().counter_dropout()->masks == 0);
  }
}

TEST_CASE("masks by counter leave all other draws as they are", "[random][counter]") {
  Generator plain(5), counter(5);
  counter.use_counter_dropout(5);
  for (int i = 0; i < 3; ++i) {
    CHECK(dropout(ones({4, 4}), 0.5, true, counter).numel() == 16);
    CHECK(counter.random() == plain.random());
    CHECK(counter.normal() == plain.normal());
    CHECK(numbers(randperm(9, counter)) == numbers(randperm(9, plain)));
  }
  CHECK(counter.state() == plain.state() + " philox-1 0000000000000005 0000000000000003");
  Generator read;
  read.set_state(counter.state());
  CHECK(read.state() == counter.state());
  CHECK(numbers(dropout(ones({40}), 0.5, true, read)) ==
        numbers(dropout(ones({40}), 0.5, true, counter)));
  const std::string good = counter.state();
  for (const std::string& bad : {good + " ", good.substr(0, good.size() - 1), plain.state() + " ",
                                 plain.state() + " philox-2 0000000000000005 0000000000000003",
                                 plain.state() + " philox-1 000000000000000g 0000000000000003"}) {
    CHECK_THROWS_AS(read.set_state(bad), FileError);
    CHECK(read.counter_dropout()->masks == 4);
  }
  read.set_state(plain.state());
  CHECK_FALSE(read.counter_dropout().has_value());
  counter.manual_seed(6);
  CHECK(counter.counter_dropout()->seed == 6);
  CHECK(counter.counter_dropout()->masks == 0);
}

TEST_CASE("masks by counter: the fraction of zeros, and independence", "[random][counter]") {
  constexpr std::size_t rows = 64, width = 4096, layers = 13;
  MaskStatistics zeros, neighbours, of_rows, of_layers, of_steps, of_seeds;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::vector<float> all = rows_kept(1337, layer, rows, width);
    const auto row = [&](std::size_t r) { return std::span(all).subspan(r * width, width); };
    for (std::size_t r = 0; r < rows; ++r) {
      const double n = std::accumulate(row(r).begin(), row(r).end(), 0.0);
      zeros.add(n, 0.7 * width);
      zeros.add(width - n, 0.3 * width);
      zeros.freedom += 1;
    }
    for (std::size_t r = 0; r < rows; r += 2) {
      of_rows.add_pair(row(r), row(r + 1));
      std::vector<float> even, odd;
      for (std::size_t i = 0; i < width; i += 2) {
        even.push_back(row(r)[i]);
        odd.push_back(row(r)[i + 1]);
      }
      neighbours.add_pair(even, odd);
    }
    if (layer % 2 == 0)
      of_layers.add_pair(all, rows_kept(1337, layer + 1, rows, width));
    of_steps.add_pair(all, rows_kept(1337, layer + layers, rows, width));
    of_seeds.add_pair(all, rows_kept(1338, layer, rows, width));
  }
  for (const MaskStatistics& test : {zeros, neighbours, of_rows, of_layers, of_steps, of_seeds})
    test.check();
}

TEST_CASE("attention drops the same by counter in all its forms", "[attention][counter]") {
  const detail::SameDraws after;
  manual_seed(2);
  const auto run = [](const Tensor& in, bool packed) {
    default_generator().use_counter_dropout(9);
    const auto parts = chunk(in.reshape({-1, 2, 5, 12}), 3, -1);
    return packed ? causal_self_attention(in, 2, 0.4)
                  : scaled_dot_product_attention(parts[0], parts[1], parts[2], {.dropout_p = 0.4});
  };
  const Tensor x = randn({3, 5, 24}, DType::float64).requires_grad_();
  for (const bool packed : {true, false}) {
    const auto gradient = [&](const Tensor& y, bool create_graph) {
      return numbers(grad({(y * y).sum()}, {x}, {.create_graph = create_graph})[0]);
    };
    const Tensor kernel = run(x, packed);
    const Tensor composed = [&] {
      const Decompose guard;
      return run(x, packed);
    }();
    CHECK(allclose(kernel, composed, 1e-12, 1e-12));
    const std::vector<double> expected = gradient(run(x, packed), false);
    for (const auto& other : {gradient(run(x, packed), true), gradient(composed, false)})
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(other[i] == Approx(expected[i]).margin(1e-12));
  }
  const Tensor batch = run(x, true);
  const detail::ShardDraws shard(default_generator(), 1, 3);
  CHECK(allclose(run(narrow(x, 0, 1, 2), true), narrow(batch, 0, 1, 2), 1e-12, 1e-12));
}

TEST_CASE("a clone drops by counter what its model would", "[random][counter]") {
  const detail::SameDraws after;
  const nn::GPT model(
      {.block_size = 4, .vocab_size = 5, .n_layer = 1, .n_head = 1, .n_embd = 4, .dropout = 0.5});
  const Indices ids = {{0, 1, 2, 3}, {3, 2, 1, 0}};
  default_generator().use_counter_dropout(1);
  model.loss(ids, ids);
  const auto twin = nn::clone(model);
  const Generator now = default_generator();
  const double expected = model.loss(ids, ids).item();
  CHECK(model.loss(ids, ids).item() != expected);
  default_generator() = now;
  CHECK(twin.loss(ids, ids).item() == expected);
}
