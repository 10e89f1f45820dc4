// Layers and initialisers: defaults and errors.  The table of layers (golden/layers.py) has
// PyTorch's initial values and results and the derivatives; golden/random_test.cpp, its
// initialisers.

#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "nn/checks.hpp"

using namespace xgrad;

TEST_CASE("Linear and Embedding: gradients, shapes and a bias that is left out", "[nn]") {
  CHECK(nn::Linear(3, 2).weight.requires_grad());
  CHECK(nn::Embedding(2, 3)(Indices({{0, 1}, {1, 1}})).shape() == Shape{2, 2, 3});
  CHECK_FALSE(nn::Linear(3, 2, false).bias.defined());
  CHECK(nn::Linear(0, 2)(zeros({4, 0})).shape() == Shape{4, 2});
}

TEST_CASE("Initialisers: the default generator and gains, and errors", "[nn][init]") {
  const Tensor x = zeros({3, 4, 2}), y = zeros({3, 4, 2});
  Generator five(5);
  manual_seed(5);
  CHECK(same_bits(nn::init::xavier_uniform_(x), nn::init::xavier_uniform_(y, 1, five)));
  CHECK(same_bits(nn::init::xavier_normal_(x), nn::init::xavier_normal_(y, 1, five)));
  CHECK(same_bits(nn::init::kaiming_uniform_(x), nn::init::kaiming_uniform_(y, {.a = 0}, five)));
  CHECK(same_bits(nn::init::kaiming_normal_(x), nn::init::kaiming_normal_(y, {.a = 0}, five)));
  CHECK(same_bits(nn::init::uniform_(x, -2, 3), nn::init::uniform_(y, -2, 3, five)));
  CHECK(same_bits(nn::init::normal_(x, .5, 2), nn::init::normal_(y, .5, 2, five)));
  const Tensor few = nn::init::normal_(zeros({5}), .5, 2);  // rounded once, from double
  const std::vector<float> expected{-1.90523219F, 2.88400292F, 0.0945033208F, -1.86690068F,
                                    -0.975795448F};
  CHECK(std::vector<float>(few.data<float>(), few.data<float>() + 5) == expected);

  check_start(nn::init::constant_(x, 7), {7, 7});
  check_start(nn::init::ones_(x), {1, 1});
  check_start(nn::init::zeros_(x), {0, 0});
  Generator own(3), same(3);
  check_start(nn::init::uniform_(x, 0, 1, own), {same.uniform_float(), same.uniform_float()});
  CHECK_THROWS_WITH(nn::init::xavier_uniform_(zeros({3})),
                    ContainsSubstring("xavier_uniform_: shape (3,) has fewer than two"));
  CHECK_THROWS_AS(nn::init::uniform_(x, 2, 1), ValueError);
  CHECK_THROWS_AS(nn::init::normal_(x, 0, -1), ValueError);
  CHECK_THROWS_WITH(nn::init::trunc_normal_(x, 0, 0),
                    ContainsSubstring("trunc_normal_: std is 0, [a, b] is [-2, 2]"));
  CHECK_THROWS_AS(nn::init::trunc_normal_(x, 0, 1, 2, 1), ValueError);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [mean, low, high] : {std::tuple(0., 20., 1e6),
                                        {5., -1e30, 3.},
                                        {0., 2., infinity},
                                        {infinity, -2., 2.},
                                        {NAN, -2., 2.}})
    CHECK_THROWS_WITH(nn::init::trunc_normal_(x, mean, 1, low, high),
                      ContainsSubstring("has too little of the probability; mean is "));
  CHECK_NOTHROW(nn::init::trunc_normal_(x, 0, 1, 1000, 1001));
}

TEST_CASE("gains are PyTorch's", "[nn][init]") {
  using nn::init::Nonlinearity, nn::init::calculate_gain;
  CHECK(calculate_gain(Nonlinearity::linear) == 1);
  CHECK(calculate_gain(Nonlinearity::sigmoid) == 1);
  CHECK(calculate_gain(Nonlinearity::tanh) == 5.0 / 3);
  CHECK(calculate_gain(Nonlinearity::relu) == std::sqrt(2.0));
  CHECK(calculate_gain(Nonlinearity::leaky_relu) == std::sqrt(2 / (1 + 0.01 * 0.01)));
  CHECK(calculate_gain(Nonlinearity::leaky_relu, 2) == std::sqrt(2.0 / 5));
  CHECK(calculate_gain(Nonlinearity::selu) == 0.75);
}

TEST_CASE("padding in an Embedding", "[nn]") {
  CHECK_THROWS_WITH(nn::Embedding(3, 2, {.padding_idx = 3}),
                    ContainsSubstring("Embedding: padding_idx 3 is not within -3 ... 2"));
  CHECK_THROWS_WITH(embedding({0}, ones({3, 2}), -4),
                    ContainsSubstring("embedding: padding_idx -4 is not within -3 ... 2"));
  const Tensor w = randn({3, 2}).requires_grad_();
  const Tensor g = grad({embedding({0, 1, 1}, w, 1).exp().sum()}, {w}, {.create_graph = true})[0];
  CHECK(numbers(g[1]) == std::vector<double>{0, 0});
  const Tensor second = grad({(g * g).sum()}, {w})[0];
  CHECK(numbers(second[1]) == std::vector<double>{0, 0});
  CHECK(numbers(second[0])[0] != 0);
}

TEST_CASE("defaults of LayerNorm and Softmax", "[nn]") {
  CHECK_FALSE(nn::LayerNorm(5, {.bias = false}).bias.defined());
  CHECK(nn::LayerNorm({2, 5}).weight.shape() == Shape{2, 5});
  check_start(nn::Softmax()(tensor({{0, 0}, {1, 1}})), {0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("Dropout is on in training only", "[nn]") {
  manual_seed(1);
  nn::Dropout drop(0.5);
  const Tensor y = drop(ones({1000}));
  const float* const value = y.data<float>();
  CHECK(std::all_of(value, value + 1000, [](float v) { return v == 0 || v == 2; }));
  CHECK(total(y) == Approx(1000).margin(150));
  nn::eval(drop);
  CHECK(total(drop(ones({1000}))) == 1000);
  CHECK_THROWS_WITH(nn::Dropout(1.5), ContainsSubstring("Dropout: p is 1.5"));
}
