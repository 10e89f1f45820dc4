#pragma once
// Models read back from a checkpoint.

#include <cstdint>
#include <string>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/module.hpp>

#include "notes.hpp"
#include "source.hpp"

namespace char_transformer {

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size);

/// The model's part of a checkpoint's configuration.  FileError for one that does not say it, or
/// says something else than the tensors.
xgrad::nn::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint, const Notes& notes);

/// The text `data`, or without one what config.json beside a checkpoint names, or if that says
/// nothing the embedded corpus, provided that the checkpoint was trained on it.
Source open_text(const std::string& data, const std::string& checkpoint, const Notes& notes,
                 std::size_t block_size);

/// FileError that names the first tensor with a value that is not finite.
void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path);

struct TrainedModel {
  xgrad::nn::GPT model;
  Notes notes;
};

/// The model of a checkpoint, with dropout off; says on standard error which it is.  Throws
/// FileError for what is not a checkpoint of this program, holds other tensors than its
/// configuration says, or values that are not finite.
TrainedModel load_trained_model(const std::string& checkpoint);

}  // namespace char_transformer
