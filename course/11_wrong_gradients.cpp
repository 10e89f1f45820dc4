// Stage 11: finding a wrong gradient.

#include <fmt/format.h>

#include <span>
#include <vector>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

// Softmax with a backward that forgets what the outputs have in common.
Tensor my_softmax(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) { return softmax(in[0], -1); };
  const auto backward = [](Context& ctx) { ctx.add(0, ctx.output() * ctx.gradient()); };
  return record("my_softmax", {x}, forward, backward, {.saves_output = true});
}

// A small network with it: x (4, 3), w (3, 3) -> (4, 3)
Tensor network(const Inputs& in) { return matmul(my_softmax(tanh(matmul(in[0], in[1]))), in[1]); }
Tensor right(const Inputs& in) { return matmul(softmax(tanh(matmul(in[0], in[1])), -1), in[1]); }
Tensor unscaled(const Inputs& in) {
  return matmul(softmax(2 * tanh(matmul(in[0], in[1])), -1), in[1]);
}

}  // namespace

int main() {
  manual_seed(1337);
  const Tensor x = randn({4, 3}, DType::float64).requires_grad_();
  Tensor w = randn({3, 3}, DType::float64).requires_grad_();

  // It trains: the loss falls, and nobody notices.
  const Tensor target = zeros({4, 3}, DType::float64);
  for (int step = 0; step <= 20; ++step) {
    const Tensor loss = mse_loss(network({x.detach(), w}), target);
    if (step % 10 == 0)
      fmt::print("step {:>2}  loss {:.2f}\n", step, loss.item());
    w.zero_grad();
    loss.backward();
    w.copy_(w.detach() - 0.5 * w.grad());
  }
  fmt::print("\n");

  // Is the gradient right?
  const Tensor v = randn({3, 3}, DType::float64).requires_grad_();
  const GradcheckReport report = gradcheck(network, {x, v});
  fmt::print("{} of {} elements disagree: {}\n\n", report.disagree, report.checked,
             report ? "right" : "wrong");

  // Which op is it?
  const GradientExplanation found = explain_gradient(network, {x, v});
  const OpCheck& op = found.ops.at(found.first_wrong.value());
  fmt::print("op {} of {}: {}\n\n", op.number, found.ops.size(), op.op);

  // The right gradient of a wrong function: gradcheck() has nothing to say, compare() has.
  fmt::print("gradcheck: {}\ncompare: {}\n", gradcheck(unscaled, {x, v}) ? "right" : "wrong",
             compare(unscaled, right, {x, v}).hint);
}
