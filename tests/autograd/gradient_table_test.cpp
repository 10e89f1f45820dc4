#include <xgrad/autograd/gradient_table.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <vector>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

TEST_CASE("gradient table: what was put in comes out, through collisions, growth and removals") {
  std::mt19937 random(3);
  const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  // Nodes side by side, as an array of them is, and far apart, as pages are: both kinds collide.
  std::vector<Node> side_by_side(700);
  std::vector<const Node*> nodes;
  for (const Node& node : side_by_side)
    nodes.push_back(&node);
  for (std::uintptr_t i = 1; i <= 700; ++i)
    nodes.push_back(reinterpret_cast<const Node*>(i << 40U));  // never read
  detail::GradientTable table;
  std::map<const Node*, double> peer;
  for (int step = 0; step < 60'000; ++step) {
    // Fills to two thirds of all nodes and empties again, five times.
    const bool fills = step / 6000 % 2 == 0;
    const Node* const node = nodes[any(nodes.size())];
    if (any(10) < (fills ? 8U : 2U)) {
      const auto [gradient, is_new] = table.try_emplace(node);
      REQUIRE(is_new == !peer.contains(node));
      REQUIRE(gradient.defined() == !is_new);
      if (is_new)
        gradient = scalar(step);
      peer.emplace(node, step);
    } else if (peer.contains(node)) {
      REQUIRE(table.extract(node).item() == peer.at(node));
      peer.erase(node);
    }
    const Node* const other = nodes[any(nodes.size())];
    const Tensor* const found = table.find(other);
    REQUIRE((found != nullptr) == peer.contains(other));
    if (found != nullptr)
      REQUIRE(found->item() == peer.at(other));
  }
  for (const auto& [node, number] : peer)
    REQUIRE(table.extract(node).item() == number);
  for (const Node* node : nodes)
    REQUIRE(table.find(node) == nullptr);
}
