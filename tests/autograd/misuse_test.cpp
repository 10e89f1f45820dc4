// A user's actions and mistakes between forward and backward, which must not corrupt a gradient.

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <limits>
#include <thread>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using List = std::vector<double>;

// Resizes each array that update() passes, then throws on request.
struct Grow {
  bool throws = false;
  template <class A>
  void operator()(A& a) const {
    a.resize({512, 512});
    a.fill(7);
    if (throws)
      throw std::runtime_error("in the middle");
  }
};

struct NotFinite : Observer {
  void on_forward(std::string_view, std::span<const Tensor>, const Tensor& y,
                  const Forward&) override {
    if (!all(isfinite(y)))
      throw AnomalyError("not finite");
  }
};

struct Scaled {
  Tensor by;
  double operator()(double x) const { return x * by.item(); }
};

// x * 2 with three more inputs and this formula.
template <class B>
Tensor op_of(const std::vector<Tensor>& in, const B& formula) {
  return record("mine", in, [](std::span<const Tensor> x) { return x[0] * 2; }, formula);
}
template <class C>
Tensor op_that_holds(const std::vector<Tensor>& in, const C& captured) {
  return op_of(in, [captured](Context& ctx) {
    static_cast<void>(captured);
    ctx.add(0, ctx.gradient() * 2);
  });
}

struct LeafAndInner {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_() * 2;
  static void visit(auto& self, auto&& v) { v("a", self.a), v("b", self.b); }
};

struct Holds {
  Tensor gradient;
  static void visit(auto& self, auto&& v) { v("gradient", self.gradient); }
};

}  // namespace

TEST_CASE("an update that fails changes nothing", "[misuse]") {
  for (const bool leaf : {true, false}) {
    Tensor w = tensor({{1, 2}, {3, 4}});
    if (leaf)
      w.requires_grad_();
    CHECK_THROWS_AS(w.update(Grow{}), ShapeError);
    CHECK_THROWS_WITH(w.update(Grow{true}), "in the middle");
    CHECK_THROWS_WITH(w.update([](auto& a) {
      a.fill(9);
      throw std::runtime_error("late");
    }),
                      "late");
    CHECK(w.shape() == Shape{2, 2});
    CHECK(numbers(w) == List{1, 2, 3, 4});
    CHECK_THROWS_AS(linear(ones({1, 512}), w), ShapeError);
    w.requires_grad_();
    sum(linear(ones({1, 2}), w)).backward();
    CHECK(numbers(w.grad()) == List{1, 1, 1, 1});
    optim::Adam adam({w}, {.lr = 1});
    adam.step();
    CHECK(numbers(w)[0] == Approx(0).margin(1e-6));
  }
}

TEST_CASE("a leaf cannot grow while it is a constant", "[misuse]") {
  Tensor w = tensor({{1, 2}, {3, 4}}).requires_grad_();
  const Tensor y = sum(linear(ones({1, 2}), w));
  w.requires_grad_(false);
  CHECK_THROWS_AS(w.update(Grow{}), ShapeError);
  w.requires_grad_();
  y.backward();
  optim::SGD({w}, {.lr = 1}).step();
  CHECK(numbers(w) == List{0, 1, 2, 3});
}

TEST_CASE("a loss keeps the class weights that it was made with", "[misuse]") {
  const Indices ids{0, 2};
  const Tensor probabilities = tensor({{0.5, 0.5, 0}, {0.25, 0.25, 0.5}});
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> losses = {
      [&](auto& x, auto& w) { return cross_entropy(x, ids, {.weight = w}); },
      [&](auto& x, auto& w) { return cross_entropy(x, probabilities, {.weight = w}); },
      [&](auto& x, auto& w) { return nll_loss(log_softmax(x, 1), ids, {.weight = w}); }};
  for (const auto& loss : losses)
    for (const bool create_graph : {false, true}) {
      const Tensor x = tensor({{1, 2, 3}, {0, -1, 1}}).requires_grad_();
      Tensor w = tensor({1, 2, 3});
      const auto gradient = [&](bool change) {
        const Tensor y = loss(x, w);
        if (change)
          w.update([](auto& a) { a *= 10; });
        return numbers(grad({y}, {x}, {.create_graph = create_graph})[0]);
      };
      const List before = gradient(false);
      CHECK(gradient(true) == before);
    }
}

TEST_CASE("an anomaly in the sum of gradients leaves every grad as it was", "[misuse]") {
  const Tensor x = ones({2}).requires_grad_(), w = ones({2}).requires_grad_();
  const GradOptions options{.grad_outputs = {ones({2})}, .create_graph = true};
  const auto large = [&] { return x * 3e38 + w; };
  large().backward(options);
  {
    const DetectAnomaly guard;
    CHECK_THROWS_AS(large().backward(options), AnomalyError);
  }
  REQUIRE(x.grad().defined());
  CHECK(numbers(x.grad() / 3e38) == List{1, 1});
  CHECK(numbers(w.grad()) == List{1, 1});
  {
    NotFinite observer;
    const ModeGuard mode({true, &observer});
    CHECK_THROWS_AS((w + x * 3e38).backward(options), AnomalyError);
  }
  CHECK(numbers(x.grad() / 3e38) == List{1, 1});
  CHECK(numbers(w.grad()) == List{1, 1});
  w.backward(ones({2}));
  CHECK(numbers(w.grad()) == List{2, 2});
}

TEST_CASE("threads add to the same leaves and lose nothing", "[misuse][threads]") {
  constexpr int threads = 4, runs = 200;
  for (const bool create_graph : {false, true}) {
    const Tensor x = zeros({257}).requires_grad_(), w = zeros({3}).requires_grad_();
    const auto work = [&] {
      for (int i = 0; i < runs; ++i)
        backward({sum(x * 2), sum(w) * sum(ones({2}))}, {.create_graph = create_graph});
    };
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back(work);
    for (std::thread& t : all)
      t.join();
    CHECK(numbers(x.grad()) == List(257, 2.0 * threads * runs));
    CHECK(numbers(w.grad()) == List(3, 2.0 * threads * runs));
  }
}

TEST_CASE("hooks of inner Tensors outlive a run", "[misuse]") {
  const Tensor x = tensor({1, 2}).requires_grad_();
  Tensor y = x * x;
  int calls = 0;
  y.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
  sum(y * 2).backward();
  CHECK(calls == 1);
  CHECK(numbers(grad({sum(y * 3)}, {y})[0]) == List{3, 3});
  CHECK(calls == 2);
}

TEST_CASE("a formula that uses undeclared values is an error", "[misuse]") {
  const Tensor x = tensor({1, 2}).requires_grad_(), constant = tensor({3, 4});
  const auto with = [&](auto formula) {
    return sum(record(
        "mine", {x, constant}, [](std::span<const Tensor> in) { return in[0] * in[1]; }, formula));
  };
  const Tensor output = with([](Context& ctx) { ctx.add(0, ctx.output()); });
  CHECK_THROWS_AS(output.backward({.retain_graph = true}), GraphError);
  CHECK_THROWS_WITH(output.backward({.retain_graph = true}),
                    ContainsSubstring("mine") && ContainsSubstring("saves_output = true"));
  const Tensor unwanted = with([](Context& ctx) { *ctx.buffer<float>(1).data = 1; });
  CHECK_THROWS_AS(unwanted.backward({.retain_graph = true}), GraphError);
  CHECK_THROWS_WITH(unwanted.backward({.retain_graph = true}),
                    ContainsSubstring("mine: its backward asks for the buffer "
                                      "of input 1, which needs no gradient"));
  const Tensor wrong = with([](Context& ctx) { *ctx.buffer<double>(0).data = 1; });
  CHECK_THROWS_AS(wrong.backward({.retain_graph = true}), DTypeError);
  CHECK_THROWS_WITH(wrong.backward({.retain_graph = true}),
                    ContainsSubstring("mine") && ContainsSubstring("float64 buffer of input 0, "
                                                                   "which is float32"));
  const Tensor graph = with([](Context& ctx) { *ctx.buffer<float>(0).data = 1; });
  CHECK_THROWS_WITH(graph.backward({.create_graph = true}), ContainsSubstring("create_graph"));
  CHECK_THROWS_AS(with([](Context& ctx) { *ctx.buffer<float>(2).data = 1; }).backward(),
                  ValueError);
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a leaf that is frozen and thawed is the same leaf", "[misuse]") {
  Tensor w = tensor({1.0}).requires_grad_();
  int calls = 0;
  w.register_hook([&calls](const Tensor&) { return ++calls, Tensor(); });
  const auto twice = [&] {
    const Tensor before = w * 2;
    w.requires_grad_(false).requires_grad_(true);
    return before + w * 5;
  };
  CHECK(grad({twice()}, {w})[0].item() == 7);
  sum(twice()).backward();
  CHECK(w.grad().item() == 7);
  const Tensor kept = w.grad();
  sum(twice()).backward();
  CHECK(w.grad().item() == 14);
  CHECK(kept.item() == 7);
  CHECK(calls == 3);
  // as long as it is frozen, earlier graphs leave its grad() alone
  const Tensor y = sum(w * 3);
  w.requires_grad_(false);
  y.backward();
  CHECK(w.grad().item() == 14);
}

TEST_CASE("another handle on a leaf's place in the graph does not take its gradient", "[misuse]") {
  const Tensor w = tensor({1, 2}).requires_grad_();
  const Trace trace;
  const Tensor y = sum(w * 2);
  Tensor alias = trace.events()[0].inputs[0];
  alias.retain_grad();
  y.backward();
  CHECK(numbers(w.grad()) == List{2, 2});
}

TEST_CASE("a hook that keeps a gradient cannot change it afterwards", "[misuse]") {
  const Size n = GENERATE(3, 100);  // elements in the value, and in memory of their own
  Tensor a = ones({n}).requires_grad_(), b = ones({n}).requires_grad_(), kept;
  const auto first = [](const Tensor& x) { return x[0].item(); };
  const auto loss = [&] { return sum(a * 2 + b * 3); };
  SECTION("two hooks return one Tensor") {
    Tensor scratch = zeros({n});
    for (const Tensor& leaf : {a, b})
      Tensor(leaf).register_hook([&scratch](const Tensor& g) {
        scratch.copy_(g * 10);
        return scratch;
      });
    loss().backward();
    CHECK(first(a.grad()) == 20);
    CHECK(first(b.grad()) == 30);
  }
  SECTION("a hook keeps one, and zeroes it in the hook of another leaf") {
    for (const Tensor& leaf : {a, b})
      Tensor(leaf).register_hook([&kept](const Tensor& g) {
        if (kept.defined())
          kept.zero_();
        kept = g;
        return Tensor();
      });
    loss().backward();
    CHECK(first(a.grad()) == 2);
    CHECK(first(b.grad()) == 3);
  }
  SECTION("a hook keeps one, and the result of grad() is filled") {
    a.register_hook([&kept](const Tensor& g) { return kept = g, Tensor(); });
    Tensor result = grad({loss()}, {a})[0];
    result.fill_(0);
    CHECK(first(kept) == 2);
  }
  SECTION("an input that is asked for twice has two results") {
    auto results = grad({loss()}, {a, a});
    results[0].fill_(0);
    CHECK(first(results[1]) == 2);
  }
  SECTION("a formula negates the gradient that it is given") {
    const Tensor y = record(
        "negated", {a * 1}, [](std::span<const Tensor> in) { return in[0] * 1; },
        [](Context& ctx) {
          Tensor g = ctx.gradient();
          g.copy_(-g);
          ctx.add(0, g);
        });
    Tensor(y).retain_grad();
    const auto results = grad({sum(y * 5)}, {y, a}, {.retain_graph = true});
    CHECK(first(results[0]) == 5);
    CHECK(first(results[1]) == -5);
    sum(y * 5).backward();
    CHECK(first(y.grad()) == 5);
    CHECK(first(a.grad()) == -5);
  }
}

TEST_CASE("a formula's result is a value, without grad() and hooks", "[misuse]") {
  const Tensor x = ones({3}).requires_grad_();
  int calls = 0;
  const Tensor y = record(
      "gives away", {x}, [](std::span<const Tensor> in) { return in[0] * 1; },
      [&calls](Context& ctx) {
        Tensor leaf = full({3}, 7).requires_grad_();
        leaf.register_hook([&calls](const Tensor& g) { return ++calls, g * 100; });
        leaf.set_grad(full({3}, 1000));
        leaf.requires_grad_(false);
        ctx.add(0, std::move(leaf));
      });
  Tensor result = grad({sum(y)}, {x})[0];
  CHECK(numbers(result) == List{7, 7, 7});
  CHECK_FALSE(result.grad().defined());
  sum(result.requires_grad_()).backward();
  CHECK(numbers(result.grad()) == List{1, 1, 1});
  CHECK(calls == 0);
}

TEST_CASE("a moved-from or missing value is an error or still valid", "[misuse]") {
  Indices ids{1, 2};
  const Indices taken = std::move(ids);
  CHECK(ids.data()[1] == 2);
  xt::xarray<float> a = {1, 2};
  const Tensor first = std::move(a);
  CHECK_THROWS_AS(Tensor(std::move(a)), ValueError);
  Tensor x = scalar(3);
  CHECK_THROWS_AS(x.update([](auto& v) { const auto stolen = std::move(v); }), ValueError);
  CHECK_THROWS_AS(x.set_value(nullptr), ValueError);
  CHECK(x.item() == 3);
  CHECK_THROWS_AS(x.set_grad(x), ValueError);
  x.requires_grad_();
  CHECK_THROWS_AS(x.register_hook(nullptr), ValueError);
  alignas(8) char bytes[16] = {};
  CHECK_THROWS_AS(
      from_blob(std::shared_ptr<float>(reinterpret_cast<float*>(bytes + 1), [](float*) {}), {1}),
      ValueError);
}

TEST_CASE("a formula that starts a run on its own graph", "[misuse]") {
  const Tensor x = tensor({1, 2}).requires_grad_();
  auto self = std::make_shared<Tensor>();
  int depth = 0;
  *self = record(
      "mine", {x}, [](std::span<const Tensor> in) { return in[0] * 3.0; },
      [self, &depth, input = std::make_shared<Tensor>(x),
       kept = std::make_shared<int>(3)](Context& ctx) {
        if (depth++ == 0)
          grad({*self}, {*input}, {.grad_outputs = {ones({2})}});
        ctx.add(0, ctx.gradient() * static_cast<double>(*kept));
      });
  sum(*self).backward();
  CHECK(numbers(x.grad()) == List{3, 3});
  *self = Tensor();
}

TEST_CASE("a model is converted and loaded as a whole", "[misuse]") {
  LeafAndInner model;
  sum(model.a).backward();
  CHECK_THROWS_AS(nn::to(model, DType::float64), GraphError);
  CHECK(model.a.dtype() == DType::float32);
  CHECK_THROWS_AS(nn::load_state_dict(model, {{"a", zeros({2})}, {"b", zeros({2})}}), GraphError);
  CHECK(numbers(model.a) == List{1, 1});
  model.b = ones({2}).requires_grad_();
  nn::to(model, DType::float64);
  CHECK(model.a.grad().dtype() == DType::float64);
  CHECK(numbers(model.a.grad()) == List{1, 1});
  CHECK(model.a.requires_grad());

  // a gradient of another dtype than the one that is added to it: nothing changes
  Tensor p = ones({2}).requires_grad_(), q = ones({2}).requires_grad_();
  const auto run = [&] { sum(p + q).backward(); };
  run();
  Holds holds{q.grad()};
  nn::to(holds, DType::float64);
  CHECK_THROWS_AS(run(), Error);
  CHECK(numbers(p.grad()) == List{1, 1});
}

// ---- captures of formulas

TEST_CASE("a formula that captures a Tensor among the op's inputs is refused", "[misuse]") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), factor = tensor({3}, DType::float64);
  const std::vector<Tensor> in{x, w, factor, {}};
  const std::function<double(double)> scaled = Scaled{factor};
  struct Wrong {
    std::function<Tensor(const std::vector<Tensor>&)> f;
    std::size_t input;
  };
  const std::vector<Wrong> all{
      {[](const auto& of) { return op_that_holds(of, of[0]); }, 0},
      {[](const auto& of) { return op_that_holds(of, CrossEntropyOptions{.weight = of[1]}); }, 1},
      {[](const auto& of) { return op_that_holds(of, std::vector(2, of[1])); }, 1},
      {[&](const auto& of) { return op_that_holds(of, scaled); }, 2},
      {[](const auto& of) { return op_that_holds(of, std::pair(Saved(of[0]), of[1])); }, 1}};
  REQUIRE(detail::checks_captures);
  for (const Wrong& wrong : all) {
    const std::string says =
        fmt::format("mine: its backward formula captures the Tensor of input {}", wrong.input);
    CHECK_THROWS_AS(wrong.f(in), GraphError);
    CHECK_THROWS_WITH(wrong.f(in), StartsWith(says) && ContainsSubstring("[x = Saved(x)]"));
    detail::checks_captures = detail::debug_build;
    const bool refused_plainly = message_of([&] { wrong.f(in); }) != nothing_thrown;
    const auto f = [&](const std::vector<Tensor>& some) { return wrong.f({some[0], w, factor}); };
    CHECK_THROWS_WITH(explain_gradient(f, {x}), StartsWith(says));
    CHECK_THROWS_WITH(gradcheck(f, {x}), StartsWith(says));
    detail::checks_captures = true;
    CHECK(refused_plainly == detail::debug_build);  // it costs nothing elsewhere
    const NoGrad no_grad;
    CHECK(numbers(wrong.f(in)) == List{2, 4});
  }
}

TEST_CASE("a formula that captures no Tensor of its inputs is not refused", "[misuse]") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  std::atomic<bool> stop{false};
  std::thread copies([&] {  // its handles come and go while a formula is examined
    while (!stop)
      const std::vector<Tensor> handles{x, w, x, w, x};
  });
  for (int i = 0; i < 20'000; ++i)
    op_that_holds({x, w}, std::pair(Saved(x), Saved(w)));
  stop = true;
  copies.join();
  op_that_holds({x, w}, 2.0L);  // its alignment is nothing
  op_that_holds({x, w}, std::make_shared<Tensor>(w));
  const Tensor y = record(
      "mine", {x, w}, [](std::span<const Tensor> in) { return in[0] * 2; },
      [two = std::make_unique<double>(2)](Context& ctx) { ctx.add(0, ctx.gradient() * *two); });
  CHECK(numbers(grad({sum(y)}, {x})[0]) == List{2, 2});
}
