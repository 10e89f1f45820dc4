// Running a graph changes nothing else, and other code does not change the run.

#include <atomic>
#include <set>
#include <thread>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/viz/graph.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "viz/graph_samples.hpp"

using namespace xgrad;
using viz::Graph;
using Verdict = viz::GraphCheck::Verdict;

TEST_CASE("graph: other threads may differentiate graphs with the same leaves", "[pages][graph]") {
  const Tensor w = leaf({1, 2}), x = leaf({3, 4});
  const auto f = [&] { return sum(w * x * w); };
  // (Catch2 allows no assertion on the other thread.)
  std::atomic<bool> started = false, done = false;
  bool right = true;
  std::thread other([&] {
    while (!done) {
      const LeafGradients gradients = leaf_gradients({f()});
      right = right && gradients.size() == 2;
      for (const auto& [identity, gradient] : gradients)
        right = right && numbers(gradient) == (identity == w.handle() ? std::vector<double>{6, 16}
                                                                      : std::vector<double>{1, 4});
      started = true;
    }
  });
  while (!started)
    std::this_thread::yield();
  std::set<std::string> seen;
  for (int i = 0; i < 2000; ++i)
    seen.insert(to_string(viz::run_graph(f, {.numeric = false})));
  done = true;
  other.join();
  CHECK(right);
  CHECK(seen.size() == 1);
}

TEST_CASE("graph: no hook is left or lost", "[pages][graph]") {
  Tensor w = leaf({1, 2});
  std::size_t hooks = 0, called = 0;
  w.register_hook([&](const Tensor&) {
    hooks = w.identity().node->hooks.size();
    ++called;
    return Tensor();
  });
  viz::run_graph([&] { return sum(w * w); });
  CHECK(hooks == 1);
  CHECK(called == 1);
}

TEST_CASE("graph: hooks change gradients, and that is said", "[pages][graph]") {
  const Tensor w = leaf(2);
  const auto f = [&] {
    Tensor y = w * w;
    y.register_hook([](const Tensor& g) { return g * 10.0; });
    return y * 3.0;
  };
  const Graph graph = viz::run_graph(f, {.names = {{"w", w}}});
  REQUIRE(graph.nodes[0].name == "w");
  CHECK(graph.nodes[1].gathered.item() == 3);
  CHECK(graph.nodes[1].gradient.item() == 30);
  CHECK(graph.nodes[0].gradient.item() == 120);
  // Differences give 12, but no op is wrong.
  CHECK(graph.wrong().empty());
  CHECK(graph.nodes[0].whole.verdict == Verdict::unchecked);
  CHECK(graph.nodes[0].whole.message ==
        "a hook on mul 2 changed the gradient on its way, from 3 to 30");
  CHECK(graph.nodes[0].contributions.at(0).own.verdict == Verdict::right);
  CHECK(graph.nodes[1].whole.verdict == Verdict::right);
  CHECK_THAT(to_string(graph), ContainsSubstring("numeric ok; a hook made it of 3"));
  // A wrong op is named nevertheless.
  const Graph wrong = viz::run_graph([&] { return testing::wrong_square(f()); });
  CHECK(wrong.wrong() == std::vector<std::size_t>{1, 3});  // not w, which is unchecked
}

TEST_CASE("graph: observers around see the run, and nothing of the page's own", "[pages][graph]") {
  const Tensor w = leaf({1, 2});
  const auto f = [&] { return sum(w * w); };
  std::vector<std::string> formulas;
  const Trace trace(
      [&](const Node& node, std::size_t, const Tensor&) { formulas.push_back(node.op); });
  viz::run_graph(f, {.numeric = true});
  std::vector<std::string> ops;
  for (const Trace::Event& event : trace.events())
    ops.push_back(event.op);
  CHECK(ops == std::vector<std::string>{"mul", "sum"});
  CHECK(formulas == std::vector<std::string>{"sum", "mul", "mul"});
  CHECK(Mode::current().observer == &trace);
}
