#include "files.hpp"

#include <map>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/gpt.hpp>

#include "helpers/temporary_folder.hpp"

namespace fuzz {
namespace {

/// A file with the weights of a small model and this metadata; empty if that is not UTF-8.
std::string file_with_model(const std::map<std::string, std::string>& metadata) {
  static const xgrad::nn::StateDict state = xgrad::nn::state_dict(xgrad::lm::GPT(
      {.block_size = 2, .vocab_size = 3, .n_layer = 1, .n_head = 1, .n_embd = 2, .bias = false}));
  const std::string& path = file_with("");
  try {
    xgrad::io::save_safetensors(path,
                                {.tensors = {state.begin(), state.end()}, .metadata = metadata});
  } catch (const xgrad::ValueError&) {
  }
  return read_bytes(path);
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
  return file_with_model({
      {"xgrad_checkpoint", "2"},
      {"step", "7"},
      {"generators", R"({"default":")" + xgrad::Generator(1).state() + "\"}"},
      {"user", R"({"characters":"\nab","config":)" + config + "}"},
      {"optimizer", R"({"numbers":{},"parameters":[]})"},
  });
}

std::string small_state_dict(const std::string& config) {
  std::string file = file_with_model({{"config", config}, {"characters", "\nab"}});
  // Under another name its checksum is not checked, as in files of other programs.
  if (const std::size_t at = file.find("xgrad_checksum"); at != std::string::npos)
    file.replace(at, 5, "other");
  return file;
}

}  // namespace fuzz
