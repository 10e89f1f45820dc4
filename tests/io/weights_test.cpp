// State dicts that PyTorch saved (tests/golden/weights.py), and files that do not fit.

#include <cmath>
#include <cstring>
#include <limits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

/// PyTorch's inputs and outputs.
const io::TensorFile& outputs() {
  static const io::TensorFile file = io::load_safetensors(golden_weights("outputs"));
  return file;
}

void check_close(const Tensor& x, const Tensor& expected) {
  REQUIRE(x.shape() == expected.shape());
  double largest = 0;
  for (Size i = 0; i < x.numel(); ++i)
    largest = std::max(largest, std::abs(element<double>(x.to(DType::float64), i) -
                                         double{expected.data<float>()[i]}));
  CHECK(largest <= 1e-5);
}

/// All values of a model, to detect changes.
std::vector<double> values_of(const nn::StateDict& state) {
  std::vector<double> all;
  for (const auto& [name, x] : state) {
    const Tensor wide = x.to(DType::float64);
    all.insert(all.end(), wide.data<double>(), wide.data<double>() + wide.numel());
  }
  return all;
}

/// One parameter.
struct One {
  Tensor x;
  explicit One(const Shape& shape, DType dtype = DType::float32) : x(zeros(shape, dtype)) {}
  static void visit(auto& self, auto&& v) { v("x", self.x); }
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A file with one tensor "x" of one dimension.
void write_one(const std::string& path, const std::string& dtype, std::size_t size,
               const std::string& data) {
  write_bytes(path, file_of(R"({"x":{"dtype":")" + dtype + R"(","shape":[)" + std::to_string(size) +
                                R"(],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}",
                            data));
}

nn::GPT small_gpt(Size n_layer, bool bias) {
  nn::GPT model({.block_size = 8,
                 .vocab_size = 11,
                 .n_layer = n_layer,
                 .n_head = 2,
                 .n_embd = 16,
                 .bias = bias});
  nn::eval(model);
  return model;
}

/// Checks that loading fails with a message with these parts, and changes nothing.
template <nn::Layer M>
void check_not_loaded(M& model, const std::string& path, const std::vector<std::string>& parts) {
  const std::vector<double> before = values_of(nn::state_dict(model));
  const std::string message = message_of<FileError>([&] { io::load(model, path); });
  CHECK_THAT(message, StartsWith(path + ": "));
  check_contains(message, parts);
  CHECK(values_of(nn::state_dict(model)) == before);
}

}  // namespace

TEST_CASE("weights: layers give PyTorch's outputs with PyTorch's state dicts", "[golden]") {
  const auto& [tensors, ids, metadata] = outputs();
  nn::Linear linear(6, 4);
  CHECK(io::load(linear, golden_weights("linear")) == "");
  check_close(linear(tensors.at("linear.in0")), tensors.at("linear.out0"));

  nn::Embedding embedding(7, 5);
  io::load(embedding, golden_weights("embedding"));
  check_close(embedding(ids.at("embedding.in0")), tensors.at("embedding.out0"));

  nn::LayerNorm norm(10);
  io::load(norm, golden_weights("layer_norm"));
  check_close(norm(tensors.at("layer_norm.in0")), tensors.at("layer_norm.out0"));

  nn::MultiHeadAttention attention(12, 3);
  nn::eval(attention);
  io::load(attention, golden_weights("multi_head_attention"));
  const auto in = [&tensors = tensors](int i) {
    return tensors.at("multi_head_attention.in" + std::to_string(i));
  };
  const auto [y, weights] = attention(in(0), in(1), in(2));
  check_close(y, tensors.at("multi_head_attention.out0"));
  check_close(weights, tensors.at("multi_head_attention.out1"));

  nn::GPT gpt = small_gpt(2, true);
  io::load(gpt, golden_weights("gpt"));
  check_close(gpt(ids.at("gpt.in0")), tensors.at("gpt.out0"));
  // Wider: the same values, exactly.
  nn::to(gpt, DType::float64);
  const std::vector<double> values = values_of(nn::state_dict(gpt));
  nn::GPT wide = small_gpt(2, true);
  nn::to(wide, DType::float64);
  CHECK(io::load(wide, golden_weights("gpt")) == "F32 -> float64 (28 tensors)");
  CHECK(values_of(nn::state_dict(wide)) == values);
  check_close(wide(ids.at("gpt.in0")), tensors.at("gpt.out0"));
}

TEST_CASE("weights: F64, F16 and BF16 become float32, and the conversion is stated", "[golden]") {
  const auto& [tensors, ids, metadata] = outputs();
  for (const auto& [name, dtype] : {std::pair<std::string, std::string>{"gpt_f64", "F64"},
                                    {"gpt_f16", "F16"},
                                    {"gpt_bf16", "BF16"}}) {
    INFO(name);
    nn::GPT model = small_gpt(1, false);
    CHECK(io::load(model, golden_weights(name)) == dtype + " -> float32 (9 tensors)");
    CHECK(values_of({{"", model.wpe->weight}}) == values_of({{"", tensors.at(name + ".wpe")}}));
    check_close(model(ids.at("gpt.in0")), tensors.at(name + ".out0"));
  }
}

TEST_CASE("weights: every half-precision number is read exactly") {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> patterns(1 << 16);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    patterns[i] = static_cast<std::uint16_t>(i);
  write_one(folder / "f16", "F16", patterns.size(), bytes_of(patterns));
  write_one(folder / "bf16", "BF16", patterns.size(), bytes_of(patterns));

  const auto check = [&](const std::string& file, int fraction_bits, int bias, int largest) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      One model({patterns.size()}, dtype);
      io::load(model, folder / file);
      const Tensor x = model.x.detach().to(DType::float64);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const int exponent = patterns[i] >> fraction_bits & largest;
        const double fraction =
            std::ldexp(patterns[i] & ((1 << fraction_bits) - 1), -fraction_bits);
        const double sign = patterns[i] >> 15 != 0 ? -1 : 1;
        const double expected = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                              : std::ldexp(1 + fraction, exponent - bias);
        const double value = x.data<double>()[i];
        if (exponent == largest)
          wrong += fraction == 0 ? value != sign * std::numeric_limits<double>::infinity()
                                 : !std::isnan(value);
        else
          wrong += value != sign * expected || std::signbit(value) != (sign < 0);
      }
      CHECK(wrong == 0);
    }
  };
  check("f16", 10, 15, 31);
  check("bf16", 7, 127, 255);
}

TEST_CASE("weights: F64 rounds to the nearest float32, ties to even") {
  const TemporaryFolder folder;
  const double ulp = std::ldexp(1, -23), most = std::numeric_limits<float>::max();
  const std::vector<double> values = {1 + ulp / 2, 1 + 1.5 * ulp,       1 + 0.51 * ulp,
                                      1e-60,       std::ldexp(1, -149), most * (1 + 1e-9),
                                      -inf,        std::nan("")};
  write_one(folder / "x", "F64", values.size(), bytes_of(values));
  One model({values.size()});
  CHECK(io::load(model, folder / "x") == "F64 -> float32 (1 tensor)");
  const float* const x = model.x.data<float>();
  CHECK(x[0] == 1);
  CHECK(double{x[1]} == 1 + 2 * ulp);
  CHECK(double{x[2]} == 1 + ulp);
  CHECK(x[3] == 0);
  CHECK(double{x[4]} == std::ldexp(1, -149));
  CHECK(double{x[5]} == most);
  CHECK(double{x[6]} == -inf);
  CHECK(std::isnan(x[7]));

  // PyTorch would load an infinity, which shows much later.
  write_one(folder / "y", "F64", 2, bytes_of<double>({1, -1e39}));
  One small({2});
  check_not_loaded(small, folder / "y",
                   {"tensor 'x' (F64) holds -1e+39 at place 1, which float32 cannot hold"});
  One wide({2}, DType::float64);
  CHECK(io::load(wide, folder / "y") == "");
  CHECK(wide.x.data<double>()[1] == -1e39);
}

TEST_CASE("weights: one error lists all that is wrong with a file, and nothing is loaded") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  nn::GPT model = small_gpt(2, true);
  io::TensorFile file = io::load_safetensors(golden_weights("gpt"));
  file.tensors.erase("transformer.h.1.ln_1.bias");
  file.tensors.erase("transformer.ln_f.weight");
  file.tensors["transformer.h.2.ln_1.bias"] = zeros({16});
  file.tensors["transformer.wpe.weight"] = zeros({9, 16});
  file.tensors["transformer.h.0.ln_1.weight"] = zeros({4, 4});
  file.indices["transformer.h.0.mlp.c_fc.bias"] = Indices({1, 2});
  file.tensors.erase("transformer.h.0.mlp.c_fc.bias");
  io::save_safetensors(path, file);
  check_not_loaded(
      model, path,
      {"does not fit the model", "missing: transformer.h.1.ln_1.bias, transformer.ln_f.weight\n",
       "unexpected: transformer.h.2.ln_1.bias\n",
       "transformer.wpe.weight is (9, 16) here and (8, 16) in the model",
       "transformer.h.0.ln_1.weight is (4, 4) here and (16,) in the model",
       "transformer.h.0.mlp.c_fc.bias is (2,) here and (64,) in the model",
       "unsupported dtype (F16, BF16, F32 and F64 are supported): transformer.h.0.mlp.c_fc.bias is "
       "I64"});

  // Each unsupported dtype is named.
  One one({2});
  for (const auto& [dtype, width] : {std::pair<std::string, std::size_t>{"BOOL", 1},
                                     {"I8", 1},
                                     {"U8", 1},
                                     {"F8_E4M3", 1},
                                     {"F8_E5M2", 1},
                                     {"I16", 2},
                                     {"I32", 4},
                                     {"I64", 8},
                                     {"C64", 8}}) {
    write_one(path, dtype, 2, std::string(2 * width, '\1'));
    check_not_loaded(one, path, {"unsupported dtype", "x is " + dtype});
  }
}

TEST_CASE("weights: a tied weight under either name, or under both") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  nn::GPT expected = small_gpt(2, true);
  io::load(expected, golden_weights("gpt"));
  const std::vector<double> values = values_of(nn::state_dict(expected));

  io::save(expected, path);
  CHECK_FALSE(io::SafetensorsFile(path).contains("lm_head.weight"));
  io::TensorFile file = io::load_safetensors(golden_weights("gpt"));
  CHECK(file.tensors.count("lm_head.weight") == 0);
  file.tensors["lm_head.weight"] = file.tensors.at("transformer.wte.weight").clone();
  io::save_safetensors(path, file);
  nn::GPT both = small_gpt(2, true);
  io::load(both, path);
  CHECK(values_of(nn::state_dict(both)) == values);
  file.tensors.erase("transformer.wte.weight");
  io::save_safetensors(path, file);
  nn::GPT other = small_gpt(2, true);
  io::load(other, path);
  CHECK(values_of(nn::state_dict(other)) == values);
  CHECK(other.lm_head.weight.handle() == other.wte.weight.handle());

  file.tensors["transformer.wte.weight"] = zeros({11, 16});
  io::save_safetensors(path, file);
  check_not_loaded(other, path, {"tied in the model but different here"});
  file.tensors.erase("transformer.wte.weight");
  file.tensors.erase("lm_head.weight");
  io::save_safetensors(path, file);
  check_not_loaded(other, path, {"missing: transformer.wte.weight"});
}
