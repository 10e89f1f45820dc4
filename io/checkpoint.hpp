#pragma once
// A training run in one safetensors file.
//
// The model's tensors stand under the names of its state dict, the optimizer's under
// "optimizer.exp_avg.<parameter>" and so on, and everything else in "__metadata__":
//
//   xgrad_checkpoint  the version of this layout, "1"
//   step              updates made
//   generator         the state of the training generator
//   config            JSON that says what model this is and how it was trained
//   characters        the vocabulary, in the order of the ids
//   optimizer         JSON: "parameters", their names in the optimizer's order, and "numbers"

#include <cstdint>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/io/model.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::io {

struct Checkpoint {
  std::string path;  ///< of the file that it was read from; not stored
  nn::StateDict model;
  optim::OptimizerState optimizer;
  std::vector<std::string> parameters;  ///< names, in the order in which the optimizer counts them
  std::uint64_t step = 0;
  std::string generator;
  std::string config;
  data::Characters characters;
};

/// The state of a run: all but config and characters.
template <nn::Layer M>
Checkpoint take_checkpoint(const M& model, const optim::Optimizer& optimizer, std::uint64_t step,
                           const Generator& generator);

/// Writes a checkpoint; the file at `path` is the old one until the new one is complete.  Throws
/// FileError for what cannot be written.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Reads one.  Throws FileError for what is not a checkpoint, saying why.
Checkpoint load_checkpoint(const std::string& path);

/// Gives model, optimizer and generator the state that the checkpoint holds.  Throws FileError if
/// anything does not fit; then nothing has changed.
template <nn::Layer M>
void restore(const Checkpoint& checkpoint, M& model, optim::Optimizer& optimizer,
             Generator& generator);

namespace detail {
/// The names of the optimizer's parameters.  ValueError if one is not among those named.
std::vector<std::string> parameter_names(const nn::StateDict& named,
                                         const optim::Optimizer& optimizer);
/// The optimizer's part of restore(), and the generator's.
void restore(const Checkpoint& checkpoint, const nn::StateDict& named, optim::Optimizer& optimizer,
             Generator& generator);
}  // namespace detail

template <nn::Layer M>
Checkpoint take_checkpoint(const M& model, const optim::Optimizer& optimizer, std::uint64_t step,
                           const Generator& generator) {
  Checkpoint checkpoint;
  checkpoint.model = nn::state_dict(model);
  checkpoint.optimizer = optimizer.state_dict();
  checkpoint.parameters = detail::parameter_names(nn::named_parameters(model), optimizer);
  checkpoint.step = step;
  checkpoint.generator = generator.state();
  return checkpoint;
}

template <nn::Layer M>
void restore(const Checkpoint& checkpoint, M& model, optim::Optimizer& optimizer,
             Generator& generator) {
  const nn::StateDict before = nn::state_dict(model);
  load_state(model, checkpoint.model, checkpoint.path);
  try {
    detail::restore(checkpoint, nn::named_parameters(model), optimizer, generator);
  } catch (...) {
    nn::load_state_dict(model, before);
    throw;
  }
}

}  // namespace xgrad::io
