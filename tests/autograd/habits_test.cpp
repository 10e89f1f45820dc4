// Functions, layers and training as PyTorch users write them.  The rows of docs/pytorch.md and
// docs/pytorch_ops.md are idioms of ops.

#include <cmath>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

struct Habits {
  const Tensor x = tensor({{1, 2}, {3, 4}}), y = tensor({{0.5, -1}, {2, 0.25}});
};

void same(const Tensor& a, const Values& expected) {
  const Tensor b = tensor(expected);
  REQUIRE(a.shape() == b.shape());
  CHECK(allclose(a.detach().to(DType::float32), b, 1e-5, 1e-6));
}

// A head as in PyTorch's lectures.
struct Head {
  nn::Linear query{4, 2, false}, key{4, 2, false}, value{4, 2, false};
  Tensor operator()(const Tensor& in) const {
    const auto B = in.size(0), T = in.size(1);
    const Tensor q = query(in), k = key(in), v = value(in);
    Tensor scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(k.size(-1));
    scores = scores.masked_fill(ones({T, T}).tril() == 0, -INFINITY);
    return scores.softmax(-1).matmul(v).view({B, T, -1});
  }
  static void visit(auto& self, auto&& v) {
    v("query", self.query), v("key", self.key), v("value", self.value);
  }
};

}  // namespace

TEST_CASE_METHOD(Habits, "habits: checks take functions of one Tensor, of two, and layers",
                 "[habits]") {
  const Tensor a = leaf({{1, 2}, {3, 4}}), b = leaf({{0.5, -1}, {2, 0.25}});
  const auto one = [](const Tensor& in) { return (in * in).sum(); };
  const auto two = [](const Tensor& in, const Tensor& other) { return (in * other).sum(0); };
  CHECK(gradcheck(one, {a}));
  CHECK(gradcheck(two, {a, b}));
  CHECK(gradgradcheck(two, {a, b}));
  CHECK(explain_gradient(one, {a}));
  CHECK(explain_gradient(two, {a, b}));
  CHECK(compare(two, [](const auto& in) { return sum(in[1] * in[0], {0}); }, {a, b}));
  same(jacobian(one, a), {{2, 4}, {6, 8}});
  same(jacobian(two, {a, b})[0][0], {{{0.5, 0}, {2, 0}}, {{0, -1}, {0, 0.25}}});
  same(vjp(two, {a, b}, {tensor({1, 1}, DType::float64)}).second[0], {{0.5, -1}, {2, 0.25}});

  manual_seed(1);
  nn::Linear linear(2, 2);
  nn::to(linear, DType::float64);
  const GradcheckReport report = gradcheck(linear, {a});
  CHECK(report);
  CHECK(report.pairs.size() == 3);  // x, weight and bias
  CHECK(explain_gradient(linear, {a}));
  CHECK(compare(linear, [&](const Tensor& in) { return in.mm(linear.weight.t()) + linear.bias; },
                {a}));
  CHECK(jacobian(linear, a).shape() == Shape{2, 2, 2, 2});

  Head head;
  nn::to(head, DType::float64);
  CHECK(gradcheck(head, {randn({1, 3, 4}, DType::float64)}).pairs.size() == 4);
  CHECK(check_causal(head, randn({1, 3, 4}, DType::float64)));
}

TEST_CASE_METHOD(Habits, "habits: a function given another number of Tensors is refused",
                 "[habits]") {
  const Tensor a = leaf({1, 2});
  CHECK_THROWS_WITH(
      gradcheck([](const Tensor& in, const Tensor& other) { return in * other; }, {a}),
      "a function of 2 Tensors was given 1");
}

TEST_CASE_METHOD(Habits, "habits: training", "[habits]") {
  manual_seed(0);
  nn::Sequential net{nn::Linear(2, 3), nn::Tanh{}, nn::Linear(3, 1)};
  optim::AdamW optimizer(nn::parameters(net), {.lr = 0.1, .weight_decay = 0.01});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = (net(x) - tensor({{1}, {0}})).pow(2).mean();
    (step == 0 ? first : last) = loss.item();
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(nn::parameters(net), 1.0);
    optimizer.step();
  }
  CHECK(last < first / 2);
  {
    const NoGrad no_grad;
    CHECK_FALSE(net(x).requires_grad());
  }
  Tensor w = tensor({1, -2}).requires_grad_();
  (w * w).sum().backward();
  same(w.grad(), {2, -4});
  w.copy_(w - 0.1 * w.grad());
  same(w, {0.8, -1.6});
  w.zero_grad();
  CHECK_FALSE(w.grad().defined());
}
