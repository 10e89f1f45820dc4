// lm::GPT with the options of GPT-2, Llama and their kin.  PyTorch's results are in
// tests/lm/pretrained_test.cpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/init.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using lm::GPTConfig;

namespace {

constexpr GPTConfig tiny_sizes{
    .block_size = 10, .vocab_size = 7, .n_layer = 2, .n_head = 4, .n_embd = 8};

struct Kind {
  const char* name;
  GPTConfig config;
};
// Each option in one of them at least.
std::vector<Kind> decoder_kinds() {
  GPTConfig gpt2 = GPTConfig::gpt2(tiny_sizes), grouped = tiny_sizes;
  gpt2.n_inner = 12;
  gpt2.tied = false;
  grouped.n_kv_head = 2;  // learned positions
  grouped.mlp_bias = false;
  grouped.norm = lm::NormKind::rms;
  const GPTConfig llama = GPTConfig::llama(tiny_sizes);
  GPTConfig llama3 = llama, linear = llama, qwen2 = llama, windows = tiny_sizes;
  llama3.n_kv_head = 1;
  llama3.head_dim = 6;
  llama3.qkv_bias = llama3.proj_bias = llama3.mlp_bias = true;
  llama3.rotary = {.theta = 100,
                   .factor = 4,
                   .original_max_position_embeddings = 16,
                   .low_freq_factor = 0.3,
                   .high_freq_factor = 2};
  linear.rotary = {.pairs = nn::RotaryPairs::interleaved, .factor = 2};
  linear.tied = true;
  qwen2.n_kv_head = 2;
  qwen2.qkv_bias = true;
  GPTConfig mistral = qwen2, qwen3 = qwen2;
  windows.sliding_window = 3;  // learned positions
  mistral.qkv_bias = false;
  mistral.sliding_window = 2;
  qwen3.qk_norm = true;
  qwen3.head_dim = 6;
  GPTConfig normed = windows;
  normed.qk_norm = true;
  return {{"nanoGPT", tiny_sizes}, {"gpt2", gpt2},     {"grouped", grouped}, {"llama", llama},
          {"llama3", llama3},      {"linear", linear}, {"qwen2", qwen2},     {"windows", windows},
          {"mistral", mistral},    {"qwen3", qwen3},   {"normed", normed}};
}

lm::GPT lively(const GPTConfig& config, DType dtype = DType::float64, double factor = 6) {
  manual_seed(3);
  lm::GPT model(config);
  nn::to(model, dtype);
  for (Tensor p : nn::parameters(model))  // biases and norms as well, so that no mistake is hidden
    p.copy_(p * factor + normal(p.shape(), 5, dtype) * 0.2);
  return model;
}

const Indices decoder_ids{{1, 5, 3, 0, 6, 2, 2, 4, 1, 3}, {6, 4, 4, 1, 0, 0, 5, 2, 3, 6}};

std::vector<std::string> names_of(const lm::GPT& model) {
  std::vector<std::string> names;
  for (const auto& [name, x] : nn::state_dict(model))
    names.push_back(name + " " + to_string(x.shape()));
  return names;
}

}  // namespace

TEST_CASE("decoder: presets have the parameters of their family", "[gpt][decoder]") {
  CHECK(GPTConfig::gpt2(tiny_sizes).activation == lm::Activation::gelu_tanh);
  GPTConfig c = GPTConfig::llama(tiny_sizes);
  c.n_layer = 1;
  c.n_kv_head = 2;
  c.n_inner = 5;
  c.qkv_bias = true;
  const std::vector<std::string> expected = {"transformer.wte.weight (7, 8)",
                                             "transformer.h.0.ln_1.weight (8,)",
                                             "transformer.h.0.attn.c_attn.weight (16, 8)",
                                             "transformer.h.0.attn.c_attn.bias (16,)",
                                             "transformer.h.0.attn.c_proj.weight (8, 8)",
                                             "transformer.h.0.ln_2.weight (8,)",
                                             "transformer.h.0.mlp.c_fc.weight (5, 8)",
                                             "transformer.h.0.mlp.c_gate.weight (5, 8)",
                                             "transformer.h.0.mlp.c_proj.weight (8, 5)",
                                             "transformer.ln_f.weight (8,)",
                                             "lm_head.weight (7, 8)"};
  CHECK(names_of(lm::GPT(c)) == expected);
  CHECK(lm::GPT(c).lm_head.weight.handle() != lm::GPT(c).wte.weight.handle());
  const auto with = [&](auto change) {
    GPTConfig changed = c;
    change(changed);
    std::vector<std::string> more;
    for (const std::string& name : names_of(lm::GPT(changed)))
      if (std::ranges::find(expected, name) == expected.end())
        more.push_back(name);
    return more;
  };
  CHECK(with([](GPTConfig& d) { d.proj_bias = true; }) ==
        std::vector<std::string>{"transformer.h.0.attn.c_proj.bias (8,)"});
  CHECK(with([](GPTConfig& d) { d.mlp_bias = true; }) ==
        std::vector<std::string>{"transformer.h.0.mlp.c_fc.bias (5,)",
                                 "transformer.h.0.mlp.c_gate.bias (5,)",
                                 "transformer.h.0.mlp.c_proj.bias (8,)"});
  CHECK(with([](GPTConfig& d) { d.qk_norm = true; }) ==
        std::vector<std::string>{"transformer.h.0.attn.q_norm.weight (2,)",
                                 "transformer.h.0.attn.k_norm.weight (2,)"});
  CHECK(with([](GPTConfig& d) { d.sliding_window = 3; }).empty());
  c.head_dim = 6;
  CHECK(lm::GPT(c).h[0].attn.c_attn.weight.shape() == Shape{48, 8});
  CHECK(lm::GPT(c).h[0].attn.c_proj.weight.shape() == Shape{8, 24});
  CHECK(lm::GPT(c)(decoder_ids).shape() == Shape{2, 10, 7});
}

TEST_CASE("decoder: misshapen inputs are rejected", "[gpt][decoder]") {
  const auto refused = [](auto change, const std::string& message) {
    GPTConfig c = GPTConfig::llama(tiny_sizes);
    change(c);
    CHECK_THROWS_WITH(lm::GPT(c), ContainsSubstring(message));
  };
  refused([](GPTConfig& c) { c.n_kv_head = 3; }, "GPT: n_head 4 is not a multiple of n_kv_head 3");
  refused([](GPTConfig& c) { c.n_kv_head = 8; }, "n_head 4 is not a multiple of n_kv_head 8");
  refused([](GPTConfig& c) { c.n_head = 3; }, "n_embd 8 is not a multiple of n_head 3");
  refused([](GPTConfig& c) { c.head_dim = 3; }, "heads of 3 channels cannot rotate in pairs");
  refused([](GPTConfig& c) { c.vocab_size = 0; }, "vocab_size 0");
  refused([](GPTConfig& c) { c.dropout = 2; }, "dropout is 2");
  refused([](GPTConfig& c) { c.sliding_window = -3; }, "GPT: sliding_window is -3; it must be");
  const auto rotary = [](const nn::RotaryOptions& options) {
    return nn::RotaryEmbedding(4, {0}, options);
  };
  CHECK_THROWS_WITH(rotary({.theta = 0}), ContainsSubstring("theta 0 and factor 1"));
  CHECK_THROWS_WITH(rotary({.factor = std::nan("")}), ContainsSubstring("must be positive"));
  CHECK_THROWS_WITH(rotary({.low_freq_factor = 4}), ContainsSubstring("4 is not below"));

  GPTConfig dropping = GPTConfig::llama(tiny_sizes);
  dropping.dropout = 0.5;
  const lm::GPT model(dropping);
  const NoGrad no_grad;
  std::vector<nn::KeyValueCache> caches(2, nn::KeyValueCache(10));
  CHECK_THROWS_WITH(model(decoder_ids, caches), ContainsSubstring("dropout with a cache"));
}

TEST_CASE("decoder: gradients are right, and all parameters have one", "[gpt][decoder]") {
  for (const Kind& kind : decoder_kinds()) {
    INFO(kind.name);
    GPTConfig config = kind.config;
    config.n_layer = 1;
    config.block_size = 4;
    lm::GPT model = lively(config);
    const auto loss = [&](const std::vector<Tensor>&) {
      return model.loss({{0, 3, 1, 6}, {2, 2, 0, 5}}, {{3, 1, -100, 4}, {2, 0, 1, 1}});
    };
    CHECK(nn::unvisited_leaves(model, loss({})).empty());
    const auto report = nn::gradcheck(model, loss, {});
    INFO(report.message);
    CHECK(report.ok);
  }
}

TEST_CASE("decoder: positions matter, and later ones do not reach back", "[gpt][decoder]") {
  for (const auto& [name, config] : decoder_kinds()) {
    INFO(name);
    const lm::GPT model = lively(config);
    const NoGrad no_grad;
    const Tensor all = model(decoder_ids);
    CHECK(allclose(model(decoder_ids.narrow(1, 0, 6)), all.narrow(1, 0, 6), 1e-12, 1e-12));
    const Tensor a = model.last_logits({{1, 2, 3}}), b = model.last_logits({{2, 1, 3}});
    CHECK((a - b).abs().max().item() > 1e-3);
  }
}

TEST_CASE("decoder: a position sees its window", "[gpt][decoder]") {
  for (const Kind& kind : decoder_kinds()) {
    INFO(kind.name);
    GPTConfig config = kind.config;
    config.n_layer = 1;
    const NoGrad no_grad;
    const auto first_same = [&](Size window) {  // the first position that does not see token 0
      config.sliding_window = window;
      const lm::GPT model = lively(config);
      const Tensor changed =
          amax(abs(model({{1, 5, 3, 0, 6, 2, 2, 4}}) - model({{2, 5, 3, 0, 6, 2, 2, 4}})), {0, 2});
      Size t = 0;
      while (t < 8 && changed[t].item() > 0)
        ++t;
      CHECK(total(changed.slice(0, t, {})) == 0);
      return t;
    };
    for (const Size window : {1, 2, 5, 7})
      CHECK(first_same(window) == window);
    for (const Size window : {0, 8, 10, 1000})
      CHECK(first_same(window) == 8);
  }
}

TEST_CASE("decoder: a cache changes nothing, whatever the options", "[gpt][decoder][cache]") {
  for (const auto& [name, config] : decoder_kinds())
    for (const DType dtype : {DType::float32, DType::float64}) {
      INFO(name << " " << to_string(dtype));
      // (With 6, half a unit in the last place of qwen3's float32 weights moves logits by 1e-4.)
      const lm::GPT model = lively(config, dtype, dtype == DType::float32 ? 3 : 6);
      const NoGrad no_grad;
      const Tensor expected = model(decoder_ids);
      const double close = dtype == DType::float32 ? 2e-5 : 1e-12;
      std::vector<nn::KeyValueCache> caches(2, nn::KeyValueCache(10));
      for (const auto& [begin, end] : {std::pair{0, 4}, {4, 5}, {5, 9}, {9, 10}}) {
        const auto n = static_cast<std::size_t>(end - begin);
        const Tensor logits = model(decoder_ids.narrow(1, begin, n), caches);
        const Tensor whole = expected.narrow(1, begin, n);
        CHECK(amax(abs(logits - whole) / (1.0 + abs(whole)), {}).item() <= close);
      }
      CHECK_THROWS_WITH(model({{1}, {2}}, caches), ContainsSubstring("less 10 in the caches"));
      // The window moves beyond block_size: then every token's position does.
      Generator generator(1);
      const Indices given = model.generate({{1, 5}}, 25, generator, {.temperature = 0});
      Indices own{{1, 5}};
      for (int i = 0; i < 25; ++i) {
        const Size first = std::max<Size>(0, own.size(1) - 10);
        const Tensor last = model.last_logits(own.narrow(1, first, own.size(1) - first));
        own = cat({own, reshape(last.argmax(), {1, 1})}, 1);
      }
      CHECK(numbers(given) == numbers(own));
    }
}

TEST_CASE("decoder: documents in one sequence are each alone", "[gpt][decoder][documents]") {
  for (const auto& [name, config] : decoder_kinds()) {
    INFO(name);
    const lm::GPT model = lively(config);
    // Documents of 3, 1 and 4 tokens, and of 6 and 2.
    const Indices idx{{1, 5, 3, 0, 6, 2, 2, 4}, {3, 1, 4, 1, 5, 2, 6, 5}};
    const Indices first{{0, 0, 0, 3, 4, 4, 4, 4}, {0, 0, 0, 0, 0, 0, 6, 6}};
    const Tensor logits = model(idx, {}, first);  // (B, T, V)
    std::vector<Tensor> alone;
    for (const auto& [b, begin, length] :
         std::vector<std::array<Size, 3>>{{0, 0, 3}, {0, 3, 1}, {0, 4, 4}, {1, 0, 6}, {1, 6, 2}})
      alone.push_back(squeeze(model(narrow(narrow(idx, 0, b, 1), 1, begin, length)), {0}));
    const Tensor expected = reshape(cat(alone, 0), logits.shape());
    CHECK(allclose(logits, expected, 0, 1e-13));
    const std::vector<Tensor> parameters = nn::parameters(model);
    const Tensor weights = randn(logits.shape(), DType::float64);
    const auto together = grad({(logits * weights).sum()}, parameters),
               apart = grad({(expected * weights).sum()}, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i)  // rounding depends on the BLAS
      CHECK(allclose(together[i], apart[i], 0, 1e-13 * (1 + amax(abs(apart[i]), {}).item())));
    CHECK(model.loss(idx, idx, first).item() ==
          Approx(cross_entropy(reshape(expected, {16, 7}), idx.flatten()).item()));
    // The first of a document alone differs from the first after another.
    CHECK_FALSE(allclose(select(logits, 1, 7), select(model(idx), 1, 7), 0, 1e-3));
  }
}

TEST_CASE("decoder: first positions that make no sense are rejected", "[gpt][decoder][documents]") {
  const lm::GPT model = lively(tiny_sizes);
  const Indices idx{{1, 5, 3}};
  for (const Indices& first : {Indices{{0, 2, 0}}, Indices{{-1, 0, 0}}})
    CHECK_THROWS_WITH(model(idx, {}, first), ContainsSubstring("or after its own position"));
  CHECK_THROWS_AS(model(idx, {}, Indices{{0, 0}}), ShapeError);
  CHECK_THROWS_WITH(model(idx, {}, Indices{{0, 0, 0}, {0, 0, 0}}),
                    ContainsSubstring("first is (2, 3); it must broadcast to idx, (1, 3)"));
  CHECK_THROWS_AS(model(idx, {}, Indices{{{0, 0, 0}}}), ShapeError);
}

TEST_CASE("decoder: prompts of several lengths continue as each alone",
          "[gpt][decoder][generate]") {
  const double temperature = GENERATE(0.0, 1.5);
  for (const auto& [name, config] : decoder_kinds()) {
    INFO(name << ", temperature " << temperature);
    const lm::GPT model = lively(config);
    const std::vector<std::vector<std::int64_t>> prompts = {
        {1}, {5, 3, 0, 6}, {2, 4, 4, 0, 1, 6, 5, 3, 3, 2, 1, 0}};  // the last is above block_size
    constexpr Size longest = 12, more = 9;
    std::vector<std::int64_t> all;
    lm::GenerateOptions drawing{.temperature = temperature};
    std::vector<Generator> generators;
    for (const auto& ids : prompts) {
      drawing.left_padding.push_back(longest - ids.size());
      all.insert(all.end(), longest - ids.size(), 6);
      all.insert(all.end(), ids.begin(), ids.end());
      generators.emplace_back(generators.size());
    }
    const Indices batch = reshape(Indices(all), {3, longest});
    const Indices together = model.generate(batch, more, generators, drawing);
    for (std::size_t b = 0; b < prompts.size(); ++b) {
      Generator own(b);
      const Indices alone = model.generate(reshape(Indices(prompts[b]), {1, prompts[b].size()}),
                                           more, own, {.temperature = temperature});
      CHECK(to_string(narrow(select(together, 0, b), 0, longest, more)) ==
            to_string(narrow(select(alone, 0, 0), 0, prompts[b].size(), more)));
    }
  }
  const lm::GPT model = lively(tiny_sizes);
  const Indices two{{1, 2, 3}, {4, 5, 6}};
  Generator one(1);
  std::vector<Generator> three(3, one);
  CHECK_THROWS_WITH(model.generate(two, 1, three),
                    ContainsSubstring("3 generators for 2 sequences"));
  CHECK_THROWS_WITH(model.generate(two, 1, one, {.left_padding = {0}}),
                    ContainsSubstring("left_padding has 1 size for 2 sequences"));
  for (const Size n : {-1, 3})
    CHECK_THROWS_WITH(model.generate(two, 1, one, {.left_padding = {0, n}}),
                      ContainsSubstring("of 3 positions"));
}

TEST_CASE("decoder: without a turn, heads of their own are the fused op's", "[gpt][decoder]") {
  const Tensor x = normal({2, 5, 8}, 1, DType::float32);
  lm::CausalSelfAttention attention(8, 2, 0.4);
  const nn::RotaryEmbedding still(4, Indices{0, 0, 0, 0, 0});
  manual_seed(6);  // the draws of dropout as well
  const Tensor fused = attention(x);
  const std::string after = default_generator().state();
  manual_seed(6);
  CHECK(allclose(attention(x, nullptr, &still), fused, 1e-5, 1e-6));
  CHECK(default_generator().state() == after);
  nn::eval(attention);
  CHECK(allclose(attention(x, nullptr, &still), attention(x), 1e-5, 1e-6));
  CHECK(default_generator().state() == after);
  CHECK_THROWS_AS(attention(x[0], nullptr, &still), ShapeError);
}

TEST_CASE("decoder: rotary frequencies are scaled as Llama 3's", "[decoder]") {
  constexpr double theta = 500, factor = 8, low = 1, high = 4, n = 64;
  const Size D = 12;
  const nn::RotaryEmbedding plain(12, Indices{1}, {.theta = theta}),
      linear(12, Indices{1}, {.theta = theta, .factor = factor}),
      llama3(12, Indices{1},
             {.theta = theta,
              .factor = factor,
              .original_max_position_embeddings = 64,
              .low_freq_factor = low,
              .high_freq_factor = high});
  std::size_t kept = 0, between = 0, divided = 0;
  for (Size i = 0; i < D / 2; ++i) {
    const Tensor x = one_hot(Indices{i}, static_cast<std::size_t>(D)).to(DType::float64);
    const auto angle = [&](const nn::RotaryEmbedding& rotate) {
      const Tensor y = rotate(x);
      return std::atan2(element<double>(y, static_cast<std::size_t>(i + D / 2)),
                        element<double>(y, static_cast<std::size_t>(i)));
    };
    const double f = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(D));
    const double wavelength = 2 * std::numbers::pi / f;
    double expected = f;
    if (wavelength > n / low) {
      expected = f / factor;
      ++divided;
    } else if (wavelength >= n / high) {
      const double smooth = (n / wavelength - low) / (high - low);
      expected = (1 - smooth) * f / factor + smooth * f;
      ++between;
    } else {
      ++kept;
    }
    CHECK(angle(plain) == Approx(f).epsilon(1e-12));
    CHECK(angle(linear) == Approx(f / factor).epsilon(1e-12));
    CHECK(angle(llama3) == Approx(expected).epsilon(1e-12));
  }
  CHECK(kept > 0);
  CHECK(between > 0);
  CHECK(divided > 0);
}

TEST_CASE("decoder: skipping initial values draws nothing", "[decoder]") {
  manual_seed(4);
  const std::string before = default_generator().state();
  {
    const nn::init::SkipInit skip;
    const lm::GPT model(tiny_sizes);
    CHECK(total(model.wte.weight) == 0);
    CHECK(total(model.ln_f.weight) == 8);
  }
  CHECK(default_generator().state() == before);
  const lm::GPT model(tiny_sizes);
  CHECK(total(model.wte.weight.abs()) > 0);
}
