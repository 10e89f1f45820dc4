#pragma once
// Models read back from a checkpoint, and the texts that go with them.

#include <string>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/module.hpp>

#include "notes.hpp"
#include "source.hpp"

namespace char_transformer {

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size);

/// The model's part of a checkpoint's configuration.  FileError for one that does not say it, or
/// asks for more than the tensors hold.
xgrad::nn::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint, const Notes& notes);

/// FileError if a model would be larger than the weights that a file holds: made before that is
/// known, it may be larger than memory.
void check_size(const xgrad::nn::GPTConfig& config, double weights, std::size_t characters,
                const std::string& path);

/// The texts of a run: those of --data and --val-data, or without them what config.json beside a
/// checkpoint names, or if that says nothing the embedded corpus, provided that the checkpoint was
/// trained on it.
Source open_text(const std::string& data, const std::string& val_data,
                 const std::string& checkpoint, const Notes& notes);

/// "2 of the 16 values of NAME (16) are not finite, ...": of the first tensor with one; else empty.
std::string not_finite(const xgrad::nn::StateDict& tensors);
/// FileError that says so.
void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path);

struct TrainedModel {
  std::string path;  ///< of the checkpoint
  xgrad::nn::GPT model;
  Notes notes;
};

/// The model of a checkpoint, or of a run's folder, with dropout off; says on standard error which
/// it is.  Throws FileError for what is not a checkpoint of this program, holds other tensors than
/// its configuration says, or values that are not finite.
TrainedModel load_trained_model(const std::string& checkpoint);

}  // namespace char_transformer
