// Attention layers: widths, masks that combine, one sequence, and errors.  The table of layers
// (golden/layers.py) has PyTorch's numbers and the derivatives.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/init.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "nn/checks.hpp"

using namespace xgrad;

TEST_CASE("SelfAttention is the notebook's", "[nn][attention]") {
  manual_seed(42);
  const Tensor x = randn({1, 4, 8});
  const nn::SelfAttention attention(8);
  const auto [output, weights] = attention(x);
  CHECK(output.shape() == Shape{1, 4, 8});
  CHECK(weights.shape() == Shape{1, 4, 4});
  check_start(output, {-0.260712802, 0.18388401, 0.0736196712, -0.226220012});
  check_start(weights, {0.333056629, 0.217135713, 0.185038611, 0.264769077});
}

TEST_CASE("SelfAttention takes a mask that fits its scores, and no other", "[nn][attention]") {
  const nn::SelfAttention attention(4);
  const Tensor x = ones({2, 3, 4});
  for (const Shape& fits : {Shape{}, Shape{3}, Shape{3, 3}, Shape{1, 1, 3}, Shape{2, 3, 1}})
    CHECK(attention(x, {.mask = ones(fits) == 1}).output.shape() == x.shape());
  for (const Shape& too_large : {Shape{1, 2, 3, 3}, Shape{5, 2, 3, 3}, Shape{4}, Shape{4, 3, 3}})
    CHECK_THROWS_AS(attention(x, {.mask = ones(too_large) == 1}), ShapeError);
  CHECK_THROWS_WITH(
      attention(ones({3, 4}), {.mask = ones({2, 3, 3}) == 1}),
      ContainsSubstring("SelfAttention: mask (2, 3, 3) does not broadcast to the scores (3, 3)"));
}

TEST_CASE("SelfAttention: widths and masks", "[nn][attention]") {
  manual_seed(8);
  const Tensor x = randn({2, 3, 6});
  const nn::SelfAttention narrow(6, {.d_k = 2, .d_v = 5, .output_projection = false});
  CHECK(narrow(x).output.shape() == Shape{2, 3, 5});
  CHECK(nn::parameters(narrow).size() == 3);
  CHECK(nn::named_parameters(nn::SelfAttention(6))[3].first == "W_o.weight");

  const auto causal = narrow(x, {.is_causal = true});
  check_start(causal.weights.select(0, 0).select(0, 0), {1, 0, 0});
  const Mask allowed({{1, 0, 0}, {1, 1, 0}, {1, 1, 1}});
  const auto masked = narrow(x, {.mask = allowed});
  CHECK(allclose(masked.output, causal.output));
  const auto closed = narrow(x, {.mask = Mask({{0, 0, 0}, {1, 1, 1}, {1, 1, 1}})});
  check_start(closed.weights, {0, 0, 0});  // a query with no allowed key gets zeros
  CHECK(narrow(x.select(0, 1), {.is_causal = true}).output.shape() == Shape{3, 5});
  CHECK_THROWS_AS(narrow(ones({6})), ShapeError);
}

namespace {

// Two heads, with biases that are not 0, and inputs.
struct Heads {
  nn::MultiHeadAttention mha = [] {
    manual_seed(11);
    return nn::MultiHeadAttention(8, 2);
  }();
  Tensor q, k, v;
  Mask padding{{0, 0, 0, 1}, {0, 0, 0, 0}};
  Heads() {
    nn::init::normal_(mha.in_proj_bias, 0, .5);
    nn::init::normal_(mha.out_proj.bias, 0, .5);
    q = randn({2, 3, 8});
    k = randn({2, 4, 8});
    v = randn({2, 4, 8});
  }
};

}  // namespace

TEST_CASE("MultiHeadAttention's parameters", "[nn][attention]") {
  const nn::MultiHeadAttention mha(8, 2);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : nn::state_dict(mha))
    names.push_back(name);
  CHECK(names == std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight",
                                          "out_proj.bias"});
  CHECK(nn::num_parameters(nn::MultiHeadAttention(8, 2, {.bias = false})) == 4 * 64);
}

TEST_CASE("MultiHeadAttention: masks combine", "[nn][attention]") {
  const Heads h;
  const auto& mha = h.mha;
  const Mask both{{0, 1, 1, 1}, {0, 0, 1, 1}, {1, 0, 0, 1}};  // forbidden, or after the query
  const auto expected = mha(h.q, h.k, h.v, {.attn_mask = both});
  const bool weights = GENERATE(true, false);
  nn::MultiHeadAttention::Call call{.is_causal = true, .need_weights = weights};
  call.attn_mask = Mask{{0, 0, 1, 1}, {0, 0, 0, 1}, {1, 0, 0, 1}};
  CHECK(allclose(mha(h.q, h.k, h.v, call).output, expected.output, 1e-5, 1e-6));
  call.attn_mask = zeros({3, 4});
  call.key_padding_mask = h.padding;
  const auto causal =
      mha(h.q, h.k, h.v, {.attn_mask = nn::future(3, 4), .key_padding_mask = h.padding});
  CHECK(allclose(mha(h.q, h.k, h.v, call).output, causal.output, 1e-5, 1e-6));

  // A query for which every key is forbidden gives the output projection's bias alone.
  const auto closed =
      mha(h.q, h.k, h.v,
          {.attn_mask = Mask{{1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}}, .need_weights = weights});
  CHECK(allclose(closed.output.select(0, 0).select(0, 0), mha.out_proj.bias, 1e-6, 1e-7));

  // Numbers are added to the scores, without gradients as well.
  call = {.attn_mask = randn({3, 4}), .average_attn_weights = false};
  const Tensor free = mha(h.q, h.k, h.v, {.average_attn_weights = false}).weights;
  const Tensor share = softmax(log(free) + std::get<Tensor>(call.attn_mask), -1);
  const auto biased = mha(h.q, h.k, h.v, call);
  CHECK(allclose(biased.weights, share, 1e-5, 1e-6));
  call.need_weights = weights;
  const NoGrad no_grad;
  CHECK(allclose(mha(h.q, h.k, h.v, call).output, biased.output, 1e-5, 1e-6));
}

TEST_CASE("MultiHeadAttention: one sequence, and misshapen inputs", "[nn][attention]") {
  const Heads h;
  const auto& mha = h.mha;
  const auto one = mha(h.q.select(0, 0), h.k.select(0, 0), h.v.select(0, 0));
  CHECK(one.output.shape() == Shape{3, 8});
  CHECK(one.weights.shape() == Shape{3, 4});
  check_start(one.output, {-0.163813472, -1.01166475, -1.22600222});
  CHECK(mha(h.q, h.k, h.v, {.average_attn_weights = false}).weights.shape() == Shape{2, 2, 3, 4});
  CHECK_FALSE(mha(h.q, h.k, h.v, {.need_weights = false}).weights.defined());
  CHECK_THROWS_WITH(mha(h.q, h.k, h.q), ContainsSubstring("value (2, 3, 8)"));
  CHECK_THROWS_WITH(mha(h.q, h.k, h.v, {.attn_mask = h.padding}),
                    ContainsSubstring("attn_mask (2, 4) must be (3, 4) or (4, 3, 4)"));
  CHECK_THROWS_WITH(mha(h.q, h.k, h.v, {.key_padding_mask = nn::future(3, 4)}),
                    ContainsSubstring("key_padding_mask (3, 4) must be (2, 4)"));
  CHECK_THROWS_WITH(nn::MultiHeadAttention(8, 3), ContainsSubstring("not a multiple"));
  CHECK_THROWS_AS(nn::MultiHeadAttention(8, 2, {.dropout = 2}), ValueError);
}

TEST_CASE("MultiHeadAttention's dropout is on in training only", "[nn][attention]") {
  Heads h;
  h.mha = nn::MultiHeadAttention(8, 2, {.dropout = 0.4});
  nn::eval(h.mha);
  CHECK(allclose(h.mha(h.q, h.k, h.v).output, h.mha(h.q, h.k, h.v).output, 0, 0));
}
