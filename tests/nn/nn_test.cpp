// Layers against numbers of PyTorch, typed in, and their gradients in float64.

#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/activations.hpp>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/gradcheck.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/multi_head_attention.hpp>
#include <xgrad/nn/rms_norm.hpp>
#include <xgrad/nn/self_attention.hpp>
#include <xgrad/nn/sequential.hpp>
#include <xgrad/nn/transformer_block.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

namespace {

// The first elements of x.
void check_start(const Tensor& x, const std::vector<double>& expected, double eps = 2e-6) {
  const Tensor values = x.detach().to(DType::float64);
  REQUIRE(values.numel() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(values.data<double>()[i] == Approx(expected[i]).epsilon(eps).margin(2e-7));
}

double total(const Tensor& x) { return x.detach().to(DType::float64).sum().item(); }
double norm(const Tensor& x) { return x.detach().to(DType::float64).norm().item(); }

// Converts the model and checks the gradient of f, which calls it, in every parameter and in x; and
// that visit names every parameter that f uses.
template <class M, class F>
void check_gradients(M& model, Tensor x, const F& f) {
  nn::to(model, DType::float64);
  x = x.detach().to(DType::float64);
  CHECK(nn::unvisited_leaves(model, f(x)).empty());
  const auto call = [&](const std::vector<Tensor>& in) { return f(in[0]); };
  const auto first = nn::gradcheck(model, call, {x});
  INFO(first.message);
  CHECK(first.ok);
  const auto second = nn::gradgradcheck(model, call, {x});
  INFO(second.message);
  CHECK(second.ok);
}

}  // namespace

TEST_CASE("Linear and Embedding start as PyTorch's", "[nn]") {
  manual_seed(42);
  const nn::Linear layer(3, 2);
  check_start(layer.weight,
              {0.441406518, 0.479205281, -0.135257274, 0.53036046, -0.126499504, 0.116503909});
  check_start(layer.bias, {-0.281085879, 0.339067787});
  const nn::Embedding table(2, 3);
  check_start(table.weight,
              {-1.12285638, -0.186328292, 2.20820141, -0.637997031, 0.461657226, 0.267350882});
  const nn::Linear big(40, 30);
  CHECK(total(big.weight) == Approx(-4.89139919));
  CHECK(total(big.bias) == Approx(0.228287633));
  check_start(layer(randn({2, 3})), {-0.737285256, -0.0243957341, 0.663927913, -0.226263255});
  CHECK(layer.weight.requires_grad());
  CHECK(table(Indices({{0, 1}, {1, 1}})).shape() == Shape{2, 2, 3});
  CHECK_FALSE(nn::Linear(3, 2, false).bias.defined());
  CHECK(nn::Linear(0, 2)(zeros({4, 0})).shape() == Shape{4, 2});
}

TEST_CASE("Initialisers draw as PyTorch's", "[nn][init]") {
  manual_seed(5);
  const Tensor x = zeros({3, 4, 2});
  const auto check_init = [&x](double sum, const std::vector<double>& start) {
    CHECK(total(x) == Approx(sum).epsilon(1e-5));
    check_start(x, start);
  };
  nn::init::xavier_uniform_(x);
  check_init(1.58710687, {0.43240121, -0.489535719});
  nn::init::xavier_normal_(x);
  check_init(4.03855387, {0.988217235, -0.164045259});
  nn::init::kaiming_uniform_(x);
  check_init(3.14737614, {-0.588958561, 0.699865162});
  nn::init::kaiming_normal_(x);
  check_init(-0.258431537, {-0.258782238, -0.387682915});
  nn::init::uniform_(x, -2, 3);
  check_init(3.64751101, {-1.24228525, -0.0533668399});
  nn::init::normal_(x, .5, 2);
  check_init(3.23651701, {-1.93049955, 1.26324022});
  const Tensor few = nn::init::normal_(zeros({5}), .5, 2);  // rounded once, from double
  const std::vector<float> expected{-1.90523219F, 2.88400292F, 0.0945033208F, -1.86690068F,
                                    -0.975795448F};
  CHECK(std::vector<float>(few.data<float>(), few.data<float>() + 5) == expected);
  const Tensor d = nn::init::uniform_(zeros({3}, DType::float64), -2, 3);
  CHECK(d.data<double>()[0] == 0.57188260084520504);  // to the last bit
  CHECK(d.data<double>()[1] == -1.5076012904732581);
  CHECK(d.data<double>()[2] == 0.76896378978909619);

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
}

TEST_CASE("Norms and activations as PyTorch's", "[nn]") {
  manual_seed(3);
  const Tensor x = randn({2, 5});
  check_start(nn::LayerNorm(5)(x),
              {1.5629127, 0.166482523, -0.0242920909, -1.58571696, -0.119386092});
  check_start(nn::GELU()(x), {0.633859038, 0.0995492041, 0.0476433523, -0.165520221});
  check_start(nn::GELU{Gelu::tanh}(x), {0.633774042, 0.0995489061, 0.0476433299, -0.165555865});
  check_start(nn::SiLU()(x), {0.554802597, 0.0950389653, 0.0464670174, -0.21554485});
  CHECK_FALSE(nn::LayerNorm(5, {.bias = false}).bias.defined());
  CHECK(nn::LayerNorm({2, 5}).weight.shape() == Shape{2, 5});

  nn::RMSNorm rms(2, 0);
  check_start(rms(tensor({{3, 4}})), {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
  check_start(nn::ReLU()(tensor({-1, 2})), {0, 2});
  check_start(nn::Tanh()(tensor({1})), {std::tanh(1.0)});
  check_start(nn::Sigmoid()(tensor({0})), {0.5});
  check_start(nn::Softmax()(tensor({{0, 0}, {1, 1}})), {0.5, 0.5, 0.5, 0.5});
  check_start(nn::Softmax{0}(tensor({{0, 3}, {0, 3}})), {0.5, 0.5, 0.5, 0.5});
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

TEST_CASE("Gradients of the small layers", "[nn][gradcheck]") {
  manual_seed(6);
  const Tensor x = randn({3, 4});
  nn::Sequential net{nn::Linear(4, 5), nn::GELU(),
                     nn::LayerNorm(5), nn::Linear(5, 4, false),
                     nn::SiLU(),       nn::RMSNorm(4),
                     nn::Tanh(),       nn::Sigmoid(),
                     nn::Softmax(),    nn::LayerNorm(4, {.bias = false})};
  check_gradients(net, x, net);

  nn::Sequential words{nn::Embedding(5, 3), nn::Linear(3, 2)};
  const Indices ids({{0, 4}, {4, 2}});
  check_gradients(words, ones({1}), [&](const Tensor& one) { return words(ids) * one; });
}

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
  CHECK(norm(h.mha.in_proj_weight.grad()) == Approx(e.in_proj_grad).epsilon(1e-5));
  CHECK(norm(h.mha.in_proj_bias.grad()) == Approx(e.bias_grad).epsilon(1e-5));
  CHECK(norm(h.mha.out_proj.weight.grad()) == Approx(e.out_proj_grad).epsilon(1e-5));
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

  // A query to which every key is forbidden: only the output projection's bias.
  const auto closed =
      mha(h.q, h.k, h.v,
          {.attn_mask = Mask{{1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}}, .need_weights = weights});
  CHECK(allclose(closed.output.select(0, 0).select(0, 0), mha.out_proj.bias, 1e-6, 1e-7));
}

TEST_CASE("MultiHeadAttention: one sequence, and what does not fit", "[nn][attention]") {
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

TEST_CASE("Gradients of a transformer block", "[nn][attention][gradcheck]") {
  manual_seed(9);
  nn::TransformerBlock block(4, 2);
  check_gradients(block, randn({2, 3, 4}), block);
  CHECK_THROWS_WITH(nn::TransformerBlock(6, 4), ContainsSubstring("6 is not a multiple of n_head"));
  CHECK_THROWS_AS(nn::TransformerBlock(4, 2, -0.5), ValueError);
}
