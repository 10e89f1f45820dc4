#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"

using namespace xgrad;

namespace {

struct Event {
  std::string op, scope;
  bool operator==(const Event&) const = default;
};

std::vector<Event> names(const Trace& trace) {
  std::vector<Event> result;
  for (const auto& e : trace.events())
    result.push_back({e.op, e.scope});
  return result;
}

Tensor layer(const Tensor& x) {
  const Scope scope("mlp");
  return exp(x);
}

}  // namespace

TEST_CASE("a trace records ops with their scopes", "[trace]") {
  const Tensor x = ones({2, 3}).requires_grad_();
  const Tensor before = x * 2.0;
  Trace trace;
  {
    const Scope block("h", 0);
    const Tensor y = -layer(x + before);
    {
      const NoGrad no_grad;  // recorded nevertheless
      layer(y);
    }
  }
  sin(x);
  CHECK(names(trace) ==
        std::vector<Event>{
            {"add", "h.0"}, {"exp", "h.0.mlp"}, {"neg", "h.0"}, {"exp", "h.0.mlp"}, {"sin", ""}});
  CHECK(Scope::current().empty());
  trace.clear();
  CHECK(trace.events().empty());
  cos(x);
  CHECK(names(trace) == std::vector<Event>{{"cos", ""}});
}

TEST_CASE("nothing is recorded before and after", "[trace]") {
  const Scope unseen("unseen");
  CHECK(Scope::current().empty());  // without an observer
  {
    const Trace trace;
    CHECK(Mode::current().observer == &trace);
  }
  CHECK(Mode::current().observer == nullptr);
}

TEST_CASE("a scope ends with an exception", "[trace]") {
  const Trace trace;
  try {
    const Scope outer("outer"), inner("inner");
    CHECK(Scope::current() == "outer.inner");
    add(zeros({2}), zeros({3}));
  } catch (const ShapeError&) {
  }
  CHECK(Scope::current().empty());
}

TEST_CASE("events hold values as they were, and a forward that runs again", "[trace]") {
  Tensor x = tensor({1, 2}, DType::float64).requires_grad_();
  const Trace trace;
  const Tensor y = x * 3.0;
  REQUIRE(trace.events().size() == 1);
  const Trace::Event& e = trace.events()[0];
  x.fill_(100);
  REQUIRE(e.inputs.size() == 2);
  CHECK(e.inputs[0].data<double>()[1] == 2);
  CHECK(e.inputs[0].identity().node == x.identity().node);
  CHECK(e.output.identity().node == y.identity().node);
  const Tensor again = e.forward(e.inputs);
  CHECK(again.data<double>()[1] == 6);
  CHECK_FALSE(again.requires_grad());
  CHECK(element<double>(e.forward(std::vector<Tensor>{x, tensor(2, DType::float64)}), 0) == 200);
  CHECK(trace.events().size() == 1);  // running it again is not an event
}

TEST_CASE("ops inside an op are not recorded", "[trace]") {
  const Tensor x = ones({2}).requires_grad_();
  const Trace trace;
  record(
      "outer", {x, Tensor()}, [](std::span<const Tensor> in) { return exp(in[0]) * 2.0; },
      [](Context& ctx) { ctx.add(0, ctx.gradient()); });
  CHECK(names(trace) == std::vector<Event>{{"outer", ""}});
  CHECK_FALSE(trace.events()[0].inputs[1].defined());
}

TEST_CASE("backward runs are seen by the callback", "[trace]") {
  const Tensor x = tensor({1, 2}, DType::float64).requires_grad_();
  struct Seen {
    std::string op;
    std::size_t input;
    double first;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  Trace trace([&](const Node& node, std::size_t input, const Tensor& gradient) {
    seen.push_back({node.op, input, gradient.data<double>()[0]});
  });
  const Tensor y = sum(x * x * 3.0);
  trace.clear();
  y.backward({.retain_graph = true});
  // sum -> mul by 3 -> mul of x and x, where both inputs are the same Tensor and share a gradient
  CHECK(seen == std::vector<Seen>{{"sum", 0, 1}, {"mul", 0, 3}, {"mul", 0, 6}, {"mul", 1, 6}});
  CHECK(trace.events().empty());  // an ordinary backward records no ops
  (void)grad({y}, {x}, {.create_graph = true});
  CHECK_FALSE(trace.events().empty());
}

TEST_CASE("a trace within a trace: both record", "[trace]") {
  const Tensor x = ones({2});
  const Trace outer;
  exp(x);
  {
    const Trace inner;
    sin(x);
    CHECK(names(inner) == std::vector<Event>{{"sin", ""}});
  }
  cos(x);
  CHECK(names(outer) == std::vector<Event>{{"exp", ""}, {"sin", ""}, {"cos", ""}});
}

TEST_CASE("the table of a trace", "[trace]") {
  const Trace trace;
  const Tensor x = ones({2, 3});
  Tensor y;
  {
    const Scope scope("attention", 12);
    y = maximum(x, ones({3}));
  }
  y = record(
      "with_bias", {y, Tensor()}, [](std::span<const Tensor> in) { return in[0]; },
      [](Context&) {});
  mul(y, x);
  CHECK(to_string(trace) ==
        "op  name       from  scope         shapes\n"
        " 1  maximum    -, -  attention.12  (2, 3), (3,) -> (2, 3)\n"
        " 2  with_bias  1, -                (2, 3), - -> (2, 3)\n"
        " 3  mul        2, -                (2, 3), (2, 3) -> (2, 3)\n");
  CHECK_THAT(to_string(trace.events(), {false, true, false}), ContainsSubstring("\n* 2  with"));
}

TEST_CASE("Decompose: fused ops run as the ops that they fuse", "[trace]") {
  const Tensor x = ones({2, 3});
  const Decompose by_ordinary_ops;
  const NoGrad no_grad;  // changes nothing in that
  const Trace trace;
  scaled_dot_product_attention(x, x, x, AttentionOptions{.is_causal = true});
  const std::string scope = "scaled_dot_product_attention";
  CHECK(names(trace) == std::vector<Event>{{"transpose", scope},
                                           {"matmul", scope},
                                           {"mul", scope},
                                           {"masked_fill", scope},
                                           {"softmax", scope},
                                           {"matmul", scope}});
}

TEST_CASE("named tells every Trace, and changes nothing", "[trace]") {
  const Tensor x = tensor(3).requires_grad_();
  const Tensor alone = named(x, "x");  // no observer
  CHECK(alone.identity().value == x.identity().value);
  const Trace outer;
  const Tensor before = exp(x);
  const DetectAnomaly anomaly;
  const Trace inner;
  const Tensor y = named(sin(x), "y");
  CHECK(y.identity().node != nullptr);
  named(before, "before");  // made before the inner Trace
  named(x, "x");            // made by no op
  CHECK(names(inner) == std::vector<Event>{{"sin", ""}});
  CHECK(inner.events()[0].name == "y");
  REQUIRE(outer.events().size() == 2);
  CHECK(outer.events()[0].name == "before");
  CHECK(outer.events()[1].name == "y");
}

TEST_CASE("an observer is told each gradient in its turn, after hooks, through others", "[trace]") {
  struct Turns : Observer {
    std::vector<std::string> seen;
    void on_forward(std::string_view, std::span<const Tensor>, const Tensor&,
                    const Forward&) override {}
    void on_gradient(const Node& node, const Tensor& gradient) override {
      seen.push_back(node.op + " " + std::to_string(static_cast<int>(gradient.item())));
    }
    void on_backward(const Node& node, std::size_t, const Tensor&) override {
      seen.push_back("after " + node.op);
    }
  } turns;
  const Tensor w = tensor(3).requires_grad_();
  Tensor y = exp(w * 0.0);
  y.register_hook([](const Tensor& g) { return g * 5.0; });
  {
    const ModeGuard watched({true, &turns});
    const Trace trace;
    const DetectAnomaly anomaly;
    leaf_gradients({y * w});
  }
  // (The constant is not reported; w gets 5 * 0 from below the hook, and 1.)
  CHECK(turns.seen == std::vector<std::string>{"mul 1", "after mul", "after mul", "exp 15",
                                               "after exp", "mul 15", "after mul", "leaf 1"});
  leaf_gradients({exp(w)});
  CHECK(turns.seen.size() == 8);
}
