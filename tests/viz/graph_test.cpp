#include <xgrad/viz/graph.hpp>

#include <regex>
#include <string_view>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/trace.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"
#include "viz/graph_samples.hpp"

using namespace xgrad;
using viz::Graph;
using viz::GraphNode;
using xgrad::testing::check_consistent;
using xgrad::testing::checks_with;
using xgrad::testing::hostile_text;
using xgrad::testing::wrong_square;
using Verdict = viz::GraphCheck::Verdict;

namespace {

// The names of nodes in the order of their steps; leaves have the user's names.
std::vector<std::string> steps(const Graph& graph) {
  std::vector<std::string> names;
  for (const std::size_t i : graph.order)
    names.push_back(graph.nodes[i].name.empty() ? graph.nodes[i].op : graph.nodes[i].name);
  return names;
}

const GraphNode& named(const Graph& graph, std::string_view name) {
  for (const GraphNode& node : graph.nodes)
    if (node.name == name)
      return node;
  FAIL("no node is called " << name);
  return graph.nodes[0];
}

}  // namespace

TEST_CASE("graph: values, contributions and their sums", "[pages][graph]") {
  const Tensor w = leaf(3), x = leaf(2);
  const Graph graph = viz::run_graph(
      [&] {
        const Tensor y = w * x;
        return y * y + w;
      },
      {.names = {{"w", w}, {"x", x}}});
  CHECK(steps(graph) == std::vector<std::string>{"add", "mul", "mul", "w", "x"});
  const GraphNode& of_w = named(graph, "w");
  CHECK(of_w.kind == GraphNode::Kind::leaf);
  CHECK(of_w.gradient.item() == 25);  // 2 w x² + 1
  REQUIRE(of_w.contributions.size() == 2);
  CHECK(of_w.contributions[0].op == "add");
  CHECK(of_w.contributions[0].gradient.item() == 1);
  CHECK(of_w.contributions[1].op == "mul");
  CHECK(of_w.contributions[1].gradient.item() == 24);
  CHECK(of_w.contributions[1].inputs == std::vector<std::size_t>{0});
  CHECK(of_w.consumers.size() == 2);
  CHECK(of_w.whole.verdict == Verdict::right);
  CHECK(std::abs(of_w.whole.numeric.at(0) - 25) < 1e-6);
  // y * y has one contribution, for both of its inputs.
  const GraphNode& y = graph.nodes[graph.order[2]];
  REQUIRE(y.contributions.size() == 1);
  CHECK(y.contributions[0].inputs == std::vector<std::size_t>{0, 1});
  CHECK(y.contributions[0].gradient.item() == 12);
  CHECK(graph.nodes[graph.root].contributions.at(0).op == "backward()");
  CHECK(graph.wrong().empty());
  CHECK_FALSE(w.grad().defined());
  check_consistent(graph);
}

TEST_CASE("graph: the order is the engine's", "[pages][graph]") {
  for (const testing::GraphSample& sample : testing::graph_samples()) {
    if (sample.name == "large")
      continue;
    INFO(sample.name);
    const Graph graph = viz::run_graph(sample.f, sample.options);
    check_consistent(graph);
    // Another run of the same function, where only formulas are seen.
    std::vector<std::string> seen;
    const Node* last = nullptr;
    const Trace trace([&](const Node& node, std::size_t, const Tensor&) {
      if (last != &node)
        seen.push_back(node.op);
      last = &node;
    });
    leaf_gradients({sample.f()});
    std::vector<std::string> mine;
    for (const std::size_t i : graph.order)
      if (graph.nodes[i].kind == GraphNode::Kind::op)
        mine.push_back(graph.nodes[i].op);
    CHECK(mine == seen);
  }
}

TEST_CASE("graph: its gradients are those of backward()", "[pages][graph]") {
  for (const testing::GraphSample& sample : testing::graph_samples()) {
    if (sample.name == "large" || sample.name == "hostile")
      continue;
    INFO(sample.name);
    const Graph graph = viz::run_graph(sample.f, sample.options);
    sample.f().backward();
    for (const auto& [name, x] : sample.options.names)
      CHECK(same_bits(named(graph, name).gradient, x.grad()));
  }
}

TEST_CASE("graph: differences agree with right gradients, also of float32", "[pages][graph]") {
  const auto samples = testing::graph_samples();
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    const Graph graph = viz::run_graph(samples[i].f, samples[i].options);
    INFO(samples[i].name << "\n" << to_string(graph));
    CHECK(graph.wrong().empty());
    // The correction of layer_norm's mean has a gradient that is 0 but for rounding.
    std::size_t unchecked = 0, too_small = 0;
    for (const viz::GraphNode& node : graph.nodes) {
      std::vector<const viz::GraphCheck*> checks{&node.whole};
      for (const auto& part : node.contributions)
        if (part.consumer)
          checks.push_back(&part.own);
      for (const viz::GraphCheck* const check : checks)
        if (node.step && check->verdict == Verdict::unchecked)
          ++(check->message.starts_with("too small for differences") ? too_small : unchecked);
    }
    CHECK(unchecked == 0);
    CHECK(too_small < 20);
    CHECK(checks_with(graph, Verdict::right) > 10);
  }
}

TEST_CASE("graph: a wrong backward is found, and its effects", "[pages][graph]") {
  const Tensor w = leaf(3), x = leaf(2);
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Graph graph =
        viz::run_graph([&] { return sum(wrong_square((w * x).to(dtype))) + w.to(dtype); },
                       {.names = {{"w", w}, {"x", x}}});
    std::vector<std::string> own, whole;
    for (const std::size_t i : graph.wrong()) {
      for (const auto& part : graph.nodes[i].contributions)
        if (part.own.verdict == Verdict::wrong)
          own.push_back(part.op);
      if (graph.nodes[i].whole.verdict == Verdict::wrong)
        whole.push_back(graph.nodes[i].op + graph.nodes[i].name);
    }
    CHECK(own == std::vector<std::string>{"wrong_square"});
    CHECK(std::ranges::find(whole, "leafw") != whole.end());
    CHECK(std::ranges::find(whole, "leafx") != whole.end());
    CHECK_THAT(to_string(graph), ContainsSubstring("own backward WRONG: numeric 12"));
    CHECK_THAT(viz::graph_html(graph), ContainsSubstring("\"wrong\":["));
  }
  const Graph unchecked = viz::run_graph([&] { return wrong_square(w); }, {.numeric = false});
  CHECK(unchecked.wrong().empty());
  CHECK(checks_with(unchecked, Verdict::right) == 0);
}

TEST_CASE("graph: kinks, NaN and infinity", "[pages][graph]") {
  const Tensor x = leaf({0, 1, -1});
  const Graph kink = viz::run_graph([&] { return sum(relu(x)); });
  CHECK(kink.wrong().empty());
  CHECK_THAT(kink.nodes[0].whole.message, ContainsSubstring("kink"));
  const Tensor bad = leaf({1, 0, not_a_number});
  const Graph graph = viz::run_graph([&] { return sum(log(bad)); }, {.names = {{"bad", bad}}});
  CHECK(graph.wrong().empty());
  CHECK(named(graph, "bad").whole.verdict == Verdict::unchecked);
  CHECK_THAT(named(graph, "bad").whole.message, ContainsSubstring("NaN or infinite"));
  CHECK_THAT(to_string(graph), ContainsSubstring("[0, -inf, nan]"));
  CHECK_THAT(viz::graph_html(graph), ContainsSubstring(R"([0.0,"-inf","nan"])"));
  CHECK_THAT(viz::graph_dot(graph), ContainsSubstring("-inf"));
}

TEST_CASE("graph: masked scores, ties and fused attention are checked", "[pages][graph]") {
  const Tensor x = normal({1, 4, 6}, 3).requires_grad_();
  for (const bool decompose : {false, true}) {
    const Graph graph = viz::run_graph([&] {
      std::optional<Decompose> by_ordinary_ops;
      if (decompose)
        by_ordinary_ops.emplace();
      return sum(scaled_dot_product_attention(x, x, x, AttentionOptions{.is_causal = true}) * x);
    });
    INFO(to_string(graph));
    CHECK(graph.wrong().empty());
    CHECK(graph.nodes[0].whole.verdict == Verdict::right);
    check_consistent(graph);
  }
}

TEST_CASE("graph: constants, detach(), NoGrad and unused values", "[pages][graph]") {
  const Tensor w = leaf({1, 2});
  const Graph graph = viz::run_graph(
      [&] {
        const Tensor y = w * 3.0;
        exp(y);
        const Tensor constant = [&] {
          const NoGrad no_grad;
          return cos(y);
        }();
        return sum(y * y.detach() * constant);
      },
      {.names = {{"w", w}}});
  check_consistent(graph);
  CHECK(graph.wrong().empty());  // differences do not follow the detached path, either
  const GraphNode& y = graph.nodes[2];
  REQUIRE(y.op == "mul");
  CHECK(y.consumers.size() == 3);  // exp, cos and mul
  CHECK(y.contributions.size() == 1);
  CHECK(y.contributions[0].inputs == std::vector<std::size_t>{0});
  CHECK(graph.nodes[1].kind == GraphNode::Kind::constant);
  for (const GraphNode& node : graph.nodes)
    if (node.op == "exp" || node.op == "cos")
      CHECK_FALSE(node.step.has_value());
}

TEST_CASE("graph: a second run, and one after an error", "[pages][graph]") {
  Tensor w = leaf({1, 2});
  const auto f = [&] { return sum(w * w); };
  w.zero_grad();
  const std::string once = to_string(viz::run_graph(f)), twice = to_string(viz::run_graph(f));
  CHECK(once == twice);
  struct Mine {};
  CHECK_THROWS_AS(viz::run_graph([&]() -> Tensor {
                    exp(w);
                    throw Mine();
                  }),
                  Mine);
  CHECK(Mode::current().observer == nullptr);
  const auto throws_behind = [&] {
    return sum(record(
        "bad", {w}, [](std::span<const Tensor> in) { return in[0] * 1.0; },
        [](Context&) { throw Mine(); }));
  };
  CHECK_THROWS_AS(viz::run_graph(throws_behind), Mine);
  CHECK(w.identity().node->hooks.empty());
  CHECK(Mode::current().observer == nullptr);
  CHECK(to_string(viz::run_graph(f)) == once);
  f().backward();
  CHECK(numbers(w.grad()) == std::vector<double>{2, 4});
}

TEST_CASE("graph: errors of functions without a graph", "[pages][graph]") {
  const Tensor w = leaf({1, 2}), c = ones({2});
  const auto says = [](const auto& f, const viz::GraphOptions& options = {}) {
    return message_of([&] { viz::run_graph(f, options); });
  };
  CHECK_THAT(says(std::function<Tensor()>()), ContainsSubstring("function is empty"));
  CHECK_THAT(says([] { return Tensor(); }), ContainsSubstring("undefined Tensor"));
  CHECK_THAT(says([&] { return sum(c); }), ContainsSubstring("none of its inputs requires"));
  CHECK_THAT(says([&] {
               const NoGrad no_grad;
               return sum(w);
             }),
             ContainsSubstring("under NoGrad"));
  CHECK_THAT(says([&] { return w * 2.0; }), ContainsSubstring("shape (2,): return one number"));
  const Tensor before = sum(w);
  CHECK_THAT(says([&] { return before; }), ContainsSubstring("before the function ran"));
  CHECK_THAT(says([&] { return sum(w * w * w); }, {.max_nodes = 3}),
             ContainsSubstring("more than 3 nodes: take a shorter input"));
  CHECK_THAT(says([&] { return w * 2.0; }, {.gradient = ones({3}, DType::float64)}),
             ContainsSubstring("has shape (3,)"));

  const Graph given = viz::run_graph(
      [&] { return w * 2.0; }, {.names = {{"w", w}}, .gradient = tensor({1, 10}, DType::float64)});
  CHECK(numbers(named(given, "w").gradient) == std::vector<double>{2, 20});
  CHECK(given.wrong().empty());
  const Tensor alone = leaf(7);
  const Graph one = viz::run_graph([&] { return alone; });
  REQUIRE(one.nodes.size() == 1);
  CHECK(one.nodes[0].gradient.item() == 1);
  CHECK_THAT(viz::graph_html(one), ContainsSubstring("<!DOCTYPE html>"));
}

TEST_CASE("graph: values from before the function are single nodes", "[pages][graph]") {
  const Tensor w = leaf(2);
  const Tensor before = w * w;
  const Graph graph = viz::run_graph([&] { return before * w; }, {.names = {{"w", w}}});
  CHECK(graph.nodes[0].kind == GraphNode::Kind::outside);
  CHECK(graph.nodes[0].op == "mul");
  CHECK(named(graph, "w").gradient.item() == 12);
  REQUIRE(named(graph, "w").contributions.size() == 2);
  CHECK(named(graph, "w").contributions[1].consumer == 0U);
  CHECK(named(graph, "w").whole.message == "ops that ran before the function use it, too");
  CHECK(graph.wrong().empty());
  (before * 1.0).backward();  // its graph is still there
  CHECK(w.grad().item() == 4);
}

TEST_CASE("graph: any names in a page, in DOT and in text", "[pages][graph]") {
  const auto samples = testing::graph_samples();
  const Graph graph = viz::run_graph(samples[3].f, samples[3].options);
  const std::string html = viz::graph_html(graph), dot = viz::graph_dot(graph),
                    text = to_string(graph);
  CHECK(html.find("</script><b>") == std::string::npos);
  for (const std::string& one : {dot, text}) {
    CHECK(one.find('\x1b') == std::string::npos);
    CHECK(one.find("\u202e") == std::string::npos);
    CHECK(one.find('\xff') == std::string::npos);
  }
  // In each line of DOT quotes come in pairs, but for those that are escaped.
  const std::string bare = std::regex_replace(dot, std::regex(R"(\\.)"), "");
  std::size_t quotes = 0;
  for (const char c : bare) {
    quotes += c == '"' ? 1 : 0;
    if (c == '\n')
      CHECK(quotes % 2 == 0);
  }
  CHECK(quotes > 10);
  CHECK(dot == viz::graph_dot(viz::run_graph(samples[3].f, samples[3].options)));
  CHECK(html == viz::graph_html(viz::run_graph(samples[3].f, samples[3].options)));
}

TEST_CASE("graph: as text", "[pages][graph]") {
  const Tensor w = leaf(3);
  const Graph graph =
      viz::run_graph([&] { return w * w + w; }, {.names = {{"w", w}}, .title = "T"});
  CHECK(to_string(graph) ==
        "T\n\n"
        "forward (3 nodes; c: taken as a constant)\n"
        "node  op      inputs  scope  shape and value\n"
        "   1  leaf w                 () float64: 3\n"
        "   2  mul     1, 1           () float64: 9\n"
        "   3  add     2, 1           () float64: 12\n"
        "\nbackward (3 steps)\n"
        "step  node      gradient  from\n"
        "   1  add 3     1         backward()  numeric ok\n"
        "   2  mul 2     1         add 3       numeric ok\n"
        "   3  leaf 1 w  7         add 3: 1    numeric ok\n"
        "                          mul 2: 6\n");
  CHECK(viz::graph_dot(graph) ==
        "digraph graph_ {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n  "
        "label=\"T\";\n"
        "  n1 [label=\"leaf 1 w\\n()\\nvalue 3\\ngradient 7 (step 3)\", style=rounded];\n"
        "  n2 [label=\"mul 2\\n()\\nvalue 9\\ngradient 1 (step 2)\"];\n"
        "  n3 [label=\"add 3\\n()\\nvalue 12\\ngradient 1 (step 1)\"];\n"
        "  n1 -> n2;\n  n1 -> n2;\n  n2 -> n3;\n  n1 -> n3;\n}\n");
}

TEST_CASE("graph: a page is refused before anything runs, or is whole", "[pages][graph]") {
  const TemporaryFolder folder;
  const Tensor w = leaf(3);
  bool ran = false;
  const auto f = [&] {
    ran = true;
    return w * w;
  };
  CHECK_THAT(message_of<ValueError>([&] { viz::write_graph_html(folder / "graph.svg", f); }),
             ContainsSubstring("ends in .html"));
  CHECK_FALSE(ran);
  CHECK_THROWS_AS(viz::write_graph_html(folder / "none/graph.html", f), FileError);
  CHECK_THAT(
      message_of<ValueError>(
          [&] { viz::write_graph_html(folder / "graph.html", f, {.max_bytes = 20'000}); }),
      ContainsSubstring("the page would have 0.0 MB, above .max_bytes (0.0 MB): take a shorter"));
  CHECK(folder.count() == 0);
  viz::write_graph_html(folder / "graph.html", f, {.names = {{"w", w}}});
  CHECK(read_bytes(folder / "graph.html") ==
        viz::graph_html(viz::run_graph(f, {.names = {{"w", w}}})));
}

TEST_CASE("graph: large Tensors are summed up", "[pages][graph]") {
  const Tensor x = normal({100}, 1).requires_grad_();
  const Graph graph = viz::run_graph([&] { return sum(x * x); }, {.max_values = 4});
  CHECK_THAT(to_string(graph), ContainsSubstring(" ... "));
  CHECK_THAT(viz::graph_html(graph), ContainsSubstring("\"mean\":"));
  CHECK(graph.nodes[0].whole.verdict == Verdict::right);
}
