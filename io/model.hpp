#pragma once
// Saving and loading a model: its state dict as a safetensors file, which PyTorch users open as it
// is.

#include <set>
#include <span>
#include <string>
#include <vector>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::io {

/// Gives a model the values of a state dict that came from the file at `path`.  Throws FileError
/// that names it and lists all that is missing, unexpected or misshapen; then nothing has changed.
template <nn::Layer M>
void load_state(M& model, const nn::StateDict& state, const std::string& path) {
  try {
    nn::load_state_dict(model, state);
  } catch (const ValueError& error) {
    throw FileError(path + ": does not fit the model: " + error.what());
  }
}

namespace detail {
/// Throws a FileError that begins with `message` and lists all that is missing, unexpected,
/// misshapen, or of a dtype that has no conversion (I64 of a buffer has one), and as of verify().
void check_fits(const std::string& message, const std::vector<nn::detail::StateEntry>& expected,
                std::span<const SafetensorsFile> files, const std::set<std::string>& ignored,
                const char* where = "in the model");

struct Converted {
  nn::StateDict state;
  std::string what;  ///< was converted, for people; empty if nothing was
};
/// The state dict in a file in the dtypes of the model that is to have it.
Converted read_for(const nn::detail::Members& members, const SafetensorsFile& file,
                   const std::set<std::string>& ignored);
}  // namespace detail

/// Writes parameters and buffers; a tied weight once.  Throws FileError for what cannot be written.
template <nn::Layer M>
void save(const M& model, const std::string& path) {
  const nn::StateDict state = nn::state_dict(model);
  save_safetensors(path, {.tensors = {state.begin(), state.end()}});
}

/// Gives a model the values in a file.  F16, BF16, F32 and F64 become the model's dtype, see
/// SafetensorsFile::tensor(), and so does I64 of a buffer (BatchNorm1d's count); returns what was
/// converted, as "F16 -> float32 (28 tensors)", or nothing.  A tied weight may come under any of
/// its names.  Throws one FileError that lists all that is missing, unexpected, misshapen, or of
/// another dtype; then nothing has changed.  Tensors in `ignored` are not looked at.
template <nn::Layer M>
std::string load(M& model, const SafetensorsFile& file, const std::set<std::string>& ignored = {}) {
  const detail::Converted read = detail::read_for(nn::detail::members(model), file, ignored);
  load_state(model, read.state, file.path());
  return read.what;
}
template <nn::Layer M>
std::string load(M& model, const std::string& path) {
  return load(model, SafetensorsFile(path));
}

}  // namespace xgrad::io
