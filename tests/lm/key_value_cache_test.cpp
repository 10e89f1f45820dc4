// The key/value cache: the same numbers and tokens as without it, and its errors.

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/init.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using nn::KeyValueCache;

namespace {

constexpr lm::GPTConfig small{
    .block_size = 12, .vocab_size = 11, .n_layer = 2, .n_head = 3, .n_embd = 24};

lm::GPT far_from_uniform(lm::GPTConfig sizes = small) {
  manual_seed(1337);
  lm::GPT model(sizes);
  for (Tensor p : nn::parameters(model))
    p.copy_(p * 8);
  return model;
}

Indices columns(const Indices& x, Size begin, Size end) {
  auto part = empty_array<std::int64_t>({x.size(0), end - begin});
  for (Size b = 0; b < x.size(0); ++b)
    std::copy(x.data() + b * x.size(1) + begin, x.data() + b * x.size(1) + end,
              part.data() + b * (end - begin));
  return part;
}

bool same(const Indices& a, const Indices& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.numel(), b.data());
}

// Generation as nanoGPT does it: the whole window through the model for each token.
Indices generate_uncached(lm::GPT model, Indices ids, Size tokens, Generator& generator,
                          double temperature, Size top_k) {
  const NoGrad no_grad;
  nn::eval(model);
  for (Size step = 0; step < tokens; ++step) {
    const Size B = ids.size(0), T = ids.size(1);
    const Size first = std::max<Size>(0, T - model.config.block_size);
    const Tensor logits = model(columns(ids, first, T)).to(DType::float32).select(1, -1);
    auto longer = empty_array<std::int64_t>({B, T + 1});
    for (Size b = 0; b < B; ++b) {
      Tensor row = logits[b];
      std::int64_t next = row.argmax().item();
      if (temperature != 0) {
        row = row / temperature;
        const Tensor least = topk(row, top_k).values[-1];
        row = softmax(row.masked_fill(row < least, -INFINITY), 0);
        const std::span weights(row.data<float>(), static_cast<std::size_t>(row.numel()));
        next = static_cast<std::int64_t>(multinomial(weights, generator));
      }
      std::copy_n(ids.data() + b * T, T, longer.data() + b * (T + 1));
      longer.data()[b * (T + 1) + T] = next;
    }
    ids = Indices(std::move(longer));
  }
  return ids;
}

}  // namespace

// ---- the cache itself ----

TEST_CASE("A cache returns all keys and values, in order of calls", "[nn][cache]") {
  const Tensor k = randn({2, 3, 5, 4}), v = randn({2, 3, 5, 6});
  KeyValueCache cache(7);
  CHECK(cache.capacity() == 7);
  Size held = 0;
  for (const Size positions : {2, 0, 1, 2}) {
    const auto part = [&](const Tensor& x) { return x.narrow(2, held, positions); };
    const auto [keys, values, offset] = cache.append(part(k), part(v));
    CHECK(offset == static_cast<Size>(held));
    held += positions;
    CHECK(cache.length() == held);
    REQUIRE(keys.shape() == Shape{2, 3, 7, 4});
    REQUIRE(values.shape() == Shape{2, 3, 7, 6});
    CHECK(allclose(keys.narrow(2, 0, held), k.narrow(2, 0, held), 0, 0));
    CHECK(allclose(values.narrow(2, 0, held), v.narrow(2, 0, held), 0, 0));
    CHECK(total(keys.narrow(2, static_cast<std::int64_t>(held), 7 - held)) == 0);
  }
  cache.truncate(3);
  CHECK(cache.length() == 3);
  const auto again = cache.append(-k.narrow(2, 3, 1), v.narrow(2, 3, 1));
  CHECK(again.offset == 3);
  CHECK(
      allclose(again.keys.narrow(2, 2, 2), cat({k.narrow(2, 2, 1), -k.narrow(2, 3, 1)}, 2), 0, 0));
  cache.truncate(0);
  const Tensor other = ones({1, 4}, DType::float64);  // another shape, another dtype
  CHECK(cache.append(other, other).keys.shape() == Shape{7, 4});
}

TEST_CASE("A cache writes in place, and earlier results keep their values", "[nn][cache]") {
  const Tensor one = ones({2, 1, 4}), two = one * 2;
  KeyValueCache cache(4);
  const float* const memory = [&] {
    const Tensor keys = cache.append(one, one).keys;
    return keys.data<float>();
  }();
  CHECK([&] {
    const Tensor keys = cache.append(one, one).keys;
    return keys.data<float>();
  }() == memory);  // sole owner: not copied

  const Tensor before = cache.append(one, one).keys;
  CHECK(total(before) == 3 * 8);
  KeyValueCache other = cache;
  cache.append(two, two);
  CHECK(total(before) == 3 * 8);
  CHECK(cache.length() == 4);
  CHECK(other.length() == 3);
  const Tensor keys = other.append(-two, two).keys;
  CHECK(total(keys) == 3 * 8 - 16);  // unaffected by the first's continuation
}

TEST_CASE("Errors of a cache do not change it", "[nn][cache]") {
  const Tensor k = ones({2, 3, 1, 4});
  KeyValueCache cache(3);
  cache.append(k, k);
  const auto refuses = [&](const Tensor& a, const Tensor& b, auto error, const char* message) {
    using Error = decltype(error);
    CHECK_THROWS_AS(cache.append(a, b), Error);
    CHECK_THROWS_WITH(cache.append(a, b), ContainsSubstring(message));
    CHECK(cache.length() == 1);
  };
  const Tensor wide = ones({2, 3, 1, 5}), twice = ones({2, 3, 2, 4}), thrice = ones({2, 3, 3, 4});
  refuses(k, twice, ShapeError(""), "k (2, 3, 1, 4) and v (2, 3, 2, 4) are not (..., T, D)");
  refuses(ones(4), ones(4), ShapeError(""), "k (4,)");
  refuses(wide, k, ShapeError(""), "k (2, 3, 1, 5) does not continue the cached (2, 3, 1, 4)");
  refuses(k, wide, ShapeError(""), "v (2, 3, 1, 5) does not continue");
  const Tensor batch = ones({1, 3, 1, 4}), matrix = ones({1, 4});
  refuses(batch, batch, ShapeError(""), "k (1, 3, 1, 4) does not continue");
  refuses(matrix, matrix, ShapeError(""), "k (1, 4) does not continue");
  const Tensor d = k.to(DType::float64);
  refuses(d, d, DTypeError(""), "k is float64 but the cache is float32");
  refuses(k, d, DTypeError(""), "k is float32 but v is float64");
  refuses(thrice, thrice, ValueError(""),
          "1 positions are cached and 3 more exceed its capacity, 3");
  Tensor leaf = ones({2, 3, 1, 4});
  leaf.requires_grad_();
  refuses(leaf, k, GraphError(""), "use NoGrad");
  refuses(k, leaf * 2, GraphError(""), "use NoGrad");
  CHECK_THROWS_AS(cache.truncate(2), ValueError);

  const NoGrad no_grad;
  const auto [keys, values, offset] = cache.append(2 * leaf, twice.narrow(2, 0, 1));
  CHECK(offset == 1);
  CHECK(total(keys) == 24 + 48);
  CHECK(total(values) == 48);
  CHECK_FALSE(keys.requires_grad());
}

// ---- attention ----

TEST_CASE("Attention by parts with a cache is attention at once", "[nn][cache][attention]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const std::size_t batch = GENERATE(1, 3);
  manual_seed(2);
  const Tensor x = randn({batch, 40, 24}, dtype);
  lm::TransformerBlock block(24, 3);
  nn::MultiHeadAttention heads(24, 4);
  nn::init::normal_(heads.in_proj_bias, 0, 1);
  nn::to(block, dtype);
  nn::to(heads, dtype);
  const NoGrad no_grad;
  const Tensor expected = block(x);
  const Tensor attended = heads(x, x, x, {.is_causal = true, .need_weights = false}).output;
  const Tensor qkv = randn({batch, 40, 24}, dtype);  // two heads of four channels, packed
  const Tensor packed = causal_self_attention(qkv, 2);

  KeyValueCache of_block(40), of_heads(41), of_mine(50), of_packed(40);
  std::int64_t at = 0;
  for (const std::size_t length : {1, 5, 1, 1, 32}) {
    INFO("positions " << at << " and " << length - 1 << " more");
    const Tensor part = x.narrow(1, at, length);
    const double close = dtype == DType::float32 ? 2e-6 : 1e-13;
    const auto is = [&](const Tensor& y, const Tensor& whole) {
      CHECK(allclose(y, whole.narrow(1, at, length), close, close));
    };
    is(block(part, &of_block), expected);
    is(heads(part, part, part, {.is_causal = true, .need_weights = false, .cache = &of_heads})
           .output,
       attended);
    const Tensor qkv_part = qkv.narrow(1, at, length);
    is(nn::causal_self_attention(qkv_part, 2, of_packed), packed);

    // As in a user's attention.
    const auto split = [&](const Tensor& y) {
      return y.reshape({batch, length, 2, 4}).transpose(1, 2);
    };
    const auto [q, k, v] = qkv_part.chunk<3>(-1);
    const auto [keys, values, offset] = of_mine.append(split(k), split(v));
    const Tensor y = scaled_dot_product_attention(split(q), keys, values,
                                                  {.is_causal = true, .causal_offset = offset});
    is(y.transpose(1, 2).reshape({batch, length, 8}), packed);
    at += static_cast<std::int64_t>(length);
  }
}

TEST_CASE("Errors of layers with a cache", "[nn][cache]") {
  const Tensor x = randn({1, 2, 8});
  KeyValueCache cache(4);
  lm::CausalSelfAttention attention(8, 2, 0.1);
  CHECK_THROWS_AS(attention(x, &cache), ValueError);  // in training, with dropout
  attention.training = false;
  CHECK_THROWS_AS(attention(x, &cache), GraphError);
  CHECK_THROWS_AS(nn::causal_self_attention(x, 3, cache), ShapeError);
  CHECK_THROWS_AS(nn::causal_self_attention(x, 0, cache), ValueError);
  const NoGrad no_grad;
  attention(x, &cache);
  CHECK(cache.length() == 2);
  attention.c_proj.weight = ones({8, 7});  // fails after the keys were appended
  CHECK_THROWS_AS(attention(x, &cache), ShapeError);
  CHECK(cache.length() == 2);
  lm::TransformerBlock block(8, 2);
  block.mlp.c_fc.weight = ones({8, 7});
  CHECK_THROWS_AS(block(x, &cache), ShapeError);
  CHECK(cache.length() == 2);

  const nn::MultiHeadAttention heads(8, 2);
  KeyValueCache empty(4);
  const Tensor y = x + 1;
  const Mask mask{{1, 0}, {0, 1}};
  CHECK_THROWS_AS(heads(x, x, x, {.need_weights = false, .cache = &empty}), ValueError);
  CHECK_THROWS_AS(heads(x, x, x, {.is_causal = true, .cache = &empty}), ValueError);
  CHECK_THROWS_AS(heads(x, y, y, {.is_causal = true, .need_weights = false, .cache = &empty}),
                  ValueError);
  CHECK_THROWS_AS(
      heads(x, x, x,
            {.attn_mask = mask, .is_causal = true, .need_weights = false, .cache = &empty}),
      ValueError);
  CHECK_THROWS_AS(nn::MultiHeadAttention(8, 2, {.dropout = 0.5})(
                      x, x, x, {.is_causal = true, .need_weights = false, .cache = &empty}),
                  ValueError);
  CHECK(empty.length() == 0);
}

// ---- GPT ----

TEST_CASE("A GPT with caches gives the logits of one without", "[gpt][cache]") {
  lm::GPT model = far_from_uniform();
  const DType dtype = GENERATE(DType::float32, DType::float64);
  nn::to(model, dtype);
  const Indices ids{{1, 5, 3, 0, 10, 2, 2, 9, 4, 4, 6, 1}, {7, 8, 9, 4, 1, 1, 6, 0, 0, 3, 2, 8}};
  const NoGrad no_grad;
  const Tensor expected = model(ids);
  const double close = dtype == DType::float32 ? 1e-4 : 1e-12;
  std::vector<KeyValueCache> caches(2, KeyValueCache(12));
  for (const auto& [begin, end] : std::vector<std::pair<Size, Size>>{{0, 4}, {4, 5}, {5, 11}}) {
    const Tensor logits = model(columns(ids, begin, end), caches);
    CHECK(allclose(logits, expected.narrow(1, begin, end - begin), close, close));
  }
  const std::vector<KeyValueCache> before = caches;
  CHECK(allclose(model.last_logits(columns(ids, 11, 12), caches), expected.select(1, -1), close,
                 close));
  CHECK(caches[1].length() == 12);

  // A failed call restores the caches, even if some blocks have appended.
  caches = before;
  CHECK_THROWS_WITH(model(columns(ids, 0, 2), caches), ContainsSubstring("less 11 in the caches"));
  CHECK_THROWS_AS(model(columns(Indices{{1}}, 0, 1), caches), ShapeError);  // one text, not two
  lm::GPT broken = model;
  broken.h[1].mlp.c_fc.weight = ones({3, 3}, dtype);
  CHECK_THROWS_AS(broken(columns(ids, 11, 12), caches), ShapeError);
  CHECK(caches[0].length() == 11);
  CHECK(caches[1].length() == 11);
  CHECK(allclose(model.last_logits(columns(ids, 11, 12), caches), expected.select(1, -1), close,
                 close));

  CHECK_THROWS_WITH(model(ids, std::span(caches).first(1)), ContainsSubstring("1 cache for 2"));
  caches[0].truncate(3);
  CHECK_THROWS_WITH(model(ids, caches), ContainsSubstring("one cache holds 3 positions"));
}

TEST_CASE("Generation gives the tokens of one without a cache", "[gpt][generate][cache]") {
  lm::GPT model = far_from_uniform();
  const DType dtype = GENERATE(DType::float32, DType::float64);
  nn::to(model, dtype);
  const std::vector<Indices> prompts{Indices{{3}}, Indices{{1, 2}, {3, 4}, {0, 0}},
                                     Indices{{1, 5, 3, 0, 10, 2, 2, 9, 4, 4, 6, 1}},
                                     Indices{{1, 5, 3, 0, 10, 2, 2, 9, 4, 4, 6, 1, 7, 7},
                                             {1, 5, 3, 0, 10, 2, 2, 9, 4, 4, 6, 1, 7, 8}}};
  for (const Indices& prompt : prompts)
    for (const double temperature : {0.0, 0.8, 1.5})
      for (const Size top_k : {3, 11})
        for (const Size tokens : {1, 7, 40}) {
          INFO(to_string(prompt.shape()) << " temperature " << temperature << " top_k " << top_k);
          Generator one(5), two(5);
          const Indices cached =
              model.generate(prompt, tokens, one, {.temperature = temperature, .top_k = top_k});
          CHECK(same(cached, generate_uncached(model, prompt, tokens, two, temperature, top_k)));
          CHECK(one.state() == two.state());
        }
}

TEST_CASE("An exception in on_token ends the generation and corrupts nothing",
          "[generate][cache]") {
  const lm::GPT model = far_from_uniform();
  Generator one(5), two(5);
  std::size_t seen = 0;
  CHECK_THROWS_AS(model.generate({{3}, {4}}, 30, one,
                                 {.on_token =
                                      [&](auto) {
                                        if (++seen == 4)
                                          throw std::runtime_error("enough");
                                      }}),
                  std::runtime_error);
  model.generate({{3}, {4}}, 4, two);
  CHECK(one.state() == two.state());  // the draws of four tokens, and no more
  CHECK(same(model.generate({{3}, {4}}, 30, one), model.generate({{3}, {4}}, 30, two)));
}

TEST_CASE("Truncated positions of a cache are gone", "[cache]") {
  const NoGrad no_grad;
  nn::KeyValueCache cache(4);
  cache.append(zeros({1, 1, 0, 2}), zeros({1, 1, 0, 2}));  // no positions: nothing is held
  cache.append(full({2, 1, 3, 2}, 7), full({2, 1, 3, 2}, 7));
  cache.truncate(1);
  const auto held = cache.append(ones({2, 1, 1, 2}), ones({2, 1, 1, 2}));
  for (const Tensor& x : {held.keys, held.values})
    CHECK(x.narrow(2, 2, 2).abs().sum().item() == 0);

  const lm::GPT model = far_from_uniform();
  std::vector<nn::KeyValueCache> caches(model.h.size(), nn::KeyValueCache(6));
  model.last_logits({{1, 2, 3, 4, 5}}, caches);
  caches.back().truncate(3);
  CHECK_THROWS_AS(model.last_logits({{1}}, caches), ValueError);
  CHECK(caches.front().length() == 5);
  CHECK(caches.back().length() == 3);
}

TEST_CASE("As many tokens as there are numbers, until on_token ends it", "[generate][cache]") {
  const lm::GPT model = far_from_uniform();
  Generator generator(5);
  const auto enough = [](auto) { throw std::runtime_error("enough"); };
  CHECK_THROWS_WITH(
      model.generate({{3, 4}}, std::numeric_limits<Size>::max(), generator, {.on_token = enough}),
      "enough");
}
