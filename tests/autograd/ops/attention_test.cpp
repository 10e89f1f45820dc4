// Attention by the fused op, packed and composed, which must agree; masks, NaN and dropout.

#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>

#include "golden/samples.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

// Standard normal values one by one: dropout below keeps the mean of these.
Tensor drawn(const Dims& sizes, std::uint64_t seed) {
  Generator generator(seed);
  auto a = empty_array<double>(to_shape(sizes, "drawn"));
  std::generate_n(a.data(), a.size(), [&] { return generator.normal(); });
  return Tensor(std::move(a));
}

// The largest |a - b|, relative to b's largest magnitude; NaN if there is a NaN.
double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Tensor x = to(a.detach(), DType::float64), y = to(b.detach(), DType::float64);
  double most = 0, largest = 0;
  for (Size i = 0; i < x.numel(); ++i) {
    const double difference = std::abs(x.data<double>()[i] - y.data<double>()[i]);
    if (std::isnan(difference))
      return difference;
    most = std::max(most, difference);
    largest = std::max(largest, std::abs(y.data<double>()[i]));
  }
  return largest > 0 ? most / largest : most;
}

Tensor leaf(const Dims& shape, std::uint64_t seed, DType dtype) {
  Tensor x = clone(to(drawn(shape, seed), dtype));
  return x.requires_grad_();
}

double tolerance(DType dtype) { return dtype == DType::float32 ? 2e-6 : 1e-14; }

// Attention in its plain form; `visible` is added to the scores.
Tensor in_ops(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return matmul(softmax(matmul(q, transpose(k, -2, -1)) * scale + bias, -1), v);
}

Tensor causal_bias(std::size_t t, std::size_t s, DType dtype) {
  return masked_fill(zeros({t, s}, dtype), triu(ones({t, s}), 1) > 0.5, -inf);
}

std::vector<Tensor> gradients(const Tensor& y, const std::vector<Tensor>& inputs,
                              bool create_graph = false) {
  const Tensor v = to(drawn(y.shape(), 9), y.dtype());
  return grad({y}, inputs,
              {.grad_outputs = {v}, .create_graph = create_graph, .retain_graph = true});
}

}  // namespace

TEST_CASE("fused attention is attention in ops", "[attention]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  // sizes around the 8 queries that are worth packing, the kernel's block of 24 queries and its
  // panels of 8 to 32 keys
  const auto [t, s] =
      GENERATE(std::pair{1, 1}, std::pair{7, 40}, std::pair{8, 40}, std::pair{23, 25},
               std::pair{24, 16}, std::pair{65, 17}, std::pair{100, 130});
  const bool causal = GENERATE(false, true);
  const Tensor q = leaf({2, 3, t, 12}, 1, dtype), k = leaf({2, 3, s, 12}, 2, dtype),
               v = leaf({2, 3, s, 9}, 3, dtype), bias = leaf({t, s}, 4, dtype);
  const Tensor total = causal ? bias + causal_bias(q.size(-2), k.size(-2), dtype) : bias;
  const Tensor fused = scaled_dot_product_attention(q, k, v, total);
  const Tensor composed = in_ops(q, k, v, total);
  CHECK(distance(fused, composed) < tolerance(dtype));
  const auto ordinary = gradients(fused, {q, k, v, bias});
  const auto graph = gradients(fused, {q, k, v, bias}, true);
  const auto expected = gradients(composed, {q, k, v, bias});
  for (std::size_t i = 0; i < 4; ++i) {
    INFO("gradient " << i << " in " << to_string(dtype));
    if (i < 3 || s > 1) {  // with one key the weight is 1 for any mask
      CHECK(distance(ordinary[i], expected[i]) < 2 * tolerance(dtype));
      CHECK(distance(graph[i], expected[i]) < 2 * tolerance(dtype));
    }
  }
  if (causal) {
    const Tensor by_flag =
        scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = true});
    const Tensor by_mask = scaled_dot_product_attention(q, k, v, tril(Mask(ones({t, s}) > 0.5)));
    const Tensor by_bias = in_ops(q, k, v, causal_bias(q.size(-2), k.size(-2), dtype));
    CHECK(distance(by_flag, by_bias) < tolerance(dtype));
    CHECK(distance(by_mask, by_bias) < tolerance(dtype));
  }
}

TEST_CASE("packed attention is split, attention, merge", "[attention]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const double p = GENERATE(0.0, 0.25);
  constexpr std::size_t b = 2, t = 70, h = 3, d = 10, c = h * d;
  const Tensor qkv = leaf({b, t, 3 * c}, 1, dtype);
  const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {b, t, h, d}), 1, 2); };
  const auto parts = split(qkv, c, -1);
  manual_seed(3);
  const Tensor packed = causal_self_attention(qkv, h, p);
  const double next = default_generator().uniform_double();
  manual_seed(3);
  const Tensor apart = scaled_dot_product_attention(
      heads(parts[0]), heads(parts[1]), heads(parts[2]), {.is_causal = true, .dropout_p = p});
  CHECK(default_generator().uniform_double() == next);
  const Tensor merged = reshape(transpose(apart, 1, 2), {b, t, c});
  CHECK(same_bits(packed, merged));
  const auto ordinary = gradients(packed, {qkv}), expected = gradients(merged, {qkv});
  const auto graph = gradients(packed, {qkv}, true);
  CHECK(same_bits(ordinary[0], expected[0]));
  CHECK(distance(graph[0], expected[0]) < 2 * tolerance(dtype));
  // adding to a gradient that is already there
  const Tensor twice = packed + causal_self_attention(qkv, h);
  const auto sum = gradients(twice, {qkv});
  const auto other = gradients(causal_self_attention(qkv, h), {qkv});
  CHECK(distance(sum[0], expected[0] + other[0]) < 2 * tolerance(dtype));
}

// 0 to T - 1 at random, and values outside of that: (..., T).
Indices first_keys(const Dims& sizes, std::int64_t from, std::int64_t to) {
  Generator generator(7);
  auto list = empty_array<std::int64_t>(to_shape(sizes, "first_keys"));
  std::generate_n(list.data(), list.size(), [&] {
    return from +
           static_cast<std::int64_t>(generator.random() % static_cast<std::uint64_t>(to - from));
  });
  return Indices(std::move(list));
}

TEST_CASE("first keys hide what a mask hides", "[attention]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const Dims sizes = GENERATE(Dims{70}, Dims{1}, Dims{2, 1, 70}, Dims{3, 70}, Dims{2, 3, 1});
  const auto [low, high] = GENERATE(std::pair{-20, 90}, std::pair{40, 60});
  const Size offset = GENERATE(0, 5, -3);
  const std::size_t groups = GENERATE(1U, 3U);
  const double p = GENERATE(0.0, 0.25);
  constexpr std::size_t t = 70, s = 75, d = 12;
  const Tensor q = leaf({2, 3, t, d}, 1, dtype), k = leaf({2, groups, s, d}, 2, dtype),
               v = leaf({2, groups, s, 9}, 3, dtype);
  const Indices first = first_keys(sizes, low, high);
  const Mask causal = tril(zeros({t, s}) == 0, offset);
  const Mask open = causal & ~(arange_indices(0, s) < unsqueeze(first, -1));
  const auto by_key = [&] {
    manual_seed(3);
    return scaled_dot_product_attention(q, k, v,
                                        {.is_causal = true,
                                         .dropout_p = p,
                                         .causal_offset = offset,
                                         .first_key = first,
                                         .enable_gqa = groups < 3});
  };
  manual_seed(3);
  const Tensor expected =
      scaled_dot_product_attention(q, k, v, open, {.dropout_p = p, .enable_gqa = groups < 3});
  const Tensor y = by_key();
  CHECK(distance(y, expected) < tolerance(dtype));
  const auto wanted = gradients(expected, {q, k, v});
  const auto ordinary = gradients(y, {q, k, v}), graph = gradients(y, {q, k, v}, true);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(distance(ordinary[i], wanted[i]) < 2 * tolerance(dtype));
    CHECK(distance(graph[i], wanted[i]) < 2 * tolerance(dtype));
  }
}

// From 1,024 queries on, blocks are larger; sums of more than 256 keys have several pieces.
TEST_CASE("attention over a long text is attention in ops", "[attention]") {
  const Size t = 1030, window = GENERATE(1030, 300);
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const Tensor q = leaf({2, t, 12}, 1, dtype), k = leaf({2, t, 12}, 2, dtype),
               v = leaf({2, t, 9}, 3, dtype);
  std::vector<std::int64_t> first;
  for (Size i = 0; i < t; ++i)
    first.push_back(std::max<Size>(0, i - window + 1));
  const Mask hidden = arange_indices(0, t) < unsqueeze(Indices(first), -1);
  const Tensor bias = masked_fill(causal_bias(q.size(-2), k.size(-2), dtype), hidden, -inf);
  const Tensor fused =
      scaled_dot_product_attention(q, k, v, {.is_causal = true, .first_key = Indices(first)});
  const Tensor composed = in_ops(q, k, v, bias);
  CHECK(distance(fused, composed) < tolerance(dtype));
  const auto ordinary = gradients(fused, {q, k, v}), expected = gradients(composed, {q, k, v});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(distance(ordinary[i], expected[i]) < 2 * tolerance(dtype));
}

TEST_CASE("packed attention takes first keys", "[attention]") {
  constexpr std::size_t b = 2, t = 70, h = 3, d = 10, c = h * d;
  const Indices first = first_keys({2, 1, t}, 0, t);
  const Tensor qkv = leaf({b, t, 3 * c}, 1, DType::float32);
  const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {b, t, h, d}), 1, 2); };
  const auto parts = split(qkv, c, -1);
  const Tensor packed = causal_self_attention(qkv, h, 0, first);
  const Tensor apart = scaled_dot_product_attention(
      heads(parts[0]), heads(parts[1]), heads(parts[2]), {.is_causal = true, .first_key = first});
  const Tensor merged = reshape(transpose(apart, 1, 2), {b, t, c});
  CHECK(same_bits(packed, merged));
  CHECK(same_bits(gradients(packed, {qkv})[0], gradients(merged, {qkv})[0]));
  CHECK_THROWS_AS(causal_self_attention(qkv, h, 0, Indices{1, 2}), ShapeError);
  CHECK_THROWS_WITH(causal_self_attention(qkv, h, 0, first_keys({4, 1, 1, 1}, 0, 1)),
                    ContainsSubstring("first_key (4, 1, 1, 1) does not broadcast to the queries "
                                      "(2, 3, 70)"));
}

TEST_CASE("a key that first keys hide from every query counts as absent", "[attention]") {
  const bool create_graph = GENERATE(false, true);
  const Tensor q = leaf({40, 4}, 1, DType::float32), v = leaf({40, 4}, 3, DType::float32);
  Tensor k = to(drawn({40, 4}, 2), DType::float32);
  set_element(k, 9, std::nan(""));
  k.requires_grad_();
  const Tensor y = scaled_dot_product_attention(
      q, k, v, {.is_causal = true, .first_key = Indices(std::vector<std::int64_t>(40, 3))});
  CHECK(all(isfinite(y)));
  CHECK(all(narrow(y, 0, 0, 3) == 0));
  for (const Tensor& g : gradients(y, {q, k, v}, create_graph))
    CHECK(all(isfinite(g)));
  const AttentionOptions not_causal{.first_key = Indices{0}};
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, v, not_causal),
                    ContainsSubstring("first_key is given but is_causal is false"));
}

TEST_CASE("a key that first keys hide gets nothing from a query whose weights are NaN",
          "[attention]") {
  Tensor q = to(drawn({40, 4}, 1), DType::float32), k = to(drawn({40, 4}, 2), DType::float32);
  const Tensor v = to(drawn({40, 4}, 3), DType::float32);
  for (Tensor* const x : {&q, &k})  // row 9's score for key 9 overflows
    set_element(*x, 9 * 4, 1e38);
  std::vector<std::int64_t> first(40, 3);
  first[9] = 5;
  k.requires_grad_();
  const Tensor y =
      scaled_dot_product_attention(q, k, v, {.is_causal = true, .first_key = Indices(first)});
  CHECK(!any(isfinite(select(y, 0, 9))));
  const Mask finite = isfinite(gradients(y, {k})[0]);
  CHECK(all(narrow(finite, 0, 0, 5)));
  CHECK(!any(narrow(finite, 0, 5, 5)));
}

TEST_CASE("a row that may look nowhere is zero, and so are its gradients", "[attention]") {
  const bool create_graph = GENERATE(false, true);
  const Tensor q = leaf({40, 4}, 1, DType::float32), k = leaf({50, 4}, 2, DType::float32),
               v = leaf({50, 4}, 3, DType::float32);
  // queries 0 and 35 see nothing, and no query sees key 7
  auto open = empty_array<bool>({40, 50});
  auto added = empty_array<float>({40, 50});
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 50; ++j) {
      open.data()[i * 50 + j] = i != 0 && i != 35 && j != 7;
      added.data()[i * 50 + j] =
          open.data()[i * 50 + j] ? 0.5F : -std::numeric_limits<float>::infinity();
    }
  Tensor bias(std::move(added));
  bias.requires_grad_();
  const Mask open_mask(std::move(open));
  const Tensor by_mask = scaled_dot_product_attention(q, k, v, open_mask);
  const Tensor by_bias = scaled_dot_product_attention(q, k, v, bias);
  CHECK(distance(by_bias, by_mask) < tolerance(DType::float32));
  for (const Tensor& y : {by_mask, by_bias}) {
    CHECK(all(isfinite(y)));
    CHECK(all(select(y, 0, 0) == 0));
    CHECK(all(select(y, 0, 35) == 0));
    CHECK(any(select(y, 0, 34) != 0));
    const auto g = gradients(y, {q, k, v}, create_graph);
    for (const Tensor& gradient : g)
      CHECK(all(isfinite(gradient)));
    CHECK(all(select(g[0], 0, 35) == 0));
    CHECK(all(select(g[1], 0, 7) == 0));
    CHECK(all(select(g[2], 0, 7) == 0));
    CHECK(any(select(g[1], 0, 8) != 0));
  }
  const Tensor d_bias = gradients(by_bias, {bias}, create_graph)[0];
  CHECK(all(isfinite(d_bias)));
  CHECK(all(masked_fill(d_bias, open_mask, 0) == 0));
  CHECK(any(d_bias != 0));
}

TEST_CASE("a NaN shows up where it was seen, and nowhere else", "[attention]") {
  Tensor q = to(drawn({40, 4}, 1), DType::float32);
  const Tensor k = to(drawn({40, 4}, 2), DType::float32);
  for (std::size_t i = 0; i < 40; i += 3)
    set_element(q, i * 4 + i % 4, std::numeric_limits<double>::quiet_NaN());
  const Tensor y = scaled_dot_product_attention(q, k, k, AttentionOptions{.is_causal = true});
  const Mask finite = isfinite(y);
  for (Size i = 0; i < finite.numel(); ++i)
    CHECK(finite.data()[i] == (i / 4 % 3 != 0));
}

TEST_CASE("a NaN is seen even if it is the only key", "[attention]") {
  Tensor q = to(drawn({8, 4}, 1), DType::float32);
  const Tensor k = to(drawn({8, 4}, 2), DType::float32);
  set_element(q, 0, std::numeric_limits<double>::quiet_NaN());
  auto third = empty_array<bool>({8});
  for (std::size_t j = 0; j < 8; ++j)
    third.data()[j] = j == 2;
  const Tensor y = scaled_dot_product_attention(q, k, k, Mask(std::move(third)));
  CHECK(!any(isfinite(select(y, 0, 0))));
  CHECK(all(isfinite(narrow(y, 0, 1, 7))));
}

TEST_CASE("a NaN stays in its own call", "[attention]") {
  const Threads one(1);  // the same scratch memory twice
  const Tensor bad = leaf({64, 4}, 1, DType::float32) * std::nan("");
  const Tensor y = scaled_dot_product_attention(bad, bad, bad);
  CHECK(!any(isfinite(gradients(y, {bad})[0])));
  const Tensor good = leaf({17, 4}, 1, DType::float32);
  const Tensor z = scaled_dot_product_attention(good, good, good);
  CHECK(all(isfinite(z)));
  CHECK(all(isfinite(gradients(z, {good})[0])));
}

TEST_CASE("a softcap that is no number above 0 in the dtype is refused", "[attention]") {
  const auto capped = [](double cap, DType dtype) {
    const Tensor x = ones({2, 2}, dtype);
    return all(isfinite(scaled_dot_product_attention(x, x, x, {.softcap = cap})));
  };
  for (const double cap : {1e39, 1e300, 1e-300})
    CHECK_THROWS_AS(capped(cap, DType::float32), ValueError);
  for (const double cap : {1e-40, 1e38})
    CHECK(capped(cap, DType::float32));
  for (const double cap : {1e300, 1e-300})
    CHECK(capped(cap, DType::float64));
}

TEST_CASE("dropout on attention", "[attention]") {
  const Tensor q = to(drawn({2, 64, 8}, 1), DType::float32);
  const Tensor v = ones({2, 64, 8});
  SECTION("keeps the mean") {
    manual_seed(1);
    const Tensor y = scaled_dot_product_attention(q, q, v, AttentionOptions{.dropout_p = 0.2});
    CHECK(mean(y).item() == Approx(1).margin(0.02));
    CHECK(any(y != 1));
  }
  SECTION("draws for every weight, masked ones included, and only then") {
    Generator expected(1);
    manual_seed(1);
    scaled_dot_product_attention(q, q, v, {.is_causal = true, .dropout_p = 0.2});
    std::vector<float> drawn(2 * 64 * 64);
    fill_bernoulli(std::span(drawn), 0.8, expected);
    CHECK(default_generator().state() == expected.state());
    scaled_dot_product_attention(q, q, v, AttentionOptions{.dropout_p = 0});
    scaled_dot_product_attention(q, q, v, AttentionOptions{.dropout_p = 1});
    CHECK(default_generator().state() == expected.state());
  }
}
