// Kinks, state and errors of the norms, rotary embedding, masks and recurrent layers, which golden
// values do not cover.

#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/recurrent.hpp>
#include <xgrad/parallel/shards.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Doubles = std::vector<double>;

namespace {

template <class M>
std::vector<std::string> names_of(const M& model) {
  std::vector<std::string> names;
  for (const auto& [name, x] : nn::state_dict(model))
    names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("PReLU at its kink, infinity and NaN", "[nn]") {
  nn::PReLU layer;
  nn::to(layer, DType::float64);
  const Tensor x = leaf({0, inf, -inf, not_a_number});
  const Tensor y = layer(x);
  CHECK(numbers(y[0]) == Doubles{0});
  CHECK(numbers(y[1]) == Doubles{inf});
  CHECK(numbers(y[2]) == Doubles{-inf});
  const auto g = grad({sum(y)}, {x})[0];
  CHECK(numbers(g) == Doubles{0.25, 1, 0.25, 0.25});
  CHECK(numbers(grad({sum(layer(leaf({2, inf})))}, {layer.weight})[0]) == Doubles{0});
  CHECK_THROWS_WITH(nn::PReLU(3)(ones({2, 4})),
                    ContainsSubstring("PReLU: x (2, 4) has 4 channels but there are 3 weights"));
}

TEST_CASE("layers for Sequential", "[nn]") {
  const nn::Sequential net{
      nn::Identity(),  nn::Flatten(),      nn::Linear(6, 4), nn::GroupNorm(2, 4),
      nn::LeakyReLU(), nn::SwiGLU(4, 5),   nn::ELU(),        nn::Softplus(),
      nn::PReLU(4),    nn::BatchNorm1d(4), nn::RMSNorm(4),   nn::SiLU(),
      nn::Tanh(),      nn::Sigmoid(),      nn::Softmax(),    nn::LogSoftmax()};
  CHECK(net(randn({3, 2, 3})).shape() == Shape{3, 4});
}

TEST_CASE("GroupNorm names misshapen inputs", "[nn]") {
  CHECK_THROWS_WITH(nn::GroupNorm(3, 4), ContainsSubstring("4 is not a multiple of num_groups 3"));
  CHECK_THROWS_AS(nn::GroupNorm(0, 4), ValueError);
  CHECK_THROWS_WITH(nn::GroupNorm(2, 4)(ones({1, 6})), ContainsSubstring("x is (1, 6)"));
  CHECK_THROWS_AS(nn::GroupNorm(2, 4)(ones(4)), ShapeError);
  CHECK_THROWS_WITH(nn::GroupNorm(2, 4, {.affine = false})(ones({1, 5})),
                    ContainsSubstring("multiple of 2"));
  CHECK(nn::GroupNorm(2, 4)(ones({0, 4, 3})).shape() == Shape{0, 4, 3});
  CHECK(names_of(nn::GroupNorm(2, 4, {.affine = false})).empty());
}

TEST_CASE("BatchNorm1d keeps running statistics", "[nn]") {
  nn::BatchNorm1d layer(2);
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias", "running_mean", "running_var",
                                                    "num_batches_tracked"});
  CHECK(nn::parameters(layer).size() == 2);
  const Tensor x = tensor({{1, 2}, {3, 6}});
  const auto kept = nn::clone(layer);
  const auto shared = layer;
  const Tensor y = layer(x);
  CHECK(y.requires_grad());
  CHECK_FALSE(layer.running_var.requires_grad());
  CHECK(allclose(layer.running_mean, tensor({0.2, 0.4})));
  CHECK(allclose(layer.running_var, tensor({1.1, 1.7})));
  CHECK(shared.num_batches_tracked.item() == 1);
  CHECK(kept.num_batches_tracked.item() == 0);
  nn::eval(layer);
  CHECK(allclose(layer(x[Slice{0, 1}]),
                 (x[Slice{0, 1}] - layer.running_mean) / sqrt(layer.running_var + 1e-5)));
  CHECK(layer.num_batches_tracked.item() == 1);

  nn::train(layer);
  CHECK_THROWS_WITH(layer(x[Slice{0, 1}]),
                    ContainsSubstring("x is (1, 2): a channel needs more than one value"));
  CHECK_THROWS_WITH(layer(ones({2, 3})), ContainsSubstring("it must be (N, 2) or (N, 2, L)"));
  CHECK_THROWS_AS(layer(ones(2)), ShapeError);
  CHECK_THROWS_AS(layer(ones({2, 2}, DType::float64)), DTypeError);
  const Tensor before = layer.running_mean.clone();
  CHECK(layer(ones({0, 2})).shape() == Shape{0, 2});  // only counts
  CHECK(layer.num_batches_tracked.item() == 2);
  CHECK(numbers(layer.running_mean) == numbers(before));
  CHECK(nn::check_layer(nn::BatchNorm1d(3), randn({4, 3}), {.batch_dim = std::nullopt}));
}

TEST_CASE("a batch that a BatchNorm1d sees is not cut", "[nn][parallel]") {
  nn::Sequential net{nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Linear(4, 1)};
  const Tensor x = normal({8, 3}, 1, DType::float32);
  const auto loss = [&](const Tensor& in) { return mean(pow(net(in), 2)); };
  const Tensor whole = loss(x);
  const Doubles expected = numbers(grad({whole}, {net.at<nn::Linear>(0).weight})[0]);
  const auto& counted = net.at<nn::BatchNorm1d>(1).num_batches_tracked;
  CHECK(counted.item() == 1);
  const double cut = parallel::backward(8, [&](std::size_t begin, std::size_t end) {
    return loss(narrow(x, 0, static_cast<Size>(begin), end - begin));
  });
  CHECK(cut == whole.item());
  CHECK(numbers(net.at<nn::Linear>(0).weight.grad()) == expected);
  CHECK(counted.item() == 2);
}

TEST_CASE("PyTorch's count of batches, which is I64, is read", "[nn][io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "norm.safetensors";
  nn::BatchNorm1d layer(2);
  io::TensorFile file;
  for (const auto& [name, x] : nn::state_dict(layer))
    file.tensors.emplace(name, x + 1);
  const auto saved_with = [&](const std::string& name, std::int64_t number) {
    io::TensorFile content = file;
    const Shape shape = content.tensors.at(name).shape();
    content.tensors.erase(name);
    auto values = empty_array<std::int64_t>(shape);
    std::fill_n(values.data(), values.size(), number);
    content.indices.emplace(name, Indices(std::move(values)));
    io::save_safetensors(path, content);
  };
  saved_with("num_batches_tracked", 7);
  CHECK(io::load(layer, path) == "I64 -> float32 (1 tensor)");
  CHECK(layer.num_batches_tracked.item() == 7);
  CHECK(numbers(layer.running_var) == Doubles{2, 2});
  saved_with("num_batches_tracked", (1 << 24) + 1);
  CHECK_THROWS_WITH(io::load(layer, path),
                    ContainsSubstring("'num_batches_tracked' holds 16777217, which no float32"));
  CHECK(layer.num_batches_tracked.item() == 7);
  saved_with("weight", 7);
  CHECK_THROWS_WITH(io::load(layer, path), ContainsSubstring("weight is I64"));
}

TEST_CASE("rotary embedding turns by the distance", "[nn][attention]") {
  const Tensor q = normal({1, 6}, 1), k = normal({1, 6}, 2);
  const auto product = [&](std::int64_t p, std::int64_t s, nn::RotaryPairs pairs) {
    const nn::RotaryOptions options{.theta = 100, .pairs = pairs};
    const nn::RotaryEmbedding of_query(6, Indices{p}, options), of_key(6, Indices{s}, options);
    return sum(of_query(q) * of_key(k)).item();
  };
  for (const auto pairs : {nn::RotaryPairs::half, nn::RotaryPairs::interleaved}) {
    CHECK(product(5, 2, pairs) == Approx(product(1003, 1000, pairs)).epsilon(1e-12));
    CHECK(std::abs(product(5, 2, pairs) - product(5, 3, pairs)) > 1e-3);
    CHECK(product(0, 0, pairs) == Approx(sum(q * k).item()));
  }
  const nn::RotaryEmbedding rotate(4, arange_indices(0, 3));
  CHECK_THROWS_WITH(nn::RotaryEmbedding(5, {0}), ContainsSubstring("head_dim 5 is odd"));
  const auto refused = [](const nn::RotaryOptions& options, const char* text) {
    CHECK_THROWS_WITH(nn::RotaryEmbedding(6, {0}, options), ContainsSubstring(text));
  };
  refused({.partial_rotary_factor = 0.5}, "its rotated part, 3, is");
  refused({.partial_rotary_factor = 1.5}, "partial_rotary_factor 1.5 is not between 0 and 1");
  CHECK_THROWS_WITH(nn::RotaryEmbedding(ones({2, 3}), ones(3)),
                    ContainsSubstring("cos (2, 3) and sin (3,)"));
  CHECK_THROWS_WITH(nn::RotaryEmbedding(ones({2, 3}), ones({2, 3}))(ones({2, 4})),
                    ContainsSubstring("x (2, 4) is not (..., T, 6) of cos and sin (2, 3)"));
  CHECK_THROWS_WITH(nn::RotaryEmbedding(ones({2, 3}), ones({2, 3}))(ones({5, 4, 6})),
                    ContainsSubstring("x (5, 4, 6) is not (..., T, 6) of cos and sin (2, 3)"));
  CHECK_THROWS_WITH(rotate(ones({3, 6})),
                    ContainsSubstring("x (3, 6) is not (..., T, 4) of positions (3,)"));
  CHECK_THROWS_WITH(rotate(ones({2, 4})),
                    ContainsSubstring("x (2, 4) is not (..., T, 4) of positions (3,)"));
  CHECK_THROWS_AS(rotate(ones(4)), ShapeError);
  CHECK_THROWS_AS(rotate(scalar(1)), ShapeError);
  CHECK(rotate(ones({0, 3, 4})).shape() == Shape{0, 3, 4});
}

TEST_CASE("sliding windows and ALiBi", "[nn][attention]") {
  CHECK(to_string(nn::sliding_window(3, 5, 2, 1)) ==
        to_string(Mask{{1, 1, 0, 0, 0}, {0, 1, 1, 0, 0}, {0, 0, 1, 1, 0}}));
  CHECK(to_string(nn::sliding_window(3, 3, 9)) == to_string(~nn::future(3, 3)));
  CHECK(to_string(nn::sliding_window(4, 2, 2, 2 - 4)) ==
        to_string(Mask{{0, 0}, {0, 0}, {1, 0}, {1, 1}}));
  CHECK_THROWS_WITH(nn::sliding_window(3, 3, 0), ContainsSubstring("window is 0"));
  const Size far = Size{1} << 60, furthest = std::numeric_limits<Size>::max();
  CHECK(all(nn::sliding_window(2, 2, furthest, far - 1)));
  for (const Size offset : {far, -far, furthest, -furthest - 1})
    CHECK_THROWS_AS(nn::sliding_window(2, 2, 5, offset), ValueError);
  CHECK(to_string(nn::sliding_window(2, 3, 1, -1)) ==
        to_string(Mask{{false, false, false}, {true, false, false}}));
  CHECK_FALSE(any(nn::sliding_window(2, 2, furthest, 1 - (Size{1} << 60))));
  CHECK(nn::alibi_bias(3, 2, 2, far).shape() == Shape{3, 2, 2});
  const Tensor bias = nn::alibi_bias(2, 2, 3, 1, DType::float64);
  CHECK(numbers(bias[0]) == Doubles{-0.0625, 0, -0.0625, -0.125, -0.0625, 0});
  CHECK(numbers(bias[1])[3] == -2.0 / 256);
  CHECK(numbers(nn::alibi_bias(1, 3, 1, 1 - 3)) == Doubles{-2.0 / 256, -1.0 / 256, 0});
  CHECK(nn::alibi_bias(0, 2, 3).shape() == Shape{0, 2, 3});
}

TEST_CASE("a cache of fewer heads", "[nn][attention][cache]") {
  manual_seed(3);
  const nn::MultiHeadAttention heads(8, 4, {.num_kv_heads = 2});
  const Tensor x = randn({2, 7, 8});
  const NoGrad no_grad;
  const Tensor whole = heads(x, x, x, {.is_causal = true, .need_weights = false}).output;
  nn::KeyValueCache cache(7);
  Size at = 0;
  for (const Size length : {1, 4, 2}) {
    const Tensor part = narrow(x, 1, at, length);
    const Tensor y =
        heads(part, part, part, {.is_causal = true, .need_weights = false, .cache = &cache}).output;
    CHECK(allclose(y, narrow(whole, 1, at, length), 2e-6, 2e-6));
    at += length;
  }
  CHECK_THROWS_WITH(nn::MultiHeadAttention(8, 4, {.num_kv_heads = 3}),
                    ContainsSubstring("num_heads 4 is not a multiple of num_kv_heads 3"));
  CHECK_THROWS_AS(nn::MultiHeadAttention(8, 4, {.num_kv_heads = 0}), ValueError);
}

TEST_CASE("recurrent layers: names, shapes and errors", "[nn]") {
  using Names = std::vector<std::string>;
  CHECK(names_of(nn::LSTM(2, 3)) ==
        Names{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"});
  const nn::GRU gru(2, 3, {.num_layers = 2, .bias = false, .bidirectional = true});
  CHECK(names_of(gru) == Names{"weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse",
                               "weight_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1",
                               "weight_ih_l1_reverse", "weight_hh_l1_reverse"});
  CHECK(gru.cells[2].weight_ih.shape() == Shape{9, 6});
  const auto [y, h] = gru(ones({5, 4, 2}));
  CHECK(y.shape() == Shape{5, 4, 6});
  CHECK(h.shape() == Shape{4, 4, 3});
  CHECK(gru(ones({5, 2}, DType::float32)).output.shape() == Shape{5, 6});
  CHECK(gru(ones({5, 0, 2})).output.shape() == Shape{5, 0, 6});

  const nn::LSTM lstm(2, 3, {.batch_first = true});
  CHECK_THROWS_WITH(lstm(ones({4, 5, 3})),
                    ContainsSubstring("LSTM: x is (4, 5, 3); it must be (N, L, 2) or (L, 2)"));
  CHECK_THROWS_AS(lstm(ones({4, 0, 2})), ShapeError);
  CHECK_THROWS_AS(gru(ones({0, 4, 2})), ShapeError);
  CHECK_THROWS_AS(gru(ones(2)), ShapeError);
  CHECK_THROWS_WITH(lstm(ones({4, 5, 2}), {ones({4, 3}), {}}),
                    ContainsSubstring("LSTM: h or c is (4, 3) but must be (1, 4, 3)"));
  CHECK_THROWS_WITH(lstm(ones({5, 2}), {{}, ones({1, 1, 3})}), ContainsSubstring("must be (1, 3)"));
  CHECK_THROWS_WITH(nn::LSTM(2, 0), ContainsSubstring("hidden_size 0"));
  CHECK_THROWS_AS(nn::GRU(2, 3, {.num_layers = 0}), ValueError);
  CHECK_THROWS_WITH(nn::GRU(2, 3, {.dropout = 2}), ContainsSubstring("GRU: dropout is 2"));
  nn::GRU copy = nn::clone(gru);
  nn::to(copy, DType::float64);
  CHECK(copy(ones({5, 2}, DType::float64)).h_n.dtype() == DType::float64);
}
