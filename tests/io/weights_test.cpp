// State dicts that PyTorch saved (tests/golden/weights.py), and files that do not fit.

#include <cmath>
#include <cstring>
#include <limits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/layers.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"
#include "helpers/weights.hpp"

using namespace xgrad;

namespace {

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

TEST_CASE("weights: each unsupported dtype is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
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
