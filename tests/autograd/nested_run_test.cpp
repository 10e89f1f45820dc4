// Nested runs: a hook or a formula that starts a backward of its own.

#include <thread>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {
using Doubles = std::vector<double>;
}

TEST_CASE("a backward within a hook", "[engine]") {
  Tensor x = leaf({1, 2});
  const Tensor w = leaf({3, 4});
  const Tensor other = sum(w * w), same_leaf = sum(x * 100.0), square = sum(x * x);
  Tensor h = x * 5.0;
  h.register_hook([&](const Tensor& g) {
    other.backward();      // of another graph
    same_leaf.backward();  // into a leaf that this run will reach
    return g + grad({square}, {x})[0];
  });
  sum(h * 2.0).backward();
  CHECK(numbers(w.grad()) == Doubles{6, 8});
  CHECK(numbers(x.grad()) == Doubles{100 + 5 * (2 + 2), 100 + 5 * (2 + 4)});
}

TEST_CASE("runs within runs, deeper than a stack holds", "[engine]") {
  // The hook of a run, or its formula, starts the next.
  const auto by_hook = [](const auto& self, int levels) -> void {
    const ModeGuard enabled({true, nullptr});
    Tensor h = leaf({1, 2}) * 2.0;
    h.register_hook([&](const Tensor&) {
      if (levels > 1)
        self(self, levels - 1);
      return Tensor();
    });
    sum(h).backward();
  };
  const auto by_formula = [](const auto& self, int levels) -> void {
    const ModeGuard enabled({true, nullptr});
    const Tensor x = leaf({1, 2});
    const Tensor h = record(
        "nested", {x}, [](std::span<const Tensor> in) { return in[0]; },
        [&](Context& ctx) {
          if (levels > 1)
            self(self, levels - 1);
          ctx.add(0, ctx.gradient());
        });
    (void)grad({sum(h)}, {x}, {.create_graph = true});
  };
  const auto deep = [](const auto& run) {
    constexpr int limit = detail::NestedRun::limit;
    for (const int too_deep : {limit + 1, 100'000}) {
      run(run, limit);
      CHECK_THROWS_AS(run(run, too_deep), GraphError);
      CHECK_THROWS_WITH(run(run, too_deep), ContainsSubstring("500 nested runs"));
    }
    CHECK(Mode::current().grad_enabled);
  };
  SECTION("of hooks") { deep(by_hook); }
  SECTION("of formulas") { deep(by_formula); }
  SECTION("an error leaves every grad as it was, and its handler continues") {
    const Tensor x = leaf({1, 2});
    Tensor h = x * 3.0;
    int caught = 0;
    h.register_hook([&](const Tensor&) {
      try {
        by_hook(by_hook, 100'000);
      } catch (const GraphError&) {
        ++caught;
      }
      return Tensor();
    });
    sum(h).backward();
    CHECK(caught == 1);
    CHECK(numbers(x.grad()) == Doubles{3, 3});
    Tensor y = x * 3.0;
    y.register_hook([&](const Tensor&) -> Tensor {
      by_formula(by_formula, 100'000);
      return {};
    });
    CHECK_THROWS_WITH((x * 10.0 + y).backward(ones({2}, DType::float64)),
                      ContainsSubstring("500 nested runs"));
    CHECK(numbers(x.grad()) == Doubles{3, 3});
  }
  SECTION("each thread has its own depth") {
    Tensor h = leaf({1, 2}) * 2.0;
    bool finished = false;
    h.register_hook([&](const Tensor&) {
      std::thread([&] {
        by_hook(by_hook, detail::NestedRun::limit);  // too deep for the thread of the outer run
        finished = true;
      }).join();
      return Tensor();
    });
    sum(h).backward();
    CHECK(finished);
  }
}

TEST_CASE("a formula that computes its forward again and runs it backward", "[engine]") {
  const Tensor x = leaf({1, 2});
  const auto expensive = [](const Tensor& a) { return exp(a) * a; };
  const auto recomputed = [&](const Tensor& in) {
    return record(
        "recomputed", {in}, [&](std::span<const Tensor> v) { return expensive(v[0]); },
        [&, in = Saved(in)](Context& ctx) {
          const ModeGuard enabled({true, nullptr});
          const Tensor a = in.tensor().detach().requires_grad_();
          ctx.add(0, grad({expensive(a)}, {a}, {.grad_outputs = {ctx.gradient()}})[0]);
        });
  };
  const auto g = grad({sum(sin(recomputed(x * 0.5)))}, {x});
  CHECK(numbers(g[0]) == numbers(grad({sum(sin(expensive(x * 0.5)))}, {x})[0]));
  CHECK(Mode::current().grad_enabled);
}
