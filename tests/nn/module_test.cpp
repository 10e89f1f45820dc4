// The functions that follow from a layer's visit.

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/errors.hpp"
#include "nn/checks.hpp"

using namespace xgrad;

namespace {

struct Block {
  nn::Linear fc;
  nn::Dropout drop{0.5};
  explicit Block(std::size_t width, bool bias = true) : fc(width, width, bias) {}
  Tensor operator()(const Tensor& x) const { return drop(fc(x)); }
  static void visit(auto& self, auto&& v) {
    v("fc", self.fc);
    v("drop", self.drop);
  }
};

struct Model {
  nn::Linear in{2, 3};
  std::vector<Block> h{Block(3), Block(3, false)};
  std::optional<nn::Linear> extra = {};
  Tensor scale = ones({3}).requires_grad_();
  Tensor running = zeros({3});
  double p = 0.1;
  bool training = true;

  Tensor operator()(const Tensor& x) const {
    Tensor y = in(x);
    for (const Block& block : h)
      y = block(y);
    return y * scale + running;
  }
  static void visit(auto& self, auto&& v) {
    v("in", self.in);
    v("h", self.h);
    v("extra", self.extra);
    v("scale", self.scale);
    v("running", nn::buffer(self.running));
    v("training", self.training);
  }
};

struct List {
  std::vector<Tensor> many{ones({1}), ones({2})};
  std::array<Tensor, 2> pair{ones({3}), Tensor()};
  static void visit(auto& self, auto&& v) {
    v("many", self.many);
    v("pair", self.pair);
  }
};

struct Forgetful {
  nn::Linear a{2, 2}, b{2, 2};
  Tensor operator()(const Tensor& x) const { return b(a(x)); }
  static void visit(auto& self, auto&& v) { v("a", self.a); }
};

Tensor find(const nn::StateDict& state, const std::string& name) {
  for (const auto& [n, tensor] : state)
    if (n == name)
      return tensor;
  return {};
}

struct ConstVisit {
  Tensor w = ones({2}).requires_grad_();
  static void visit(const auto& self, auto&& v) { v("w", self.w); }
};

}  // namespace

TEST_CASE("Names come from visit, undefined Tensors and numbers do not", "[module]") {
  const Model model;
  CHECK(names(nn::named_parameters(model)) ==
        std::vector<std::string>{"in.weight", "in.bias", "h.0.fc.weight", "h.0.fc.bias",
                                 "h.1.fc.weight", "scale"});
  CHECK(names(nn::named_buffers(model)) == std::vector<std::string>{"running"});
  CHECK(names(nn::state_dict(model)).size() == 7);
  CHECK(nn::num_parameters(model) == 6 + 3 + 9 + 3 + 9 + 3);
  CHECK(nn::parameters(model)[0].handle() == model.in.weight.handle());

  Model wider;
  wider.extra.emplace(3, 1);
  CHECK(nn::num_parameters(wider) == nn::num_parameters(model) + 4);
  CHECK(names(nn::state_dict(wider))[5] == "extra.weight");
  wider.scale.requires_grad_(false);  // frozen, and still a parameter
  CHECK(nn::num_parameters(wider) == nn::num_parameters(model) + 4);
}

TEST_CASE("requires_grad_ freezes all parameters, or none", "[module]") {
  Model model;
  nn::requires_grad_(model, false);
  for (const auto& [name, p] : nn::state_dict(model))
    CHECK_FALSE(p.requires_grad());
  nn::requires_grad_(model);
  for (const Tensor& p : nn::parameters(model))
    CHECK(p.requires_grad());
  CHECK_FALSE(model.running.requires_grad());
  model.scale = model.scale * 2;
  CHECK_THROWS_AS(nn::requires_grad_(model, false), GraphError);
  CHECK(model.in.weight.requires_grad());
}

TEST_CASE("A vector or array of Tensors is numbered", "[module]") {
  CHECK(names(nn::named_parameters(List())) ==
        std::vector<std::string>{"many.0", "many.1", "pair.0"});
}

TEST_CASE("train and eval reach every training flag and nothing else", "[module]") {
  Model model;
  nn::eval(model);
  CHECK_FALSE(model.training);
  CHECK_FALSE(model.h[0].drop.training);
  CHECK_FALSE(model.h[1].drop.training);
  nn::train(model);
  CHECK((model.training && model.h[0].drop.training && model.h[1].drop.training));
  Model other = model;  // shares Tensors, not flags
  nn::eval(other);
  CHECK(model.training);
  CHECK(other.in.weight.handle() == model.in.weight.handle());
}

TEST_CASE("A state dict is a snapshot that goes back in", "[module]") {
  manual_seed(1);
  Model a, b;
  const nn::StateDict state = nn::state_dict(a);
  CHECK_FALSE(find(state, "in.weight").requires_grad());
  a.in.weight.fill_(7);
  CHECK(element<float>(find(state, "in.weight"), 0) != 7);

  const Tensor held = b.in.weight;
  nn::load_state_dict(b, state);
  CHECK(allclose(b.in.weight, find(state, "in.weight"), 0, 0));
  CHECK(allclose(held, find(state, "in.weight"), 0, 0));  // in place
  CHECK(b.in.weight.requires_grad());
  CHECK(allclose(b.h[1].fc.weight, a.h[1].fc.weight, 0, 0));
}

TEST_CASE("Loading lists all that does not fit and changes nothing", "[module]") {
  Model model;
  nn::StateDict state = nn::state_dict(model);
  const float before = model.in.weight.data<float>()[0];
  for (auto& [name, tensor] : state)
    tensor = zeros_like(tensor);
  state.erase(state.begin() + 1);  // in.bias
  state.emplace_back("h.2.fc.weight", zeros({3, 3}));
  state.emplace_back("scale", zeros({3}));
  for (auto& [name, tensor] : state) {
    if (name == "h.0.fc.weight")
      tensor = zeros({3, 4});
    if (name == "h.0.fc.bias")
      tensor = zeros({3}, DType::float64);
  }
  const std::string text = message_of<ValueError>([&] { nn::load_state_dict(model, state); });
  CHECK_THAT(text, ContainsSubstring("missing: in.bias"));
  CHECK_THAT(text, ContainsSubstring("unexpected: h.2.fc.weight"));
  CHECK_THAT(text, ContainsSubstring("given twice: scale"));
  CHECK_THAT(text, ContainsSubstring("h.0.fc.weight is (3, 4) here and (3, 3) in the model"));
  CHECK_THAT(text, ContainsSubstring("h.0.fc.bias is float64 here and float32 in the model"));
  CHECK_THAT(text, !ContainsSubstring("running"));
  CHECK(model.in.weight.data<float>()[0] == before);
}

TEST_CASE("to converts in place: values, buffers, gradients", "[module]") {
  manual_seed(2);
  Model model;
  nn::eval(model);
  const Tensor x = randn({4, 2});
  const Tensor expected = model(x);
  const Tensor held = model.in.weight;
  int calls = 0;
  model.in.weight.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
  model.scale.set_grad(full({3}, 0.5));
  const Tensor stale = model(x).sum();  // its graph ends in the float32 leaves

  nn::to(model, DType::float64);
  CHECK(held.dtype() == DType::float64);
  CHECK(held.requires_grad());
  CHECK(model.running.dtype() == DType::float64);
  CHECK_FALSE(model.running.requires_grad());
  CHECK(model.scale.grad().dtype() == DType::float64);
  CHECK(element<double>(model.scale.grad(), 2) == 0.5);
  const Tensor y = model(x.to(DType::float64));
  CHECK(allclose(y.to(DType::float32), expected, 1e-5, 1e-6));

  stale.backward();  // harmless
  CHECK_FALSE(model.in.weight.grad().defined());
  CHECK(calls == 0);
  y.sum().backward();
  CHECK(model.in.weight.grad().dtype() == DType::float64);
  CHECK(calls == 1);
}

TEST_CASE("zero_grad clears every gradient", "[module]") {
  Model model;
  nn::eval(model);
  model(ones({1, 2})).sum().backward();
  REQUIRE(model.in.weight.grad().defined());
  nn::zero_grad(model);
  for (const Tensor& p : nn::parameters(model))
    CHECK_FALSE(p.grad().defined());
}

TEST_CASE("summary marks buffers", "[module]") {
  CHECK_THAT(nn::summary(Model()), ContainsSubstring("running (3,) buffer"));
}

TEST_CASE("A member that visit forgot is found in the graph", "[module]") {
  const Forgetful model;
  const auto found = nn::unvisited_leaves(model, model(ones({1, 2})));
  REQUIRE(found.size() == 2);
  for (const Tensor& x : found)
    CHECK((x.handle() == model.b.weight.handle() || x.handle() == model.b.bias.handle()));
  Model complete;
  CHECK(nn::unvisited_leaves(complete, complete(ones({1, 2}))).empty());
}

TEST_CASE("Sequential holds layers of any type", "[module][sequential]") {
  manual_seed(1);
  nn::Sequential net{nn::Linear(2, 16), nn::Tanh{}, nn::Linear(16, 1)};
  CHECK(names(nn::state_dict(net)) ==
        std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
  // Numbers of torch.nn.Sequential under torch.manual_seed(1): the draws come in the same order.
  const Tensor y = net(tensor({{.5, -1}, {2, .25}}));
  CHECK(y.data<float>()[0] == Approx(0.359495729));
  CHECK(y.data<float>()[1] == Approx(0.334111512));
  CHECK(nn::unvisited_leaves(net, y).empty());

  nn::Sequential copy = net;  // shares Tensors, owns flags
  copy.push_back(nn::Dropout(0.5));
  nn::eval(copy);
  CHECK(copy.size() == 4);
  CHECK(net.size() == 3);
  CHECK_FALSE(copy.at<nn::Dropout>(3).training);
  CHECK(copy.at<nn::Linear>(0).weight.handle() == net.at<nn::Linear>(0).weight.handle());
  CHECK(nn::clone(net).at<nn::Linear>(0).weight.handle() != net.at<nn::Linear>(0).weight.handle());
  CHECK_THROWS_WITH(net.at<nn::Linear>(1), ContainsSubstring("not of the requested type"));
  CHECK_THROWS_WITH(net.at<nn::Linear>(3), ContainsSubstring("no layer 3; there are 3"));
  CHECK_THROWS_WITH(net(Indices({0, 1})), ContainsSubstring("Linear does not take Indices"));
}

TEST_CASE("clone names a visit that takes its layer as const", "[nn][module]") {
  CHECK(nn::parameters(ConstVisit()).size() == 1);
  CHECK_THROWS_WITH(nn::clone(ConstVisit()), ContainsSubstring("visit names 'w' as const"));
}
