#include <utility>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/tiny_transformer.hpp"

using namespace xgrad;

namespace {

// value(x) * sigmoid(gate(x)), with mistakes on request.
struct Gated {
  nn::Linear value{3, 2}, gate{3, 2};
  Tensor extra = randn({2}, DType::float64).requires_grad_();
  bool detached = false, uses_extra = false;
  Tensor operator()(const Tensor& x) const {
    const Tensor v = value(x), g = sigmoid(gate(x));
    const Tensor y = v * (detached ? g.detach() : g);
    return uses_extra ? y * extra : y;
  }
  static void visit(auto& self, auto&& v) {
    v("value", self.value);
    v("gate", self.gate);
  }
};

struct Pair {
  nn::Linear left{2, 2};
  std::vector<Tensor> operator()(const Tensor& a, const Tensor& b) const {
    return {left(a) * b, a + b};
  }
  static void visit(auto& self, auto&& v) { v("left", self.left); }
};

// a(x) * s, with the numbers of s.
struct Copied {
  enum class Way { item, elements, detached } way;
  nn::Linear a{3, 3};
  Tensor s = full({1}, 1.5, DType::float64).requires_grad_();
  Tensor operator()(const Tensor& x) const {
    if (way == Way::item)
      return a(x) * s.item();
    return a(x) * (way == Way::elements ? full({1}, s.data<double>()[0], x.dtype()) : s.detach());
  }
  static void visit(auto& self, auto&& v) {
    v("a", self.a);
    v("s", self.s);
  }
};

template <class M>
M make(M model) {
  nn::to(model, DType::float64);
  return model;
}

}  // namespace

TEST_CASE("gradcheck of a layer: inputs and every parameter, by name", "[nn][gradcheck]") {
  manual_seed(3);
  const auto block = make(TinyBlock(4, 2));
  const Tensor x = randn({2, 3, 4}, DType::float64);
  const auto report = nn::gradcheck(block, {x});
  INFO(report.message);
  CHECK(report);
  CHECK(std::cmp_equal(report.checked, 24 * (24 + nn::num_parameters(block))));
  REQUIRE(report.pairs.size() == 13);
  CHECK(report.pairs[0].input_name == "input 0");
  CHECK(report.pairs[3].input_name == "attn.c_attn.weight");
  CHECK(report.pairs[12].input_name == "mlp.c_proj.bias");
  CHECK(report.pairs[3].numeric.shape() == Shape{24, 4 * 12});
  CHECK_FALSE(x.requires_grad());
  CHECK(nn::gradcheck(block, {x}, {.fast_mode = true}));
  CHECK(nn::gradgradcheck(block, {x}, {.fast_mode = true}));
  CHECK_THAT(nn::eps_sweep(block, {x}).conclusion, StartsWith("right"));
  // the weights, a second result, are not reported as lost
  const auto attention = make(nn::MultiHeadAttention(4, 2));
  const auto output = [&](const std::vector<Tensor>& in) {
    return attention(in[0], in[0], in[0]).output;
  };
  CHECK(nn::gradcheck(attention, output, {x}).notes.empty());
}

TEST_CASE("gradcheck of a layer with two inputs and two outputs", "[nn][gradcheck]") {
  manual_seed(3);
  const auto pair = make(Pair());
  const Tensor a = randn({2}, DType::float64), b = randn({2}, DType::float64);
  const auto report = nn::gradcheck(pair, {a, b}, {.names = {"a", "b"}});
  CHECK(report);
  CHECK(report.pairs.size() == 2 * 4);
  CHECK(report.pairs[1].input_name == "b");
  CHECK(report.pairs[2].input_name == "left.weight");
  CHECK(nn::gradgradcheck(pair, {a, b}));
  CHECK(nn::gradcheck(pair, {a, a}));  // as two
  CHECK_THROWS_WITH(nn::gradcheck(pair, {a}), ContainsSubstring("not called with 1 Tensors"));
  CHECK_THROWS_WITH(nn::gradcheck(pair, {a, b}, {.names = {"a"}}),
                    ContainsSubstring("1 names for 2 inputs"));
}

TEST_CASE("gradcheck of a layer that is called in its own way", "[nn][gradcheck]") {
  manual_seed(3);
  const auto table = make(nn::Embedding(3, 2));
  const auto f = [&](const std::vector<Tensor>&) { return table({0, 2, 2}); };
  const auto report = nn::gradcheck(table, f, {});
  CHECK(report);
  CHECK(report.pairs.at(0).input_name == "weight");
  CHECK(nn::gradgradcheck(table, f, {}));
  CHECK_THAT(nn::eps_sweep(table, f, {}).conclusion, !StartsWith("flat"));
}

TEST_CASE("gradcheck names the parameters that are wrong", "[nn][gradcheck]") {
  manual_seed(3);
  Gated layer = make(Gated());
  const Tensor x = randn({4, 3}, DType::float64);
  CHECK(nn::gradcheck(layer, {x}));
  CHECK(nn::gradgradcheck(layer, {x}));
  layer.detached = true;
  const auto report = nn::gradcheck(layer, {x});
  CHECK_FALSE(report);
  for (const GradcheckPair& pair : report.pairs) {
    INFO(pair.input_name);
    const bool gate = pair.input_name.starts_with("gate");
    CHECK((pair.disagree > 0) == (gate || pair.input_name == "input 0"));
    if (gate)
      CHECK(pair.reason == GradcheckReason::absent);
  }
  CHECK_THAT(report.table(), ContainsSubstring("gate.weight") && ContainsSubstring("absent"));
}

TEST_CASE("the op that takes a parameter's numbers is named", "[nn][gradcheck]") {
  manual_seed(3);
  const Tensor x = randn({2, 3}, DType::float64);
  const auto linear = make(nn::Linear(3, 3));
  CHECK(nn::explain_gradient(linear, {x}, {.names = {"x"}}));
  for (const auto way : {Copied::Way::item, Copied::Way::elements, Copied::Way::detached}) {
    const auto layer = make(Copied{way});
    const auto explained = explain_gradient(layer, {x});
    CHECK_FALSE(explained);
    CHECK_THAT(explained.message, ContainsSubstring("op 2, mul"));
    CHECK_FALSE(nn::explain_gradient(layer, [&](const Tensor& in) { return layer(in); }, {x}));
    if (way == Copied::Way::detached) {
      CHECK_THAT(explained.message, ContainsSubstring("its input 1 holds s, but as a constant"));
      continue;
    }
    CHECK_THAT(nn::gradcheck(layer, {x}).message, ContainsSubstring("; input 1 of op 2, mul"));
    const std::string found = nn::check_layer(layer, x).line("gradcheck").found;
    CHECK_THAT(found, ContainsSubstring("; input 1 of op 2, mul"));
    CHECK(layer.s.item() == 1.5);
  }
  // A function does not know the parameters of the layer that it calls, and says so.
  const Tensor leaf = x.detach().requires_grad_();
  CHECK_THAT(explain_gradient([&](const Tensor& in) { return linear(in); }, {leaf}).message,
             EndsWith("the whole was not checked by 2 other Tensors that require one: "
                      "nn::explain_gradient(layer, inputs) does"));
  Gated omits = make(Gated());
  omits.uses_extra = true;
  CHECK_THAT(nn::explain_gradient(omits, {randn({1, 3}, DType::float64)}).message,
             StartsWith("the output depends on a Tensor that visit does not name"));
}

TEST_CASE("gradcheck finds members that visit omits", "[nn][gradcheck]") {
  manual_seed(3);
  Gated layer = make(Gated());
  layer.uses_extra = true;
  const Tensor x = randn({4, 3}, DType::float64);
  const auto report = nn::gradcheck(layer, {x});
  CHECK_FALSE(report);
  CHECK(report.reason == GradcheckReason::unvisited);
  CHECK_THAT(report.message, ContainsSubstring("visit does not name, of shape (2,)"));
  // float32, because to() did not reach it
  layer.extra = randn({2}).requires_grad_();
  CHECK_THROWS_WITH(nn::gradcheck(layer, {x}), ContainsSubstring("does it name every Tensor?"));
}

TEST_CASE("gradcheck of a layer rejects float32 and notes frozen parameters", "[nn][gradcheck]") {
  manual_seed(3);
  Gated layer;
  const Tensor x = randn({1, 3}, DType::float64);
  CHECK_THROWS_AS(nn::gradcheck(layer, {x}), DTypeError);
  CHECK_THROWS_WITH(nn::gradcheck(layer, {x}),
                    ContainsSubstring("parameter 'value.weight' is float32") &&
                        ContainsSubstring("to(layer, DType::float64)"));
  nn::to(layer, DType::float64);
  CHECK_THROWS_WITH(
      nn::gradcheck(layer, {randn({1, 3})}),
      ContainsSubstring("input 0 is float32") && ContainsSubstring("x.to(DType::float64)"));
  layer.gate.bias.requires_grad_(false);
  const auto report = nn::gradcheck(layer, {x});
  CHECK(report);
  CHECK(report.pairs.size() == 4);
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0] == "'gate.bias' is frozen and was not checked");
}
