// The engine: results of backward() and grad().  Threads, long chains, errors and memory:
// engine_stress_test.cpp; nested runs: nested_run_test.cpp.

#include <cmath>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("backward accumulates into leaves", "[engine]") {
  Tensor x = leaf({1, 2, 3}), w = leaf(2);
  sum(x * x * w).backward();
  CHECK(numbers(x.grad()) == Doubles{4, 8, 12});
  CHECK(w.grad().item() == 14);
  CHECK_FALSE(x.grad().requires_grad());
  sum(x * w).backward();
  CHECK(numbers(x.grad()) == Doubles{6, 10, 14});
  CHECK(w.grad().item() == 20);
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
  CHECK(w.grad().defined());
}

TEST_CASE("a gradient in other hands does not change when more is accumulated", "[engine]") {
  Tensor a = leaf({1, 2}), b = leaf({3, 4});
  sum(a + b).backward();  // both gradients may share memory
  const Tensor before = a.grad().detach();
  sum(a * 10.0).backward();
  CHECK(numbers(a.grad()) == Doubles{11, 11});
  CHECK(numbers(b.grad()) == Doubles{1, 1});
  CHECK(numbers(before) == Doubles{1, 1});
}

TEST_CASE("backward with a gradient of the output", "[engine]") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor v = tensor({1, 10, 100}, DType::float64);
  (x * x).backward(v);
  CHECK(numbers(x.grad()) == Doubles{2, 40, 600});
  CHECK(numbers(v) == Doubles{1, 10, 100});
  CHECK_THROWS_AS((x * x).backward(), GraphError);
  CHECK_THROWS_WITH((x * x).backward(), ContainsSubstring("(3,)"));
  CHECK_THROWS_AS((x * x).backward(zeros({2}, DType::float64)), ShapeError);
  CHECK_THROWS_AS((x * x).backward(zeros({3})), DTypeError);
  CHECK_THROWS_WITH((x * x).backward(zeros({2}, DType::float64)), ContainsSubstring("(2,)"));
}

TEST_CASE("several outputs add up", "[engine]") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x, z = sum(y * 3.0);
  const Tensor v = tensor({1, -1}, DType::float64);
  const auto g = grad({y, z}, {x}, {.grad_outputs = {v, {}}, .retain_graph = true});
  CHECK(numbers(g[0]) == Doubles{2 + 6, -4 + 12});
  backward({y, z}, {.grad_outputs = {v, scalar(2, DType::float64)}});
  CHECK(numbers(x.grad()) == Doubles{2 + 12, -4 + 24});
  // the same output twice
  const Tensor w = sum(x);
  CHECK(numbers(grad({w, w}, {x})[0]) == Doubles{2, 2});
  CHECK_THROWS_WITH(grad({z, z}, {x}, {.grad_outputs = {v}}),
                    ContainsSubstring("2 outputs but 1 grad_outputs"));
}

TEST_CASE("grad touches no grad and works for intermediates", "[engine]") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 5});
  Tensor h = x * w;
  h.retain_grad();  // of backward(), not of grad()
  const Tensor y = sum(h * h);
  CHECK(numbers(grad({y}, {x}, {.retain_graph = true})[0]) == Doubles{18, 100});
  CHECK_FALSE(h.grad().defined());
  const auto g = grad({y}, {h, x, w, y});
  CHECK(numbers(g[0]) == Doubles{6, 20});
  CHECK(numbers(g[1]) == Doubles{18, 100});
  CHECK(numbers(g[2]) == Doubles{6, 40});
  CHECK(g[3].item() == 1);
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());
  CHECK_FALSE(h.grad().defined());
  CHECK(numbers(grad({sum(x)}, {x, x})[1]) == Doubles{1, 1});  // an input twice
  CHECK(grad({sum(x)}, {}).empty());
}

TEST_CASE("grad goes only where it is asked for", "[engine]") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 5});
  int calls = 0;
  const auto counted = [&](const Tensor& in) {
    return record(
        "counted", {in}, [](std::span<const Tensor> v) { return v[0]; },
        [&calls](Context& ctx) {
          ++calls;
          ctx.add(0, ctx.gradient());
        });
  };
  const Tensor y = sum(counted(x) * w);
  CHECK(numbers(grad({y}, {w}, {.retain_graph = true})[0]) == Doubles{1, 2});
  CHECK(calls == 0);
  CHECK(numbers(grad({y}, {x})[0]) == Doubles{3, 5});
  CHECK(calls == 1);
}

TEST_CASE("create_graph: derivatives of every order", "[engine]") {
  const Tensor x = leaf({0.5, -1.25, 2});
  // f = sin(x) exp(x): f' = (s + c) e, f'' = 2 c e, f''' = 2 (c - s) e
  const Tensor y = sum(sin(x) * exp(x));
  const Tensor d1 = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor d2 = grad({sum(d1)}, {x}, {.create_graph = true})[0];
  const Tensor d3 = grad({sum(d2)}, {x})[0];
  for (std::size_t i = 0; i < 3; ++i) {
    const double v = numbers(x)[i], s = std::sin(v), c = std::cos(v), e = std::exp(v);
    CHECK(numbers(d1)[i] == Approx((s + c) * e).epsilon(1e-12));
    CHECK(numbers(d2)[i] == Approx(2 * c * e).epsilon(1e-12));
    CHECK(numbers(d3)[i] == Approx(2 * (c - s) * e).epsilon(1e-12));
  }
  CHECK_FALSE(d3.requires_grad());

  // mixed: d/dw of |df/dx|^2 for f = w x^3 is 18 w x^4
  const Tensor a = leaf(1.5), w = leaf(-2);
  const Tensor g = grad({w * a * a * a}, {a}, {.create_graph = true})[0];
  CHECK(grad({g * g}, {w})[0].item() == Approx(18 * -2 * std::pow(1.5, 4)).epsilon(1e-12));
}

TEST_CASE("a grad that has a graph", "[engine]") {
  Tensor x = leaf({1, 2});
  sum(x * x * x).backward({.create_graph = true});
  CHECK(numbers(x.grad()) == Doubles{3, 12});
  REQUIRE(x.grad().requires_grad());
  const Tensor first = x.grad();
  CHECK(numbers(grad({sum(first * first)}, {x}, {.retain_graph = true})[0]) ==
        Doubles{2 * 3 * 6, 2 * 12 * 12});
  // a later sum has a graph, too; a handle on the first gradient keeps its value
  sum(x * x).backward({.create_graph = true});
  CHECK(numbers(x.grad()) == Doubles{5, 16});
  CHECK(numbers(first) == Doubles{3, 12});
  CHECK(numbers(grad({sum(x.grad())}, {x})[0]) == Doubles{6 + 2, 12 + 2});
  x.zero_grad();
}

TEST_CASE("a cotangent can be differentiated", "[engine]") {
  const Tensor x = leaf({1, 2}), v = leaf({3, 4});
  const Tensor g = grad({x * x}, {x}, {.grad_outputs = {v}, .create_graph = true})[0];  // 2 x v
  const auto second = grad({sum(g * g)}, {x, v});
  CHECK(numbers(second[0]) == Doubles{8 * 1 * 9, 8 * 2 * 16});
  CHECK(numbers(second[1]) == Doubles{8 * 3 * 1, 8 * 4 * 4});
}

TEST_CASE("retain_graph, and the error of a freed graph", "[engine]") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(x * x);
  y.backward({.retain_graph = true});
  y.backward();
  CHECK(numbers(x.grad()) == Doubles{4, 8});
  CHECK_THROWS_AS(y.backward(), GraphError);
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("retain_graph") && ContainsSubstring("'sum'"));
  CHECK_THROWS_WITH(grad({y}, {x}), ContainsSubstring("retain_graph"));
  CHECK_THROWS_AS(grad({y}, {x}, {.allow_unused = true}), GraphError);
  CHECK(numbers(x.grad()) == Doubles{4, 8});
  // a freed part that is not needed does no harm
  const Tensor h = x * 3.0, w = leaf({1, 1});
  sum(h * h).backward();
  CHECK(numbers(grad({sum(h * w)}, {w})[0]) == Doubles{3, 6});
  CHECK_THROWS_WITH(grad({sum(h * w)}, {x}), ContainsSubstring("retain_graph"));
  const Tensor z = sum(x * x);
  (void)grad({z}, {x}, {.create_graph = true});  // keeps the graph
  CHECK_NOTHROW(z.backward());
}

TEST_CASE("unused inputs, and outputs without a graph", "[engine]") {
  const Tensor x = leaf({1, 2}), unused = leaf(3), constant = zeros({2}, DType::float64);
  const Tensor y = sum(x);  // a call that fails leaves its graph for another try
  CHECK_THROWS_AS(grad({y}, {x, unused}), GraphError);
  CHECK_THROWS_WITH(grad({y}, {x, unused}),
                    ContainsSubstring("input 1") && ContainsSubstring("allow_unused"));
  const auto g = grad({y}, {unused, x}, {.allow_unused = true});
  CHECK_FALSE(g[0].defined());
  CHECK(numbers(g[1]) == Doubles{1, 1});
  CHECK_THROWS_AS(grad({sum(x)}, {constant}), GraphError);
  CHECK_THROWS_AS(grad({sum(constant)}, {x}), GraphError);
  CHECK_THROWS_AS(sum(constant).backward(), GraphError);
}

TEST_CASE("diamonds and shared subexpressions", "[engine]") {
  const Tensor x = leaf({2, 3});
  const Tensor h = x * x;
  const Tensor y = h * h + h * x + h;  // x^4 + x^3 + x^2
  CHECK(numbers(grad({sum(y)}, {x})[0]) == Doubles{32 + 12 + 4, 108 + 27 + 6});
  // 2^40 paths through 40 diamonds, each visited once
  Tensor z = leaf(1.0);
  const Tensor start = z;
  for (int i = 0; i < 40; ++i)
    z = z + z;
  CHECK(grad({z}, {start})[0].item() == std::pow(2.0, 40));
  // a short and a long path: the short one must wait
  Tensor longer = start;
  for (int i = 0; i < 5; ++i)
    longer = longer * 2.0;
  const Tensor mid = start * 3.0;
  CHECK(grad({longer * mid + mid}, {start})[0].item() == 2 * 32 * 3 + 3);
}

TEST_CASE("detach stops the gradient and NoGrad records none", "[engine]") {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * (x * x).detach();
  CHECK(numbers(grad({sum(y)}, {x})[0]) == Doubles{4, 9});
  {
    const NoGrad no_grad;
    CHECK_FALSE((x * x).requires_grad());
    {
      const NoGrad nested;
      CHECK_FALSE((x * x).requires_grad());
    }
    CHECK_FALSE((x * x).requires_grad());
    CHECK(x.requires_grad());
  }
  CHECK((x * x).requires_grad());
  const Tensor z = sum(x * x);
  const NoGrad no_grad;  // a run works, and create_graph records, as in PyTorch
  CHECK(grad({z}, {x}, {.create_graph = true})[0].requires_grad());
}

TEST_CASE("EnableGrad records within NoGrad and within a backward formula", "[engine]") {
  const Tensor x = tensor({1, 2}).requires_grad_();
  {
    const NoGrad off;
    {
      const EnableGrad on;
      CHECK((x * 2).requires_grad());
    }
    CHECK_FALSE((x * 2).requires_grad());
  }
  const auto forward = [](std::span<const Tensor> in) { return in[0].pow(3); };
  const auto backward = [x = Saved(x)](Context& ctx) {
    CHECK(Mode::current().grad_enabled == ctx.create_graph());
    const EnableGrad on;
    const Tensor y = ctx.create_graph() ? x.tensor() : x.tensor().detach().requires_grad_();
    ctx.add(0, grad({y.pow(3)}, {y}, {{ctx.gradient()}, ctx.create_graph()})[0]);
  };
  const Tensor y = record("cube", {x}, forward, backward);
  const Tensor g = grad({y.sum()}, {x}, {.create_graph = true})[0];
  CHECK(numbers(g) == std::vector<double>{3, 12});
  CHECK(numbers(grad({g.sum()}, {x})[0]) == std::vector<double>{6, 12});
  y.sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{3, 12});
  CHECK_FALSE(x.grad().requires_grad());
}

// ---- hooks and retain_grad

TEST_CASE("hooks see the complete gradient and may replace it", "[engine]") {
  Tensor x = leaf({1, 2});
  Tensor h = x * 2.0;
  std::vector<Doubles> seen;
  h.register_hook([&](const Tensor& g) { return seen.push_back(numbers(g)), g * 10.0; });
  const std::size_t id =
      x.register_hook([&](const Tensor& g) { return seen.push_back(numbers(g)), Tensor(); });
  const Tensor y = sum(h * h + h);
  y.backward({.retain_graph = true});
  // once, with the gradients of both uses: 2 h + 1
  CHECK(seen == std::vector<Doubles>{{5, 9}, {100, 180}});
  CHECK(numbers(x.grad()) == Doubles{100, 180});
  CHECK(numbers(grad({y}, {h}, {.retain_graph = true})[0]) == Doubles{50, 90});
  x.remove_hook(id);
  x.remove_hook(id);  // one that is gone
  seen.clear();
  y.backward();
  CHECK(seen.size() == 1);
}

TEST_CASE("several hooks run in order, and a wrong replacement is named", "[engine]") {
  Tensor x = leaf({1, 2});
  x.register_hook([](const Tensor& g) { return g + 1.0; });
  const std::size_t second = x.register_hook([](const Tensor& g) { return g * 3.0; });
  sum(x).backward();
  CHECK(numbers(x.grad()) == Doubles{6, 6});
  x.remove_hook(second);
  sum(x).backward();
  CHECK(numbers(x.grad()) == Doubles{8, 8});
  x.register_hook([](const Tensor&) { return zeros({3}, DType::float64); });
  CHECK_THROWS_AS(sum(x).backward(), ShapeError);
  CHECK_THROWS_WITH(sum(x).backward(), ContainsSubstring("hook") && ContainsSubstring("(3,)"));
  CHECK(numbers(x.grad()) == Doubles{8, 8});
}

TEST_CASE("a hook may remove itself, or register another, while it runs", "[engine]") {
  Tensor x = leaf({1, 2});
  std::size_t id = 0;
  int calls = 0;
  const std::vector<double> captured(1000, 1.0);  // makes a use after free visible
  id = x.register_hook([&, captured](const Tensor& g) {
    x.remove_hook(id);
    for (int i = 0; i < 10; ++i)
      x.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
    return g * captured.back();
  });
  sum(x).backward();
  CHECK(numbers(x.grad()) == Doubles{1, 1});
  CHECK(calls == 0);  // new hooks take part from the next run on
  sum(x).backward();
  CHECK(calls == 10);
}

TEST_CASE("a hook under create_graph is part of the graph", "[engine]") {
  Tensor x = leaf(3);
  Tensor h = x * x;
  const std::size_t id = h.register_hook([](const Tensor& g) { return g * g; });
  const Tensor y = h * h;                                      // dy/dh = 2 x^2
  const Tensor g = grad({y}, {x}, {.create_graph = true})[0];  // (2 x^2)^2 2 x = 8 x^5
  CHECK(g.item() == Approx(8 * std::pow(3, 5)));
  h.remove_hook(id);  // or it would act on the second derivative, too
  CHECK(grad({g}, {x})[0].item() == Approx(40 * std::pow(3, 4)));
}

TEST_CASE("retain_grad keeps the gradient of the result of an op", "[engine]") {
  const Tensor x = leaf({1, 2});
  Tensor h = x * x;
  const Tensor other = x * 3.0;
  h.retain_grad();
  sum(h * other).backward();
  CHECK(numbers(h.grad()) == Doubles{3, 6});
  CHECK_FALSE(other.grad().defined());
  CHECK(numbers(x.grad()) == Doubles{9, 36});
  CHECK_THROWS_AS(ones({2}).retain_grad(), GraphError);
}

TEST_CASE("leaves and results", "[engine]") {
  Tensor x = ones({2}, DType::float64);
  CHECK(x.is_leaf());
  CHECK_FALSE(x.requires_grad());
  x.requires_grad_();
  Tensor y = x * 2.0;
  CHECK(x.is_leaf());
  CHECK_FALSE(y.is_leaf());
  CHECK_THROWS_AS(y.requires_grad_(false), GraphError);
  CHECK(y.detach().is_leaf());
  x.requires_grad_(false);
  CHECK_FALSE((x * 2.0).requires_grad());
}

TEST_CASE("a backward in two dtypes", "[engine]") {
  const Tensor x = tensor({1, 2}).requires_grad_();
  const Tensor y = sum(to(x, DType::float64) * tensor({0.1, 0.2}, DType::float64));
  y.backward();
  REQUIRE(x.grad().dtype() == DType::float32);
  CHECK(element<float>(x.grad(), 0) == 0.1f);
  CHECK(element<float>(x.grad(), 1) == 0.2f);
}
