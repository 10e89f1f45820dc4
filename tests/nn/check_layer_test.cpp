#include <functional>
#include <memory>
#include <sstream>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "helpers/tiny_transformer.hpp"

using namespace xgrad;
using Status = nn::LayerReport::Status;

namespace {

// A correct Linear, with mistakes on request.
struct Faulty {
  nn::Linear fc{4, 4};
  Tensor unused = randn({2}).requires_grad_(), forgotten = randn({4}).requires_grad_();
  enum class Mistake {
    none,
    leak,
    leak_in_training,
    random,
    unused_parameter,
    forgotten_parameter,
    float32_result,
    float32_inside,
    detached
  } mistake = Mistake::none;
  bool training = true;

  Tensor operator()(const Tensor& x) const {
    const Tensor y = fc(x);
    switch (mistake) {
      case Mistake::leak:
        return y - mean(y, {0}, true);
      case Mistake::leak_in_training:
        return training ? y - mean(y, {0}, true).detach() : y;
      case Mistake::random:
        return dropout(y, 0.5);
      case Mistake::forgotten_parameter:
        return y * forgotten.to(y.dtype());
      case Mistake::float32_result:
        return y.to(DType::float32);
      case Mistake::float32_inside:
        return y.to(DType::float32).to(x.dtype());
      case Mistake::detached:
        return y * sigmoid(y).detach();
      default:
        return y;
    }
  }
  static void visit(auto& self, auto&& v) {
    v("fc", self.fc);
    if (self.mistake == Mistake::unused_parameter)
      v("unused", self.unused);
    v("training", self.training);
  }
};
using Mistake = Faulty::Mistake;

// (B * H, T, D) taken for (H * B, T, D)
struct MixedHeads {
  static Tensor heads(const Tensor& a) {
    return reshape(permute(reshape(a, {2, 3, 2, 2}), {0, 2, 1, 3}), {4, 3, 2});
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor y = matmul(softmax(matmul(heads(x), transpose(heads(x), 1, 2)), -1), heads(x));
    return reshape(permute(reshape(y, {2, 2, 3, 2}), {1, 2, 0, 3}), {2, 3, 4});
  }
  static void visit(auto&, auto&&) {}
};

// Counts its calls.
struct Counting {
  nn::Linear fc{4, 4};
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  Tensor operator()(const Tensor& x) const { return fc(x) * (1.0 + ++*calls); }
  static void visit(auto& self, auto&& v) { v("fc", self.fc); }
};

// A function of two Linears and a Tensor.
struct Made {
  std::function<Tensor(const Made&, const Tensor&)> f;
  nn::Linear a{4, 4}, b{4, 4};
  Tensor s = ones({4}).requires_grad_();
  Tensor operator()(const Tensor& x) const { return f(*this, x); }
  static void visit(auto& self, auto&& v) {
    v("a", self.a);
    v("b", self.b);
    v("s", self.s);
  }
};
Tensor scaled(const Made& m, const Tensor& x) { return m.b(m.a(x)) * m.s; }

// x attends to a memory.
struct Decoder {
  nn::MultiHeadAttention attention{4, 2};
  bool leaks = false;
  Tensor operator()(const Tensor& x, const Tensor& memory) const {
    const Tensor y = attention(x, memory, memory).output;
    return leaks ? y + mean(memory) : y;
  }
  static void visit(auto& self, auto&& v) { v("attention", self.attention); }
};

// The names of the checks that failed.
std::string failed(const nn::LayerReport& report) {
  std::string names;
  for (const auto& line : report.lines)
    if (line.status == Status::failed)
      names += (names.empty() ? "" : " ") + line.check;
  CHECK(report.ok == names.empty());
  return names;
}

}  // namespace

TEST_CASE("check_layer of layers that are right", "[nn][check_layer]") {
  manual_seed(3);
  const nn::Linear linear(4, 3);
  const auto report = nn::check_layer(linear, randn({2, 4}));
  INFO(report.table());
  CHECK(report);
  CHECK(report.line("check_batch_independence").status == Status::ok);
  CHECK(report.line("check_causal").status == Status::does_not_apply);
  CHECK(report.line("parameters").found == "a gradient reaches all 2");
  CHECK_THAT(report.line("gradcheck").found, StartsWith("all "));
  CHECK(linear.weight.dtype() == DType::float32);  // a clone was checked
  CHECK_THROWS_AS(report.line("gradchek"), ValueError);

  const TinyBlock block(4, 2, 0.1);
  const auto causal = nn::check_layer(block, randn({2, 3, 4}), {.causal = true});
  INFO(causal.table());
  CHECK(causal);
  CHECK(causal.line("check_causal").status == Status::ok);
  CHECK_THAT(causal.line("gradcheck").found, ContainsSubstring("elements agree"));
  CHECK(block.attn.training);
  const auto fast = nn::check_layer(block, randn({2, 3, 4}), {.full = 0});
  CHECK(fast);
  CHECK_THAT(fast.line("gradcheck").found, ContainsSubstring("products agree"));

  const nn::MultiHeadAttention attention(4, 2);
  const auto self = [](const nn::MultiHeadAttention& layer, const Tensor& x) {
    return layer(x, x, x).output;
  };
  const Tensor x = randn({2, 3, 4}, DType::float64);
  const auto both = nn::check_layer(attention, self, x);
  INFO(both.table());
  CHECK(both);
  CHECK(both.line("check_causal").status == Status::information);
  CHECK_THAT(both.line("check_causal").found, StartsWith("position 0 sees position 1"));
  CHECK(failed(nn::check_layer(attention, self, x, {.causal = true})) == "check_causal");
}

TEST_CASE("check_layer names the check that a mistake fails", "[nn][check_layer]") {
  manual_seed(3);
  const Tensor x = randn({3, 4});
  const auto of = [&](Mistake mistake) {
    Faulty layer;
    layer.mistake = mistake;
    return nn::check_layer(layer, x);
  };
  CHECK(failed(of(Mistake::none)).empty());

  const auto leak = of(Mistake::leak);
  CHECK(failed(leak) == "check_batch_independence");
  CHECK_THAT(leak.line("check_batch_independence").found, StartsWith("item 0 sees item 1: d out"));
  const auto in_training = of(Mistake::leak_in_training);
  CHECK(failed(in_training) == "check_batch_independence");
  CHECK_THAT(in_training.line("check_batch_independence").found,
             ContainsSubstring("other values there change out (0, 0)") &&
                 ContainsSubstring(", in training"));

  CHECK(failed(of(Mistake::random)) == "deterministic");
  const auto unused = of(Mistake::unused_parameter);
  CHECK(failed(unused) == "parameters");
  CHECK(unused.line("parameters").found == "no gradient reaches unused");
  CHECK_THAT(unused.line("gradcheck").found,
             ContainsSubstring("but the Jacobian in unused (24 of 24 elements) is 0"));
  const auto forgotten = of(Mistake::forgotten_parameter);
  CHECK_THAT(failed(forgotten), StartsWith("state_dict gradcheck"));
  CHECK_THAT(forgotten.line("state_dict").found, ContainsSubstring("of shape (4,)"));
  CHECK(failed(of(Mistake::float32_result)) == "gradcheck gradgradcheck dtype");
  CHECK_THAT(of(Mistake::float32_inside).line("gradcheck").found, ContainsSubstring("float32"));
  CHECK_THAT(failed(of(Mistake::detached)), StartsWith("gradcheck"));

  CHECK(failed(nn::check_layer(MixedHeads{}, randn({2, 3, 4}))) == "check_batch_independence");
}

TEST_CASE("check_layer of several inputs", "[nn][check_layer]") {
  manual_seed(3);
  const Tensor x = randn({2, 3, 4}), memory = randn({2, 5, 4});
  const auto right = nn::check_layer(Decoder(), {x, memory});
  INFO(right.table());
  CHECK(right);
  CHECK(right.line("check_batch_independence").status == Status::ok);
  CHECK(right.line("gradcheck").found.find("was lost") == std::string::npos);
  Decoder wrong;
  wrong.leaks = true;
  const auto leak = nn::check_layer(wrong, {x, memory});
  CHECK(failed(leak) == "check_batch_independence");
  CHECK_THAT(leak.line("check_batch_independence").found, ContainsSubstring("of input 1"));
}

TEST_CASE("check_layer of a function that holds a Tensor, or changes an input",
          "[nn][check_layer]") {
  const Tensor x = randn({2, 4}, DType::float64), s = randn({4}, DType::float64);
  const auto times = [](const nn::Linear& m, const std::vector<Tensor>& in) {
    return m(in[0]) * in[1];
  };
  nn::Linear layer(4, 4);
  CHECK(nn::check_layer(layer, times, {x, s}));
  nn::to(layer, DType::float64);
  const auto held =
      nn::check_layer(layer, [&](const nn::Linear& m, const Tensor& at) { return m(at) * s; }, x);
  CHECK(held);
  CHECK_THAT(held.line("dtype").found, ContainsSubstring("as an input: {x, s}"));
  const auto changes = nn::check_layer(
      layer,
      [](const nn::Linear& m, const Tensor& at) {
        const Tensor y = m(at);
        Tensor(at).copy_(at.detach() * 2.0);
        return y;
      },
      x);
  CHECK_FALSE(changes);
  CHECK_THAT(changes.line("deterministic").found,
             StartsWith("the layer changes input 0 at (0, 0)"));
}

TEST_CASE("check_layer tells state from dropout", "[nn][check_layer]") {
  const auto counting = nn::check_layer(Counting(), randn({2, 4}));
  CHECK(counting.line("deterministic").found ==
        "two calls in evaluation differ, from one seed: does the layer keep state?");
  Faulty layer;
  layer.mistake = Mistake::random;
  CHECK(nn::check_layer(layer, randn({3, 4})).line("deterministic").found ==
        "two calls in evaluation differ: is dropout still active?");
}

TEST_CASE("check_layer prints a line per check, also if it does not apply", "[nn][check_layer]") {
  manual_seed(3);
  const Faulty layer;
  const auto one = nn::check_layer(layer, randn({4}));
  CHECK(one);
  CHECK(one.line("check_batch_independence").found == "x has no batch");
  CHECK(failed(nn::check_layer(layer, randn({4}), {.causal = true})) == "check_causal");
  // (T, C) without a batch
  const auto sequence = nn::check_layer(layer, randn({3, 4}), {.batch_dim = {}});
  CHECK_THAT(sequence.line("check_causal").found,
             StartsWith("none of 3 positions sees a later one"));
  CHECK(nn::check_layer(layer, randn({1, 4})).line("check_batch_independence").status ==
        Status::does_not_apply);
  CHECK_THROWS_AS(nn::check_layer(layer, randn({2, 5})), ShapeError);

  std::ostringstream out;
  out << one;
  CHECK(out.str() == one.table());
  CHECK(one.lines.size() == 8);
  CHECK_THAT(out.str(),
             StartsWith("state_dict                ok              2 names") &&
                 ContainsSubstring("\ncheck_causal              does not apply  x (4,)"));
}

TEST_CASE("check_layer names a Tensor that is no buffer and that nothing trains",
          "[nn][check_layer]") {
  manual_seed(3);
  const Tensor x = randn({2, 4});
  const auto parameters = [&](const Made& layer) {
    const auto report = nn::check_layer(layer, x);
    CHECK(failed(report) == (report.ok ? "" : "parameters"));
    return report.line("parameters").found;
  };
  CHECK(parameters({scaled}) == "a gradient reaches all 5");
  const std::string forgotten =
      "s is named by visit, is no buffer, and requires no gradient: requires_grad_() or "
      "nn::buffer()";
  Made layer{.f = scaled, .s = ones({4})};
  CHECK(parameters(layer) == forgotten);
  nn::to(layer, DType::float64);
  for (const std::string& note : {nn::gradcheck(layer, {x.to(DType::float64)}).notes.at(0),
                                  nn::explain_gradient(layer, {x.to(DType::float64)}).message})
    CHECK_THAT(note, ContainsSubstring(forgotten));
  optim::SGD sgd(nn::parameters(layer), {.lr = 1});
  CHECK_THROWS_WITH(
      sgd.step(),
      StartsWith("SGD: parameter 4 of shape (4,) requires no gradient: requires_grad_()"));
  // A frozen one is meant so, also in a copy, in another dtype, and if it never was a leaf.
  layer.s.requires_grad_(false);
  CHECK(layer.s.is_frozen());
  const auto copy = nn::clone(layer);
  CHECK((copy.s.is_frozen() && !copy.a.weight.is_frozen()));
  CHECK(parameters(copy) == "a gradient reaches all 4");
  CHECK_NOTHROW(optim::SGD(nn::parameters(copy), {.lr = 1}).step());
  nn::requires_grad_(layer);
  CHECK(parameters(layer) == "a gradient reaches all 5");
  nn::add_lora(layer, {.rank = 2});
  CHECK(parameters(layer) == "a gradient reaches all 4");
  CHECK_NOTHROW(optim::AdamW(nn::parameters(layer)).step());
}

struct WithEmpty {
  nn::Linear a{4, 4};
  Tensor empty = zeros({0}).requires_grad_();
  Tensor operator()(const Tensor& x) const { return a(x) + sum(empty); }
  static void visit(auto& self, auto&& v) { v("a", self.a), v("empty", self.empty); }
};

TEST_CASE("check_layer asks no gradient of a parameter without elements", "[nn][check_layer]") {
  CHECK(nn::check_layer(WithEmpty(), randn({2, 4})).ok);
}

TEST_CASE("check_layer names a parameter whose gradient is always 0", "[nn][check_layer]") {
  manual_seed(3);
  const auto parameters = [](const auto& f, auto change) {
    Made layer{f};
    change(layer);
    const auto report = nn::check_layer(layer, randn({2, 3, 4}));
    const auto& [name, status, found] = report.line("parameters");
    CHECK(report.ok == (status != Status::failed));
    return found;
  };
  const auto as_it_is = [](Made&) {};
  const auto top = [](Size k) {
    return [k](const Made& m, const Tensor& x) {
      const Tensor chosen = softmax(topk(m.a(x), k, -1).values, -1);
      return m.b(x) * m.s * chosen.narrow(-1, 0, 1);
    };
  };
  CHECK(parameters(top(1), as_it_is) ==
        "the gradient of a.weight, a.bias is 0, here and at 5 points nearby, whatever the loss");
  CHECK(parameters(top(2), as_it_is) == "a gradient reaches all 5");
  // Rounding alone: softmax does not see what is added to all scores of a query.
  const auto attention = [](const Made& m, const Tensor& x) {
    return matmul(softmax(matmul(m.a(x), transpose(m.b(x), -1, -2)), -1), x * m.s);
  };
  CHECK(parameters(attention, as_it_is) ==
        "the gradient of b.bias is rounding alone, here and at 5 points nearby, whatever the loss");
  // 0 here and not elsewhere: a factor of zeros, and units that are off
  CHECK(parameters(scaled, [](Made& m) { m.s.zero_(); }) == "a gradient reaches all 5");
  const auto gated = [](const Made& m, const Tensor& x) { return m.b(relu(m.a(x))) * m.s; };
  CHECK(parameters(gated, [](Made& m) { m.a.bias.fill_(-9); }) == "a gradient reaches all 5");
}
