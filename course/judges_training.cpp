// Judges of stages 9 to 12.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <xgrad/autograd/check/describe.hpp>
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

Answer judge_adam(decltype(::my_adam)& mine, const Dims& shape) {
  // One gradient is large, two are 0: v of one shrinks, that of the other has always been 0.
  const Tensor gathered = tensor({1, 1, 1, 1, 0}, DType::float64);
  const Inputs in = {random(shape, 1), random(shape, 2) * gathered,
                     pow(random(shape, 3, 1e-4), 2) * gathered,
                     random(shape, 4) * tensor({1e-4, -1e-4, 2.0, 0.0, 0.0}, DType::float64)};
  for (const int t : {1, 2, 100, 1000}) {
    // The state of the first step is 0.
    const Tensor none = zeros_like(in[1]);
    const Inputs x = {in[0].detach(), t == 1 ? none : in[1].detach(),
                      t == 1 ? none : in[2].detach(), in[3].detach()};
    const Adam right = adam({x[0], x[1], x[2]}, x[3], t);
    const Tensor g = x[3].clone();
    const Adam yours = mine({x[0].clone(), x[1].clone(), x[2].clone()}, g, t);
    if (!same(g, x[3]))
      return {false, "my_adam: g has other numbers after the call: make a new Tensor"};
    struct Part {
      const char* name;
      const Tensor &yours, &right;
    };
    for (const Part& part :
         {Part{"m", yours.m, right.m}, Part{"v", yours.v, right.v}, Part{"p", yours.p, right.p}}) {
      if (!part.yours.defined() || part.yours.shape() != part.right.shape())
        return {false, fmt::format("my_adam: {} no longer has the shape {}", part.name,
                                   to_string(part.right.shape()))};
      const double* const a = part.yours.data<double>();
      const double* const b = part.right.data<double>();
      const auto count = static_cast<std::size_t>(part.right.numel());
      for (std::size_t i = 0; i < count; ++i)
        if (!(std::abs(a[i] - b[i]) <= 1e-9 * std::abs(b[i]) + 1e-15)) {
          const auto [yours_is, right_is] = numbers(a[i], b[i]);
          std::string said = fmt::format("my_adam: in step t = {}, {}[{}] is {}, and yours is {}",
                                         t, part.name, i, right_is, yours_is);
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
  return {true, "my_adam: p, m and v are right in the steps 1, 2, 100 and 1000"};
}

}  // namespace

Answer judge_adam(const Work& work) {
  auto* const mine = work.find<decltype(::my_adam)>("my_adam");
  return ask({[&] { return judge_adam(*mine, {5}); },
              [&] {
                return judge_adam(*mine, {3, 2, 5});
              }});
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

Answer judge_training(decltype(::my_training)& mine, int steps, const optim::SGDOptions& options,
                      bool wide = false) {
  Fit fit(options, wide);
  const Tensor x = fit.x.clone(), y = fit.y.clone();
  mine(fit.model, fit.optimizer, fit.x, fit.y, steps);
  const auto yours = fit.values(), right = trained(options, wide, "zbs", steps);
  const int made = fit.optimizer.steps;
  if (!same(x, fit.x.detach()) || !same(y, fit.y.detach()))
    return {false, "my_training: x or y has other numbers afterwards: only the model is trained"};
  if (near(yours, right) && made == steps)
    return {true, fmt::format("my_training: after {} steps weight and bias are {} and {}", steps,
                              number(yours.front()), number(yours.back()))};
  const std::size_t biases = fit.model.bias.numel();
  const auto weight = [&](const std::vector<double>& all) {
    return list(std::span(all).first(all.size() - biases));
  };
  const auto bias = [&](const std::vector<double>& all) {
    return list(std::span(all).last(biases));
  };
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
              "nothing has changed: no step was made, or there was no gradient when "
              "it was made"},
        Guess{"bs", steps, 1,
              "these are the numbers that come out without zero_grad(): each "
              "backward() adds to the gradients of the steps before"},
        Guess{"szb", steps, 1,
              "these are the numbers that come out if step() comes before "
              "backward(): each step uses the gradient of the step before"},
        Guess{"zbs", steps, -1, "it goes uphill: the loss has the wrong sign"}})
    if (why.empty() && near(yours, trained(options, wide, guess.order, guess.steps, guess.sign)))
      why = std::string("; ") + guess.words;
  return {false, fmt::format("my_training: after {} step{}{} the weight should be {} and the bias "
                             "{}; yours are {} and {}{}",
                             steps, steps == 1 ? "" : "s",
                             wide ? ", with a model of 3 inputs and 2 outputs," : "", weight(right),
                             bias(right), weight(yours), bias(yours), why)};
}

}  // namespace

Answer judge_training(const Work& work) {
  auto* const mine = work.find<decltype(::my_training)>("my_training");
  return ask({[&] { return judge_training(*mine, 2, {.lr = 0.1}); },
              [&] { return judge_training(*mine, 5, {.lr = 0.05, .momentum = 0.9}); },
              [&] { return judge_training(*mine, 3, {.lr = 0.1}, true); },
              [&] { return judge_training(*mine, 0, {.lr = 0.1}); },
              [&] { return judge_training(*mine, 200, {.lr = 0.05}); },
              [&] { return judge_training(*mine, 40, {.lr = 0.1}); }});
}

Answer judge_gradcheck(const Work& work) {
  auto* const mine = work.find<decltype(::my_gradcheck)>("my_gradcheck");
  using Doubles = std::vector<double>;
  // It bends so much along x[3] that a one-sided difference is wrong; x[4] is 0, and so is the
  // slope along x[5].  It has a large constant, which hides a step of 1e-8; one of 1e-3 is wrong by
  // x[4].
  const auto f = [](const Doubles& x) {
    return x[0] * x[0] * x[1] + std::sin(x[1]) - 3 * x[2] + 1000 * (x[3] + 1) * (x[3] + 1) +
           std::exp(3 * x[4]) + 1000;
  };
  const Doubles x = {1.5, 0.5, 2, -0.99, 0, 1};
  const Doubles right = {
      2 * x[0] * x[1], x[0] * x[0] + std::cos(x[1]), -3, 2000 * (x[3] + 1), 3, 0};
  if (const double error = mine(f, x, right); !(std::abs(error) < 1e-6))
    return {
        false,
        fmt::format("my_gradcheck: it says that a right gradient is wrong "
                    "by {}\n\nThe difference quotient is (f(x + eps) - f(x - eps)) / (2 eps) with "
                    "eps about 1e-6; x is put back before the next element, and the "
                    "quotient is compared with the same element of the gradient.  The "
                    "largest error begins at 0.",
                    number(error))};
  const auto finds = [&](const Doubles& by, double largest, const std::string& what) -> Answer {
    Doubles gradient = right;
    for (std::size_t i = 0; i < x.size(); ++i)
      gradient[i] += by[i];
    const double said = mine(f, x, gradient);
    if (std::abs(said - largest) < 1e-6)
      return {true, ""};
    return {false, fmt::format("my_gradcheck: {}, and it says that the largest error is {}\n\nAll "
                               "elements are checked, an error counts whatever its sign, and "
                               "the largest |difference| itself is returned: no square, no ratio, "
                               "no sum or mean.",
                               what, number(said))};
  };
  const Doubles errors = {0.5,    0.25, 3,
                          0.0123, 6,    0.7};  // (3 - 6 has the other sign, no other size)
  for (std::size_t i = 0; i < x.size(); ++i)
    for (const double sign : {1.0, -1.0}) {
      Doubles by(x.size());
      by[i] = sign * errors[i];
      if (Answer found = finds(by, errors[i],
                               fmt::format("element {} of a gradient is {} too {}", i, errors[i],
                                           sign > 0 ? "large" : "small"));
          !found.right)
        return found;
    }
  if (Answer found =
          finds({-0.5, 0.25, 0, 4000, -1, 0}, 4000, "four elements are wrong, the worst by 4000");
      !found.right)
    return found;
  for (const std::size_t n : {0, 1, 8}) {
    const auto squares = [&](const Doubles& at) {
      double total = 0;
      for (std::size_t i = 0; i < at.size(); ++i)
        total += static_cast<double>(i + 1) * at[i] * at[i];
      return total;
    };
    Doubles at(n, 0.5), gradient(n);
    for (std::size_t i = 0; i < n; ++i)
      gradient[i] = static_cast<double>(i + 1) + (i + 1 == n ? 0.5 : 0);
    if (const double said = mine(squares, at, gradient); !(std::abs(said - (n ? 0.5 : 0)) < 1e-6))
      return {false,
              fmt::format("my_gradcheck: of {} element{} the last is wrong by {}, and it says "
                          "{}: x has as many elements as x.size() says",
                          n, n == 1 ? "" : "s", n ? 0.5 : 0, number(said))};
  }
  return {true, "my_gradcheck: it takes the right gradient, and finds each of 15 wrong ones"};
}

Answer judge_second(const Work& work) {
  auto* const my_cube = work.find<decltype(::my_cube)>("my_cube");
  const Inputs in = {
      tensor({{0.0, 0.5, -1.25}, {2.0, -0.75, 1.5}}, DType::float64).requires_grad_()};
  const auto f = lent(my_cube);
  const auto right = [](const Inputs& x) { return x[0] * x[0] * x[0]; };
  const Answer first =
      judge_op("my_cube", f, right,
               {in, {random({}, 1)}, {random({3, 2, 2}, 2, 20)}, {random({1}, 3, 0.1)}});
  if (!first.right)
    return first;
  for (const Tensor& x : {in[0], random({3, 2, 2}, 2, 20)}) {
    const Tensor once = grad({sum(f({x}))}, {x}, {.create_graph = true}).at(0);
    Tensor twice;
    if (once.requires_grad())
      twice = grad({sum(once)}, {x}, {.allow_unused = true}).at(0);
    const auto at = xgrad::detail::elements(x.detach());
    const auto yours = xgrad::detail::elements(twice.defined() ? twice : zeros_like(x));
    for (std::size_t i = 0; i < at.size(); ++i)
      if (!(std::abs(yours[i] - 6 * at[i]) <= 1e-9 * std::abs(at[i])))
        return {false,
                fmt::format("my_cube: the gradient is right, and its own gradient is not: at "
                            "x = {} it is 6 x = {}, and yours is {}\n\nIn the second run "
                            "each x in 3 x x must still be the x of the graph. Doubles that "
                            "were copied (detach(), item()) are constants, which takes away "
                            "their terms; and nothing may be divided by what can be 0.",
                            number(at[i]), number(6 * at[i]), number(yours[i]))};
  }
  const GradcheckReport second = gradgradcheck(f, in);
  if (second)
    return {true, "my_cube: first and second derivatives are right; " + second.message};
  return {false,
          fmt::format("my_cube: the gradient is right, and its own gradient is not: {}\n\nIn the "
                      "second run x, and the gradient that arrives, must still be those of the "
                      "graph. Doubles that were copied (detach(), item()) are constants.",
                      second.message)};
}

}  // namespace learn
