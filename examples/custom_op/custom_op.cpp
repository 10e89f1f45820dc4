// An op of your own, wrong at first: what the checks say, and the op once it is mended.

#include <functional>
#include <iostream>
#include <vector>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/autograd/explain.hpp>
#include <xgrad/autograd/random.hpp>

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

// squareplus(x) = (x + √(x² + 4)) / 2, a smooth relu.  Barron, 2021.
//
// Two formulas, one under the other: the value, and the gradient of x for the gradient g of the
// output.  Each is read twice: on SIMD registers, where it is one fast loop over float32 or
// float64, and on Tensors, where the gradient is a graph and can be differentiated again.
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

using Op = std::function<Tensor(const Tensor&)>;

// Whether all is right.
bool check(const char* name, const Op& op) {
  Generator generator(1);
  const Tensor x = randn({3, 5}, generator, DType::float64).requires_grad_();
  const Tensor w = randn({5, 5}, generator, DType::float64).requires_grad_();
  const auto alone = [&](const Inputs& in) { return op(in[0]); };
  const auto network = [&](const Inputs& in) { return softmax(op(linear(in[0], in[1])), -1); };

  std::cout << name << '\n';
  // Is the gradient right?  If not, why?  The second order holds the gradient's gradient to
  // differences of the gradient as it is, so it may be right where the first is wrong.
  const GradcheckReport first = gradcheck(alone, {x}), second = gradgradcheck(alone, {x});
  for (const auto* report : {&first, &second}) {
    std::cout << (report == &first ? "  first order:  " : "  second order: ");
    if (*report)
      std::cout << "all " << report->checked << " elements agree\n";
    else
      std::cout << to_string(report->reason) << ": " << report->explanation << '\n';
  }
  // Of several ops, which one is it?
  const GradientExplanation found = explain_gradient(network, {x, w}, {.second_order = true});
  if (found.first_wrong) {
    const OpCheck& wrong = found.ops[*found.first_wrong];
    std::cout << "  in a network: op " << wrong.number << " of " << found.ops.size() << ", "
              << wrong.op << ": " << wrong.disagree << " of " << wrong.checked
              << " elements disagree\n";
  } else {
    std::cout << "  in a network: each of the " << found.ops.size() << " ops is right\n";
  }
  return first && second && found;
}

}  // namespace

int main() {
  const bool found = !check("wrong_squareplus", wrong_squareplus);
  return check("squareplus", squareplus) && found ? 0 : 1;
}
