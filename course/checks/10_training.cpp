// Stage 10: training
// Hint 1: Four lines, `steps` times: clear, loss, backward, step.
// Hint 2: backward() adds to the gradients that are there: who clears them?
// Hint 3: optimizer.zero_grad(); mse_loss(model(x), y).backward(); optimizer.step();
// Next: course/pages/11_wrong_gradients.md

#include <cmath>
#include <iterator>
#include <span>
#include <xgrad/autograd/check/describe.hpp>

#include "../checks.hpp"

#include "exercises/10_training.cpp"

namespace learn {

using namespace xgrad;

namespace {

struct CountedSGD final : optim::SGD {
  int steps = 0;
  using OptimizerOf::OptimizerOf;
  void step() override {
    ++steps;
    OptimizerOf::step();
  }
};

// A line, its data, and the parameters that an optimizer finds.
struct Fit {
  nn::Linear model;
  Tensor x = linspace(-1, 1, 8).unsqueeze(1), y = 3 * linspace(-1, 1, 8).unsqueeze(1) + 1;
  CountedSGD optimizer;
  /// Fits a function of one number, or (`wide`) of three numbers with two results.
  Fit(const optim::SGDOptions& options, bool wide)
      : model(wide ? 3 : 1, wide ? 2 : 1), optimizer({model.weight, model.bias}, options) {
    model.weight.copy_(linspace(0.5, 1, model.weight.numel()).view(model.weight.shape()));
    model.bias.copy_(linspace(0, 0.25, model.bias.numel()));
    if (wide)
      x = cat({x, x * x, sin(3 * x)}, 1), y = cat({y, x.narrow(1, 1, 1)}, 1);
  }
  std::vector<double> values() const {  // the weight's, and the bias's
    auto all = xgrad::detail::elements(model.weight.detach());
    std::ranges::copy(xgrad::detail::elements(model.bias.detach()), std::back_inserter(all));
    return all;
  }
  Tensor loss() const { return mse_loss(model(x), y); }
};

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) < 1e-6; });
}

std::string list(std::span<const double> all) {
  std::string said;
  for (const double x : all)
    said += (said.empty() ? "" : ", ") + number(x);
  return said;
}

// The result of the four lines in this order: z(ero_grad), b(ackward), s(tep).
std::vector<double> trained(const optim::SGDOptions& options, bool wide, const std::string& order,
                            int steps, double sign = 1) {
  Fit fit(options, wide);
  for (int i = 0; i < steps; ++i)
    for (const char line : order) {
      if (line == 'z')
        fit.optimizer.zero_grad();
      else if (line == 'b')
        (fit.loss() * sign).backward();
      else
        fit.optimizer.step();
    }
  return fit.values();
}

void check_training(int steps, const optim::SGDOptions& options, bool wide = false) {
  Fit fit(options, wide);
  const Tensor x = fit.x.clone(), y = fit.y.clone();
  my_training(fit.model, fit.optimizer, fit.x, fit.y, steps);
  const auto yours = fit.values(), right = trained(options, wide, "zbs", steps);
  const int made = fit.optimizer.steps;
  expect(same(x, fit.x.detach()) && same(y, fit.y.detach()),
         "my_training: x or y has other numbers afterwards: only the model is trained");
  struct Guess {
    std::string order;
    int steps;
    double sign;
    const char* words;
  };
  std::string why;
  if (near(yours, right) && made == 0)
    why = "; but `optimizer` made none of them: the step is optimizer.step()";
  else if (made != steps)
    why = fmt::format("; optimizer.step() was called {} time{}: `steps` says how often", made,
                      made == 1 ? "" : "s");
  for (const Guess& guess :
       {Guess{"zbs", 0, 1,
              "nothing has changed: no step was made, or there was no gradient when it was made"},
        Guess{"bs", steps, 1,
              "these are the numbers that come out without zero_grad(): each backward() adds to "
              "the gradients of the steps before"},
        Guess{"szb", steps, 1,
              "these are the numbers that come out if step() comes before backward(): each step "
              "uses the gradient of the step before"},
        Guess{"zbs", steps, -1, "it goes uphill: the loss has the wrong sign"}})
    if (why.empty() && near(yours, trained(options, wide, guess.order, guess.steps, guess.sign)))
      why = std::string("; ") + guess.words;
  const std::size_t weights = fit.model.weight.numel();
  const auto both = [&](const std::vector<double>& all, const char* between) {
    return list(std::span(all).first(weights)) + between + list(std::span(all).subspan(weights));
  };
  expect(near(yours, right) && made == steps,
         "my_training: after {} step{}{} the weight should be {}; yours are {}{}", steps,
         steps == 1 ? "" : "s", wide ? ", with a model of 3 inputs and 2 outputs," : "",
         both(right, " and the bias "), both(yours, " and "), why);
}

}  // namespace

TEST_CASE("my_training") {
  check_training(2, {.lr = 0.1});
  check_training(5, {.lr = 0.05, .momentum = 0.9});
  check_training(3, {.lr = 0.1}, true);
  check_training(0, {.lr = 0.1});
  check_training(200, {.lr = 0.05});
  check_training(40, {.lr = 0.1});
}

}  // namespace learn
