// Low-rank adaptation compared with its formula; unchanged parameters, and errors.

#include <map>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

lm::GPT gpt_with_adapters(Size rank, std::optional<double> alpha = {}) {
  manual_seed(3);
  lm::GPT model(lm::GPTConfig::llama(
      {.block_size = 8, .vocab_size = 11, .n_layer = 2, .n_head = 2, .n_embd = 8, .n_inner = 12}));
  nn::add_lora(model, {.rank = rank, .alpha = alpha});
  return model;
}

// As after training: B is 0 at first.
template <class M>
void draw_lora_B(M& model) {
  for (auto& [name, x] : nn::named_parameters(model))
    if (name.ends_with("lora_B"))
      nn::init::normal_(x, 0, 0.3);
}

struct SharedLinear {
  nn::Linear a{4, 4, false}, b{4, 4, false};
  bool whole;
  explicit SharedLinear(bool w) : whole(w) { b.weight = a.weight; }
  Tensor operator()(const Tensor& x) const { return b(tanh(a(x))); }
  static void visit(auto& self, auto&& v) {
    v("a", self.a), v("b", self.b);
    v(self.whole ? "b" : "b.weight", nn::tied_to(self.whole ? "a" : "a.weight"));
  }
};

}  // namespace

TEST_CASE("lora: the formula, its gradients and draws", "[nn][lora]") {
  manual_seed(1);
  nn::Linear layer(6, 5);
  nn::to(layer, DType::float64);
  const Tensor x = randn({2, 3, 6}, DType::float64), before = layer(x);
  Generator generator(7);
  nn::add_lora(layer, {.rank = 3, .alpha = 12}, generator);
  CHECK(allclose(layer(x), before, 0, 0));
  Generator again(7);
  CHECK(allclose(layer.lora_A,
                 nn::init::uniform_(zeros({3, 6}, DType::float64), -1 / std::sqrt(6.0),
                                    1 / std::sqrt(6.0), again),
                 1e-15, 0));
  draw_lora_B(layer);
  const Tensor W = layer.weight + 4 * matmul(layer.lora_B, layer.lora_A);
  CHECK(allclose(layer(x), matmul(x, W.transpose(0, 1)) + layer.bias, 1e-12, 1e-12));
  const GradcheckReport report = nn::gradcheck(layer, {x});
  CHECK((report.ok ? "" : report.message) == "");
  CHECK(report.checked == 30 * (36 + 3 * 6 + 5 * 3));
  CHECK(nn::gradgradcheck(layer, {x}).ok);

  const nn::Linear copy = nn::clone(layer);
  CHECK(allclose(copy(x), layer(x), 0, 0));
  CHECK(copy.lora_A.handle() != layer.lora_A.handle());
  const Tensor y = layer(x);
  nn::merge_lora(layer);
  CHECK(allclose(layer(x), y, 1e-12, 1e-12));
  CHECK_FALSE(allclose(layer(x), before, 0.1, 0.1));
  CHECK(nn::state_dict(layer).size() == 2);
}

TEST_CASE("lora: a decoder trains its adapters alone", "[nn][lora]") {
  lm::GPT model = gpt_with_adapters(2);
  std::map<std::string, Tensor> before;
  for (const auto& [name, x] : nn::state_dict(model))
    before.emplace(name, clone(x));
  CHECK(before.contains("transformer.h.1.mlp.c_gate.lora_A"));
  CHECK_FALSE(before.contains("lm_head.lora_A"));
  Size trained = 0;
  optim::AdamW optimizer(nn::parameters(model), {.lr = 0.1});
  const Indices ids({{1, 2, 3, 4}, {5, 6, 7, 8}}), next({{2, 3, 4, 5}, {6, 7, 8, 9}});
  const double loss = model.loss(ids, next).item();
  for (int i = 0; i < 5; ++i) {
    optimizer.zero_grad();
    model.loss(ids, next).backward();
    optimizer.step();
  }
  CHECK(model.loss(ids, next).item() < loss - 0.001);
  for (const auto& [name, x] : nn::named_parameters(model)) {
    INFO(name);
    const bool adapter = name.find(".lora_") != name.npos;
    CHECK(x.grad().defined() == adapter);
    CHECK(allclose(x.detach(), before.at(name), 0, 0) != adapter);
    trained += adapter ? x.numel() : 0;
  }
  CHECK(trained == 2 * 2 * ((8 + 24) + (8 + 8) + 3 * (8 + 12)));
  check_contains(nn::summary(model), {"lora_A (2, 8)", ", 432 of them trainable"});

  lm::GPT other = gpt_with_adapters(2);
  nn::load_state_dict(other, nn::state_dict(model));
  CHECK(allclose(other(ids), model(ids), 0, 0));
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(lm::save_pretrained(folder / "tuned", model),
                    ContainsSubstring("lm::merge_lora()") && ContainsSubstring(".lora_A"));
  nn::merge_lora(model);
  CHECK(allclose(model(ids), other(ids), 1e-5, 1e-5));
  CHECK(nn::num_parameters(model) + trained == nn::num_parameters(other));
  lm::save_pretrained(folder / "tuned", model);
  CHECK(allclose(lm::load_pretrained(folder / "tuned")(ids), model(ids), 0, 0));
}

TEST_CASE("lora: tied weights count once", "[nn][lora]") {
  const Tensor x = randn({3, 4});
  const nn::Linear one(4, 4);
  nn::Sequential twice{one, nn::Linear(4, 4), one};
  SharedLinear shared(true);
  const auto check = [&](auto& model, std::size_t adapters) {
    nn::add_lora(model, {.rank = 2});
    draw_lora_B(model);
    std::size_t n = 0;
    for (const auto& [name, p] : nn::named_parameters(model))
      n += name.find("lora_") != name.npos;
    CHECK(n == adapters);
    const Tensor y = model(x);
    nn::merge_lora(model);
    CHECK(allclose(model(x), y, 1e-5, 1e-5));
  };
  check(twice, 4);
  check(shared, 2);
}

TEST_CASE("lora: errors change nothing", "[nn][lora]") {
  const auto refused = [](auto& model, const nn::LoraOptions& options, const std::string& why) {
    const std::string before = nn::summary(model);
    CHECK_THROWS_WITH(nn::add_lora(model, options), ContainsSubstring(why));
    CHECK(nn::summary(model) == before);
  };
  nn::Linear layer(6, 4);
  refused(layer, {.rank = 0}, "rank is 0");
  refused(layer, {.rank = 5}, "rank is 5, above the smaller side of weight, (4, 6)");
  refused(layer, {.alpha = 0}, "alpha is 0; it must be positive");
  refused(layer, {.alpha = INFINITY}, "alpha is inf");
  nn::Embedding none(3, 4);
  refused(none, {.rank = 1}, "no Linear that may have adapters");
  SharedLinear half(false);
  refused(half, {.rank = 1}, "b.weight and a.weight are one Tensor");
  lm::GPT gpt({.block_size = 4, .vocab_size = 9, .n_layer = 1, .n_head = 1, .n_embd = 8});
  refused(gpt, {.rank = 2, .except = {}}, "transformer.wte.weight and lm_head.weight are one");
  refused(gpt, {.rank = 2, .except = {"transformer.h", "lm_head"}}, "no Linear that may have");
  nn::add_lora(layer, {.rank = 2});
  refused(layer, {.rank = 2}, "has adapters already; merge_lora()");
  nn::to_bfloat16(gpt);
  refused(gpt, {.rank = 2}, "is in bfloat16");
  CHECK_THROWS_WITH(nn::merge_lora(gpt), ContainsSubstring("is in bfloat16"));
}
