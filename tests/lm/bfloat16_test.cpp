// Weights in bfloat16: rounding, products, and models that equal those with rounded weights.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

std::uint16_t rounded_bits(float x) {
  std::uint16_t y = 0;
  kernels::to_bfloat16(1, &x, &y);
  return y;
}

Tensor rounded_to_bfloat16(const Tensor& x) {
  auto y = copy_of(x.data<float>(), x.shape());
  for (float& v : y)
    v = kernels::from_bfloat16(rounded_bits(v));
  return Tensor(std::move(y));
}

Bfloat16Matrix matrix_of(const Tensor& x) {
  Bfloat16Matrix matrix(x.shape());
  CHECK(matrix.put(0, 0, x));
  return matrix;
}

double relative_distance(const Tensor& a, const Tensor& b) {
  return abs(a - b).max().item() / abs(b).max().item();
}

// A weight that is a plain Tensor as well.
struct PlainTie {
  nn::Linear layer{4, 4, false};
  Tensor plain = layer.weight;
  static void visit(auto& self, auto&& v) {
    v("layer", self.layer);
    v("plain", self.plain);
    v("plain", nn::tied_to("layer.weight"));
  }
};

// GPT-2 and Llama, tied and not; the widths are no multiples of registers.
std::vector<lm::GPT> random_decoders() {
  const lm::GPTConfig sizes{
      .block_size = 24, .vocab_size = 37, .n_layer = 2, .n_head = 3, .n_embd = 42};
  lm::GPTConfig untied = sizes, llama = lm::GPTConfig::llama(sizes);
  untied.tied = false;
  llama.n_kv_head = 1;
  llama.n_inner = 50;
  lm::GPTConfig tied = llama;
  tied.tied = true;
  std::vector<lm::GPT> models;
  manual_seed(5);
  for (const lm::GPTConfig& config : {lm::GPTConfig::gpt2(sizes), untied, llama, tied}) {
    models.emplace_back(config);
    for (Tensor p : nn::parameters(models.back()))
      p.copy_(p * 4 + normal(p.shape(), 5, DType::float32) * 0.1);
  }
  return models;
}

// The model with the same bfloat16 matrices, in float32.
lm::GPT with_rounded_weights(const lm::GPT& model) {
  lm::GPT copy = nn::clone(model);
  for (Tensor p : nn::parameters(copy))
    if (p.dim() == 2)
      p.copy_(rounded_to_bfloat16(p));
  return copy;
}

const Indices half_ids{{1, 35, 3, 0, 36, 12, 2, 4}, {6, 4, 24, 31, 0, 0, 5, 2}};

}  // namespace

TEST_CASE("bfloat16: rounding is to the nearest, ties to even", "[bfloat16]") {
  const auto of = [](std::uint32_t bits) { return rounded_bits(std::bit_cast<float>(bits)); };
  CHECK(of(0x3F808000) == 0x3F80);  // ties
  CHECK(of(0x3F818000) == 0x3F82);
  CHECK(of(0xBF818000) == 0xBF82);
  CHECK(of(0x3F808001) == 0x3F81);
  CHECK(of(0x3F817FFF) == 0x3F81);
  CHECK(of(0x3FFFFFFF) == 0x4000);  // into the exponent
  CHECK(of(0x00000000) == 0x0000);
  CHECK(of(0x80000000) == 0x8000);
  CHECK(of(0x00008001) == 0x0001);  // subnormal
  CHECK(of(0x7F800000) == 0x7F80);
  CHECK(of(0xFF800000) == 0xFF80);
  CHECK(of(0x7F800001) == 0x7FC0);  // NaN stays NaN
  CHECK(of(0xFFC12345) == 0xFFC1);
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)  // exact values, signalling NaN too
    if (of(upper << 16) != upper)
      FAIL(upper << " becomes " << of(upper << 16));

  std::uint16_t y[3];
  const float largest = std::bit_cast<float>(0x7F7F0000), beyond = std::bit_cast<float>(0x7F7F8000);
  const float fits[] = {largest, std::numeric_limits<float>::infinity(), std::nanf("")};
  CHECK(kernels::to_bfloat16(3, fits, y));
  const float does_not[] = {1, -beyond, 1};
  CHECK_FALSE(kernels::to_bfloat16(3, does_not, y));
}

TEST_CASE("bfloat16: products are those of the rounded weights", "[bfloat16]") {
  const std::size_t threads = num_threads();
  for (const std::size_t k : {1, 2, 31, 32, 33, 100, 576})
    for (const std::size_t n : {1, 3, 4, 5, 70, 200}) {
      const Tensor w = normal({n, k}, n + k, DType::float32), b = normal(n, 3, DType::float32);
      const Bfloat16Matrix matrix = matrix_of(w);
      const Tensor expected_w = rounded_to_bfloat16(w);
      for (const std::size_t m : {1, 2, 7, 8, 17}) {
        const Tensor x = normal({m, k}, m, DType::float32);
        for (const Tensor& bias : {Tensor(), b}) {
          INFO(m << " rows, " << n << " x " << k << (bias.defined() ? ", bias" : ""));
          set_num_threads(1);
          const Tensor y = matrix.linear(x, bias);
          CHECK(relative_distance(y, linear(x, expected_w, bias)) < 1e-5);
          set_num_threads(3);
          CHECK(same_bits(matrix.linear(x, bias), y));
        }
      }
    }
  set_num_threads(threads);

  const Tensor w = normal({6, 35}, 1, DType::float32);
  const Bfloat16Matrix matrix = matrix_of(w);
  CHECK(same_bits(matrix.rows({{5, 0}, {2, 2}}),
                  embedding({{5, 0}, {2, 2}}, rounded_to_bfloat16(w))));
  CHECK(matrix.linear(ones({2, 0, 35}), {}).shape() == Shape{2, 0, 6});
  CHECK(same_bits(matrix_of(zeros({3, 0})).linear(zeros({2, 0}), ones(3)), ones({2, 3})));
  CHECK(matrix_of(zeros({0, 3})).linear(zeros({2, 3}), {}).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(matrix.linear(ones({2, 34}), {}),
                    ContainsSubstring("x (2, 34) has last dimension 34 but weight (6, 35)"));
  CHECK_THROWS_WITH(matrix.linear(ones(Dims()), {}), ContainsSubstring("dimension of size 35"));
  CHECK_THROWS_AS(matrix.linear(ones({2, 35}, DType::float64), {}), DTypeError);
  CHECK_THROWS_WITH(matrix.rows({6}), ContainsSubstring("expected 0 to 5"));
  CHECK_THROWS_AS(matrix.linear(ones({2, 35}).requires_grad_(), {}), GraphError);
  CHECK_THROWS_AS(matrix.linear(ones({2, 35}), ones(6).requires_grad_()), GraphError);
}

TEST_CASE("bfloat16: a model equals that of rounded weights", "[bfloat16][gpt]") {
  const NoGrad no_grad;
  for (const lm::GPT& model : random_decoders()) {
    lm::GPT half = model;
    nn::to_bfloat16(half);
    CHECK(half.lm_head.bfloat16.defined());
    CHECK_FALSE(half.lm_head.weight.defined());
    CHECK(model.lm_head.weight.defined());  // the same Tensors as before
    CHECK((half.lm_head.bfloat16.handle() == half.wte.bfloat16.handle()) == model.config.tied);
    const lm::GPT rounded = with_rounded_weights(model);
    CHECK(relative_distance(half(half_ids), rounded(half_ids)) < 1e-5);
    CHECK(relative_distance(half(half_ids), model(half_ids)) > 1e-4);

    std::vector<nn::KeyValueCache> ours(2, nn::KeyValueCache(24)), theirs = ours;
    for (const auto& [begin, length] : {std::pair(0, 5), {5, 1}, {6, 1}, {7, 1}}) {
      const Indices ids = half_ids.narrow(1, begin, length).narrow(0, 0, 1);
      CHECK(relative_distance(half.last_logits(ids, ours), rounded.last_logits(ids, theirs)) <
            1e-5);
    }
    Generator a(1), b(1);
    CHECK(numbers(half.generate(half_ids, 20, a)) == numbers(rounded.generate(half_ids, 20, b)));
  }
}

TEST_CASE("bfloat16: functions that need Tensors of weights throw", "[bfloat16][gpt]") {
  for (const lm::GPT& model : random_decoders()) {
    lm::GPT half = model;
    nn::to_bfloat16(half);
    CHECK(nn::num_parameters(half) == nn::num_parameters(model));
    const std::string table = nn::summary(half);
    check_contains(table, {"weight (37, 42) bfloat16", "c_proj"});
    const auto total = [](const std::string& t) { return t.substr(t.find("\ntotal"), 24); };
    CHECK(total(table) == total(nn::summary(model)));
    const lm::GPT copy = nn::clone(half);
    {
      const NoGrad no_grad;
      CHECK(same_bits(copy(half_ids), half(half_ids)));
    }
    const std::string reason = "transformer.wte.weight is in bfloat16, for answers alone";
    const TemporaryFolder folder;
    check_contains(message_of<ValueError>([&] { nn::state_dict(half); }), {"state_dict", reason});
    check_contains(message_of<ValueError>([&] { nn::to(half, DType::float64); }), {"to: ", reason});
    check_contains(
        message_of<ValueError>([&] { nn::load_state_dict(half, nn::state_dict(model)); }),
        {"load_state_dict: ", reason});
    check_contains(message_of<ValueError>([&] { io::save(half, folder / "x.safetensors"); }),
                   {reason});
    CHECK(folder.count() == 0);
    check_contains(message_of<GraphError>([&] { half.loss(half_ids, half_ids); }),
                   {"no gradient; use NoGrad"});
  }
  nn::Linear bias(4, 64);
  bias.bias = ones({2});
  nn::to_bfloat16(bias);
  CHECK_THROWS_WITH(bias(ones({1, 4})), ContainsSubstring("bias (2,) does not fit weight (64, 4)"));
  PlainTie tie;
  CHECK_THROWS_WITH(nn::to_bfloat16(tie), ContainsSubstring("plain is layer.weight's Tensor"));
  CHECK(nn::num_parameters(tie) == 16);
  nn::Sequential wide{nn::Linear(2, 3)};
  nn::to(wide, DType::float64);
  CHECK_THROWS_WITH(nn::to_bfloat16(wide), ContainsSubstring("0.weight is float64"));
  nn::Sequential large{nn::Linear(2, 3), nn::Linear(3, 1)};
  large.at<nn::Linear>(1).weight.fill_(3.4e38);
  CHECK_THROWS_WITH(nn::to_bfloat16(large), ContainsSubstring("1.weight has a finite value"));
  CHECK(large.at<nn::Linear>(0).weight.defined());  // nothing has changed
  CHECK(nn::state_dict(large).size() == 4);
}
