// What holds Tensors that hold others is destroyed in a loop, however long the chain and whatever
// holds them: a deep recursion would end the process.

#include <functional>
#include <memory>
#include <vector>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

namespace {

constexpr int long_chain = 300'000;

// Each Tensor is held by the next one, as hold(next, held) does it.
template <class Make, class Hold>
void destroy_chain(const Make& make, const Hold& hold) {
  Tensor x = make();
  const std::weak_ptr<Node> first = x.impl().node;
  for (int i = 0; i < long_chain; ++i) {
    Tensor next = make();
    hold(next, x);
    x = next;
  }
  REQUIRE(!first.expired());
  x = Tensor();
  CHECK(first.expired());
}

Tensor new_leaf() { return zeros({1}).requires_grad_(); }
Tensor no_gradient(const Tensor& /*g*/) { return {}; }

// y = x in the graph, with a formula that holds `held`.
template <class Held>
Tensor holding(const Tensor& x, Held held) {
  return record(
      "holding", {x}, [](std::span<const Tensor> in) { return in[0].clone(); },
      [held = std::move(held)](Context& ctx) { ctx.add(0, ctx.gradient()); });
}

}  // namespace

TEST_CASE("long chains of lent memory are destroyed", "[destruction]") {
  Tensor x = zeros(1);
  const std::weak_ptr<const Value> first = x.impl().value;
  for (int i = 0; i < long_chain; ++i) {
    struct Lender {
      float element;
      Tensor held;
    };
    const auto lender = std::make_shared<Lender>(Lender{1.F, x});
    x = from_blob(std::shared_ptr<float>(lender, &lender->element), 1);
  }
  REQUIRE(!first.expired());
  x = Tensor();
  CHECK(first.expired());
}

TEST_CASE("long chains of hooks are destroyed", "[destruction]") {
  const auto by_hook = [](Tensor& x, const Tensor& held) {
    x.register_hook([held](const Tensor& g) { return held.defined() ? Tensor() : g; });
  };
  SECTION("of leaves") { destroy_chain(new_leaf, by_hook); }
  SECTION("of results of ops") {
    destroy_chain([] { return -new_leaf(); }, by_hook);
  }
  SECTION("of results of ops, the next an op of the last as well") {
    Tensor x = new_leaf();
    const std::weak_ptr<Node> first = x.impl().node;
    for (int i = 0; i < long_chain; ++i) {
      Tensor next = -x;
      by_hook(next, x);
      x = next;
    }
    x = Tensor();
    CHECK(first.expired());
  }
  SECTION("of leaves that are constants for now") {
    destroy_chain(new_leaf, [&](Tensor& x, const Tensor& held) {
      by_hook(x, held);
      x.requires_grad_(false);
    });
  }
  SECTION("of leaves that were converted") {
    destroy_chain(new_leaf, [&](Tensor& x, const Tensor& held) {
      by_hook(x, held);
      detail::convert(std::array{x}, DType::float64);
    });
  }
  SECTION("that hold them through a function, a list and a pointer") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      const std::function<void()> update = [all = std::make_shared<std::vector<Tensor>>(1, held)] {
        all->front().fill_(1);
      };
      x.register_hook([update](const Tensor& /*g*/) {
        update();
        return Tensor();
      });
    });
  }
  SECTION("that hold their formula's place in the graph") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x.register_hook([saved = Saved(held)](const Tensor& /*g*/) { return Tensor(); });
      x.register_hook([impl = held.handle()](const Tensor& /*g*/) { return Tensor(); });
    });
  }
  SECTION("that hold a layer") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      nn::Linear layer(1, 1, false);
      layer.weight = held;
      nn::Sequential net{layer, nn::Tanh{}};
      x.register_hook([net](const Tensor& /*g*/) { return Tensor(); });
    });
  }
  SECTION("that hold what a Trace has seen") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      Trace trace;
      const Tensor y = -held;
      x.register_hook([events = trace.events()](const Tensor& /*g*/) { return Tensor(); });
    });
  }
  SECTION("removed, the last of the chain") {
    Tensor x = new_leaf();
    const std::weak_ptr<Node> first = x.impl().node;
    std::size_t id = 0;
    for (int i = 0; i < long_chain; ++i) {
      Tensor next = new_leaf();
      id = next.register_hook([x](const Tensor& /*g*/) { return Tensor(); });
      x = next;
    }
    x.remove_hook(id);
    CHECK(first.expired());
  }
}

TEST_CASE("long chains of gradients are destroyed", "[destruction]") {
  SECTION("each the gradient of the next") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) { x.set_grad(held); });
  }
  SECTION("cleared") {
    Tensor x = new_leaf();
    const std::weak_ptr<Node> first = x.impl().node;
    for (int i = 0; i < long_chain; ++i) {
      Tensor next = new_leaf();
      next.set_grad(x);
      x = next;
    }
    x.zero_grad();
    CHECK(first.expired());
  }
  SECTION("with a hook between each two") {
    bool hook = false;
    destroy_chain(new_leaf, [&](Tensor& x, const Tensor& held) {
      if (hook = !hook; hook)
        x.register_hook([held](const Tensor& g) { return no_gradient(g); });
      else
        x.set_grad(held);
    });
  }
  SECTION("of a graph, kept by retain_grad()") {
    Tensor x = new_leaf();
    const std::weak_ptr<Node> first = x.impl().node;
    for (int i = 0; i < long_chain; ++i) {
      Tensor y = -x;
      y.retain_grad();
      y.set_grad(x);
      x = y;
    }
    x = Tensor();
    CHECK(first.expired());
  }
}

TEST_CASE("long chains of formulas are destroyed", "[destruction]") {
  SECTION("that hold a list of Tensors") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x = holding(new_leaf(), std::vector<Tensor>{held});
    });
  }
  SECTION("that hold a function that holds a Tensor") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x = holding(new_leaf(), std::function<Tensor()>([held] { return held; }));
    });
  }
  SECTION("that hold the place in the graph of what is no input") {
    destroy_chain(new_leaf,
                  [](Tensor& x, const Tensor& held) { x = holding(new_leaf(), Saved(held)); });
  }
  SECTION("of more inputs than fit into a node") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x = record(
          "four", {new_leaf(), held, held, new_leaf()},
          [](std::span<const Tensor> in) { return in[1].clone(); }, [](Context&) {});
    });
  }
  SECTION("freed by a run") {
    Tensor held = new_leaf();
    const std::weak_ptr<Node> first = held.impl().node;
    for (int i = 0; i < long_chain; ++i)
      held = holding(new_leaf(), std::vector<Tensor>{held});
    std::exchange(held, {}).backward();
    CHECK(first.expired());
  }
}

TEST_CASE("what a destroyed hook does may destroy others", "[destruction]") {
  // The end of each Tensor clears the one before it, and makes and ends a graph of its own.
  struct Ends {
    Tensor other;
    int* ended;
    Ends(const Tensor& x, int& n) : other(x), ended(&n) {}
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() {
      other = Tensor();
      ++*ended;
      const Tensor x = new_leaf();
      sum(x * x).backward();
    }
  };
  int ended = 0;
  Tensor x = new_leaf();
  for (int i = 0; i < 1000; ++i) {
    Tensor next = new_leaf();
    next.register_hook([ends = std::make_shared<Ends>(x, ended)](const Tensor& g) {
      return ends->other.defined() ? no_gradient(g) : g;
    });
    x = next;
  }
  CHECK(ended == 0);
  x = Tensor();
  CHECK(ended == 1000);
}
