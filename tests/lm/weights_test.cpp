// State dicts of a GPT that PyTorch saved (tests/golden/weights.py), and files that do not fit.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/gpt.hpp>

#include "helpers/catch.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/weights.hpp"

using namespace xgrad;

namespace {

lm::GPT small_gpt(Size n_layer, bool bias) {
  lm::GPT model({.block_size = 8,
                 .vocab_size = 11,
                 .n_layer = n_layer,
                 .n_head = 2,
                 .n_embd = 16,
                 .bias = bias});
  nn::eval(model);
  return model;
}

}  // namespace

TEST_CASE("weights: a GPT gives PyTorch's outputs with PyTorch's state dict", "[golden]") {
  const auto& [tensors, ids, metadata] = outputs();
  lm::GPT gpt = small_gpt(2, true);
  io::load(gpt, golden_weights("gpt"));
  check_close(gpt(ids.at("gpt.in0")), tensors.at("gpt.out0"));
  // Wider: the same values, exactly.
  nn::to(gpt, DType::float64);
  const std::vector<double> values = values_of(nn::state_dict(gpt));
  lm::GPT wide = small_gpt(2, true);
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
    lm::GPT model = small_gpt(1, false);
    CHECK(io::load(model, golden_weights(name)) == dtype + " -> float32 (9 tensors)");
    CHECK(values_of({{"", model.wpe->weight}}) == values_of({{"", tensors.at(name + ".wpe")}}));
    check_close(model(ids.at("gpt.in0")), tensors.at(name + ".out0"));
  }
}

TEST_CASE("weights: one error lists all that is wrong with a file, and nothing is loaded") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  lm::GPT model = small_gpt(2, true);
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
}

TEST_CASE("weights: a tied weight under either name, or under both") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  lm::GPT expected = small_gpt(2, true);
  io::load(expected, golden_weights("gpt"));
  const std::vector<double> values = values_of(nn::state_dict(expected));

  io::save(expected, path);
  CHECK_FALSE(io::SafetensorsFile(path).contains("lm_head.weight"));
  io::TensorFile file = io::load_safetensors(golden_weights("gpt"));
  CHECK(file.tensors.count("lm_head.weight") == 0);
  file.tensors["lm_head.weight"] = file.tensors.at("transformer.wte.weight").clone();
  io::save_safetensors(path, file);
  lm::GPT both = small_gpt(2, true);
  io::load(both, path);
  CHECK(values_of(nn::state_dict(both)) == values);
  file.tensors.erase("transformer.wte.weight");
  io::save_safetensors(path, file);
  lm::GPT other = small_gpt(2, true);
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
