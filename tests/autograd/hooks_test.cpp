// Hooks that change the Tensors of the run that calls them, and hooks of Tensors whose state
// changes.

#include <functional>
#include <vector>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Elements = std::vector<double>;

Tensor pair_of(double a, double b) { return tensor({a, b}, DType::float64).requires_grad_(); }

// A hook that counts, and changes nothing.
std::size_t count_calls(Tensor& x, int& calls) {
  return x.register_hook([&calls](const Tensor& /*g*/) { return ++calls, Tensor(); });
}

}  // namespace

TEST_CASE("a hook is removed whatever its Tensor is by now", "[hooks]") {
  Tensor x = pair_of(1, 2);
  int removed = 0, kept = 0;
  const std::size_t id = count_calls(x, removed);
  count_calls(x, kept);
  const Tensor before = sum(x * x);
  SECTION("a constant") {
    x.requires_grad_(false);
    x.remove_hook(id);
    x.requires_grad_(true);
  }
  SECTION("a constant, and back, and again one") {
    for (const bool on : {false, true, false})
      x.requires_grad_(on);
    x.remove_hook(id);
    x.requires_grad_(true);
  }
  SECTION("converted") {
    detail::convert(std::array{x}, DType::float32);
    x.remove_hook(id);
  }
  SECTION("converted while it was a constant") {
    x.requires_grad_(false);
    detail::convert(std::array{x}, DType::float32);
    x.remove_hook(id);
    x.requires_grad_(true);
  }
  SECTION("a leaf as ever") { x.remove_hook(id); }
  sum(x * x).backward();
  CHECK(removed == 0);
  CHECK(kept == 1);
  // in a graph from before, too
  before.backward();
  CHECK(removed == 0);
}

TEST_CASE("a hook of a constant is removed through any handle, and a wrong id removes none",
          "[hooks]") {
  Tensor x = pair_of(1, 2), other = pair_of(3, 4);
  int calls = 0;
  const std::size_t id = count_calls(x, calls);
  x.requires_grad_(false);
  other.remove_hook(id);
  Tensor plain = zeros({2});
  plain.remove_hook(id);  // it never had one
  CHECK_THROWS_WITH(x.register_hook([](const Tensor& g) { return g; }),
                    ContainsSubstring("does not require a gradient"));
  x.requires_grad_(true);
  sum(x).backward();
  CHECK(calls == 1);
  x.requires_grad_(false);
  Tensor handle = x;
  handle.remove_hook(id);
  x.requires_grad_(true);
  sum(x).backward();
  CHECK(calls == 1);
}

TEST_CASE("hooks of results of ops", "[hooks]") {
  const Tensor x = pair_of(1, 2);
  Tensor y = x * 2.0;
  int calls = 0;
  const std::size_t id = count_calls(y, calls);
  y.retain_grad();
  CHECK_THROWS_AS(y.requires_grad_(false), GraphError);
  SECTION("the handle names another by now, which has no hook") {
    const Tensor old = y;
    y *= 3.0;
    y.remove_hook(id);
    sum(old).backward();
    CHECK(calls == 1);
    CHECK(numbers(old.grad()) == Elements{1, 1});
  }
  SECTION("removed in the run, by a hook of its user") {
    Tensor z = y * y;
    z.register_hook([&](const Tensor& /*g*/) { return y.remove_hook(id), Tensor(); });
    sum(z).backward();
    CHECK(calls == 0);
    CHECK(numbers(y.grad()) == Elements{4, 8});
  }
  SECTION("a hook that ends a Tensor's last other handle") {
    y.register_hook([&](const Tensor& /*g*/) {
      y = Tensor();
      return Tensor();
    });
    sum(y * y).backward();
    CHECK(calls == 1);
    CHECK(numbers(x.grad()) == Elements{8, 16});
  }
}

TEST_CASE("a removed hook may do anything as it ends", "[hooks]") {
  Tensor x = pair_of(1, 2);
  int calls = 0;
  struct Ends {
    Tensor* x;
    int* calls;
    ~Ends() { count_calls(*x, *calls); }
  };
  const std::size_t id = x.register_hook(
      [ends = std::make_shared<Ends>(Ends{&x, &calls})](const Tensor& /*g*/) { return Tensor(); });
  calls = 0;
  x.remove_hook(id);
  sum(x).backward();
  CHECK(calls >= 1);
}

TEST_CASE("grad() gives the gradient of its inputs at the time of the call", "[hooks]") {
  Tensor x = pair_of(1, 2), w = pair_of(3, 4);
  Tensor other;
  std::function<void()> act;
  SECTION("made constants") {
    act = [&] { x.requires_grad_(false), w.requires_grad_(false); };
  }
  SECTION("converted") {
    act = [&] { detail::convert(std::array{x, w}, DType::float32); };
  }
  SECTION("converted, and made constants") {
    act = [&] {
      detail::convert(std::array{x, w}, DType::float32);
      x.requires_grad_(false);
    };
  }
  SECTION("given other values") {
    act = [&] {
      x.fill_(100);
      w.copy_(tensor({100, 100}));
    };
  }
  SECTION("released") {
    act = [&] { x = w = Tensor(); };
  }
  SECTION("differentiated on the way") {
    act = [&] {
      if (other.defined())
        std::exchange(other, {}).backward();
    };
  }
  SECTION("given a gradient and cleared") {
    act = [&] {
      x.set_grad(ones_like(x));
      x.zero_grad();
      w.set_grad(ones_like(w));
    };
  }
  for (const bool inner : {false, true}) {
    CAPTURE(inner);
    x = pair_of(1, 2), w = pair_of(3, 4);
    Tensor y = x * w;
    other = sum(x * w);
    Tensor& hooked = inner ? y : x;
    hooked.register_hook([&](const Tensor& /*g*/) {
      act();
      return Tensor();
    });
    std::vector<Tensor> inputs{x, w};
    const auto g = grad({sum(y)}, inputs);
    CHECK(numbers(g[0]) == Elements{3, 4});
    CHECK(numbers(g[1]) == Elements{1, 2});
  }
}

TEST_CASE("a hook may change the list that grad() was given", "[hooks]") {
  const Tensor x = pair_of(1, 2);
  std::vector<Tensor> inputs{x, pair_of(3, 4)};
  Tensor y = x * inputs[1];
  y.register_hook([&](const Tensor& /*g*/) {
    inputs.clear();
    inputs.shrink_to_fit();
    return Tensor();
  });
  const auto g = grad({sum(y)}, inputs);
  REQUIRE(g.size() == 2);
  CHECK(numbers(g[1]) == Elements{1, 2});
}

TEST_CASE("a hook that makes a leaf a constant, or converts it, leaves its grad() alone",
          "[hooks]") {
  // The leaf's own gradient is complete before the other's hook is called, or after it.
  const bool first = GENERATE(true, false);
  const bool graph = GENERATE(false, true);
  CAPTURE(first, graph);
  Tensor x = pair_of(1, 2), other = pair_of(3, 4);
  const auto loss = [&] {
    return first ? sum(x * x) + sum(-(-(-other))) : sum(other) + sum(x * x);
  };
  std::function<void()> act;
  SECTION("a constant") {
    act = [&] { x.requires_grad_(false); };
  }
  SECTION("converted") {
    act = [&] { detail::convert(std::array{x}, DType::float32); };
  }
  other.register_hook([&](const Tensor& /*g*/) {
    act();
    return Tensor();
  });
  loss().backward({.create_graph = graph});
  CHECK(numbers(other.grad()) == (first ? Elements{-1, -1} : Elements{1, 1}));
  CHECK_FALSE(x.grad().defined());
  if (x.requires_grad()) {
    sum(x * x).backward();
    CHECK(x.grad().dtype() == x.dtype());
  }
}

TEST_CASE("a hook that frees the graph it is in", "[hooks]") {
  const Tensor x = pair_of(1, 2);
  Tensor y = x * x;
  const Tensor z = sum(y * y), other = sum(y);
  bool free = true;
  y.register_hook([&](const Tensor& /*g*/) {
    if (std::exchange(free, false))
      other.backward();  // frees what the run needs next
    return Tensor();
  });
  CHECK_THROWS_WITH(
      z.backward(),
      ContainsSubstring(
          "freed by an earlier run: compute the loss anew in each step; retain_graph"));
}

TEST_CASE("several buffers of one input, in whatever order they are written", "[hooks][buffer]") {
  // 1 x + 10 x + 100 x, each term's gradient by a buffer or as a Tensor; all are requested first.
  const auto sum_of = [](const Tensor& a, const Tensor& b, const std::vector<int>& order,
                         bool second_as_tensor) {
    const auto forward = [](std::span<const Tensor> in) { return in[0] + in[1] * 10.0; };
    return record("sum_of", {a, b}, forward, [order, second_as_tensor](Context& ctx) {
      const auto* const g = ctx.gradient().data<double>();
      std::vector<GradientBuffer<double>> buffers{ctx.buffer<double>(0)};
      if (second_as_tensor)
        ctx.add(1, ctx.gradient() * 10.0);
      else
        buffers.push_back(ctx.buffer<double>(1));
      buffers.push_back(ctx.buffer<double>(0));
      const std::vector<double> factors =
          second_as_tensor ? std::vector<double>{1, 100} : std::vector<double>{1, 10, 100};
      for (const int k : order)
        if (const auto n = static_cast<std::size_t>(k); n < buffers.size())
          for (std::size_t i = 0; i < 2; ++i)
            buffers[n].data[i] =
                factors[n] * g[i] + (buffers[n].beta == 0 ? 0 : buffers[n].data[i]);
    });
  };
  for (const bool as_tensor : {false, true})
    for (const auto& order : {std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{1, 2, 0}})
      for (const bool used_before : {false, true}) {
        CAPTURE(as_tensor, order, used_before);
        Tensor x = pair_of(1, 2);
        const Tensor y = sum(sum_of(x, x, order, as_tensor));
        (used_before ? y + sum(x * 1000.0) : y).backward();
        const double expected = used_before ? 1111 : 111;
        CHECK(numbers(x.grad()) == Elements{expected, expected});
        const Tensor a = pair_of(1, 2), b = pair_of(1, 2);
        sum(sum_of(a, b, order, as_tensor)).backward();
        CHECK(numbers(a.grad()) == Elements{101, 101});
        CHECK(numbers(b.grad()) == Elements{10, 10});
      }
}
