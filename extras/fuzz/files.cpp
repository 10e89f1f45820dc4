#include "files.hpp"

#include <xgrad/autograd/random.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>

#include "helpers/safetensors.hpp"
#include "helpers/temporary_folder.hpp"

namespace fuzz {
namespace {

using xgrad::io::Json;
using xgrad::io::JsonArray;
using xgrad::io::JsonObject;

/// A file with the weights of a small model and this metadata.
std::string file_with_model(JsonObject metadata) {
  static const xgrad::nn::StateDict state = xgrad::nn::state_dict(xgrad::nn::GPT(
      {.block_size = 2, .vocab_size = 3, .n_layer = 1, .n_head = 1, .n_embd = 2, .bias = false}));
  JsonObject header{{"__metadata__", std::move(metadata)}};
  std::string data;
  for (const auto& [name, x] : state) {
    const std::uint64_t begin = data.size();
    data.append(reinterpret_cast<const char*>(x.data<float>()), x.numel() * sizeof(float));
    header.emplace_back(name,
                        JsonObject{{"dtype", "F32"},
                                   {"shape", JsonArray(x.shape().begin(), x.shape().end())},
                                   {"data_offsets", JsonArray{begin, std::uint64_t{data.size()}}}});
  }
  return file_of(format_json(header, xgrad::io::InvalidUtf8::replaced), data);
}

}  // namespace

const std::string& file_with(std::string_view bytes) {
  static const TemporaryFolder folder;
  static const std::string path = folder / "input";
  write_bytes(path, bytes);
  return path;
}

const char* const small_config =
    R"({"preset":"nano","data":null,"vocab_size":3,"block_size":2,"n_layer":1,"n_head":1,)"
    R"("n_embd":2,"dropout":0.1,"bias":false})";

std::string small_checkpoint(const std::string& config) {
  return file_with_model({{"xgrad_checkpoint", "1"},
                          {"step", "7"},
                          {"generator", xgrad::Generator(1).state()},
                          {"config", config},
                          {"characters", "\nab"},
                          {"optimizer", R"({"numbers":{},"parameters":[]})"}});
}

std::string small_state_dict(const std::string& config) {
  return file_with_model({{"config", config}, {"characters", "\nab"}});
}

}  // namespace fuzz
