// Optimizers and clipping, by hand.  PyTorch's numbers: golden/optim_test.cpp.

#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

struct Problem {
  Tensor p = tensor({1, -2, 3}).requires_grad_();
  Tensor q = tensor({{.5}}).requires_grad_();
  std::vector<Tensor> params() const { return {p, q}; }
  void gradients() {
    p.zero_grad();
    q.zero_grad();
    const Tensor c = to(tensor({1, .5, .25}), p.dtype());
    (sum(p * p * c) * sum(q) + sum(sin(p))).backward();
  }
  // Four steps, in the second of which q has no gradient.
  void train(optim::Optimizer& optimizer, int steps = 4) {
    for (int i = 0; i < steps; ++i) {
      gradients();
      if (i == 1)
        q.zero_grad();
      optimizer.step();
    }
  }
};

void check_values(const Tensor& x, const std::vector<double>& expected, double eps = 2e-6) {
  REQUIRE(numbers(x).size() == expected.size());
  const Tensor values = x.detach().to(DType::float64);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(values.data<double>()[i] == Approx(expected[i]).epsilon(eps).margin(1e-7));
}

double& option_of(optim::OptimizerState& state, std::size_t group, const std::string& name) {
  for (auto& [n, value] : state.groups.at(group).options)
    if (n == name)
      return value;
  throw std::out_of_range(name);
}

Tensor with_grad(const Values& value, const Values& gradient) {
  Tensor x = tensor(value).requires_grad_();
  x.set_grad(tensor(gradient));
  return x;
}

}  // namespace

TEST_CASE("A step leaves the values of other holders, and may give NaN", "[optim]") {
  Tensor p = with_grad({1, 2}, {10, -10});
  const Tensor snapshot = p.detach();
  optim::SGD({p}, {.lr = 0.1}).step();
  check_values(p, {0, 3});
  check_values(snapshot, {1, 2});
  p = with_grad({1, 1}, {-20, 0});
  optim::Adam({p}, {.lr = 0.25, .eps = 0}).step();
  CHECK(p.data<float>()[0] == Approx(1.25));  // the first step has length lr
  CHECK(std::isnan(p.data<float>()[1]));      // 0 / 0 without eps, as the formula says
}

TEST_CASE("Large and ragged parameters are stepped like small ones", "[optim]") {
  // Several tasks and a partial register: every element is computed alike.
  const std::size_t n = 3 * 16384 + 5;
  Generator generator(3);
  const Tensor start = randn({n}, generator), gradient = randn({n}, generator);
  Tensor whole = start.clone().requires_grad_();
  whole.set_grad(gradient);
  optim::AdamW adam({whole}, {.lr = 0.01});
  adam.step();
  adam.step();
  const std::size_t threads = num_threads();
  for (const std::size_t i : {std::size_t{0}, std::size_t{16384}, n - 4, n - 1}) {
    const auto at = static_cast<std::int64_t>(i);
    Tensor one = start.narrow(0, at, 1).detach().requires_grad_();
    one.set_grad(gradient.narrow(0, at, 1));
    set_num_threads(1);
    optim::AdamW alone({one}, {.lr = 0.01});
    alone.step();
    alone.step();
    set_num_threads(threads);
    CHECK(one.data<float>()[0] == whole.data<float>()[i]);
  }
}

TEST_CASE("Groups have their own options", "[optim]") {
  Problem problem;
  optim::AdamW grouped(optim::decay_matrices(problem.params(), {.lr = 0.1, .weight_decay = 0.3}));
  REQUIRE(grouped.num_groups() == 2);
  problem.train(grouped);
  Problem other;
  optim::AdamW explicit_groups(
      {{{other.q}, {.lr = 0.1, .weight_decay = 0.3}}, {{other.p}, {.lr = 0.1, .weight_decay = 0}}});
  other.train(explicit_groups);
  CHECK(allclose(problem.p, other.p, 0, 0));
  CHECK(allclose(problem.q, other.q, 0, 0));
  optim::OptimizerState groups = grouped.state_dict();
  CHECK(option_of(groups, 0, "weight_decay") == 0.3);
  CHECK(option_of(groups, 1, "weight_decay") == 0);
  CHECK(optim::decay_matrices({problem.p}, {}).size() == 1);

  grouped.set_learning_rate(0.5);
  CHECK(grouped.learning_rate(0) == 0.5);
  CHECK(grouped.learning_rate(1) == 0.5);
  grouped.set_learning_rate(0.25, 1);
  CHECK(grouped.learning_rate(0) == 0.5);
  CHECK(grouped.learning_rate(1) == 0.25);
  CHECK_THROWS_AS(grouped.set_learning_rate(-1), ValueError);
  CHECK_THROWS_WITH(grouped.set_learning_rate(std::numeric_limits<double>::infinity()),
                    ContainsSubstring("lr is inf; it must be finite"));
  CHECK_THROWS_WITH(grouped.learning_rate(2), ContainsSubstring("no group 2; there are 2"));
}

TEST_CASE("The state goes on where it was saved", "[optim][state]") {
  Problem a;
  optim::Adam adam(a.params(), {.lr = 0.1});
  a.train(adam);
  optim::OptimizerState state = adam.state_dict();
  CHECK(state.parameters.at(0).step == 4);
  CHECK(state.parameters.at(1).step == 3);  // one step had no gradient
  CHECK(state.parameters[0].tensors.at(1).first == "exp_avg_sq");
  CHECK(state.parameters[0].tensors[1].second.shape() == Shape{3});
  CHECK(option_of(state, 0, "betas.1") == 0.999);

  Problem b;
  b.p = a.p.clone().detach().requires_grad_();
  b.q = a.q.clone().detach().requires_grad_();
  optim::Adam resumed(b.params(), {.lr = 7});
  resumed.load_state_dict(state);
  CHECK(resumed.learning_rate() == 0.1);
  const Tensor& average = state.parameters[0].tensors[0].second;
  const float before = average.data<float>()[0];
  a.train(adam);
  b.train(resumed);
  CHECK(allclose(a.p, b.p, 0, 0));
  CHECK(allclose(a.q, b.q, 0, 0));
  CHECK(average.data<float>()[0] == before);  // a snapshot
}

TEST_CASE("SGD's momentum is state, and so is nesterov", "[optim][state]") {
  Problem a, b;
  optim::SGD sgd(a.params(), {.lr = 0.01, .momentum = 0.9, .nesterov = true});
  CHECK(sgd.state_dict().parameters.at(0).tensors.empty());
  a.train(sgd, 1);
  for (const auto& of : sgd.state_dict().parameters) {
    REQUIRE(of.tensors.size() == 1);
    CHECK(of.tensors[0].first == "momentum_buffer");
  }
  b.p = a.p.clone().detach().requires_grad_();
  b.q = a.q.clone().detach().requires_grad_();
  optim::SGD resumed(b.params(), {.lr = 0.01, .momentum = 0.9, .dampening = 0.5});
  resumed.load_state_dict(sgd.state_dict());
  a.train(sgd);
  b.train(resumed);
  CHECK(allclose(a.p, b.p, 0, 0));
}

TEST_CASE("A state that does not fit changes nothing", "[optim][state]") {
  Problem a;
  optim::Adam adam(a.params(), {.lr = 0.1});
  a.train(adam);
  optim::OptimizerState state = adam.state_dict();
  auto &first = state.parameters.at(0).tensors, &second = state.parameters.at(1).tensors;
  first[0].second = zeros({4});  // exp_avg
  second.erase(second.begin());  // exp_avg
  second.push_back(second.at(0));
  state.parameters.push_back({.step = 1, .tensors = {{"exp_avg", zeros({1})}}});
  state.groups.push_back({.options = {{"lr", 1}}});
  Problem b;
  optim::Adam other(b.params(), {.lr = 5});
  std::string text;
  try {
    other.load_state_dict(state);
  } catch (const ValueError& error) {
    text = error.what();
  }
  CHECK_THAT(text,
             ContainsSubstring("wrong shape: state.0.exp_avg is (4,) and the parameter (3,)"));
  CHECK_THAT(text, ContainsSubstring("missing: state.1.exp_avg"));
  CHECK_THAT(text, ContainsSubstring("unexpected: state.2.exp_avg"));
  CHECK_THAT(text, ContainsSubstring("unexpected: param_groups.1.lr"));
  CHECK_THAT(text, ContainsSubstring("unexpected: state.2.step"));
  CHECK_THAT(text, ContainsSubstring("unexpected: state.1.exp_avg_sq"));  // twice
  CHECK(other.learning_rate() == 5);
  CHECK(other.state_dict().parameters.at(0).tensors.empty());

  optim::Adam fewer({b.p}, {});
  CHECK_THROWS_WITH(fewer.load_state_dict(adam.state_dict()),
                    ContainsSubstring("params is 2 and the group has 1"));
  state = adam.state_dict();
  option_of(state, 0, "betas.0") = 1.5;
  CHECK_THROWS_WITH(other.load_state_dict(state), ContainsSubstring("betas.0 is 1.5"));
  state = adam.state_dict();
  state.parameters[0].step = 0.5;
  CHECK_THROWS_WITH(other.load_state_dict(state),
                    ContainsSubstring("out of range: state.0.step is 0.5"));
  CHECK(other.learning_rate() == 5);
}

TEST_CASE("Optimizer state follows the parameters to another dtype", "[optim][state]") {
  manual_seed(4);
  nn::Linear layer(3, 2);
  optim::Adam adam(nn::parameters(layer), {.lr = 0.1});
  const auto step = [&] {
    adam.zero_grad();
    const Tensor x = ones({1, 3}, layer.weight.dtype());
    layer(x).sum().backward();
    adam.step();
  };
  step();
  nn::to(layer, DType::float64);
  CHECK(adam.state_dict().parameters.at(0).tensors.at(0).second.dtype() == DType::float64);
  const double before = layer.weight.data<double>()[0];
  step();
  CHECK(layer.weight.data<double>()[0] == Approx(before - 0.1).epsilon(1e-6));
}

TEST_CASE("zero_grad clears, and parameters without a gradient stay", "[optim]") {
  Problem problem;
  problem.gradients();
  optim::SGD sgd(problem.params());
  sgd.zero_grad();
  CHECK_FALSE(problem.p.grad().defined());
  sgd.step();
  check_values(problem.p, {1, -2, 3});
}

TEST_CASE("Optimizers reject parameters that they cannot train", "[optim]") {
  using optim::Adam, optim::AdamW, optim::SGD;
  const Tensor p = ones({2}).requires_grad_();
  CHECK_THROWS_WITH(Adam({p}, {.lr = -1}), ContainsSubstring("Adam: lr is -1"));
  CHECK_THROWS_WITH(AdamW({p}, {.lr = not_a_number}), ContainsSubstring("AdamW: lr is nan"));
  CHECK_THROWS_WITH(Adam({p}, {.betas = {0.9, 1}}), ContainsSubstring("betas.1 is 1;"));
  CHECK_THROWS_WITH(Adam({p}, {.betas = {-0.1, 0.5}}), ContainsSubstring("[0, 1)"));
  CHECK_THROWS_WITH(Adam({p}, {.eps = -1}), ContainsSubstring("eps"));
  CHECK_THROWS_WITH(AdamW({p}, {.weight_decay = -1}), ContainsSubstring("weight_decay"));
  CHECK_THROWS_WITH(SGD({p}, {.momentum = -1}), ContainsSubstring("momentum"));
  CHECK_THROWS_WITH(SGD({p}, {.nesterov = true}), ContainsSubstring("nesterov needs momentum"));
  CHECK_THROWS_WITH(SGD(std::vector<Tensor>{}), ContainsSubstring("no parameter to train"));
  CHECK_THROWS_WITH(SGD({Tensor()}, {}), ContainsSubstring("parameter 0 is undefined"));
  CHECK_THROWS_WITH(SGD({p, p * 2}, {}), ContainsSubstring("parameter 1 of shape (2,) is the"));
  CHECK_THROWS_WITH(SGD({p, p}, {}), ContainsSubstring("is given already, as parameter 0"));
  CHECK_THROWS_WITH(AdamW({{{p}, {}}, {{p}, {}}}), ContainsSubstring("is given already"));
}

TEST_CASE("clip_grad_norm_ scales all gradients by one norm", "[optim][clip]") {
  Tensor a = with_grad({0, 0}, {3, 0}), b = with_grad({{0}}, {{4}});
  const Tensor unused = ones({1}).requires_grad_();
  CHECK(optim::clip_grad_norm_({a, unused, b}, 10) == Approx(5));
  check_values(a.grad(), {3, 0});
  CHECK(optim::clip_grad_norm_({a, unused, b}, 1) == Approx(5));
  check_values(a.grad(), {3 / 5.000001, 0}, 1e-7);
  check_values(b.grad(), {4 / 5.000001}, 1e-7);
  CHECK(optim::clip_grad_norm_({unused}, 1) == 0);
  // PyTorch 2.15 throws if an empty gradient meets the infinity norm.
  Tensor empty = zeros(0).requires_grad_();
  empty.set_grad(zeros(0));
  CHECK(optim::clip_grad_norm_({empty}, 1, {.norm_type = inf}) == 0);
  b.set_grad(tensor({{-4}}));
  CHECK(optim::clip_grad_norm_({empty, b, empty}, 1, {.norm_type = inf}) == 4);
  check_values(b.grad(), {-4 / 4.000001}, 1e-7);
  CHECK_THROWS_AS(optim::clip_grad_norm_({a}, -1), ValueError);
  for (const double p : {0.0, -1.0, std::nan("")})
    CHECK_THROWS_WITH(optim::clip_grad_norm_({a}, 1, {.norm_type = p}),
                      ContainsSubstring("it must be above 0"));
}

TEST_CASE("clipping counts and scales a parameter once, however often it is listed",
          "[optim][clip]") {
  const bool graph = GENERATE(false, true);
  Tensor a = leaf({1, 2}), b = leaf({3});
  const auto fill = [&] {
    a.zero_grad(), b.zero_grad();
    (sum(a * a) * 1.5 + sum(b * 4.0)).backward({.create_graph = graph});  // 3, 6 and 4
  };
  const double norm = std::sqrt(9 + 36 + 16), factor = 1 / (norm + 1e-6);
  const Tensor tied = a;
  for (const auto& list : {std::vector{a, b}, {a, b, tied}, {a, a, b, tied, b}}) {
    fill();
    CHECK(optim::clip_grad_norm_(list, 1) == Approx(norm).epsilon(1e-14));
    CHECK(numbers(a.grad())[1] == Approx(6 * factor).epsilon(1e-14));
    CHECK(numbers(b.grad())[0] == Approx(4 * factor).epsilon(1e-14));
    fill();
    CHECK(optim::clip_grad_norm_(list, 1, {.norm_type = 1}) == Approx(13));
    fill();
    optim::clip_grad_value_(list, 5);
    CHECK(numbers(a.grad()) == std::vector<double>{3, 5});
    CHECK(numbers(b.grad()) == std::vector<double>{4});
  }
  // A gradient shared by two parameters counts twice and is scaled once.
  Tensor c = leaf({1}), d = leaf({2});
  c.set_grad(tensor({3}, DType::float64));
  d.set_grad(c.grad());
  CHECK(optim::clip_grad_norm_({c, d}, 1) == Approx(std::sqrt(18)));
  CHECK(numbers(c.grad())[0] == Approx(3 / (std::sqrt(18) + 1e-6)));
  CHECK(numbers(d.grad()) == numbers(c.grad()));
}

TEST_CASE("clip_grad_norm_ leaves the gradient's other holders alone", "[optim][clip]") {
  Tensor a = with_grad({1}, {8});
  const Tensor held = a.grad().detach();
  optim::clip_grad_norm_({a}, 1);
  check_values(held, {8});
  check_values(a.grad(), {1});

  Tensor x = tensor({2}).requires_grad_();
  pow(x, 3).backward({.create_graph = true});
  REQUIRE(x.grad().requires_grad());
  CHECK(optim::clip_grad_norm_({x}, 6) == Approx(12));
  check_values(x.grad(), {6});
}

TEST_CASE("A norm that is not finite", "[optim][clip]") {
  Tensor a = with_grad({1, 1}, {1, 2});
  a.set_grad(tensor({1, 1}) / tensor({0, 1}));
  CHECK_THROWS_WITH(optim::clip_grad_norm_({a}, 1, {.error_if_nonfinite = true}),
                    ContainsSubstring("the norm of the gradients is inf"));
  CHECK(element<float>(a.grad(), 1) == 1);  // unchanged
  CHECK(std::isinf(optim::clip_grad_norm_({a}, 1)));
  CHECK(element<float>(a.grad(), 1) == 0);  // PyTorch's answer: 1 / inf
  CHECK(std::isnan(element<float>(a.grad(), 0)));

  a.set_grad(tensor({0, 1}) / tensor({0, 1}));
  for (const double p : {1.0, 2.0, std::numeric_limits<double>::infinity()})
    CHECK(std::isnan(optim::clip_grad_norm_({a, with_grad({1}, {7})}, 1, {.norm_type = p})));
  CHECK(std::isnan(element<float>(a.grad(), 1)));  // a bad gradient spreads, and is visible
}

TEST_CASE("clip_grad_norm_: squares that leave the range", "[optim][clip]") {
  const auto with = [](double size) {
    Tensor p = zeros(3, DType::float64).requires_grad_();
    p.set_grad(tensor({3 * size, 0.0, -4 * size}, DType::float64));
    return p;
  };
  for (const double p : {2.0, 3.0})
    for (const double size : {1e200, 1e-200, 1e307, 1e-310}) {
      CAPTURE(p, size);
      const double norm = std::pow(std::pow(3, p) + std::pow(4, p), 1 / p);
      const Tensor a = with(size), b = with(size);
      CHECK(optim::clip_grad_norm_({a}, 1, {.norm_type = p}) == Approx(norm * size).epsilon(1e-12));
      if (size > 1)
        CHECK(allclose(a.grad(), with(1 / norm).grad(), 1e-12, 0));
      else
        CHECK(allclose(a.grad(), b.grad(), 0, 0));
    }
}

TEST_CASE("The norm does not depend on the number of threads", "[optim][clip]") {
  Generator generator(1);
  Tensor a = zeros({100003}).requires_grad_();
  a.set_grad(randn({100003}, generator));
  const std::size_t threads = num_threads();
  set_num_threads(1);
  const double one = optim::clip_grad_norm_({a}, 1e9);
  set_num_threads(3);
  CHECK(optim::clip_grad_norm_({a}, 1e9) == one);
  set_num_threads(threads);
  CHECK(one == Approx(std::sqrt(100003.0)).epsilon(0.01));
}

TEST_CASE("clip_grad_value_ limits each element", "[optim][clip]") {
  Tensor a = with_grad({0, 0, 0}, {-3, 0.25, 2});
  optim::clip_grad_value_({a}, 0.5);
  check_values(a.grad(), {-0.5, 0.25, 0.5});
  CHECK_THROWS_AS(optim::clip_grad_value_({a}, -0.5), ValueError);
}

// torch.optim.Adagrad makes its state at once, with step 0 and the initial value.
TEST_CASE("a state from before the first step", "[optim]") {
  const Tensor p = ones(1).requires_grad_();
  optim::Adagrad adagrad({p}, {.lr = 1, .initial_accumulator_value = 3, .eps = 0});
  optim::OptimizerState state = adagrad.state_dict();
  state.parameters.at(0) = {.step = 0, .tensors = {{"sum", full(1, 3)}}};
  adagrad.load_state_dict(state);
  sum(p).backward();
  adagrad.step();
  CHECK(p.item() == 0.5);  // 1 - 1 / sqrt(3 + 1)

  // Another sum than the initial one counts, and is saved before its first step, too.
  const Tensor q = full(1, 1.2).requires_grad_();
  optim::Adagrad other({q}, {.lr = 0.1, .initial_accumulator_value = 0.5});
  state = other.state_dict();
  state.parameters.at(0) = {.step = 0, .tensors = {{"sum", full(1, 0.49)}}};
  other.load_state_dict(state);
  CHECK(other.state_dict().parameters.at(0).step == 0);
  CHECK(other.state_dict().parameters[0].tensors.at(0).second.item() == Approx(0.49));
  sum(q).backward();
  other.step();
  CHECK(q.item() == Approx(1.1180768));  // 1.2 - 0.1 / sqrt(0.49 + 1), PyTorch's
}
