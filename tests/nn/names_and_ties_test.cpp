// The names that a layer's visit gives, and Tensors with two names.

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "nn/checks.hpp"

using namespace xgrad;

namespace {

// A decoder that shares the encoder's weight.
struct Tied {
  nn::Linear encoder{3, 3}, decoder{3, 3};
  bool declared = true;
  std::string target = "encoder.weight";
  Tied() { decoder.weight = encoder.weight; }
  Tensor operator()(const Tensor& x) const { return decoder(encoder(x)); }
  static void visit(auto& self, auto&& v) {
    v("encoder", self.encoder);
    v("decoder", self.decoder);
    if (self.declared)
      v("decoder.weight", nn::tied_to(self.target));
  }
};

struct Twice {
  nn::Linear a{2, 2}, b = a;
  static void visit(auto& self, auto&& v) {
    v("a", self.a);
    v("b", self.b);
    v("b", nn::tied_to("a"));
  }
};

struct Clash {
  Tensor a = ones({1}), b = ones({1});
  static void visit(auto& self, auto&& v) {
    v("w", self.a);
    v("w", self.b);
  }
};

// A weight that visit ties and, on request, names; and a vector and an optional layer.
struct Half {
  nn::Linear encoder{3, 3};
  Tensor decoder = encoder.weight;
  bool named = false;
  std::string name = "decoder", target = "encoder.weight", again;
  std::optional<nn::Linear> head;
  static void visit(auto& self, auto&& v) {
    v("encoder", self.encoder);
    if (self.named)
      v("decoder", self.decoder);
    v(self.name, nn::tied_to(self.target));
    if (!self.again.empty())
      v(self.again, nn::tied_to(self.target));
    v("head", self.head);
  }
};
struct Outer {
  std::vector<Half> halves = std::vector<Half>(1);
  static void visit(auto& self, auto&& v) { v("halves", self.halves); }
};
// Two members of any kind, with one name or none.
template <class A, class B>
struct Named {
  A a;
  B b;
  std::string first = "a", second = "b";
  static void visit(auto& self, auto&& v) {
    v(self.first, self.a);
    v(self.second, self.b);
  }
};

}  // namespace

TEST_CASE("A declared tie counts and is saved once", "[module][tie]") {
  Tied model;
  CHECK(names(nn::state_dict(model)) ==
        std::vector<std::string>{"encoder.weight", "encoder.bias", "decoder.bias"});
  CHECK(nn::num_parameters(model) == 9 + 3 + 3);

  nn::StateDict state = nn::state_dict(model);
  for (auto& [name, tensor] : state)
    tensor = full_like(tensor, 2);
  SECTION("under both names, if equal") {
    state.emplace_back("decoder.weight", full({3, 3}, 2));
    nn::load_state_dict(model, state);
    CHECK(model.decoder.weight.data<float>()[8] == 2);
  }
  SECTION("under both names, but different") {
    state.emplace_back("decoder.weight", full({3, 3}, 3));
    const std::string text = message_of<ValueError>([&] { nn::load_state_dict(model, state); });
    CHECK_THAT(text, ContainsSubstring("encoder.weight and decoder.weight"));
    CHECK(model.decoder.weight.data<float>()[8] != 2);
  }
  SECTION("under the second name only") {
    state[0].first = "decoder.weight";
    nn::load_state_dict(model, state);
    CHECK(model.encoder.weight.data<float>()[8] == 2);
  }
  SECTION("NaN equals itself") {
    state[0].second = full({3, 3}, std::numeric_limits<double>::quiet_NaN());
    state.emplace_back("decoder.weight", state[0].second.clone());
    nn::load_state_dict(model, state);
    CHECK(std::isnan(model.encoder.weight.data<float>()[0]));
  }
}

TEST_CASE("A whole layer may be tied", "[module][tie]") {
  CHECK(names(nn::state_dict(Twice())) == std::vector<std::string>{"a.weight", "a.bias"});
}

TEST_CASE("Names that clash and ties that are wrong are errors", "[module][tie]") {
  Tied model;
  model.declared = false;
  std::string text = message_of<ValueError>([&] { nn::parameters(model); });
  CHECK_THAT(text, ContainsSubstring("'encoder.weight' and 'decoder.weight' are the same Tensor"));
  CHECK_THAT(text, ContainsSubstring("tied_to(\"encoder.weight\")"));

  model.declared = true;
  model.decoder.weight = model.decoder.weight.detach();
  CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
             ContainsSubstring("different Tensors"));

  Tied misspelt;
  misspelt.target = "encodr.weight";
  CHECK_THAT(message_of<ValueError>([&] { nn::parameters(misspelt); }),
             ContainsSubstring("'encodr.weight', which is no defined Tensor"));

  CHECK_THAT(message_of<ValueError>([] { nn::state_dict(Clash()); }),
             ContainsSubstring("the name 'w' is given twice"));
}

TEST_CASE("The error of a tie without its member says what to write", "[module][tie]") {
  Half model;
  CHECK_THAT(message_of<ValueError>([&] { nn::clone(model); }),
             ContainsSubstring("'decoder' is tied to 'encoder.weight', but visit names no member "
                               "'decoder'; write both: v(\"decoder\", self.decoder); "
                               "v(\"decoder\", tied_to(\"encoder.weight\"))"));
  CHECK_THAT(message_of<ValueError>([&] { nn::parameters(Outer()); }),
             ContainsSubstring("'halves.0.decoder' is tied to 'halves.0.encoder.weight'") &&
                 ContainsSubstring("v(\"decoder\", tied_to(\"encoder.weight\"))"));
  // With both lines a copy shares nothing, as a mean of weights over steps needs.
  model.named = true;
  Half mean = nn::clone(model);
  CHECK(mean.decoder.handle() == mean.encoder.weight.handle());
  CHECK(mean.decoder.handle() != model.decoder.handle());
  CHECK(nn::parameters(model).size() == 2);
  SECTION("a layer that it names, but not the Tensor") {
    model.name = "encoder.wieght";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("visit names no member 'encoder.wieght'; write both: "
                                 "v(\"encoder\", self.encoder); v(\"encoder.wieght\""));
  }
  SECTION("a layer that is there in other models") {
    model.again = "head.weight";
    CHECK(nn::parameters(model).size() == 2);
    model.head.emplace(3, 3);
    model.head->weight = model.encoder.weight;
    CHECK(nn::parameters(model).size() == 3);  // and a bias
  }
  SECTION("twice") {
    model.again = "decoder";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("'decoder' is tied twice"));
  }
  SECTION("to nothing") {
    model.target = "";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("'decoder' is tied to a name that is empty"));
  }
  SECTION("to itself") {
    model.target = "decoder";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("tied itself"));
  }
}

TEST_CASE("A name is given once, whatever it names", "[module]") {
  const auto twice = [](auto model) {
    CHECK_NOTHROW(nn::parameters(model));
    model.second = "a";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("the name 'a' is given twice"));
    model.second = "";
    CHECK_THAT(message_of<ValueError>([&] { nn::parameters(model); }),
               ContainsSubstring("a name is empty"));
  };
  twice(Named<Tensor, Tensor>{ones({1}), ones({1})});
  twice(Named<Tensor, Tensor>{Tensor(), ones({1})});
  twice(Named<Tensor, Tensor>{});
  twice(Named<nn::Tanh, nn::ReLU>{});
  twice(Named<Tensor, nn::Linear>{ones({1}), nn::Linear(2, 2)});
  twice(Named<std::vector<Tensor>, nn::Linear>{{ones({1})}, nn::Linear(2, 2)});
  twice(Named<std::optional<Tensor>, std::array<Tensor, 1>>{{}, {ones({1})}});
  Named<std::vector<nn::Linear>, Tensor> into{std::vector<nn::Linear>(1, nn::Linear(2, 2)),
                                              ones({1})};
  into.second = "a.0.weight";
  CHECK_THAT(message_of<ValueError>([&] { nn::parameters(into); }),
             ContainsSubstring("the name 'a.0.weight' is given twice"));
}

TEST_CASE("A layer that a Sequential holds twice is one layer", "[module][sequential][tie]") {
  const nn::Linear l(3, 3);
  nn::Sequential net{l, nn::Tanh{}, l, l};
  CHECK(names(nn::state_dict(net)) == std::vector<std::string>{"0.weight", "0.bias"});
  CHECK(nn::num_parameters(net) == 12);
  const Tensor x = ones({2, 3});
  sum(net(x)).backward();
  CHECK(l.weight.grad().defined());
  nn::Sequential copy = nn::clone(net);
  CHECK(copy.at<nn::Linear>(0).weight.handle() == copy.at<nn::Linear>(3).weight.handle());
  CHECK(copy.at<nn::Linear>(0).weight.handle() != l.weight.handle());
  nn::load_state_dict(copy, {{"2.weight", ones({3, 3})}, {"3.bias", zeros({3})}});
  CHECK(copy.at<nn::Linear>(0).weight.data<float>()[0] == 1);
  // within another layer, and one within another
  const Named<nn::Sequential, nn::Sequential> both{{l, nn::Sequential{nn::Tanh{}, l}}, {}};
  CHECK(names(nn::state_dict(both)) == std::vector<std::string>{"a.0.weight", "a.0.bias"});
  CHECK_THAT(nn::summary(both), ContainsSubstring("weight (3, 3) = a.0.weight"));
  // Not the ties that one of its layers declares, nor those between two of them.
  Tied undeclared;
  undeclared.declared = false;
  CHECK_THROWS_AS(nn::parameters(nn::Sequential{undeclared}), ValueError);
  const Named<nn::Sequential, nn::Linear> shared{{l}, l};
  CHECK_THAT(message_of<ValueError>([&] { nn::parameters(shared); }),
             ContainsSubstring("v(\"b.weight\", tied_to(\"a.0.weight\"))"));
}

TEST_CASE("clone shares nothing and keeps ties", "[module][tie]") {
  Tied model;
  model.encoder.bias.requires_grad_(false);
  model.encoder.weight.set_grad(ones({3, 3}));
  const Tied copy = nn::clone(model);
  CHECK(copy.encoder.weight.handle() == copy.decoder.weight.handle());
  CHECK(copy.encoder.weight.handle() != model.encoder.weight.handle());
  CHECK(copy.encoder.weight.requires_grad());
  CHECK_FALSE(copy.encoder.bias.requires_grad());
  CHECK_FALSE(copy.encoder.weight.grad().defined());
  const float before = copy.encoder.weight.data<float>()[0];
  model.encoder.weight.fill_(9);
  CHECK(copy.encoder.weight.data<float>()[0] == before);
}

TEST_CASE("summary is a table with a total", "[module]") {
  const Tied model;
  CHECK(nn::summary(model) ==
        "layer    type    parameters  shapes\n"
        "encoder  Linear          12  weight (3, 3), bias (3,)\n"
        "decoder  Linear           3  weight (3, 3) = encoder.weight, bias (3,)\n"
        "total 15 parameters, 15 of them trainable, 0.00 MB\n");
  const nn::Linear large(1000, 1001, false);
  CHECK_THAT(nn::summary(large), ContainsSubstring("(model)  Linear   1,001,000  weight"));
  CHECK_THAT(nn::summary(large), ContainsSubstring("4.00 MB"));
}
