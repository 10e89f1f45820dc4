// Code as PyTorch users write it: it compiles, and gives PyTorch's numbers.

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

TEST_CASE_METHOD(Habits, "habits: sizes", "[habits]") {
  CHECK(x.size(-1) == 2);
  CHECK(x.shape()[-1] == 2);
  const auto [rows, columns] = std::pair(x.size(0), x.size(1));
  same(x * static_cast<double>(-x.size(-1)), {{-2, -4}, {-6, -8}});
  same(x / std::sqrt(x.size(-1)), {{0.70710678, 1.41421356}, {2.12132034, 2.82842712}});
  same(zeros({rows, columns - 1}), {{0}, {0}});
  same(x.view({rows * columns}), {1, 2, 3, 4});
  same(x.view({-1, 4}), {{1, 2, 3, 4}});
  for (int i = 0; i < x.dim(); ++i)
    CHECK(x.size(i) == 2);
}

TEST_CASE_METHOD(Habits, "habits: parts", "[habits]") {
  const auto [k, v] = chunk<2>(x, -1);
  same(v, {{2}, {4}});
  const auto [a, b] = x.split<2>(1);
  same(b, {{3, 4}});
  same(x[0], {1, 2});
  CHECK(x[-1][0].item() == 3);
  same(index(x, {Slice{}, 0}), {1, 3});
  CHECK(xt::sum(x.array<float>())() == 10);
  same(x.select_scatter(tensor({8, 9}), 0, 0), {{8, 9}, {3, 4}});
  same(x.index_put({Indices{0, 1}, Indices{1, 0}}, tensor({8, 9})), {{1, 8}, {9, 4}});
  same(cat({x, y}, 1), {{1, 2, 0.5, -1}, {3, 4, 2, 0.25}});
  same(x[0].repeat({2, 1}), {{1, 2}, {1, 2}});
  same(x.repeat_interleave(2, 0), {{1, 2}, {1, 2}, {3, 4}, {3, 4}});
  same(x.t(), {{1, 3}, {2, 4}});
  same(x.triu(1), {{0, 2}, {0, 0}});
}

TEST_CASE_METHOD(Habits, "habits: numbers", "[habits]") {
  const std::vector<float> data{1, 2, 3};
  same(tensor(data), {1, 2, 3});
  same(x.softmax(-1), {{0.26894143, 0.73105860}, {0.26894143, 0.73105860}});
  same(x.std(0), {1.41421354, 1.41421354});
  same(x.logsumexp({0, 1}).unsqueeze(0), {4.44018984});
  same(x.cumsum(0), {{1, 2}, {4, 6}});
  same(x.max(1).values, {2, 4});
  same(x.topk(1).values, {{2}, {4}});
  same(x.norm().unsqueeze(0), {5.47722578});
  same(y.prod(1), {-0.5, 0.5});
  same(einsum("ij,kj->ik", {x, y}), {{-1.5, 2.5}, {-2.5, 7}});
  same(log1p(x), {{0.69314718, 1.09861231}, {1.38629436, 1.60943794}});
  same(x.expm1(), {{1.71828187, 6.38905621}, {19.0855370, 53.5981483}});
  same(softplus(y), {{0.97407699, 0.31326169}, {2.12692809, 0.82593942}});
  same(silu(y), {{0.31122968, -0.26894143}, {1.76159406, 0.14054413}});
  same(gelu(y), {{0.34573120, -0.15865529}, {1.95449996, 0.14967656}});
  same(where(x > 2, x, 0), {{0, 0}, {3, 4}});
  same(x.gather(1, {{0}, {1}}), {{1}, {4}});
  same(zeros({2, 2}).scatter_add(1, {{1, 1}, {0, 0}}, x), {{0, 3}, {7, 0}});
  CHECK(cross_entropy(x, {0, 1}).item() == Approx(0.81326163));
  CHECK(mse_loss(x, y).item() == Approx(6.078125));
  CHECK(nn::MSELoss()(x, y).item() == Approx(6.078125));
}

TEST_CASE_METHOD(Habits, "habits: attention", "[habits]") {
  const Tensor h = (arange(12) / 10).view({1, 3, 4});
  const Tensor q = h.view({1, 3, 2, 2}).transpose(1, 2);
  const Tensor out = scaled_dot_product_attention(q, q, q, {.is_causal = true});
  same(out.transpose(1, 2).reshape({1, 3, 4}),
       {{{0, 0.1, 0.2, 0.3},
         {0.22531927, 0.32531926, 0.43636084, 0.53636080},
         {0.52351654, 0.62351650, 0.74973810, 0.84973812}}});
  same(scaled_dot_product_attention(q, q, q, ones({3, 3}).tril() == 1),
       {{{{0, 0.1}, {0.22531927, 0.32531926}, {0.52351654, 0.62351650}},
         {{0.2, 0.3}, {0.43636084, 0.53636080}, {0.74973810, 0.84973812}}}});
  same(scaled_dot_product_attention(q, q, q, zeros({3, 3}), {.scale = 0.0})[0][0],
       {{0.4, 0.5}, {0.4, 0.5}, {0.4, 0.5}});
}

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
