// Folders with a pretrained model: the bytes are its config.json, and the index of its weights.

#include <filesystem>
#include <fstream>
#include <xgrad/autograd/error.hpp>
#include <xgrad/lm/pretrained.hpp>

#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

const std::size_t most_weights = 1000;  // of these models

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A copy of a small model's folder with one file replaced by these bytes.
void load_with(const xgrad::lm::GPTConfig& config, const std::string& file,
               std::string_view bytes) {
  const std::string folder = file_with("") + ".pretrained";
  std::filesystem::remove_all(folder);
  xgrad::lm::save_pretrained(folder, xgrad::lm::GPT(config));
  if (file == "model.safetensors.index.json")
    std::filesystem::rename(folder + "/model.safetensors", folder + "/a.safetensors");
  write_file(folder + "/" + file, bytes);
  refused<xgrad::FileError>([&] {
    xgrad::lm::read_pretrained_metadata(folder);
    demand(std::cmp_less_equal(xgrad::nn::num_parameters(xgrad::lm::load_pretrained(folder)),
                               most_weights),
           "more values than the files have");
  });
}

void run(std::string_view bytes) {
  const xgrad::lm::GPTConfig sizes{
      .block_size = 4, .vocab_size = 5, .n_layer = 1, .n_head = 2, .n_embd = 4, .n_inner = 3};
  const auto llama = xgrad::lm::GPTConfig::llama(sizes);
  auto qwen3 = llama;
  qwen3.qk_norm = true;
  for (const auto& config : {xgrad::lm::GPTConfig::gpt2(sizes), llama, qwen3})
    for (const char* const file :
         {"config.json", "generation_config.json", "model.safetensors.index.json"})
      load_with(config, file, bytes);
}

std::vector<std::string> seeds() {
  const std::string sizes = R"("vocab_size":5,"max_position_embeddings":4,)"
                            R"("num_attention_heads":2,"hidden_size":4,"intermediate_size":3,)",
                    llama = R"({"model_type":"llama",)" + sizes;
  return {R"({"model_type":"gpt2","vocab_size":5,"n_positions":4,"n_layer":1,"n_head":2,)"
          R"("n_embd":4,"n_inner":3})",
          llama + R"("num_hidden_layers":1})",
          R"({"model_type":"mistral","num_hidden_layers":1,"sliding_window":2,)" + sizes +
              R"("rms_norm_eps":1e-5})",
          R"({"model_type":"qwen3","num_hidden_layers":1,"head_dim":2,"use_sliding_window":true,)"
          R"("sliding_window":3,"max_window_layers":0,)" +
              sizes + R"("layer_types":["sliding_attention"]})",
          llama + R"("num_hidden_layers":1,"head_dim":2147483646,"rope_parameters":)"
                  R"({"rope_type":"llama3","rope_theta":1e308,"factor":1e-308,)"
                  R"("low_freq_factor":1,"high_freq_factor":1.0000001,)"
                  R"("original_max_position_embeddings":2147483647}})",
          llama + R"("num_hidden_layers":2147483647})",
          R"({"weight_map":{"a":"a.safetensors","b":"a.safetensors"}})",
          R"({"eos_token_id":[1,2]})",
          R"({"weight_map":{"a":"../a.safetensors"}})",
          R"({"model_type":"gpt2\u0000\u001b[2J","quantization_config":[[[[[[[[]]]]]]]]})",
          ""};
}

}  // namespace

const Target pretrained{"pretrained", run, seeds};

}  // namespace fuzz
