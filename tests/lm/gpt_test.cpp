// GPT compared with a reference in PyTorch (nanoGPT's model), whose numbers are typed in.

#include <cmath>
#include <string>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/allocations.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/threads.hpp"

using namespace xgrad;

namespace {

const lm::GPTConfig config{
    .block_size = 16, .vocab_size = 11, .n_layer = 2, .n_head = 3, .n_embd = 24};
const Indices idx{{1, 5, 3, 0, 10, 2, 2}, {7, 8, 9, 4, 1, 1, 6}};
const Indices targets{{5, 3, 0, 10, 2, 2, 4}, {8, 9, 4, 1, 1, 6, 0}};

struct Row {
  const char* name;
  double sum, first, grad_norm;
};
// torch.manual_seed(1337), then the model; the gradients are of the loss on idx and targets.
const std::vector<Row> reference = {
    {"transformer.wte.weight", 0.0936170579, -0.00668257149, 1.42800971},
    {"transformer.wpe.weight", -0.0939080075, -0.0126921749, 0.738866047},
    {"transformer.h.0.ln_1.weight", 24, 1, 0.00187536433},
    {"transformer.h.0.ln_1.bias", 0, 0, 0.0024161551},
    {"transformer.h.0.attn.c_attn.weight", 0.58840699, -0.0205269977, 0.0825245419},
    {"transformer.h.0.attn.c_attn.bias", 0, 0, 0.0234081298},
    {"transformer.h.0.attn.c_proj.weight", -0.205354462, -0.00472389208, 0.168402182},
    {"transformer.h.0.attn.c_proj.bias", 0, 0, 0.487981239},
    {"transformer.h.0.ln_2.weight", 24, 1, 0.00397238001},
    {"transformer.h.0.ln_2.bias", 0, 0, 0.00191344836},
    {"transformer.h.0.mlp.c_fc.weight", -0.0594564109, -0.00575852022, 0.190246993},
    {"transformer.h.0.mlp.c_fc.bias", 0, 0, 0.0234568146},
    {"transformer.h.0.mlp.c_proj.weight", -0.222161755, -0.0156595632, 0.355606196},
    {"transformer.h.0.mlp.c_proj.bias", 0, 0, 0.481127453},
    {"transformer.h.1.ln_1.weight", 24, 1, 0.0011935917},
    {"transformer.h.1.ln_1.bias", 0, 0, 0.00304859228},
    {"transformer.h.1.attn.c_attn.weight", 1.35514727, -0.00531167304, 0.0872264839},
    {"transformer.h.1.attn.c_attn.bias", 0, 0, 0.0277635036},
    {"transformer.h.1.attn.c_proj.weight", 0.1408208, -0.00663214549, 0.168628336},
    {"transformer.h.1.attn.c_proj.bias", 0, 0, 0.460350989},
    {"transformer.h.1.ln_2.weight", 24, 1, 0.00344323792},
    {"transformer.h.1.ln_2.bias", 0, 0, 0.00181876559},
    {"transformer.h.1.mlp.c_fc.weight", 0.850051581, -0.0354354754, 0.171851405},
    {"transformer.h.1.mlp.c_fc.bias", 0, 0, 0.0216626512},
    {"transformer.h.1.mlp.c_proj.weight", 0.51325279, 0.000441026932, 0.348008806},
    {"transformer.h.1.mlp.c_proj.bias", 0, 0, 0.433328987},
    {"transformer.ln_f.weight", 24, 1, 0.0227500043},
    {"transformer.ln_f.bias", 0, 0, 0.0147428953},
};

lm::GPT seeded(std::uint64_t seed, lm::GPTConfig c = config) {
  manual_seed(seed);
  return lm::GPT(c);
}

std::vector<std::vector<std::int64_t>> rows(const Indices& x) {
  std::vector<std::vector<std::int64_t>> list;
  for (Size b = 0; b < x.size(0); ++b)
    list.emplace_back(x.data() + b * x.size(1), x.data() + (b + 1) * x.size(1));
  return list;
}

}  // namespace

TEST_CASE("A seed gives the reference's weights", "[gpt]") {
  const lm::GPT model = seeded(1337);
  CHECK(default_generator().uniform_float() == Approx(0.669620752f));  // as many draws
  const nn::StateDict state = nn::state_dict(model);
  REQUIRE(state.size() == reference.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    INFO(name);
    CHECK(name == reference[i].name);
    CHECK(total(tensor) == Approx(reference[i].sum).epsilon(1e-5).margin(1e-6));
    CHECK(tensor.data<float>()[0] == Approx(reference[i].first).epsilon(1e-5));
  }
  CHECK(model.wte.weight.handle() == model.lm_head.weight.handle());
}

TEST_CASE("Loss, gradients and logits are the reference's", "[gpt]") {
  lm::GPT model = seeded(1337);
  const Tensor loss = model.loss(idx, targets);
  CHECK(loss.item() == Approx(2.36205816).epsilon(1e-6));
  CHECK(nn::unvisited_leaves(model, loss).empty());
  loss.backward();
  const auto named = nn::named_parameters(model);
  for (std::size_t i = 0; i < named.size(); ++i) {
    INFO(named[i].first);
    const double norm = named[i].second.grad().to(DType::float64).norm().item();
    CHECK(norm == Approx(reference[i].grad_norm).epsilon(2e-5));
  }
  const Tensor last = model.last_logits(idx), all = model(idx);
  CHECK(last.shape() == Shape{2, 11});
  CHECK(all.shape() == Shape{2, 7, 11});
  const std::vector<double> expected{-0.0379110873, 0.0448680185,  0.42582953,
                                     0.136054337,   0.00637970446, -0.153553665};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(last.data<float>()[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-7));
  CHECK(allclose(all.select(1, -1), last, 1e-5, 1e-6));
}

TEST_CASE("Training with dropout is the reference's, draw for draw", "[gpt]") {
  lm::GPTConfig c = config;
  c.dropout = 0.25;
  c.bias = false;
  lm::GPT model = seeded(7, c);
  optim::AdamW adamw(optim::decay_matrices(nn::parameters(model),
                                           {.lr = 1e-2, .betas = {.9, .99}, .weight_decay = .1}));
  manual_seed(8);
  for (const double expected : {2.38077879, 2.12880015, 1.97421837, 1.91298378, 1.79998589}) {
    const Tensor loss = model.loss(idx, targets);
    CHECK(loss.item() == Approx(expected).epsilon(2e-6));
    if (expected == 2.38077879)
      CHECK(Generator(default_generator()).uniform_float() == Approx(0.735069931));
    nn::zero_grad(model);
    loss.backward();
    const double norm = optim::clip_grad_norm_(nn::parameters(model), 1);
    if (expected == 2.38077879)
      CHECK(norm == Approx(1.86248016).epsilon(1e-5));
    adamw.step();
  }
}

TEST_CASE("The state dict of a GPT goes in again, tied weight once or twice", "[gpt]") {
  const lm::GPT a = seeded(1);
  lm::GPT b = seeded(2);
  nn::StateDict state = nn::state_dict(a);
  state.emplace_back("lm_head.weight", a.lm_head.weight.detach());  // as nanoGPT's checkpoints
  nn::load_state_dict(b, state);
  CHECK(allclose(a(idx), b(idx), 0, 0));
  CHECK(b.wte.weight.handle() == b.lm_head.weight.handle());
  const lm::GPT c = nn::clone(a);
  CHECK(c.wte.weight.handle() == c.lm_head.weight.handle());
  CHECK(allclose(a(idx), c(idx), 0, 0));
}

TEST_CASE("Sampling draws as PyTorch does", "[gpt][generate]") {
  lm::GPT model = seeded(1337);
  for (Tensor p : nn::parameters(model))
    p.copy_(p * 8);  // far from uniform
  const Indices start{{1, 2}, {3, 4}};
  Generator generator(99);
  CHECK(rows(model.generate(start, 20, generator, {.temperature = 0.8})) ==
        std::vector<std::vector<std::int64_t>>{
            {1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5, 5, 5, 2, 2, 5, 5, 5, 2, 1, 5, 5},
            {3, 4, 2, 5, 8, 2, 1, 4, 5, 6, 5, 5, 5, 4, 5, 4, 2, 2, 5, 5, 5, 2}});
  generator.manual_seed(99);
  CHECK(rows(model.generate(start, 20, generator, {.temperature = 0.8, .top_k = 3})) ==
        std::vector<std::vector<std::int64_t>>{
            {1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5, 5, 5, 2, 2, 5, 5, 5, 2, 1, 5, 5},
            {3, 4, 2, 5, 8, 2, 5, 1, 5, 6, 5, 4, 3, 2, 5, 5, 5, 4, 2, 5, 5, 5}});
  CHECK(rows(model.generate(start, 8, generator, {.temperature = 0})) ==
        std::vector<std::vector<std::int64_t>>{{1, 2, 2, 2, 2, 2, 2, 2, 2, 2},
                                               {3, 4, 2, 4, 2, 5, 8, 5, 10, 5}});
}

TEST_CASE("Sampling leaves training alone", "[gpt][generate]") {
  lm::GPTConfig c = config;
  c.dropout = 0.5;
  const lm::GPT model = seeded(1337, c);  // in training
  manual_seed(4);
  const std::string before = default_generator().state();
  Generator one(1), two(1);
  std::vector<std::int64_t> streamed;
  const Indices a = model.generate({{3}}, 20, one, {.on_token = [&](auto tokens) {
                                     REQUIRE(tokens.size() == 1);
                                     streamed.push_back(tokens[0]);
                                   }});
  CHECK(default_generator().state() == before);
  CHECK(model.drop.training);
  CHECK(a.shape() == Shape{1, 21});
  CHECK(streamed == std::vector<std::int64_t>(a.data() + 1, a.data() + 21));
  lm::GPT evaluated = model;
  nn::eval(evaluated);
  CHECK(rows(evaluated.generate({{3}}, 20, two)) == rows(a));
  CHECK(rows(model.generate({{3, 4}}, 0, one)) == rows(Indices{{3, 4}}));
}

TEST_CASE("Errors of a GPT", "[gpt]") {
  const lm::GPT model = seeded(1);
  Generator generator(1);
  CHECK_THROWS_WITH(model(Indices{1, 2}), ContainsSubstring("idx is (2,)"));
  CHECK_THROWS_WITH(model(Indices(empty_array<std::int64_t>(Shape{1, 17}))),
                    ContainsSubstring("T from 1 to block_size, 16"));
  CHECK_THROWS_AS(model(Indices{{1, 11}}), ValueError);
  CHECK_THROWS_WITH(model.loss(idx, Indices{{1}}),
                    ContainsSubstring("idx is (2, 7) but targets are (1, 1)"));
  CHECK_THROWS_AS(model.generate({{1}}, 1, generator, {.temperature = -1}), ValueError);
  CHECK_THROWS_AS(model.generate({{1}}, 1, generator, {.top_k = 0}), ValueError);
  CHECK_THROWS_AS(model.generate(Indices(), 1, generator), ShapeError);
  lm::GPTConfig bad = config;
  bad.n_head = 5;
  CHECK_THROWS_WITH(lm::GPT(bad), ContainsSubstring("n_embd 24 is not a multiple of n_head 5"));
  bad.n_layer = 0;
  CHECK_THROWS_WITH(lm::GPT(bad), ContainsSubstring("n_layer 0"));

  lm::GPT broken = seeded(1);
  broken.ln_f.weight.fill_(std::nan(""));
  CHECK_THROWS_WITH(broken.generate({{1}}, 1, generator), ContainsSubstring("not finite"));
}

TEST_CASE("A trace of a GPT carries the names of its layers", "[gpt]") {
  const lm::GPT model = seeded(1);
  const Trace trace;
  model.loss(idx, targets);
  std::vector<std::string> scopes;
  for (const auto& event : trace.events())
    if (scopes.empty() || scopes.back() != event.scope)
      scopes.push_back(event.scope);
  CHECK(scopes == std::vector<std::string>{"embeddings", "h.0.attn", "h.0.mlp", "h.1.attn",
                                           "h.1.mlp", "head"});
}

TEST_CASE("The gradient of a whole GPT is right", "[gpt][gradcheck]") {
  lm::GPT model =
      seeded(5, {.block_size = 3, .vocab_size = 4, .n_layer = 1, .n_head = 2, .n_embd = 4});
  nn::to(model, DType::float64);
  for (Tensor p : nn::parameters(model))
    p.copy_(p * 5);
  const auto loss = [&](const std::vector<Tensor>&) {
    return model.loss({{0, 3, 1}, {2, 2, 0}}, {{3, 1, -100}, {2, 0, 1}});
  };
  const auto report = nn::gradcheck(model, loss, {});
  INFO(report.message);
  CHECK(report.ok);
}

TEST_CASE("TransformerBlock names misshapen heads", "[nn][attention]") {
  CHECK_THROWS_WITH(lm::TransformerBlock(6, 4), ContainsSubstring("6 is not a multiple of n_head"));
  CHECK_THROWS_AS(lm::TransformerBlock(4, 2, -0.5), ValueError);
}

// Several of these in one `auto` do not compile if their types differ.
TEST_CASE("sizes of a GPT are of one signed type, and no fractions", "[gpt][sizes]") {
  const lm::GPTConfig c;
  const lm::Characters letters = lm::Characters::of(U"ab");
  const auto a = zeros({2}).size(0), f = c.n_embd / c.n_head, g = c.kv_heads(), h = c.head_width(),
             i = c.inner_width(), q = letters.size(),
             s = lm::GenerateOptions{.top_k = a}.top_k.value_or(a);
  CHECK(f - g + h + i + q + s > 0);
  CHECK(lm::GPT({.block_size = a, .vocab_size = q, .n_layer = 1, .n_head = 1, .n_embd = a})
            .h.size() == 1);
  CHECK_THROWS_AS(lm::GPT({.n_layer = -1}), Error);
  CHECK_THROWS_AS(lm::next_token_probabilities(zeros({2, 3}), {.top_k = -1}), Error);
  const auto takes = [](auto n) { return requires { lm::GenerateOptions{.top_k = n}; }; };
  CHECK(takes(2));
  CHECK_FALSE(takes(2.5));
}

TEST_CASE("GPT: neither training nor evaluation holds all logits", "[lm][memory]") {
  const lm::GPT model(
      {.block_size = 512, .vocab_size = 8192, .n_layer = 1, .n_head = 1, .n_embd = 8});
  const Indices ids = reshape(arange_indices(0, 2048) * 3, {4, 512});
  const std::size_t logits = 2048 * 8192 * sizeof(float);
  const Threads one(1);
  const PeakMemory peak;
  model.loss(ids, ids).backward();
  CHECK(peak.bytes() < logits / 2);
  const NoGrad no_grad;
  const PeakMemory of_loss;
  CHECK(std::isfinite(model.loss(ids, ids).item()));
  CHECK(of_loss.bytes() < logits / 2);
}
