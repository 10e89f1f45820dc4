// Judges of the stages 9 to 12.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/check/gradcheck.hpp>

#include "course/judge.hpp"

namespace learn {

using namespace xgrad;
using exercise::Adam, exercise::Inputs, exercise::random;

namespace {

// Kingma and Ba, 2015, as torch.optim.Adam.
Adam adam(const Adam& a, const Tensor& g, int t) {
  using namespace exercise;
  const Tensor m = a.m * beta1 + g * (1 - beta1), v = a.v * beta2 + g * g * (1 - beta2);
  const Tensor m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
  return {a.p - m_hat / (sqrt(v_hat) + exercise::eps) * lr, m, v};
}

}  // namespace

Answer judge_adam(const Work& work) {
  auto* const mine = work.find<decltype(::my_adam)>("my_adam");
  const Inputs in = {random({3}, 1), random({3}, 2), random({3}, 3, 1e-4) * random({3}, 3, 1e-4),
                     random({3}, 4, 1e-4)};
  for (const int t : {1, 2, 100}) {
    // In the first step nothing has been gathered yet.
    const Tensor none = zeros({3}, DType::float64);
    const Inputs x = {in[0].detach(), t == 1 ? none : in[1].detach(),
                      t == 1 ? none : in[2].detach(), in[3].detach()};
    const Adam yours = mine({x[0], x[1], x[2]}, x[3], t), right = adam({x[0], x[1], x[2]}, x[3], t);
    struct Part {
      const char* name;
      const Tensor &yours, &right;
    };
    for (const Part& part :
         {Part{"m", yours.m, right.m}, Part{"v", yours.v, right.v}, Part{"p", yours.p, right.p}}) {
      if (!part.yours.defined() || part.yours.shape() != part.right.shape())
        return {false, fmt::format("my_adam: {} has not the shape (3,) that it had", part.name)};
      const double* const a = part.yours.data<double>();
      const double* const b = part.right.data<double>();
      for (std::size_t i = 0; i < 3; ++i)
        if (!(std::abs(a[i] - b[i]) <= 1e-9 * std::abs(b[i]) + 1e-15)) {
          std::string said = fmt::format("my_adam: in step t = {}, {}[{}] is {}, and yours is {}",
                                         t, part.name, i, number(b[i]), number(a[i]));
          if (std::abs(a[i]) > 0 && part.name[0] != 'p')
            said += fmt::format(": {} times that", number(a[i] / b[i]));
          if (part.name[0] == 'p')
            said +=
                "\n\nm and v are right, so it is the step itself: the correction of both for "
                "the steps t so far, the root, eps, lr.";
          return {false, said};
        }
    }
  }
  return {true, "my_adam: p, m and v are right in the steps 1, 2 and 100"};
}

namespace {

// A line, its data, and what an optimizer makes of it.
struct Fit {
  nn::Linear model{1, 1};
  Tensor x = linspace(-1, 1, 8).unsqueeze(1), y = 3 * linspace(-1, 1, 8).unsqueeze(1) + 1;
  optim::SGD optimizer{{model.weight, model.bias}, {.lr = 0.1}};
  Fit() {
    model.weight.fill_(0.5);
    model.bias.fill_(0);
  }
  std::pair<double, double> values() const { return {model.weight.item(), model.bias.item()}; }
  Tensor loss() const { return mse_loss(model(x), y); }
};

bool near(std::pair<double, double> a, std::pair<double, double> b) {
  return std::abs(a.first - b.first) < 1e-6 && std::abs(a.second - b.second) < 1e-6;
}

// What comes out if the four lines are in this order: z(ero_grad), b(ackward), s(tep).
std::pair<double, double> trained(const std::string& order, int steps, double sign = 1) {
  Fit fit;
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

}  // namespace

namespace {

Answer judge_training(decltype(::my_training)& mine, int steps) {
  Fit fit;
  mine(fit.model, fit.optimizer, fit.x, fit.y, steps);
  const auto yours = fit.values(), right = trained("zbs", steps);
  if (near(yours, right)) {
    fit.optimizer.zero_grad();
    return {true, fmt::format("my_training: after {} steps weight and bias are {} and {}", steps,
                              number(yours.first), number(yours.second))};
  }
  struct Guess {
    std::string order;
    int steps;
    double sign;
    const char* words;
  };
  std::string why;
  for (const Guess& guess :
       {Guess{"zbs", 0, 1,
              "nothing has changed: no step was made, or there was no gradient when "
              "it was made"},
        Guess{"bs", steps, 1,
              "these are the numbers that come out without zero_grad(): each "
              "backward() adds to the gradients of the steps before"},
        Guess{"szb", steps, 1,
              "these are the numbers that come out if step() comes before "
              "backward(): each step goes by the gradient of the one before"},
        Guess{"zbs", steps, -1, "it goes uphill: the loss has the wrong sign"}})
    if (why.empty() && near(yours, trained(guess.order, guess.steps, guess.sign)))
      why = std::string("; ") + guess.words;
  for (int n = 1; n <= 20 && why.empty(); ++n)
    if (near(yours, trained("zbs", n)))
      why = fmt::format("; these are the numbers after {} step{}: `steps` says how many", n,
                        n == 1 ? "" : "s");
  return {false, fmt::format("my_training: after {} steps the weight should be {} and the bias {}; "
                             "yours are {} and {}{}",
                             steps, number(right.first), number(right.second), number(yours.first),
                             number(yours.second), why)};
}

}  // namespace

Answer judge_training(const Work& work) {
  auto* const mine = work.find<decltype(::my_training)>("my_training");
  return ask({[&] { return judge_training(*mine, 2); }, [&] { return judge_training(*mine, 5); }});
}

Answer judge_gradcheck(const Work& work) {
  auto* const mine = work.find<decltype(::my_gradcheck)>("my_gradcheck");
  using Numbers = std::vector<double>;
  const auto f = [](const Numbers& x) { return x[0] * x[0] * x[1] + std::sin(x[1]) - 3 * x[2]; };
  const Numbers x = {1.5, 0.5, 2};
  const Numbers right = {2 * x[0] * x[1], x[0] * x[0] + std::cos(x[1]), -3};
  if (const double error = mine(f, x, right); !(std::abs(error) < 1e-6))
    return {false, fmt::format("my_gradcheck: of a gradient that is right it says that it is wrong "
                               "by {}\n\nThe difference quotient itself must be closer: take "
                               "(f(x + eps) - f(x - eps)) / (2 eps), and put x back before the "
                               "next element.",
                               number(error))};
  struct Wrong {
    std::size_t at;
    double by;
    const char* what;
  };
  for (const Wrong& wrong : {Wrong{0, 0.5, "0.5 too large"}, Wrong{0, -0.5, "0.5 too small"},
                             Wrong{1, 0.25, "0.25 too large"}, Wrong{1, -0.25, "0.25 too small"},
                             Wrong{2, 2, "2 too large"}, Wrong{2, 3, "0, not -3"}}) {
    Numbers gradient = right;
    gradient[wrong.at] += wrong.by;
    const double said = mine(f, x, gradient);
    if (!(std::abs(said - std::abs(wrong.by)) < 1e-6))
      return {false,
              fmt::format("my_gradcheck: element {} of a gradient is {}, and it says that the "
                          "largest error is {}\n\nAll elements are looked at, and an error counts "
                          "whichever sign it has.",
                          wrong.at, wrong.what, number(said))};
  }
  Numbers zeros(3);
  if (const double said = mine(f, x, zeros); !(std::abs(said - 3.127582562) < 1e-6))
    return {false, fmt::format("my_gradcheck: of a gradient of zeros it says that its largest "
                               "error is {}; it is 3.12758",
                               number(said))};
  return {true, "my_gradcheck: it takes the right gradient, and finds each of 7 wrong ones"};
}

Answer judge_second(const Work& work) {
  auto* const my_cube = work.find<decltype(::my_cube)>("my_cube");
  const Inputs in = {random({2, 3}, 1)};
  const auto f = [&](const Inputs& x) { return my_cube(x[0]); };
  const auto right = [](const Inputs& x) { return x[0] * x[0] * x[0]; };
  const Answer first = ask({[&] { return judge_values("my_cube", f, right, in); },
                            [&] { return judge_gradient("my_cube", f, in); }});
  if (!first.right)
    return first;
  const GradcheckReport second = gradgradcheck(f, in);
  if (second)
    return {true, "my_cube: first and second derivatives are right; " + second.message};
  return {false,
          fmt::format("my_cube: the gradient is right, and its own gradient is not: {}\n\nIn the "
                      "second run x must still be the x of the graph. Numbers that were copied "
                      "(detach(), item()) are constants.",
                      second.message)};
}

}  // namespace learn
