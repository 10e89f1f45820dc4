// Stage 3: the engine, line by line
// Hint 1: Which gradient do you know before you have begun?  That of the last number: 1.
// Hint 2: Go from the last number to the first: then all uses of a number come before it.
// Hint 3: For each input: input->grad += number->grad * slope.  Why += ?
// Next: autograd/engine.cpp: the same, for Tensors; then course/pages/04_broadcasting.md

#include <cmath>
#include <deque>

#include "../checks.hpp"

#include "exercises/03_engine.cpp"

namespace learn {

using exercise::Number;

namespace {

// A graph of numbers, with the names of their ops.
class Graph {
 public:
  Number* leaf(double x) { return add("a leaf", x, {}); }
  Number* plus(Number* a, Number* b) { return add("+", a->value + b->value, {{a, 1}, {b, 1}}); }
  Number* times(Number* a, Number* b) {
    return add("*", a->value * b->value, {{a, b->value}, {b, a->value}});
  }
  Number* mixed(Number* a, Number* b, Number* c, Number* d) {
    return add("a * b + c - d", a->value * b->value + c->value - d->value,
               {{a, b->value}, {b, a->value}, {c, 1}, {d, -1}});
  }
  std::vector<Number*> numbers() {
    std::vector<Number*> list;
    for (Number& n : numbers_)
      list.push_back(&n);
    return list;
  }
  const std::string& op(std::size_t i) const { return ops_[i]; }

 private:
  Number* add(const char* op, double value, std::vector<std::pair<Number*, double>> inputs) {
    ops_.emplace_back(op);
    numbers_.push_back({.value = value, .inputs = std::move(inputs)});
    return &numbers_.back();
  }
  std::deque<Number> numbers_;
  std::vector<std::string> ops_;
};

// d last / d each, by definition: the sum over all paths.
std::vector<double> right_gradients(const std::vector<Number*>& numbers) {
  std::vector<double> grads(numbers.size());
  grads.back() = 1;
  for (std::size_t i = numbers.size(); i-- > 0;)
    for (std::size_t j = 0; j < i; ++j)
      for (const auto& [input, slope] : numbers[i]->inputs)
        grads[j] += input == numbers[j] ? grads[i] * slope : 0;
  return grads;
}

// Checks my_backward() on the graph that `build` makes.
void check_graph(const std::string& what, const std::function<void(Graph&)>& build) {
  Graph graph, same;
  build(graph), build(same);
  const auto list = graph.numbers(), before = same.numbers();
  const std::vector<double> right = right_gradients(list);
  my_backward(list);
  for (std::size_t i = list.size(); i-- > 0;) {
    const auto [correct, yours] = numbers(right[i], list[i]->grad);
    std::size_t users = 0;
    for (const Number* n : list)
      for (const auto& [input, slope] : n->inputs)
        users += input == list[i] ? 1 : 0;
    std::string why;
    if (i + 1 == list.size())
      why = "\n\nThat is the output itself: it changes by 1 if it changes by 1.";
    else if (users > 1)
      why = fmt::format(
          "\n\nIt is used {} times: add the gradients of all its uses before you pass any to its "
          "inputs.",
          users);
    expect(std::abs(list[i]->grad - right[i]) <= 1e-9 * std::max(1.0, std::abs(right[i])),
           "my_backward: in {}, the gradient of number {} ({}, value {}) is {}, and yours is {}{}",
           what, i, graph.op(i), number(list[i]->value), correct, yours, why);
  }
  const auto slope = [](const auto& input) { return input.second; };
  for (std::size_t i = 0; i < list.size(); ++i)
    expect(list[i]->value == before[i]->value &&
               std::ranges::equal(list[i]->inputs, before[i]->inputs, {}, slope, slope),
           "my_backward: in {}, number {} ({}) has another value, or other inputs, than before; "
           "only `grad` is to be filled",
           what, i, graph.op(i));
}

}  // namespace

TEST_CASE("my_backward") {
  check_graph("a chain, ((2 * 3) * 4) * 5", [](Graph& g) {
    Number* x = g.leaf(2);
    for (const double factor : {3.0, 4.0, 5.0})
      x = g.times(x, g.leaf(factor));
  });
  check_graph("a single number", [](Graph& g) { g.leaf(2); });
  check_graph("2 + 3", [](Graph& g) { g.plus(g.leaf(2), g.leaf(3)); });
  check_graph("x * x", [](Graph& g) {
    Number* const x = g.leaf(3);
    g.times(x, x);
  });
  check_graph("y + y * y with y = x * 2, where two paths lead to y", [](Graph& g) {
    Number* const y = g.times(g.leaf(3), g.leaf(2));
    g.plus(y, g.times(y, y));
  });
  check_graph("a * b + c - d as one number, d = x * y, with a * c unused", [](Graph& g) {
    Number* const a = g.leaf(2);
    Number* const c = g.leaf(5);
    Number* const d = g.times(g.leaf(4), g.leaf(1.5));
    g.times(a, c);
    g.mixed(a, g.leaf(0), c, d);
  });
  check_graph("a ladder of 12 steps x = x * x + x", [](Graph& g) {
    Number* x = g.leaf(0.25);
    for (int i = 0; i < 12; ++i)
      x = g.plus(g.times(x, x), x);
  });
}

}  // namespace learn
