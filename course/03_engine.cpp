// Stage 3: the engine, line by line: an autograd engine for numbers.

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <utility>
#include <vector>
#include <xgrad/xgrad.hpp>

namespace {

struct Node {
  double value;
  double grad = 0;
  std::vector<std::pair<Node*, double>> inputs = {};  // each with d this / d input
};

// The nodes in the order in which they were made: inputs come before what uses them.
std::deque<Node> nodes;

Node* make(double value, std::vector<std::pair<Node*, double>> inputs = {}) {
  nodes.push_back({.value = value, .inputs = std::move(inputs)});
  return &nodes.back();
}
Node* add(Node* a, Node* b) { return make(a->value + b->value, {{a, 1}, {b, 1}}); }
Node* mul(Node* a, Node* b) { return make(a->value * b->value, {{a, b->value}, {b, a->value}}); }
Node* tanh(Node* a) {
  const double y = std::tanh(a->value);
  return make(y, {{a, 1 - y * y}});
}

// Fills the grad of all that the last node was made of.
void backward() {
  nodes.back().grad = 1;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    for (const auto& [input, slope] : node->inputs)
      input->grad += node->grad * slope;
}

}  // namespace

int main() {
  // A neuron: tanh(w x + b), times itself.
  Node *w = make(0.5), *x = make(2), *b = make(-0.5);
  Node* h = tanh(add(mul(w, x), b));
  Node* y = mul(h, h);
  backward();
  fmt::print("y = {:.6f}\ndy/dw = {:.6f}, dy/dx = {:.6f}, dy/db = {:.6f}\n\n", y->value, w->grad,
             x->grad, b->grad);

  // The same with Tensors.
  using xgrad::Tensor, xgrad::scalar, xgrad::DType;
  const Tensor tw = scalar(0.5, DType::float64).requires_grad_();
  const Tensor tx = scalar(2, DType::float64).requires_grad_();
  const Tensor tb = scalar(-0.5, DType::float64).requires_grad_();
  const Tensor th = xgrad::tanh(tw * tx + tb), ty = th * th;

  // Looking on: the order in which the formulas run.
  xgrad::Trace trace([](const xgrad::Node& node, std::size_t input, const Tensor& gradient) {
    fmt::print("{:<4} input {}: {:.6f}\n", node.op, input, gradient.item());
  });
  ty.backward();
  fmt::print("\ndy/dw = {:.6f}, dy/dx = {:.6f}, dy/db = {:.6f}\n", tw.grad().item(),
             tx.grad().item(), tb.grad().item());
}
