#pragma once
// Saving and loading a model: its state dict as a safetensors file, which PyTorch users open as it
// is.

#include <string>
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

/// The state dict in a safetensors file.
nn::StateDict read_state_dict(const std::string& path);

/// Writes parameters and buffers; a tied weight once.  Throws FileError for what cannot be written.
template <nn::Layer M>
void save(const M& model, const std::string& path) {
  TensorFile content;
  for (auto& [name, x] : nn::state_dict(model))
    content.tensors.emplace(name, x);
  save_safetensors(path, content);
}

/// Reads them back, strictly: see load_state().
template <nn::Layer M>
void load(M& model, const std::string& path) {
  load_state(model, read_state_dict(path), path);
}

}  // namespace xgrad::io
