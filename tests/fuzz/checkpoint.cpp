// Checkpoints: the layout, and the model that xgrad loads.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

#include <xgrad/lm/program/checkpoint_info.hpp>
#include "files.hpp"
#include "helpers/temporary_folder.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

xgrad::optim::AdamW optimizer_of(const xgrad::nn::Linear& model) {
  return xgrad::optim::AdamW(xgrad::nn::parameters(model), {});
}

// Corrects the checksum, because otherwise any change would be detected there.
std::string with_checksum(std::string_view bytes) {
  std::string file(bytes);
  const std::string key = R"("xgrad_checksum":")";
  const std::size_t at = file.find(key) + key.size();
  if (file.find(key) != std::string::npos && at + 16 <= file.size()) {
    file.replace(at, 16, 16, '0');
    xgrad::io::Checksum checksum;
    checksum.add(file.data(), file.size());
    file.replace(at, 16, checksum.digits());
  }
  return file;
}

void run(std::string_view bytes) {
  const std::string& path = file_with(with_checksum(bytes));
  refused<xgrad::FileError>([&] {
    const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
    xgrad::nn::Linear model(2, 1);
    xgrad::optim::AdamW optimizer = optimizer_of(model);
    restore(checkpoint, model, optimizer);
  });
  refused<xgrad::FileError>([&] { program::load_trained_model(path); });
}

std::vector<std::string> seeds() {
  const xgrad::nn::Linear model(2, 1);
  xgrad::optim::AdamW optimizer = optimizer_of(model);
  model(xgrad::ones({1, 2})).sum().backward();
  optimizer.step();
  const std::string path = file_with("");
  xgrad::io::save_checkpoint(path, model, optimizer, {.step = 1, .user = "notes"});
  const std::string saved = read_bytes(path);
  return {small_checkpoint(small_config), saved};
}

}  // namespace

const Target checkpoint{"checkpoint", run, seeds};

}  // namespace fuzz
