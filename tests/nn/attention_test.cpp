// Attention layers compared with PyTorch's numbers, typed in, and their gradients in float64.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/init.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "nn/checks.hpp"

using namespace xgrad;

// ---- self-attention ----

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
  check_start(closed.weights, {0, 0, 0});  // nothing allowed: zeros
  CHECK(narrow(x.select(0, 1), {.is_causal = true}).output.shape() == Shape{3, 5});
  CHECK_THROWS_AS(narrow(ones({6})), ShapeError);

  nn::SelfAttention model(6, {.d_k = 2});
  check_gradients(model, x,
                  [&](const Tensor& in) { return model(in, {.is_causal = true}).output; });
}

// ---- multi-head attention ----

namespace {

double length_of(const Tensor& x) { return x.detach().to(DType::float64).norm().item(); }

// torch.manual_seed(11); nn.MultiheadAttention(8, 2, batch_first=True), biases redrawn N(0, 0.5).
struct Heads {
  nn::MultiHeadAttention mha = [] {
    manual_seed(11);
    return nn::MultiHeadAttention(8, 2);
  }();
  Tensor q, k, v;
  Mask forbidden{{0, 0, 1, 1}, {0, 0, 0, 1}, {1, 0, 0, 0}};
  Mask padding{{0, 0, 0, 1}, {0, 0, 0, 0}};
  Heads() {
    nn::init::normal_(mha.in_proj_bias, 0, .5);
    nn::init::normal_(mha.out_proj.bias, 0, .5);
    q = randn({2, 3, 8});
    k = randn({2, 4, 8});
    v = randn({2, 4, 8});
  }
};

struct Expected {
  double sum;
  std::vector<double> output, weights;
  double in_proj_grad, bias_grad, out_proj_grad;  // norms
};

void check_attention(Heads& h, const nn::Attended& result, const Expected& e) {
  const Tensor& y = result.output;
  CHECK(total(y) == Approx(e.sum).epsilon(2e-6));
  check_start(y, e.output);
  if (result.weights.defined())
    check_start(result.weights, e.weights);
  nn::zero_grad(h.mha);
  const auto n = static_cast<double>(y.numel());
  sum(y * reshape(arange(n), y.shape()) / n).backward();
  CHECK(length_of(h.mha.in_proj_weight.grad()) == Approx(e.in_proj_grad).epsilon(1e-5));
  CHECK(length_of(h.mha.in_proj_bias.grad()) == Approx(e.bias_grad).epsilon(1e-5));
  CHECK(length_of(h.mha.out_proj.weight.grad()) == Approx(e.out_proj_grad).epsilon(1e-5));
}

}  // namespace

TEST_CASE("MultiHeadAttention starts as PyTorch's", "[nn][attention]") {
  manual_seed(11);
  const nn::MultiHeadAttention mha(8, 2);
  CHECK(total(mha.in_proj_weight) == Approx(1.96907372));
  check_start(mha.in_proj_weight, {0.0765321851});
  CHECK(total(mha.out_proj.weight) == Approx(-0.137317304).epsilon(1e-5));
  check_start(mha.out_proj.weight, {-0.248164982, -0.00950837135});
  CHECK(total(mha.in_proj_bias) == 0);
  CHECK(total(mha.out_proj.bias) == 0);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : nn::state_dict(mha))
    names.push_back(name);
  CHECK(names == std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight",
                                          "out_proj.bias"});
  CHECK(nn::num_parameters(nn::MultiHeadAttention(8, 2, {.bias = false})) == 4 * 64);
}

TEST_CASE("MultiHeadAttention as PyTorch's", "[nn][attention]") {
  Heads h;
  const auto& mha = h.mha;
  check_attention(h, mha(h.q, h.k, h.v),
                  {-13.4149378,
                   {-0.163813472, -1.01166475, -1.22600222},
                   {0.200001106, 0.240482405, 0.314456493, 0.245059982},
                   5.68050957,
                   4.23351806,
                   14.4287429});
  check_attention(h, mha(h.q, h.k, h.k),
                  {-10.4454696,
                   {-0.346122652, -0.708388686, -0.986226559},
                   {0.200001106, 0.240482405, 0.314456493, 0.245059982},
                   4.70840852,
                   4.30034822,
                   16.4875173});
  check_attention(h, mha(h.q, h.q, h.q),
                  {-7.78779048,
                   {-0.0527374968, -0.765876353, -0.787922144},
                   {0.349286497, 0.292600036, 0.358113527, 0.36360085},
                   4.64429808,
                   4.23562757,
                   14.5826632});
}

TEST_CASE("MultiHeadAttention's masks as PyTorch's", "[nn][attention]") {
  Heads h;
  const auto& mha = h.mha;
  const bool weights = GENERATE(true, false);  // composed, and by the fused op
  check_attention(h, mha(h.q, h.k, h.v, {.attn_mask = h.forbidden, .need_weights = weights}),
                  {-13.3382698,
                   {-0.503332615, -1.03055441, -1.58279109},
                   {0.448005676, 0.551994383, 0, 0},
                   4.77128917,
                   4.2282383,
                   13.9956354});
  check_attention(h,
                  mha(h.q, h.k, h.v,
                      {.attn_mask = h.forbidden,
                       .key_padding_mask = h.padding,
                       .need_weights = weights,
                       .average_attn_weights = false}),
                  {-13.5348043,
                   {-0.503332615, -1.03055441, -1.58279109},
                   {0.513713837, 0.486286193, 0, 0},
                   4.74650877,
                   4.22786119,
                   14.045874});
  check_attention(h, mha(h.q, h.k, h.v, {.key_padding_mask = h.padding, .need_weights = weights}),
                  {-14.1691124,
                   {-0.230631977, -0.995482445, -1.2967658},
                   {0.270100743, 0.319321454, 0.410577834, 0},
                   5.70431678,
                   4.23342417,
                   14.56734});
  const Tensor additive = reshape(linspace(-1, 1, 48), {4, 3, 4});
  check_attention(h, mha(h.q, h.k, h.v, {.attn_mask = additive, .need_weights = weights}),
                  {-13.4265468,
                   {-0.15272364, -1.0118717, -1.21529341},
                   {0.186675221, 0.234126806, 0.319334239, 0.259863764},
                   5.79085943,
                   4.2323586,
                   14.4943505});
  check_attention(h, mha(h.q, h.q, h.q, {.is_causal = true, .need_weights = weights}),
                  {-9.05572634,
                   {-0.342765212, -0.683352649, -0.838882804},
                   {1, 0, 0},
                   6.33035194,
                   4.21747934,
                   13.5610652});
}

TEST_CASE("MultiHeadAttention: masks combine", "[nn][attention]") {
  const Heads h;
  const auto& mha = h.mha;
  const Mask both{{0, 1, 1, 1}, {0, 0, 1, 1}, {1, 0, 0, 1}};  // forbidden, or after the query
  const auto expected = mha(h.q, h.k, h.v, {.attn_mask = both});
  const bool weights = GENERATE(true, false);
  nn::MultiHeadAttention::Call call{
      .attn_mask = h.forbidden, .is_causal = true, .need_weights = weights};
  call.attn_mask = Mask{{0, 0, 1, 1}, {0, 0, 0, 1}, {1, 0, 0, 1}};
  CHECK(allclose(mha(h.q, h.k, h.v, call).output, expected.output, 1e-5, 1e-6));
  call.attn_mask = zeros({3, 4});
  call.key_padding_mask = h.padding;
  const auto causal =
      mha(h.q, h.k, h.v, {.attn_mask = nn::future(3, 4), .key_padding_mask = h.padding});
  CHECK(allclose(mha(h.q, h.k, h.v, call).output, causal.output, 1e-5, 1e-6));

  // A query for which every key is forbidden: only the output projection's bias.
  const auto closed =
      mha(h.q, h.k, h.v,
          {.attn_mask = Mask{{1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}}, .need_weights = weights});
  CHECK(allclose(closed.output.select(0, 0).select(0, 0), mha.out_proj.bias, 1e-6, 1e-7));
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
  CHECK_THROWS_WITH(mha(h.q, h.k, h.v, {.key_padding_mask = h.forbidden}),
                    ContainsSubstring("key_padding_mask (3, 4) must be (2, 4)"));
  CHECK_THROWS_WITH(nn::MultiHeadAttention(8, 3), ContainsSubstring("not a multiple"));
  CHECK_THROWS_AS(nn::MultiHeadAttention(8, 2, {.dropout = 2}), ValueError);
}

TEST_CASE("MultiHeadAttention's dropout draws as PyTorch's", "[nn][attention]") {
  Heads h;
  h.mha = nn::MultiHeadAttention(8, 2, {.dropout = 0.4});
  manual_seed(12);
  for (const Tensor& p : nn::parameters(h.mha))
    nn::init::normal_(p);
  const auto result = h.mha(h.q, h.k, h.v);
  CHECK(total(result.output) == Approx(-76.5927159));
  check_start(result.weights, {0.0552167036, 0, 0.765813053, 0.718632996});
  nn::eval(h.mha);
  CHECK(allclose(h.mha(h.q, h.k, h.v).output, h.mha(h.q, h.k, h.v).output, 0, 0));
}

TEST_CASE("Gradients of the attention layers", "[nn][attention][gradcheck]") {
  Heads h;
  nn::to(h.mha, DType::float64);
  const Tensor key = h.k.to(DType::float64);
  const bool weights = GENERATE(true, false);
  check_gradients(h.mha, h.q, [&](const Tensor& x) {
    return h.mha(x, key, key, {.attn_mask = h.forbidden, .need_weights = weights}).output;
  });
  check_gradients(h.mha, h.q, [&](const Tensor& x) {
    return h.mha(x, x, x, {.is_causal = true, .need_weights = weights}).output;
  });
}
