// User-defined ops, two of them wrong at first: the checks' messages, and the corrected ops.

#include <cmath>
#include <functional>
#include <iostream>
#include <span>
#include <vector>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/autograd/random.hpp>

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

// squareplus(x) = (x + √(x² + 4)) / 2, a smooth relu.  Barron, 2021.
//
// Two formulas, one below the other: the value, and the gradient of x for the gradient g of the
// output.  Each has two uses: on SIMD registers it is one fast loop over float32 or float64, and on
// Tensors the gradient is a graph that can be differentiated again.
Tensor squareplus(const Tensor& x) {
  return elementwise(
      "squareplus", x, [](const auto& a) { return (a + sqrt(a * a + c(a, 4))) * c(a, 0.5); },
      partial<Uses::A>([](const auto& g, const auto& a) {
        return g * (c(a, 1) + a / sqrt(a * a + c(a, 4))) * c(a, 0.5);
      }));
}

// The same with a mistake: the gradient forgets the half.
Tensor wrong_squareplus(const Tensor& x) {
  return elementwise(
      "wrong_squareplus", x, [](const auto& a) { return (a + sqrt(a * a + c(a, 4))) * c(a, 0.5); },
      partial<Uses::A>(
          [](const auto& g, const auto& a) { return g * (c(a, 1) + a / sqrt(a * a + c(a, 4))); }));
}

// softmax(x / 2) along the last dimension, by record(): a forward and a backward made of ops, which
// have two uses, too.  The output comes from the ctx, with its graph.
Tensor soft_softmax(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) { return softmax(in[0] / 2, -1); };
  const auto backward = [](Context& ctx) {
    const Tensor g = ctx.gradient(), y = ctx.output();
    ctx.add(0, y * (g - sum(y * g, {-1}, true)) / 2);
  };
  return record("soft_softmax", {x}, forward, backward, {.saves_output = true});
}

// The same with a mistake: it saves the output's numbers, which have no graph.  That is right in an
// ordinary run, but a constant under create_graph.
Tensor wrong_soft_softmax(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) { return softmax(in[0] / 2, -1); };
  const auto backward = [y = Saved(softmax(x.detach() / 2, -1))](Context& ctx) {
    const Tensor g = ctx.gradient();
    ctx.add(0, y.tensor() * (g - sum(y.tensor() * g, {-1}, true)) / 2);
  };
  return record("wrong_soft_softmax", {x}, forward, backward);
}

// log(cosh(x)), forward and backward in xtensor expressions.  These compute numbers and no graph,
// so derivatives of the gradient need the formula on Tensors as well.
Tensor log_cosh(const Tensor& x) {
  const auto forward = []<class T>(std::span<const Tensor> in) {
    const auto a = in[0].array<T>();
    return Tensor(xt::abs(a) + xt::log1p(xt::exp(T(-2) * xt::abs(a))) - std::log(T(2)));
  };
  const auto backward = [x = Saved(x)](Context& ctx) {
    const Tensor a = x.tensor(), &g = ctx.gradient();
    ops_or_kernel(
        ctx, [&] { ctx.add(0, g * tanh(a)); },
        [&]<class T>() { ctx.add(0, g.array<T>() * xt::tanh(a.array<T>())); });
  };
  return record("log_cosh", {x}, forward, backward);
}

// y(1) of dy/dt = tanh(y w), y(0) = x, by Euler's method.  Only x and w are kept: the backward
// repeats the steps and differentiates them one by one, from the last (the adjoint method).
constexpr int steps = 8;
Tensor euler(const Tensor& y, const Tensor& w) { return y + tanh(matmul(y, w)) / steps; }
Tensor ode(const Tensor& x, const Tensor& w) {
  const auto forward = [](std::span<const Tensor> in) {
    Tensor y = in[0];
    for (int i = 0; i < steps; ++i)
      y = euler(y, in[1]);
    return y;
  };
  const auto backward = [x = Saved(x), w = Saved(w)](Context& ctx) {
    std::vector<Tensor> path{x.tensor()};
    while (path.size() < steps)
      path.push_back(euler(path.back(), w.tensor()));
    const auto input = [&](const Tensor& t) {  // of this step alone: y depends on w, but not on v
      return ctx.create_graph() && t.requires_grad() ? clone(t) : t.detach().requires_grad_();
    };
    Tensor a = ctx.gradient(), of_w = zeros_like(w.tensor());
    for (; !path.empty(); path.pop_back()) {
      const EnableGrad guard;
      const Tensor y = input(path.back()), v = input(w.tensor());
      const auto g = grad({euler(y, v)}, {y, v}, {{a}, ctx.create_graph()});
      a = g[0];
      of_w += g[1];
    }
    ctx.add(0, a);
    ctx.add(1, of_w);
  };
  return record("ode", {x, w}, forward, backward);
}

using Op = std::function<Tensor(const Tensor&)>;

// Prints the checks' messages; returns whether all is right.
bool check(const char* name, const Op& op) {
  Generator generator(1);
  const Tensor x = randn({3, 5}, generator, DType::float64).requires_grad_();
  const Tensor w = randn({5, 5}, generator, DType::float64).requires_grad_();
  const auto alone = [&](const Inputs& in) { return op(in[0]); };
  const auto network = [&](const Inputs& in) { return softmax(op(linear(in[0], in[1])), -1); };

  std::cout << name << '\n';
  // Is the gradient right?  If not, why?  The second-order check compares with differences of the
  // gradient as it is, so it may pass where the first fails.
  const GradcheckReport first = gradcheck(alone, {x}), second = gradgradcheck(alone, {x});
  for (const auto* report : {&first, &second}) {
    std::cout << (report == &first ? "  first order:  " : "  second order: ");
    if (*report)
      std::cout << "all " << report->checked << " elements agree\n";
    else
      std::cout << to_string(report->reason) << ": " << report->explanation << '\n';
  }
  // Which of several ops is wrong?
  const GradientExplanation found = explain_gradient(network, {x, w}, {.second_order = true});
  if (found.first_wrong) {
    const OpCheck& wrong = found.ops[*found.first_wrong];
    std::cout << "  in a network: op " << wrong.number << " of " << found.ops.size() << ", "
              << wrong.op << ": " << wrong.disagree << " of " << wrong.checked
              << " elements disagree\n";
  } else {
    std::cout << "  in a network: each of the " << found.ops.size() << " ops is right\n";
  }
  std::cout << '\n';
  return first && second && found;
}

}  // namespace

int main() {
  const bool found = !check("wrong_squareplus", wrong_squareplus);
  const bool right = check("squareplus", squareplus);
  const bool also_found = !check("wrong_soft_softmax", wrong_soft_softmax);
  const bool also_right =
      check("soft_softmax", soft_softmax) && check("log_cosh", log_cosh) &&
      check("ode", [](const Tensor& x) { return ode(x, softmax(matmul(x.t(), x), -1)); });
  return right && also_right && found && also_found ? 0 : 1;
}
