// Chains of Tensors that hold each other in any way are destroyed in a loop, however long: a deep
// recursion would overflow the stack.

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

namespace {

constexpr int long_chain = 20'000;

// While one lives, the stack has 26 bytes for each link of a chain: too few for any function's
// frame.
struct SmallStack {
  rlimit before{};
  SmallStack() {
    REQUIRE(getrlimit(RLIMIT_STACK, &before) == 0);
    const rlimit small{512 * 1024, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_STACK, &small) == 0);
  }
  ~SmallStack() { setrlimit(RLIMIT_STACK, &before); }
};

// Each Tensor is held by the next one, through hold(next, held); end() of the last destroys them.
void destroy_chain(
    const std::function<Tensor()>& make, const std::function<void(Tensor&, const Tensor&)>& hold,
    const std::function<void(Tensor&)>& end = [](Tensor& x) { x = Tensor(); }) {
  Tensor x = make();
  const std::weak_ptr<Node> first = x.identity().node;
  for (int i = 0; i < long_chain; ++i) {
    Tensor next = make();
    hold(next, x);
    x = next;
  }
  REQUIRE(!first.expired());
  end(x);
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

TEST_CASE_METHOD(SmallStack, "long chains of lent memory are destroyed", "[destruction]") {
  Tensor x = zeros(1);
  const std::weak_ptr<const Value> first = x.identity().value;
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

TEST_CASE_METHOD(SmallStack, "long chains of hooks are destroyed", "[destruction]") {
  const auto by_hook = [](Tensor& x, const Tensor& held) {
    x.register_hook([held](const Tensor& g) { return held.defined() ? Tensor() : g; });
  };
  SECTION("of leaves") { destroy_chain(new_leaf, by_hook); }
  SECTION("of results of ops") {
    destroy_chain([] { return -new_leaf(); }, by_hook);
  }
  SECTION("of results of ops, the next an op of the last as well") {
    destroy_chain(new_leaf, [&](Tensor& x, const Tensor& held) {
      x = -held;
      by_hook(x, held);
    });
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
      x.register_hook([identity = held.handle()](const Tensor& /*g*/) { return Tensor(); });
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
  SECTION("that hold a Trace's events") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      Trace trace;
      const Tensor y = -held;
      x.register_hook([events = trace.events()](const Tensor& /*g*/) { return Tensor(); });
    });
  }
  SECTION("removed, the last of the chain") {
    std::size_t id = 0;
    const auto hook = [&](Tensor& x, const Tensor& held) {
      id = x.register_hook([held](const Tensor& /*g*/) { return Tensor(); });
    };
    destroy_chain(new_leaf, hook, [&](Tensor& x) { x.remove_hook(id); });
  }
}

TEST_CASE_METHOD(SmallStack, "long chains of gradients are destroyed", "[destruction]") {
  const auto by_gradient = [](Tensor& x, const Tensor& held) { x.set_grad(held); };
  SECTION("each the gradient of the next") { destroy_chain(new_leaf, by_gradient); }
  SECTION("cleared") {
    destroy_chain(new_leaf, by_gradient, [](Tensor& x) { x.zero_grad(); });
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
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x = -held;
      x.retain_grad();
      x.set_grad(held);
    });
  }
}

TEST_CASE_METHOD(SmallStack, "long chains of formulas are destroyed", "[destruction]") {
  const auto by_list = [](Tensor& x, const Tensor& held) {
    x = holding(new_leaf(), std::vector<Tensor>{held});
  };
  SECTION("that hold a list of Tensors") { destroy_chain(new_leaf, by_list); }
  SECTION("that hold a function that holds a Tensor") {
    destroy_chain(new_leaf, [](Tensor& x, const Tensor& held) {
      x = holding(new_leaf(), std::function<Tensor()>([held] { return held; }));
    });
  }
  SECTION("that hold the place in the graph of a Tensor that is no input") {
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
    destroy_chain(new_leaf, by_list, [](Tensor& x) { std::exchange(x, {}).backward(); });
  }
}

TEST_CASE("a hook's destructor may destroy other hooks", "[destruction]") {
  // The destructor of each Tensor clears the one before it, and makes and destroys a graph of its
  // own.
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
