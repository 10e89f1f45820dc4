#pragma once
// Saves and loads a model: its state dict as a safetensors file, which PyTorch users can open.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "../autograd/random.hpp"
#include "../nn/module.hpp"
#include "../optim/optimizer.hpp"
#include "json.hpp"
#include "safetensors.hpp"

namespace xgrad::io {

struct Checkpoint;
struct CheckpointOptions;
/// Generators other than default_generator(), which is always saved.
using Generators = std::map<std::string, Generator*>;

namespace detail {

/// Throws a FileError: `message`, then everything missing, unexpected, misshapen, or of an
/// inconvertible dtype (a buffer's I64 converts).  Other errors are those of verify().
void check_fits(const std::string& message, const std::vector<nn::detail::StateEntry>& expected,
                std::span<const SafetensorsFile> files, const std::set<std::string>& ignored,
                const char* where = "in the model");

void load_state(const nn::detail::Members& members, const nn::StateDict& state,
                const std::string& path);
void save(const nn::detail::Members& members, const std::string& path);
std::string load(const nn::detail::Members& members, const SafetensorsFile& file,
                 const std::set<std::string>& ignored);
void save_checkpoint(const std::string& path, const nn::detail::Members& model,
                     const optim::Optimizer& optimizer, const CheckpointOptions& options);
void restore(const Checkpoint& checkpoint, const nn::detail::Members& model,
             optim::Optimizer& optimizer, const Generators& generators);

}  // namespace detail

/// Loads the values of a state dict, read from the file at `path`, into a model.  Throws a
/// FileError that names the file and lists everything missing, unexpected or misshapen; then
/// nothing has changed.
template <class M>
void load_state(M& model, const nn::StateDict& state, const std::string& path) {
  detail::load_state(nn::detail::members(model), state, path);
}

/// Writes parameters and buffers; a tied weight once.  Throws FileError for what cannot be written.
template <class M>
void save(const M& model, const std::string& path) {
  detail::save(nn::detail::members(model), path);
}

/// Loads a file into a model.  F16, BF16, F32 and F64 become the model's dtype, see
/// SafetensorsFile::tensor(), and so does I64 of a buffer (BatchNorm1d's count); returns the
/// conversions, as "F16 -> float32 (28 tensors)", or nothing.  A tied weight may have any of its
/// names.  Throws one FileError that lists everything missing, unexpected, misshapen, or of another
/// dtype; then nothing has changed.  Tensors in `ignored` are skipped.
template <class M>
std::string load(M& model, const SafetensorsFile& file, const std::set<std::string>& ignored = {}) {
  return detail::load(nn::detail::members(model), file, ignored);
}
template <class M>
std::string load(M& model, const std::string& path) {
  return load(model, SafetensorsFile(path));
}

// A training run in one safetensors file: any model, its optimizer, generators, and the caller's
// JSON.
//
//   std::uint64_t step = 0;
//   if (std::filesystem::exists(path))
//     step = io::restore(path, model, optimizer).step;
//   for (; step < 1000; ++step) {
//     if (step % 100 == 0)
//       io::save_checkpoint(path, model, optimizer, {.step = step});
//     ...
//
// Learning-rate schedules are functions of the step, so they need no saving.
//
// The model's tensors have the names of its state dict, the optimizer's begin with "optimizer.", as
// "optimizer.exp_avg.<parameter>", and everything else is in "__metadata__":
//
//   xgrad_checkpoint  the version of this layout, "2"
//   xgrad_checksum    of the whole file (safetensors.hpp)
//   step              updates made
//   generators        JSON: the state of each by name; "default" is default_generator()
//   optimizer         JSON: "parameters", their names in the optimizer's order, and "numbers"
//   user              the caller's JSON
//
// The same run gives the same bytes: nothing depends on time, machine, path or threads.

/// A checkpoint holds these besides model and optimizer.
struct CheckpointOptions {
  std::uint64_t step = 0;  ///< updates made
  Json user = {};          ///< at most 64 levels; NaN and infinities become null
  Generators generators = {};
  /// Saves only the Tensors that the optimizer trains: add the others to Checkpoint::model before
  /// restoring it.
  bool trained_only = false;
};

/// The contents of a checkpoint.
struct Checkpoint {
  std::string path;  ///< the file that it was read from
  nn::StateDict model;
  optim::OptimizerState optimizer;
  std::vector<std::string> parameters;  ///< names, in the optimizer's order
  std::uint64_t step = 0;
  std::map<std::string, std::string> generators;  ///< their states
  Json user;
};

/// Saves a checkpoint; the old file at `path` stays until the new one is complete.  Throws
/// FileError if it cannot be written, ValueError if the optimizer has parameters that are not the
/// model's, and for a name that begins with "optimizer.".
template <class M>
void save_checkpoint(const std::string& path, const M& model, const optim::Optimizer& optimizer,
                     const CheckpointOptions& options = {}) {
  detail::save_checkpoint(path, nn::detail::members(model), optimizer, options);
}

/// Reads a checkpoint.  Throws FileError, with the reason, for a file that is no checkpoint or is
/// damaged.
Checkpoint load_checkpoint(const std::string& path);

/// Loads a checkpoint into model, optimizer and generators; one that is given by its path is
/// returned.  The optimizer may have
/// its parameters in another order and other groups, unless a group would mix parameters trained
/// with different options.  Throws FileError if anything does not fit; then nothing has changed.
template <class M>
void restore(const Checkpoint& checkpoint, M& model, optim::Optimizer& optimizer,
             const Generators& generators = {}) {
  detail::restore(checkpoint, nn::detail::members(model), optimizer, generators);
}
template <class M>
Checkpoint restore(const std::string& path, M& model, optim::Optimizer& optimizer,
                   const Generators& generators = {}) {
  Checkpoint checkpoint = load_checkpoint(path);
  restore(checkpoint, model, optimizer, generators);
  return checkpoint;
}

}  // namespace xgrad::io
