#pragma once
// Configurations as JSON, and models read back from a checkpoint.

#include <optional>
#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/gpt.hpp>

#include "options.hpp"

namespace char_transformer {

/// What config.json says, and the checkpoint's metadata: all options, under nanoGPT's names, and
/// the size of the vocabulary.  A flat object, so that any language reads it in a line.
std::string format_config(const TrainOptions& options, std::size_t vocab_size);

/// The same of a model of which only this is known.
std::string format_config(const xgrad::nn::GPTConfig& config, const std::string& data);

/// What a checkpoint holds of this program's own: a configuration, and the characters.
xgrad::io::Json user_json(const std::string& config, const xgrad::data::Characters& characters);
/// Reads them.  FileError if they are not there.
std::string config_in(const xgrad::io::Checkpoint& checkpoint);
xgrad::data::Characters characters_in(const xgrad::io::Checkpoint& checkpoint);

/// What a configuration says that a model's tensors do not.
struct ModelNotes {
  std::optional<std::size_t> n_head;
  double dropout = 0;
  std::string data;  ///< a path; empty: the embedded corpus, or nobody knows
};
/// Reads it; what is not there, or makes no sense, is as above.
ModelNotes read_notes(const std::string& config);

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size);

struct TrainedModel {
  xgrad::nn::GPT model;
  xgrad::data::Characters characters;
  std::string data;  ///< what it was trained on: a path; empty: the embedded corpus
};

/// The model of a checkpoint, with dropout off.  Throws FileError for what is not a checkpoint of
/// this program, or holds other tensors than its configuration says.
TrainedModel load_trained_model(const std::string& checkpoint);

}  // namespace char_transformer
