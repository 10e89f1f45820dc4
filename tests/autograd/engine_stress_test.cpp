// The engine: errors during a run, long chains, threads, and lifetimes.

#include <cmath>
#include <memory>
#include <thread>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/sanitizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Doubles = std::vector<double>;

// x, with this backward.
Tensor with_backward(const char* name, const Tensor& x, std::function<void(Context&)> backward) {
  return record(name, {x}, [](std::span<const Tensor> in) { return in[0]; }, std::move(backward));
}

}  // namespace

TEST_CASE("an exception in a backward changes no grad and leaves the engine usable", "[engine]") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  sum(x * w).backward();
  const auto throws = [](Context&) { throw std::runtime_error("in the middle"); };
  // w gets its gradient before the formula throws, and x after it
  const auto y = [&] { return sum(with_backward("throwing", x * 2.0, throws) * w); };
  CHECK_THROWS_WITH(y().backward(), "in the middle");
  CHECK_THROWS_WITH(grad({y()}, {x}), "in the middle");
  CHECK(numbers(x.grad()) == Doubles{3, 4});
  CHECK(numbers(w.grad()) == Doubles{1, 2});
  Tensor h = with_backward("throwing", x, throws) * w;
  h.retain_grad();  // it has its gradient before anything throws
  CHECK_THROWS_WITH(sum(h).backward(), "in the middle");
  CHECK_FALSE(h.grad().defined());
  CHECK(Mode::current().grad_enabled);
  sum(x * w).backward();
  CHECK(numbers(x.grad()) == Doubles{6, 8});
  CHECK(numbers(w.grad()) == Doubles{2, 4});
}

TEST_CASE("an exception in a forward or a hook leaves the mode as it was", "[engine]") {
  Tensor x = leaf({1, 2});
  CHECK_THROWS(record(
      "throws", {x}, [](std::span<const Tensor>) -> Tensor { throw std::runtime_error("no"); },
      [](Context&) {}));
  CHECK(Mode::current().grad_enabled);
  const std::size_t id =
      x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
  const Tensor w = leaf({5, 6});
  CHECK_THROWS_WITH(sum(x * x + w).backward(), "hook");
  CHECK_THROWS_WITH(sum(w + x * x).backward(), "hook");
  CHECK_FALSE(w.grad().defined());
  CHECK(Mode::current().grad_enabled);
  CHECK_FALSE(x.grad().defined());
  x.remove_hook(id);
  sum(x * x).backward();
  CHECK(numbers(x.grad()) == Doubles{2, 4});
}

TEST_CASE("a gradient that does not fit names the op", "[engine]") {
  const Tensor x = leaf({1, 2});
  const Tensor shape =
      with_backward("my_op", x, [](Context& ctx) { ctx.add(0, zeros({3}, DType::float64)); });
  CHECK_THROWS_AS(sum(shape).backward(), ShapeError);
  const Tensor again =
      with_backward("my_op", x, [](Context& ctx) { ctx.add(0, zeros({3}, DType::float64)); });
  CHECK_THROWS_WITH(sum(again).backward(), ContainsSubstring("my_op") &&
                                               ContainsSubstring("(3,)") &&
                                               ContainsSubstring("(2,)"));
  const Tensor of_another =
      with_backward("my_op", x, [](Context& ctx) { ctx.add(1, ctx.gradient()); });
  CHECK_THROWS_AS(sum(of_another).backward(), ValueError);
  CHECK_THROWS_WITH(sum(of_another).backward(),
                    "my_op: its backward gives input 1 a gradient; the op's inputs are 0 to 0");
  // broadcast gradients are summed only for ops that declare it
  const Tensor wide =
      with_backward("my_op", x, [](Context& ctx) { ctx.add(0, ones({5, 2}, DType::float64)); });
  CHECK_THROWS_AS(sum(wide).backward(), ShapeError);
  const Tensor dtype = with_backward("my_op", x, [](Context& ctx) { ctx.add(0, zeros({2})); });
  CHECK_THROWS_AS(sum(dtype).backward(), DTypeError);
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("ops that declare broadcasting have their gradients summed", "[engine]") {
  const Tensor x = leaf({{1}, {2}});
  const auto forward = [](std::span<const Tensor> in) {
    return in[0] + zeros({2, 3}, DType::float64);
  };
  const auto backward = [](Context& ctx) { ctx.add(0, ctx.gradient()); };
  const Tensor y = record("widen", {x}, forward, backward, {.broadcasts = true});
  sum(y * tensor({{1, 2, 3}, {4, 5, 6}}, DType::float64)).backward();
  CHECK(numbers(x.grad()) == Doubles{6, 15});
}

TEST_CASE("undefined inputs and inputs without a gradient cost nothing", "[engine]") {
  const Tensor x = leaf({1, 2}), constant = ones({2}, DType::float64);
  bool needs_x = false, needs_constant = true, needs_undefined = true;
  const Tensor y = record(
      "three", {x, constant, Tensor()}, [](std::span<const Tensor> in) { return in[0] + in[1]; },
      [&](Context& ctx) {
        needs_x = ctx.needs(0);
        needs_constant = ctx.needs(1);
        needs_undefined = ctx.needs(2);
        ctx.add(0, ctx.gradient());
        ctx.add(1, ctx.gradient());  // goes nowhere
      });
  sum(y).backward();
  CHECK(needs_x);
  CHECK_FALSE(needs_constant);
  CHECK_FALSE(needs_undefined);
  CHECK(numbers(x.grad()) == Doubles{1, 1});
}

TEST_CASE("kernels accumulate into a buffer", "[engine]") {
  const Tensor x = leaf({1, 2}), other = leaf({5, 7});
  std::vector<double> betas;
  const auto doubled = [&betas](const Tensor& in) {
    return record(
        "doubled", {in}, [](std::span<const Tensor> v) { return v[0] * 2.0; },
        [&betas](Context& ctx) {
          const auto out = ctx.buffer<double>(0);
          betas.push_back(out.beta);
          for (std::size_t i = 0; i < 2; ++i)
            out.data[i] =
                2 * ctx.gradient().data<double>()[i] + (out.beta == 0 ? 0 : out.beta * out.data[i]);
        });
  };
  const Tensor y = doubled(x), z = doubled(x);
  sum(y * other + z * 3.0 + x).backward();
  CHECK(numbers(x.grad()) == Doubles{10 + 6 + 1, 14 + 6 + 1});
  CHECK(betas == std::vector<double>{1, 1});  // the sum's own gradient came first
  // a gradient that a handle keeps is not written to
  betas.clear();
  const Tensor h = x * 1.0;
  const Tensor v = tensor({100, 200}, DType::float64);
  backward({doubled(h), h}, {.grad_outputs = {tensor({1, 1}, DType::float64), v}});
  CHECK(betas == std::vector<double>{1});
  CHECK(numbers(v) == Doubles{100, 200});
  CHECK(numbers(x.grad()) == Doubles{17 + 102, 21 + 202});
}

TEST_CASE("a chain of a million ops", "[engine]") {
  constexpr std::size_t n = XGRAD_SANITIZER ? 100'000 : 1'000'000;
  const Tensor x = leaf({1, 2});
  const auto chain = [&] {
    Tensor y = x;
    for (std::size_t i = 0; i < n; ++i)
      y = -y;
    return y;
  };
  SECTION("backward") {
    sum(chain()).backward();
    CHECK(numbers(x.grad()) == Doubles{1, 1});
  }
  SECTION("grad with create_graph, and its end") {
    CHECK(numbers(grad({sum(chain())}, {x}, {.create_graph = true})[0]) == Doubles{1, 1});
  }
  SECTION("destroyed without a backward") {
    const std::weak_ptr<Node> node = chain().identity().node;
    CHECK(node.expired());
  }
  SECTION("through closures") {  // exp keeps its output, mul both operands
    Tensor y = x;
    for (std::size_t i = 0; i < n / 4; ++i)
      y = y * y;
    const std::weak_ptr<Node> node = y.identity().node;
    y = Tensor();
    CHECK(node.expired());
  }
}

// ---- threads

TEST_CASE("a graph built on two threads", "[engine]") {
  const Tensor x = leaf({1, 2});
  Tensor a, b;
  std::thread first([&] {
    a = x * 2.0;
    for (int i = 0; i < 1000; ++i)
      a = a + x;
  });
  std::thread second([&] { b = exp(x); });
  first.join();
  second.join();
  sum(a * b).backward();  // (1002 x) e^x
  for (std::size_t i = 0; i < 2; ++i) {
    const double v = numbers(x)[i];
    CHECK(numbers(x.grad())[i] == Approx(1002 * (1 + v) * std::exp(v)).epsilon(1e-12));
  }
}

TEST_CASE("threads call grad() on shared leaves and a shared graph", "[engine]") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor shared = exp(x * 0.5);
  const Doubles expected = numbers(grad({sum(shared * x)}, {x}, {.retain_graph = true})[0]);
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (int& count : right)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        count += numbers(grad({sum(shared * x)}, {x}, {.retain_graph = true})[0]) == expected;
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(right == std::vector<int>{200, 200, 200, 200});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("the mode belongs to its thread", "[engine]") {
  const NoGrad no_grad;
  bool enabled = false;
  std::thread([&] { enabled = Mode::current().grad_enabled; }).join();
  CHECK(enabled);
}

// ---- lifetimes

TEST_CASE("a gradient with a graph does not keep itself alive", "[engine]") {
  std::weak_ptr<Node> of_leaf, of_gradient, of_result;
  {
    const Tensor x = leaf({1, 2});
    Tensor h = exp(x * x);
    h.retain_grad();
    sum(h).backward({.create_graph = true});
    sum(h * x).backward({.create_graph = true});
    of_leaf = x.identity().node;
    of_gradient = x.grad().identity().node;
    of_result = h.identity().node;
    CHECK_FALSE(of_leaf.expired());
    CHECK_FALSE(of_gradient.expired());
  }
  CHECK(of_leaf.expired());
  CHECK(of_gradient.expired());
  CHECK(of_result.expired());
}

TEST_CASE("values that no formula needs are freed in the forward pass", "[engine]") {
  const Tensor x = leaf({1, 2});
  std::weak_ptr<const Value> unneeded, needed;
  Tensor y;
  {
    const Tensor a = x + 1.0;  // the sum's derivative needs nothing
    const Tensor b = a + x;
    const Tensor c = exp(b);  // needs its output
    unneeded = b.identity().value;
    needed = c.identity().value;
    y = sum(c);
  }
  CHECK(unneeded.expired());
  CHECK_FALSE(needed.expired());
  y.backward();
  CHECK(needed.expired());  // each closure is freed as soon as it has run
}

TEST_CASE("a backward frees each closure as soon as it has run", "[engine]") {
  const Tensor x = leaf({1, 2});
  const Tensor early = exp(x);
  bool freed = false;
  std::weak_ptr<const Value> late_value;
  Tensor y;
  {
    const Tensor watch = with_backward("watch", early, [&](Context& ctx) {
      freed = late_value.expired();
      ctx.add(0, ctx.gradient());
    });
    const Tensor late = exp(watch);
    late_value = late.identity().value;
    y = sum(late);
  }
  y.backward();
  CHECK(freed);
}

TEST_CASE("a formula sees the output it asked for, also under create_graph", "[engine]") {
  const Tensor x = leaf({0.5, 2});
  const auto my_exp = [](const Tensor& in) {
    return record(
        "my_exp", {in}, [](std::span<const Tensor> v) { return exp(v[0]); },
        [](Context& ctx) { ctx.add(0, ctx.gradient() * ctx.output()); }, {.saves_output = true});
  };
  const auto f = [&](const std::vector<Tensor>& in) { return my_exp(in[0]); };
  CHECK(gradcheck(f, {x}));
  CHECK(gradgradcheck(f, {x}));
  std::weak_ptr<Node> node;
  {
    const Tensor y = my_exp(x);
    node = y.identity().node;
    (void)grad({sum(y)}, {x}, {.create_graph = true});
  }
  CHECK(node.expired());
}
