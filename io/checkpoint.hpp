#pragma once
// Saving and loading a model: its state dict as a safetensors file, which PyTorch users open as it
// is.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::io {

namespace detail {
void load_state(const nn::detail::Members& members, const nn::StateDict& state,
                const std::string& path);
}  // namespace detail

/// Gives a model the values of a state dict that came from the file at `path`.  Throws FileError
/// that names it and lists all that is missing, unexpected or misshapen; then nothing has changed.
template <nn::Layer M>
void load_state(M& model, const nn::StateDict& state, const std::string& path) {
  detail::load_state(nn::detail::members(model), state, path);
}

namespace detail {
/// Throws a FileError that begins with `message` and lists all that is missing, unexpected,
/// misshapen, or of a dtype that has no conversion (I64 of a buffer has one), and as of verify().
void check_fits(const std::string& message, const std::vector<nn::detail::StateEntry>& expected,
                std::span<const SafetensorsFile> files, const std::set<std::string>& ignored,
                const char* where = "in the model");

void save(const nn::detail::Members& members, const std::string& path);
std::string load(const nn::detail::Members& members, const SafetensorsFile& file,
                 const std::set<std::string>& ignored);
}  // namespace detail

/// Writes parameters and buffers; a tied weight once.  Throws FileError for what cannot be written.
template <nn::Layer M>
void save(const M& model, const std::string& path) {
  detail::save(nn::detail::members(model), path);
}

/// Gives a model the values in a file.  F16, BF16, F32 and F64 become the model's dtype, see
/// SafetensorsFile::tensor(), and so does I64 of a buffer (BatchNorm1d's count); returns what was
/// converted, as "F16 -> float32 (28 tensors)", or nothing.  A tied weight may come under any of
/// its names.  Throws one FileError that lists all that is missing, unexpected, misshapen, or of
/// another dtype; then nothing has changed.  Tensors in `ignored` are not looked at.
template <nn::Layer M>
std::string load(M& model, const SafetensorsFile& file, const std::set<std::string>& ignored = {}) {
  return detail::load(nn::detail::members(model), file, ignored);
}
template <nn::Layer M>
std::string load(M& model, const std::string& path) {
  return load(model, SafetensorsFile(path));
}

// A training run in one safetensors file: any model, its optimizer, generators, and JSON of the
// caller's own.
//
//   std::uint64_t step = 0;
//   if (std::filesystem::exists(path))
//     step = io::restore(path, model, optimizer).step;
//   for (; step < 1000; ++step) {
//     if (step % 100 == 0)
//       io::save_checkpoint(path, model, optimizer, {.step = step});
//     ...
//
// Learning-rate schedules are functions of the step, so they go on by themselves.
//
// The model's tensors stand under the names of its state dict, the optimizer's under
// "optimizer.exp_avg.<parameter>" and so on, and everything else in "__metadata__":
//
//   xgrad_checkpoint  the version of this layout, "2"
//   xgrad_checksum    of the whole file (safetensors.hpp)
//   step              updates made
//   generators        JSON: the state of each by name; "default" is default_generator()
//   optimizer         JSON: "parameters", their names in the optimizer's order, and "numbers"
//   user              the caller's JSON
//
// The same run gives the same bytes: nothing depends on time, machine, path or threads.

/// Generators other than default_generator(), which is always saved.
using Generators = std::map<std::string, Generator*>;

/// A checkpoint holds these beside model and optimizer.
struct CheckpointOptions {
  std::uint64_t step = 0;  ///< updates made
  Json user = {};          ///< at most 64 levels; NaN and infinities become null
  Generators generators = {};
  /// Only those of the model's Tensors that the optimizer trains: add the others to
  /// Checkpoint::model before restoring it.
  bool trained_only = false;
};

/// A checkpoint as it stands in the file.
struct Checkpoint {
  std::string path;  ///< of the file that it was read from
  nn::StateDict model;
  optim::OptimizerState optimizer;
  std::vector<std::string> parameters;  ///< names, in the order in which the optimizer counts them
  std::uint64_t step = 0;
  std::map<std::string, std::string> generators;  ///< their states
  Json user;
};

/// Writes one; the file at `path` is the old one until the new one is complete.  Throws FileError
/// for what cannot be written, ValueError for an optimizer of parameters that are not the model's
/// and for a name that begins with "optimizer.".
template <nn::Layer M>
void save_checkpoint(const std::string& path, const M& model, const optim::Optimizer& optimizer,
                     const CheckpointOptions& options = {});

/// Reads one.  Throws FileError, saying why, for a file that is no checkpoint or is damaged.
Checkpoint load_checkpoint(const std::string& path);

/// Gives model, optimizer and generators the state in a checkpoint, which it returns.  The
/// optimizer may have its parameters in another order and in other groups, as long as one group
/// does not hold what was trained with different options.  Throws FileError if anything does not
/// fit; then nothing has changed.
template <nn::Layer M>
Checkpoint restore(const std::string& path, M& model, optim::Optimizer& optimizer,
                   const Generators& generators = {});
template <nn::Layer M>
void restore(const Checkpoint& checkpoint, M& model, optim::Optimizer& optimizer,
             const Generators& generators = {});

namespace detail {
void save_checkpoint(const std::string& path, const nn::detail::Members& model,
                     const optim::Optimizer& optimizer, const CheckpointOptions& options);
void restore(const Checkpoint& checkpoint, const nn::detail::Members& model,
             optim::Optimizer& optimizer, const Generators& generators);
}  // namespace detail

template <nn::Layer M>
void save_checkpoint(const std::string& path, const M& model, const optim::Optimizer& optimizer,
                     const CheckpointOptions& options) {
  detail::save_checkpoint(path, nn::detail::members(model), optimizer, options);
}

template <nn::Layer M>
void restore(const Checkpoint& checkpoint, M& model, optim::Optimizer& optimizer,
             const Generators& generators) {
  detail::restore(checkpoint, nn::detail::members(model), optimizer, generators);
}

template <nn::Layer M>
Checkpoint restore(const std::string& path, M& model, optim::Optimizer& optimizer,
                   const Generators& generators) {
  Checkpoint checkpoint = load_checkpoint(path);
  restore(checkpoint, model, optimizer, generators);
  return checkpoint;
}

}  // namespace xgrad::io
