// Checkpoints: the layout, and the model that char_transformer makes of one.

#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/optim/adam.hpp>

#include "char_transformer/trained_model.hpp"
#include "files.hpp"
#include "helpers/temporary_folder.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

xgrad::optim::AdamW optimizer_of(const xgrad::nn::Linear& model) {
  return xgrad::optim::AdamW(xgrad::nn::parameters(model), {});
}

void run(std::string_view bytes) {
  const std::string& path = file_with(bytes);
  refused<xgrad::FileError>([&] {
    const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
    xgrad::nn::Linear model(2, 1);
    xgrad::optim::AdamW optimizer = optimizer_of(model);
    xgrad::Generator generator;
    restore(checkpoint, model, optimizer, generator);
  });
  refused<xgrad::FileError>([&] { char_transformer::load_trained_model(path); });
}

std::vector<std::string> seeds() {
  const xgrad::nn::Linear model(2, 1);
  xgrad::optim::AdamW optimizer = optimizer_of(model);
  model(xgrad::ones({1, 2})).sum().backward();
  optimizer.step();
  const std::string path = file_with("");
  save_checkpoint(path, xgrad::io::take_checkpoint(model, optimizer, 1, xgrad::Generator(3)));
  std::string saved = read_bytes(path);
  // With a checksum, no change would go further than that.
  if (const std::size_t at = saved.find("xgrad_checksum"); at != std::string::npos)
    saved[at] = 'X';
  return {small_checkpoint(small_config), saved};
}

}  // namespace

const Target checkpoint{"checkpoint", run, seeds};

}  // namespace fuzz
