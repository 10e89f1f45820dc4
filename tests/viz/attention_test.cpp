// The numbers of the attention page, compared with independent computations.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/viz/attention.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using viz::trace_attention;

namespace {

Tensor pow2(const Tensor& x) { return x * x; }

void check_same(const Tensor& a, const Tensor& b, double tolerance = 1e-10) {
  REQUIRE(a.shape() == b.shape());
  CHECK(xgrad::detail::close(numbers(a), numbers(b), tolerance));
}

double largest(const Tensor& x) { return amax(abs(x), {-1, -2, -3}).item(); }

/// The page's scores must equal the run's.
void check_scores(const viz::AttentionLayer& layer) {
  REQUIRE(layer.q.defined());
  Tensor scores = matmul(layer.q, transpose(layer.k, -2, -1)) * layer.scale;
  if (layer.bias.defined())
    scores = scores + layer.bias;
  const std::vector<double> mine = numbers(scores), there = numbers(layer.scores);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (there[i] > -1e8) {
      CHECK(mine[i] == Approx(there[i]).margin(1e-10));
      ++compared;
    }
  CHECK(compared > 0);
  check_same(softmax(layer.scores, -1), layer.weights);
  check_same(sum(layer.weights, {-1}), ones_like(sum(layer.weights, {-1})));
  // softmax's own backward
  const Tensor ag = layer.weights * layer.gradient;
  check_same(ag - layer.weights * sum(ag, {-1}, true), layer.score_gradient);
}

lm::GPT small_gpt(double dropout = 0) {
  manual_seed(5);
  lm::GPT model({.block_size = 8,
                 .vocab_size = 7,
                 .n_layer = 2,
                 .n_head = 3,
                 .n_embd = 12,
                 .dropout = dropout});
  nn::to(model, DType::float64);
  for (Tensor& p : nn::parameters(model))
    p.copy_(p.detach() * 8.0);  // so that attention is not even
  return model;
}
const Indices some_ids{{1, 2, 3, 4, 1, 2}, {6, 5, 4, 3, 2, 1}};
const Indices next_ids{{2, 3, 4, 1, 2, 0}, {5, 4, 3, 2, 1, 6}};

}  // namespace

TEST_CASE("attention page: a fused op shows its composition's values", "[pages]") {
  const lm::GPT model = small_gpt();
  const auto loss = [&] { return model.loss(some_ids, next_ids); };
  const auto run = trace_attention(loss, {.item = 1});
  REQUIRE(run.layers.size() == 2);
  CHECK(run.layers[0].name == "h.0.attn");
  CHECK(run.layers[1].name == "h.1.attn");
  CHECK(run.loss == Approx(loss().item()).epsilon(1e-12));
  check_same(run.logits, select(model(some_ids), 0, 1));

  Trace trace;  // the fused op, which keeps no weights
  const Tensor fused = loss();
  const ModeGuard unseen(Mode{});
  std::size_t l = 0;
  for (const auto& e : trace.events()) {
    if (e.op != "causal_self_attention")
      continue;
    const auto& layer = run.layers.at(l++);
    CHECK(layer.heads == std::vector<std::size_t>{0, 1, 2});
    check_scores(layer);
    const auto heads = [](const Tensor& x, std::int64_t part) {  // of item 1: (3, 6, 4)
      const Tensor mine = narrow(select(x, 0, 1), 1, part * 12, 12);
      return transpose(reshape(mine, {6, 3, 4}), 0, 1);
    };
    check_same(layer.q, heads(e.inputs[0], 0));
    check_same(layer.k, heads(e.inputs[0], 1));
    CHECK(layer.scale == Approx(0.5));
    // dL/dA = dL/dO Vᵀ
    const Tensor d_output = grad({fused}, {e.output}, {.retain_graph = true})[0];
    check_same(layer.gradient,
               matmul(heads(d_output, 0), transpose(heads(e.inputs[0], 2), -2, -1)));
    CHECK(largest(layer.gradient) > 1e-4);
  }
  CHECK(l == 2);
}

TEST_CASE("attention page: gradients agree with differences", "[pages]") {
  const Tensor q = normal({1, 2, 3, 4}, 1).requires_grad_(), k = normal({1, 2, 5, 4}, 2),
               v = normal({1, 2, 5, 2}, 3), w = normal({1, 2, 3, 2}, 4),
               bias = normal({3, 5}, 5).requires_grad_();
  const auto loss = [&](const Tensor& added) {
    return sum(tanh(scaled_dot_product_attention(q, k, v, added)) * w);
  };
  const auto run = trace_attention([&] { return loss(bias); });
  REQUIRE(run.layers.size() == 1);
  const auto& layer = run.layers[0];
  CHECK(layer.name == "attention");
  check_scores(layer);
  CHECK_FALSE(run.logits.defined());
  constexpr double eps = 1e-6;
  for (std::size_t i = 0; i < 2 * 3 * 5; ++i) {  // dL/dA, one weight at a time
    const auto moved = [&](double by) {
      Tensor weights = layer.weights.detach().clone();
      set_element(weights, i, numbers(weights)[i] + by);
      return sum(tanh(matmul(weights, v)) * w).item();
    };
    CHECK(numbers(layer.gradient)[i] ==
          Approx((moved(eps) - moved(-eps)) / (2 * eps)).margin(1e-8));
  }
  for (std::size_t i = 0; i < 3 * 5; ++i) {  // dL/dscores, of both heads
    const auto moved = [&](double by) {
      Tensor other = bias.detach().clone();
      set_element(other, i, numbers(other)[i] + by);
      return loss(other).item();
    };
    const std::vector<double> both = numbers(sum(layer.score_gradient, {0}));
    CHECK(both[i] == Approx((moved(eps) - moved(-eps)) / (2 * eps)).margin(1e-8));
  }
}

TEST_CASE("attention page: the loss without a head is that of a model without it", "[pages]") {
  const lm::GPT model = small_gpt();
  const auto loss = [&] { return model.loss(some_ids, next_ids); };
  const auto run = trace_attention(loss);
  for (std::size_t l = 0; l < 2; ++l)
    for (std::size_t h = 0; h < 3; ++h) {
      lm::GPT other = nn::clone(model);
      const Tensor weight = other.h[l].attn.c_proj.weight;  // (12, 12): a head's columns read it
      std::vector<double> values = numbers(weight);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (i % 12 / 4 == h)
          values[i] = 0;
      Tensor(weight).copy_(reshape(Tensor(std::move(values)), {12, 12}));
      CHECK(run.layers[l].loss_without[h] ==
            Approx(other.loss(some_ids, next_ids).item()).epsilon(1e-12));
      CHECK(std::abs(run.layers[l].loss_without[h] - run.loss) > 1e-6);
    }
}

TEST_CASE("attention page: heads of grouped queries are counted through", "[pages]") {
  manual_seed(5);
  lm::GPT model(lm::GPTConfig::llama({.block_size = 8,
                                      .vocab_size = 7,
                                      .n_layer = 1,
                                      .n_head = 4,
                                      .n_embd = 16,
                                      .n_kv_head = 2,
                                      .n_inner = 8}));
  nn::to(model, DType::float64);
  for (Tensor& p : nn::parameters(model))
    p.copy_(p.detach() * 8.0);
  const auto run = trace_attention([&] { return model.loss(some_ids, next_ids); }, {.item = 1});
  REQUIRE(run.layers.size() == 1);
  const viz::AttentionLayer& layer = run.layers[0];
  check_scores(layer);
  CHECK(layer.weights.shape() == Shape{4, 6, 6});
  CHECK(run.logits.shape() == Shape{6, 7});
  REQUIRE(layer.loss_without.size() == 4);
  for (std::size_t h = 0; h < 4; ++h) {
    lm::GPT other = nn::clone(model);
    const Tensor weight = other.h[0].attn.c_proj.weight;
    std::vector<double> values = numbers(weight);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i % 16 / 4 == h)
        values[i] = 0;
    Tensor(weight).copy_(reshape(Tensor(std::move(values)), {16, 16}));
    CHECK(layer.loss_without[h] == Approx(other.loss(some_ids, next_ids).item()).epsilon(1e-12));
  }
}

TEST_CASE("attention page: windows and norms of queries and keys are shown", "[pages]") {
  for (lm::GPTConfig config : {small_gpt().config, lm::GPTConfig::llama({.block_size = 8,
                                                                         .vocab_size = 7,
                                                                         .n_layer = 2,
                                                                         .n_head = 4,
                                                                         .n_embd = 16,
                                                                         .n_kv_head = 2,
                                                                         .qk_norm = true})}) {
    config.sliding_window = 3;
    lm::GPT model(config);
    nn::to(model, DType::float64);
    const auto run = trace_attention([&] { return model.loss(some_ids, next_ids); }, {.item = 1});
    REQUIRE(run.layers.size() == 2);
    for (const viz::AttentionLayer& layer : run.layers) {
      check_scores(layer);
      const std::vector<double> weights = numbers(layer.weights);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::size_t s = i % 6, t = i / 6 % 6;
        CHECK((weights[i] > 0) == (s <= t && t < s + 3));
      }
    }
  }
}

TEST_CASE("attention page: layers of every kind are found", "[pages]") {
  manual_seed(3);
  const Tensor x = normal({2, 4, 6}, 9), w = normal({2, 4, 6}, 10);
  nn::MultiHeadAttention many(6, 2);
  nn::SelfAttention one(6);
  nn::to(many, DType::float64);
  nn::to(one, DType::float64);
  const auto of = [&](const auto& f, const viz::AttentionOptions& options = {}) {
    auto run = trace_attention([&] { return sum(f() * w); }, options);
    REQUIRE(run.layers.size() == 1);
    check_scores(run.layers[0]);
    return run.layers[0];
  };
  const auto fused = of([&] { return many(x, x, x, {.need_weights = false}).output; });
  const auto written = of([&] { return many(x, x, x).output; });  // scales q before the product
  check_same(fused.weights, written.weights);
  check_same(fused.gradient, written.gradient);
  check_same(fused.q, written.q);
  CHECK(written.scale == Approx(1 / std::sqrt(3.0)));
  CHECK(fused.loss_without[1] == Approx(written.loss_without[1]));
  check_same(written.weights, select(many(x, x, x, {.average_attn_weights = false}).weights, 0, 0));
  const auto causal = of([&] { return one(x, {.is_causal = true}).output; }, {.item = 1});
  CHECK(causal.heads.size() == 1);
  check_same(causal.weights, narrow(one(x, {.is_causal = true}).weights, 0, 1, 1));

  // einsum, distances added, a mask of large numbers, and scores of another kind
  const Tensor q = normal({1, 2, 4, 3}, 1).requires_grad_(), k = normal({1, 2, 4, 3}, 2),
               v = normal({1, 2, 4, 3}, 3);
  const Tensor distance =
      -abs(arange(0, 4, 1, DType::float64) - reshape(arange(0, 4, 1, DType::float64), {4, 1}));
  const Tensor hidden = where(distance == -3.0, full_like(distance, -1e9), zeros_like(distance));
  const auto found = [&](const auto& scores) {
    return trace_attention([&] {
             const Tensor product = matmul(q, transpose(k, -2, -1));
             return sum(pow2(matmul(softmax(scores(product), -1), v)));
           })
        .layers.at(0);
  };
  const auto traced = trace_attention([&] {
    const Scope scope("mine");
    const Tensor scores = einsum("bhtd,bhsd->bhts", {q, k}) / 2.0 + distance + hidden;
    const Tensor dropped = dropout(softmax(scores, -1), 0.5, true);
    return sum(pow2(einsum("bhts,bhsd->bhtd", {dropped, v})));
  });
  REQUIRE(traced.layers.size() == 1);
  CHECK(traced.layers[0].name == "mine");
  CHECK(traced.layers[0].scale == 0.5);
  check_scores(traced.layers[0]);
  REQUIRE(traced.layers[0].bias.defined());
  const auto turned = found([&](const Tensor& s) { return distance - s * 0.5; });
  CHECK(turned.scale == -0.5);
  check_scores(turned);
  CHECK_FALSE(found([&](const Tensor& s) { return where(distance == -1.0, 0.5, s); }).q.defined());
  CHECK_FALSE(found([](const Tensor& s) { return relu(s); }).q.defined());
  CHECK_FALSE(found([](const Tensor& s) { return -pow2(s); }).q.defined());

  // Softmax of logits, or over another dimension, is no attention; one that is used twice is one.
  const Tensor square_one = normal({4, 4}, 6).requires_grad_();
  CHECK_THAT(message_of<ValueError>([&] {
               trace_attention(
                   [&] { return sum(matmul(x, transpose(softmax(x, -1), -2, -1)) * square_one); });
             }),
             ContainsSubstring("no attention ran"));
  CHECK_THAT(message_of<ValueError>([&] {
               trace_attention([&] { return sum(matmul(softmax(square_one, 0), square_one)); });
             }),
             ContainsSubstring("no attention ran"));
  const auto twice = trace_attention([&] {
    const Tensor a = softmax(square_one, -1);
    const Scope scope("h", 0);
    const Tensor second = matmul(softmax(2.0 * square_one, -1), square_one);
    const Tensor third = matmul(softmax(3.0 * square_one, -1), square_one);
    const Tensor first = matmul(a, square_one);
    return sum(first + second + third + matmul(a, 2.0 * square_one));
  });
  REQUIRE(twice.layers.size() == 3);
  CHECK(twice.layers[0].name == "attention");
  CHECK(twice.layers[1].name == "h.0 #1");
  CHECK(twice.layers[2].name == "h.0 #2");
}

TEST_CASE("attention page: heads are followed through reshapes, into every product", "[pages]") {
  const Tensor q = normal({2, 3, 4, 5}, 1).requires_grad_(),
               k = normal({2, 3, 4, 5}, 2).requires_grad_(), v = normal({2, 3, 4, 5}, 3),
               w = normal({2, 3, 4, 5}, 4);
  const auto weights = [&] { return softmax(matmul(q, transpose(k, -2, -1)), -1); };
  const auto loss = [&](const Tensor& y) { return sum(tanh(y) * reshape(w, y.shape())); };
  const auto merged = [](const Tensor& x) { return reshape(x, {6, x.size(-2), x.size(-1)}); };
  const auto without = [&](std::size_t h) {  // weights, those of head h 0
    Tensor kept = ones({3, 1, 1}, DType::float64);
    set_element(kept, h, 0);
    return weights().detach() * kept;
  };
  const auto plain = trace_attention([&] { return loss(matmul(weights(), v)); });
  const auto check = [&](const std::function<Tensor()>& f,
                         const viz::AttentionOptions& options = {}) {
    const auto run = trace_attention([&] { return loss(f()); }, options);
    REQUIRE(run.layers.size() == 1);
    check_scores(run.layers[0]);
    check_same(run.layers[0].weights, plain.layers[0].weights);
    check_same(run.layers[0].gradient, plain.layers[0].gradient);
    REQUIRE(run.layers[0].loss_without.size() == 3);
    for (std::size_t h = 0; h < 3; ++h)
      CHECK(run.layers[0].loss_without[h] == Approx(loss(matmul(without(h), v)).item()));
  };
  check([&] { return matmul(merged(weights()), merged(v)); });
  check([&] { return bmm(merged(weights()), merged(v)); });
  check([&] {
    const Tensor split =
        reshape(softmax(bmm(merged(q), transpose(merged(k), -2, -1)), -1), {2, 3, 4, 4});
    return matmul(split, v);
  });
  check([&] { return permute(einsum("bhts,bhsd->bthd", {weights(), v}), {0, 2, 1, 3}); });
  check([&] { return matmul(weights() * ones_like(weights().detach()), v); });
  // A user's op with the name of another, with one input or three.
  const auto own = [](const char* name, const std::vector<Tensor>& in) {
    return record(
        name, in, [](std::span<const Tensor> x) { return x[0] * 1.0; },
        [](Context& ctx) { ctx.add(0, ctx.gradient()); });
  };
  check([&] { return matmul(own("mul", {weights()}), v); });
  check([&] { return matmul(own("mul", {weights(), k.detach(), v}), v); });
  for (const char* const name : {"mul", "div", "add", "sub"})
    CHECK(trace_attention([&] {
            const Tensor scores = own(name, {matmul(own(name, {q}), transpose(k, -2, -1))});
            return loss(matmul(softmax(scores, -1), v));
          }).layers.size() == 1);

  const auto twice = trace_attention([&] {
    const Tensor a = weights();
    return loss(matmul(a, v) + bmm(merged(a), merged(v * v)).reshape({2, 3, 4, 5}));
  });
  REQUIRE(twice.layers.size() == 1);
  for (std::size_t h = 0; h < 3; ++h)
    CHECK(twice.layers[0].loss_without[h] ==
          Approx(loss(matmul(without(h), v) + matmul(without(h), v * v)).item()));

  const auto alone = trace_attention([&] {
    const Tensor x = reshape(q, {24, 5});
    return sum(pow2(mm(softmax(mm(x, x.transpose(0, 1)), -1), x)));
  });
  check_scores(alone.layers.at(0));
  // A softmax that weighs features is no attention, and weights that cannot be followed are named.
  CHECK_THAT(message_of<ValueError>([&] {
               trace_attention([&] { return loss(matmul(softmax(q, -1) * k, normal({5, 5}, 7))); });
             }),
             ContainsSubstring("no attention ran"));
  CHECK_THAT(
      message_of<ValueError>([&] {
        trace_attention([&] {
          const Scope scope("mine");
          return sum(matmul(merged(weights()) * ones({2, 6, 4, 4}, DType::float64), merged(v)));
        });
      }),
      ContainsSubstring("mine has weights (2, 3, 4, 4), which its product with the values "
                        "reshapes to (2, 6, 4, 4)"));
}

TEST_CASE("attention page: a name says which values are the weights", "[pages]") {
  const Tensor q = normal({2, 3, 4, 5}, 1).requires_grad_(), k = normal({2, 3, 4, 5}, 2),
               v = normal({2, 3, 4, 5}, 3), w = normal({2, 3, 4, 5}, 4),
               sink = normal({2, 3, 4, 1}, 5);
  const auto scores = [&] {
    return masked_fill(matmul(q, transpose(k, -2, -1)), nn::future(4, 4), -inf);
  };
  using Weights = std::function<Tensor()>;
  using Values = std::function<Tensor(const Tensor&)>;
  const Values product = [&](const Tensor& a) { return matmul(a, v); };
  const auto check = [&](const Weights& weights, const Values& values, bool is_softmax = false) {
    const auto loss = [&](const Tensor& a) { return sum(tanh(values(a)) * w); };
    CHECK_THAT(message_of<ValueError>([&] { trace_attention([&] { return loss(weights()); }); }),
               ContainsSubstring("no attention ran") &&
                   ContainsSubstring("named(weights, \"attention\") says which"));
    const auto run = trace_attention(
        [&] {
          const Scope scope("mine");
          return loss(named(weights(), "attention"));
        },
        {.item = 1});
    CHECK(run.loss == loss(weights()).item());
    REQUIRE(run.layers.size() == 1);
    const viz::AttentionLayer& layer = run.layers[0];
    CHECK(layer.name == "mine");
    CHECK(layer.scores.defined() == is_softmax);
    CHECK(layer.q.defined() == is_softmax);
    const Tensor a = weights().detach().requires_grad_();
    check_same(layer.weights, select(a, 0, 1));
    check_same(layer.gradient, select(grad({loss(a)}, {a})[0], 0, 1));
    REQUIRE(layer.loss_without.size() == 3);
    for (std::size_t h = 0; h < 3; ++h) {
      Tensor kept = ones({3, 1, 1}, DType::float64);
      set_element(kept, h, 0);
      CHECK(layer.loss_without[h] == Approx(loss(a * kept).item()));
    }
    REQUIRE(layer.patterns.size() == 3);
  };
  check([&] { return narrow(softmax(cat({scores(), sink}, -1), -1), -1, 0, 4); }, product);
  check([&] { return softmax(scores(), -1) - 0.3 * softmax(2.0 * scores(), -1); }, product);
  check([&] { return softmax(scores(), -1); },
        [&](const Tensor& a) { return einsum("bhsd,bhts->bhtd", {v, a}); }, true);
  check([&] { return relu(scores()); },
        [&](const Tensor& a) { return matmul(a / (sum(a, -1, true) + 1.0), v); });

  // A named softmax is a softmax with scores; its products count once.
  const auto same = [&](const Weights& weights) {
    const auto run = trace_attention([&] { return sum(tanh(product(weights())) * w); });
    REQUIRE(run.layers.size() == 1);
    check_scores(run.layers[0]);
    return run.layers[0];
  };
  const auto plain = same([&] { return softmax(scores(), -1); }),
             twice = same([&] { return named(softmax(scores(), -1), "attention"); });
  check_same(plain.weights, twice.weights);
  check_same(plain.gradient, twice.gradient);
  CHECK(plain.loss_without == twice.loss_without);
  CHECK_THAT(message_of<ValueError>(
                 [&] { trace_attention([&] { return named(sum(q * k), "attention"); }); }),
             ContainsSubstring("sum, is named attention and is (): that must be weights"));
}

TEST_CASE("attention page: keys that are as many as queries", "[pages]") {
  const Tensor q = normal({5, 4}, 1).requires_grad_(), k = normal({5, 4}, 2), v = normal({5, 3}, 3);
  const auto trace = [&](bool causal, const std::vector<std::string>& keys) {
    return trace_attention(
               [&] { return sum(scaled_dot_product_attention(q, k, v, {.is_causal = causal})); },
               {.tokens = {"a", "a", "b", "b", "a"}, .keys = keys})
        .layers.at(0);
  };
  const auto self = trace(false, {}), across = trace(false, {"v", "w", "x", "y", "z"});
  CHECK(self.self);
  CHECK_FALSE(across.self);
  CHECK_THAT(message_of<ValueError>([&] { trace(false, {"v"}); }),
             ContainsSubstring("1 keys are given, and no layer has as many but its queries"));
  CHECK_THAT(message_of<ValueError>([&] { trace(true, {"v", "w", "x", "y", "z"}); }),
             ContainsSubstring("5 keys are given, and no layer has as many but its queries"));
}

TEST_CASE("attention page: with dropout, weights are those before it", "[pages]") {
  const lm::GPT model = small_gpt(0.5);
  const auto run = [&] {
    manual_seed(1);
    return trace_attention([&] { return model.loss(some_ids, next_ids); });
  }();
  check_scores(run.layers[0]);
  check_scores(run.layers[1]);
  manual_seed(1);
  CHECK(run.loss == Approx(model.loss(some_ids, next_ids).item()).epsilon(1e-12));
}

TEST_CASE("attention page: chosen layers and heads, and those that do not exist", "[pages]") {
  const lm::GPT model = small_gpt();
  const auto loss = [&] { return model.loss(some_ids, next_ids); };
  const auto all = trace_attention(loss),
             some = trace_attention(loss, {.layers = {1}, .heads = {2, 0}});
  REQUIRE(some.layers.size() == 1);
  CHECK(some.layers[0].index == 1);
  CHECK(some.layers[0].heads == std::vector<std::size_t>{2, 0});
  check_same(select(some.layers[0].gradient, 0, 0), select(all.layers[1].gradient, 0, 2), 0);
  check_same(select(some.layers[0].q, 0, 1), select(all.layers[1].q, 0, 0), 0);
  CHECK(some.layers[0].loss_without[0] == all.layers[1].loss_without[2]);

  const auto refused = [&](const viz::AttentionOptions& options, const char* why) {
    CHECK_THAT(message_of<ValueError>([&] { trace_attention(loss, options); }),
               ContainsSubstring(why));
  };
  refused({.item = 2}, "item 2 does not exist: the batch of h.0.attn has items 0 to 1");
  refused({.layers = {2}}, "layer 2 does not exist: there are layers 0 to 1");
  refused({.heads = {3}}, "head 3 does not exist: h.0.attn has heads 0 to 2");
  refused({.position = 6}, "position 6 does not exist: there are positions 0 to 5");
  refused({.tokens = {"a", "b"}}, "2 tokens for h.0.attn, which has 6");
  refused({.classes = {"a"}}, "1 class names for the logits, which has 7");
  refused({.targets = {1}}, "1 targets for the logits, which has 6");
  CHECK_THAT(message_of<ValueError>([&] { trace_attention([&] { return model(some_ids); }); }),
             ContainsSubstring("it must return a loss"));
  CHECK_THAT(message_of<ValueError>([&] { trace_attention([&] { return loss() * inf; }); }),
             ContainsSubstring("the loss is inf"));
  CHECK_THAT(message_of<GraphError>([&] {
               const NoGrad no_grad;
               trace_attention(loss);
             }),
             ContainsSubstring("the loss has no graph"));
}
