// Judges of stages 1 to 5: slopes, graphs, ops.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>

#include "course/judge.hpp"

namespace learn {

using namespace xgrad;
using exercise::Inputs;
using exercise::Number;

namespace {

// An op with this value and these slopes, so that gradcheck() can check slopes that are numbers.
template <class Value, class Slopes>
Tensor op_of(const Inputs& in, const Value& value, const Slopes& slopes) {
  std::vector<double> x;
  for (const Tensor& t : in)
    x.push_back(t.item());
  const std::vector<double> by_hand = slopes(x);
  return record(
      "yours", in,
      [value](std::span<const Tensor> now) {
        std::vector<double> numbers;
        for (const Tensor& t : now)
          numbers.push_back(t.item());
        return scalar(value(numbers), DType::float64);
      },
      [by_hand](Context& ctx) {
        for (std::size_t i = 0; i < by_hand.size(); ++i)
          ctx.add(i, ctx.gradient() * by_hand[i]);
      });
}

// Compares slopes at points; reports the first difference, and a reason that holds at all points.
template <class Value, class Slopes>
Answer judge_numbers(const std::string& name, const std::vector<std::string>& names,
                     const std::vector<std::vector<double>>& points, const Value& value,
                     const Slopes& slopes) {
  for (const std::vector<double>& point : points) {
    Inputs in;
    std::string where;
    for (std::size_t i = 0; i < point.size(); ++i) {
      in.push_back(scalar(point[i], DType::float64).requires_grad_());
      where += fmt::format("{}{} = {}", i == 0 ? "" : ", ", names[i], point[i]);
    }
    const GradcheckReport report =
        gradcheck([&](const Inputs& at) { return op_of(at, value, slopes); }, in,
                  {.atol = 1e-6, .rtol = 1e-6, .names = names});
    if (report)
      continue;
    if (slopes(point) != slopes(point))
      return {false, fmt::format("{}: two calls with {} give different results: it keeps something "
                                 "from call to call",
                                 name, where)};
    const GradcheckElement& worst = report.worst().worst;
    const auto [right, yours] = numbers(worst.numeric, worst.analytic);
    std::string said = fmt::format(
        "{}: at {} the slope along {} is {}, because f changes by that much per unit there; "
        "yours is {}",
        name, where, report.worst().input_name, right, yours);
    if (worst.analytic == 0)
      said += "\n\nA slope of 0 says that f does not change here.";
    else if (std::abs(worst.analytic + worst.numeric) < 1e-5)
      said += "\n\nOnly the sign is wrong.";
    return {false, said};
  }
  return {true, fmt::format("{}: right at {} points", name, points.size())};
}

}  // namespace

Answer judge_slope(const Work& work) {
  auto* const slope = work.find<decltype(::slope)>("slope");
  return judge_numbers(
      "slope", {"x"}, {{0}, {1}, {-2}, {0.5}, {7}, {-11}},
      [](const auto& x) { return x[0] * x[0] * x[0] - 2 * x[0]; },
      [&](const auto& x) { return std::vector<double>{slope(x[0])}; });
}

Answer judge_graph(const Work& work) {
  auto* const gradients = work.find<decltype(::gradients)>("gradients");
  return judge_numbers(
      "gradients", {"a", "b"}, {{2, 3}, {0, 1}, {-1, 0.5}, {4, -2}, {-7, -5}},
      [](const auto& x) { return x[0] * x[1] + std::sin(x[0]); },
      [&](const auto& x) {
        const auto both = gradients(x[0], x[1]);
        return std::vector<double>{both[0], both[1]};
      });
}

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

}  // namespace

Answer judge_engine(const Work& work) {
  auto* const backward = work.find<decltype(::my_backward)>("my_backward");
  const auto judge = [&](const char* what, const auto& build) -> Answer {
    Graph graph, same;
    build(graph), build(same);
    const auto list = graph.numbers(), before = same.numbers();
    const std::vector<double> right = right_gradients(list);
    backward(list);
    for (std::size_t i = list.size(); i-- > 0;)
      if (!(std::abs(list[i]->grad - right[i]) <= 1e-9 * std::max(1.0, std::abs(right[i])))) {
        const auto [correct, yours] = numbers(right[i], list[i]->grad);
        std::size_t users = 0;
        for (const Number* n : list)
          for (const auto& [input, slope] : n->inputs)
            users += input == list[i] ? 1 : 0;
        std::string said = fmt::format(
            "my_backward: in {}, the gradient of number {} ({}, value {}) is {}, and yours is {}",
            what, i, graph.op(i), number(list[i]->value), correct, yours);
        if (i + 1 == list.size())
          said += "\n\nThat is the output itself: it changes by 1 if it changes by 1.";
        else if (users > 1)
          said += fmt::format(
              "\n\nIt is used {} times: add the gradients of all its uses before you pass "
              "any to its inputs.",
              users);
        return {false, said};
      }
    const auto changed = [](const Number* a, const Number* b) {
      return a->value != b->value ||
             !std::ranges::equal(
                 a->inputs, b->inputs, {}, [](const auto& e) { return e.second; },
                 [](const auto& e) { return e.second; });
    };
    for (std::size_t i = 0; i < list.size(); ++i)
      if (changed(list[i], before[i]))
        return {false, fmt::format("my_backward: in {}, number {} ({}) has another value, or other "
                                   "inputs, than before; only `grad` is to be filled",
                                   what, i, graph.op(i))};
    return {true, "my_backward: right in seven graphs"};
  };
  return ask({
      [&] {
        return judge("a chain, ((2 * 3) * 4) * 5", [](Graph& g) {
          Number* x = g.leaf(2);
          for (const double factor : {3.0, 4.0, 5.0})
            x = g.times(x, g.leaf(factor));
        });
      },
      [&] { return judge("a single number", [](Graph& g) { g.leaf(2); }); },
      [&] { return judge("2 + 3", [](Graph& g) { g.plus(g.leaf(2), g.leaf(3)); }); },
      [&] {
        return judge("x * x", [](Graph& g) {
          Number* const x = g.leaf(3);
          g.times(x, x);
        });
      },
      [&] {
        return judge("y + y * y with y = x * 2, where two paths lead to y", [](Graph& g) {
          Number* const y = g.times(g.leaf(3), g.leaf(2));
          g.plus(y, g.times(y, y));
        });
      },
      [&] {
        return judge("a * b + c - d as one number, d = x * y, with a * c unused", [](Graph& g) {
          Number* const a = g.leaf(2);
          Number* const c = g.leaf(5);
          Number* const d = g.times(g.leaf(4), g.leaf(1.5));
          g.times(a, c);
          g.mixed(a, g.leaf(0), c, d);
        });
      },
      [&] {
        return judge("a ladder of 12 steps x = x * x + x", [](Graph& g) {
          Number* x = g.leaf(0.25);
          for (int i = 0; i < 12; ++i)
            x = g.plus(g.times(x, x), x);
        });
      },
  });
}

Answer judge_broadcasting(const Work& work) {
  auto* const my_add = work.find<decltype(::my_add)>("my_add");
  const auto f = [sum = lent(my_add)](const Inputs& x) { return tanh(sum(x)); };
  const auto right = [](const Inputs& x) { return tanh(x[0] + x[1]); };
  using exercise::random;
  return judge_op("my_add", f, right,
                  {{random({2, 3, 4}, 1), random({4}, 2)},
                   {random({3, 1, 2}, 3), random({2}, 4)},
                   {random({1, 5, 1}, 5), random({1}, 6)}});
}

namespace {

// Whether the rows sum to 1, and stay the same where exp() alone is infinite or 0.
Answer judge_rows(decltype(::my_softmax)& my_softmax, const Tensor& x) {
  const std::vector<double> right = xgrad::detail::elements(softmax(x, -1));
  for (const double shift : {0.0, 1000.0, -1000.0}) {
    const Tensor y = my_softmax(cat({narrow(x, 0, 0, 1) + shift, narrow(x, 0, 1, 1)}).detach());
    const std::vector<double> yours = xgrad::detail::elements(y);
    for (std::size_t i = 0; i < right.size(); ++i)
      if (!(std::abs(yours[i] - right[i]) <= 1e-6))
        return {false, fmt::format("my_softmax: with {} added to all numbers of some rows, element "
                                   "{} is {}, and should still be {}: exp(1000) is infinite, "
                                   "exp(-1000) is 0\n\nSoftmax does not change if the same "
                                   "number is subtracted from a whole row: subtract each row's "
                                   "largest before exp(). Then no exp() is above 1.",
                                   shift, i, number(yours[i]), number(right[i]))};
    for (const double total : xgrad::detail::elements(sum(y, {-1})))
      if (std::abs(total - 1) > 1e-12)
        return {false, fmt::format("my_softmax: a row sums to {:.12g}, and should sum to 1\n\nThe "
                                   "divisor is the sum of the exp() and nothing else: if the "
                                   "largest is subtracted before, it is at least 1.",
                                   total)};
  }
  return {true, ""};
}

}  // namespace

Answer judge_softmax(const Work& work) {
  auto* const my_softmax = work.find<decltype(::my_softmax)>("my_softmax");
  const Inputs in = {exercise::random({2, 3, 4}, 1)};
  const auto f = lent(my_softmax);
  const auto right = [](const Inputs& x) { return softmax(x[0], -1); };
  // Numbers so far apart that a probability is 0; one row; more dimensions.
  const Tensor apart =
      tensor({{0.5, -1000, 0.25}, {1000, 1001, 1000.5}}, DType::float64).requires_grad_();
  return ask({[&] { return judge_values("my_softmax", f, right, in); },
              [&] { return judge_rows(*my_softmax, in[0]); },
              [&] {
                return judge_op("my_softmax", f, right,
                                {in,
                                 {exercise::random({5, 2}, 2)},
                                 {apart},
                                 {exercise::random({3}, 3)},
                                 {exercise::random({2, 1, 3, 2}, 4)}});
              }});
}

}  // namespace learn
