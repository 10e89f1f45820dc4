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
  // One gradient is large, two are 0: v of one gets smaller, that of the other has always been 0.
  const Tensor gathered = tensor({1, 1, 1, 1, 0}, DType::float64);
  const Inputs in = {random({5}, 1), random({5}, 2) * gathered,
                     pow(random({5}, 3, 1e-4), 2) * gathered,
                     random({5}, 4) * tensor({1e-4, -1e-4, 2.0, 0.0, 0.0}, DType::float64)};
  for (const int t : {1, 2, 100}) {
    // In the first step nothing has been gathered yet.
    const Tensor none = zeros({5}, DType::float64);
    const Inputs x = {in[0].detach(), t == 1 ? none : in[1].detach(),
                      t == 1 ? none : in[2].detach(), in[3].detach()};
    const Adam right = adam({x[0], x[1], x[2]}, x[3], t);
    const Adam yours = mine({x[0].clone(), x[1].clone(), x[2].clone()}, x[3], t);
    struct Part {
      const char* name;
      const Tensor &yours, &right;
    };
    for (const Part& part :
         {Part{"m", yours.m, right.m}, Part{"v", yours.v, right.v}, Part{"p", yours.p, right.p}}) {
      if (!part.yours.defined() || part.yours.shape() != part.right.shape())
        return {false, fmt::format("my_adam: {} has not the shape (5,) that it had", part.name)};
      const double* const a = part.yours.data<double>();
      const double* const b = part.right.data<double>();
      for (std::size_t i = 0; i < 5; ++i)
        if (!(std::abs(a[i] - b[i]) <= 1e-9 * std::abs(b[i]) + 1e-15)) {
          std::string said = fmt::format("my_adam: in step t = {}, {}[{}] is {}, and yours is {}",
                                         t, part.name, i, number(b[i]), number(a[i]));
          if (std::abs(a[i]) > 0 && b[i] != 0 && part.name[0] != 'p')
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

struct CountedSGD final : optim::SGD {
  int steps = 0;
  using OptimizerOf::OptimizerOf;
  void step() override {
    ++steps;
    OptimizerOf::step();
  }
};

// A line, its data, and what an optimizer makes of it.
struct Fit {
  nn::Linear model{1, 1};
  Tensor x = linspace(-1, 1, 8).unsqueeze(1), y = 3 * linspace(-1, 1, 8).unsqueeze(1) + 1;
  CountedSGD optimizer;
  explicit Fit(const optim::SGDOptions& options) : optimizer({model.weight, model.bias}, options) {
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
std::pair<double, double> trained(const optim::SGDOptions& options, const std::string& order,
                                  int steps, double sign = 1) {
  Fit fit(options);
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

Answer judge_training(decltype(::my_training)& mine, int steps, const optim::SGDOptions& options) {
  Fit fit(options);
  mine(fit.model, fit.optimizer, fit.x, fit.y, steps);
  const auto yours = fit.values(), right = trained(options, "zbs", steps);
  const int made = fit.optimizer.steps;
  if (near(yours, right) && made == steps)
    return {true, fmt::format("my_training: after {} steps weight and bias are {} and {}", steps,
                              number(yours.first), number(yours.second))};
  struct Guess {
    std::string order;
    int steps;
    double sign;
    const char* words;
  };
  std::string why;
  if (made != steps)
    why = fmt::format("; optimizer.step() was called {} time{}: `steps` says how often", made,
                      made == 1 ? "" : "s");
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
    if (why.empty() && near(yours, trained(options, guess.order, guess.steps, guess.sign)))
      why = std::string("; ") + guess.words;
  return {false, fmt::format("my_training: after {} steps the weight should be {} and the bias {}; "
                             "yours are {} and {}{}",
                             steps, number(right.first), number(right.second), number(yours.first),
                             number(yours.second), why)};
}

}  // namespace

Answer judge_training(const Work& work) {
  auto* const mine = work.find<decltype(::my_training)>("my_training");
  return ask({[&] { return judge_training(*mine, 2, {.lr = 0.1}); },
              [&] { return judge_training(*mine, 5, {.lr = 0.05, .momentum = 0.9}); },
              [&] { return judge_training(*mine, 40, {.lr = 0.1}); }});
}

Answer judge_gradcheck(const Work& work) {
  auto* const mine = work.find<decltype(::my_gradcheck)>("my_gradcheck");
  using Numbers = std::vector<double>;
  // It bends so much along x[3] that a difference to one side is off; x[4] is 0.
  const auto f = [](const Numbers& x) {
    return x[0] * x[0] * x[1] + std::sin(x[1]) - 3 * x[2] + 1000 * (x[3] + 1) * (x[3] + 1) +
           std::exp(x[4]);
  };
  const Numbers x = {1.5, 0.5, 2, -0.99, 0};
  const Numbers right = {2 * x[0] * x[1], x[0] * x[0] + std::cos(x[1]), -3, 2000 * (x[3] + 1), 1};
  if (const double error = mine(f, x, right); !(std::abs(error) < 1e-6))
    return {false, fmt::format("my_gradcheck: of a gradient that is right it says that it is wrong "
                               "by {}\n\nThe difference quotient itself must be closer: take "
                               "(f(x + eps) - f(x - eps)) / (2 eps) with eps about 1e-6, and put x "
                               "back before the next element.",
                               number(error))};
  const auto finds = [&](const Numbers& by, double largest, const std::string& what) -> Answer {
    Numbers gradient = right;
    for (std::size_t i = 0; i < x.size(); ++i)
      gradient[i] += by[i];
    const double said = mine(f, x, gradient);
    if (std::abs(said - largest) < 1e-6)
      return {true, ""};
    return {false, fmt::format("my_gradcheck: {}, and it says that the largest error is {}\n\nAll "
                               "elements are looked at, and an error counts whichever sign it has.",
                               what, number(said))};
  };
  const Numbers errors = {0.5, 0.25, 3, 0.0123, 2};  // (1 - 2 has the other sign, no other size)
  for (std::size_t i = 0; i < x.size(); ++i)
    for (const double sign : {1.0, -1.0}) {
      Numbers by(x.size());
      by[i] = sign * errors[i];
      if (Answer found = finds(by, errors[i],
                               fmt::format("element {} of a gradient is {} too {}", i, errors[i],
                                           sign > 0 ? "large" : "small"));
          !found.right)
        return found;
    }
  if (Answer found =
          finds({-0.5, 0.25, 0, 4, -1}, 4, "all but one element are wrong, the worst by 4");
      !found.right)
    return found;
  return {true, "my_gradcheck: it takes the right gradient, and finds each of 11 wrong ones"};
}

Answer judge_second(const Work& work) {
  auto* const my_cube = work.find<decltype(::my_cube)>("my_cube");
  const Inputs in = {
      tensor({{0.0, 0.5, -1.25}, {2.0, -0.75, 1.5}}, DType::float64).requires_grad_()};
  const auto f = lent(my_cube);
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
