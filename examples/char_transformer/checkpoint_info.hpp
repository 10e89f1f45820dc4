#pragma once
// This program's own entries of a checkpoint and of the config.json beside it; the texts and the
// model that they name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>

#include "corpus.hpp"
#include "recipe.hpp"
#include "runs/format.hpp"
#include "vocabulary.hpp"

namespace char_transformer {

/// The evaluations of a run so far.
struct Evaluations {
  struct Best {
    std::uint64_t step;  ///< steps made when it was measured
    double loss;
  };
  std::uint64_t last = 0;    ///< steps made when the latest was; 0: none yet
  std::optional<Best> best;  ///< the lowest loss
};

/// The batches that a loss is the mean of: "20 random batches".
std::string format_batches(std::size_t n);
/// Whether an evaluation is due after so many steps.
bool evaluation_due(const Recipe& recipe, std::uint64_t steps);
/// Whether a run has ended: all steps are made and evaluated.
bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations);

/// The entries of a checkpoint of adapters (nn::add_lora) about them and about their base model.
struct Lora {
  std::size_t rank;
  double alpha;
  std::string base, base_checksum;  ///< its absolute path; of its weights
};

struct CheckpointInfo {
  xgrad::io::Json config;  ///< an object, under nanoGPT's names
  Vocabulary vocabulary = {};
  std::string text = {};      ///< Dataset::sum of a run; empty if nobody knows
  std::string val_text = {};  ///< its Dataset::val_sum
  Evaluations evaluations = {};
  /// The whole configuration of a model that was pretrained; `config` has only sizes.
  std::optional<xgrad::nn::GPTConfig> model = {};
  /// The other entries of its folder: xgrad::io::read_pretrained_metadata().
  xgrad::io::JsonObject metadata = {};
  std::optional<Lora> lora = {};
};

xgrad::io::Json to_json(const CheckpointInfo& info);
/// The metadata that `export` writes beside a model: its base's, or without a base the id of the
/// vocabulary's <|endoftext|>.
xgrad::io::JsonObject metadata_of(const CheckpointInfo& info);
/// The ids that end a text by that.
std::vector<std::int64_t> end_of_text(const CheckpointInfo& info);
/// The entries of a checkpoint.  FileError for a checkpoint of another program.
CheckpointInfo read_checkpoint_info(const xgrad::io::Checkpoint& checkpoint);

using runs::read_object, runs::text_in;
/// The text of config.json.
std::string format_config(const TrainOptions& options, std::size_t vocab_size);

/// A text, as ids, split in two.
struct Dataset {
  std::string name;             ///< for people: the file, or what the embedded corpus is
  std::string training_name;    ///< "the training split of NAME", or NAME with --val-data
  std::string validation_name;  ///< "the validation split of NAME", or the file of --val-data
  Vocabulary vocabulary;
  xgrad::text::Ids all;  ///< of the text that `name` is; none of tokens, if it is split
  xgrad::text::Split ids;
  /// Checksums, of the ids if they are characters and of the text if they are tokens, and of the
  /// text of --val-data; empty without one.
  std::string sum, val_sum;
  std::vector<double> nll;  ///< -log p of each character to validate on; empty if nobody knows

  /// The mean of nll over so many characters to validate on, after the first, which is only ever
  /// looked back on: no model can do better.
  std::optional<double> entropy(std::size_t characters) const;
};

/// Reads a text, or with an empty path makes the one of a preset.  The last tenth of its characters
/// is to validate on, unless `validation` names another text; its tokens are made after that, as
/// nanoGPT makes them, and not split at all unless `splits`.  Ids are those of `vocabulary`, or
/// without one of the text's own characters or, unless `learn` is 0, of as many tokens, which are
/// learned from what is trained on.  Throws FileError for a file that cannot be read, is not UTF-8,
/// or has characters that are not known.
Dataset open_dataset(const std::string& path, const std::string& validation,
                     const std::string& preset, const std::optional<Vocabulary>& vocabulary = {},
                     std::size_t learn = 0, bool splits = true);
/// The texts of a run: those of --data and --val-data, or without them what config.json beside a
/// checkpoint names, or if that says nothing the embedded corpus, provided that the checkpoint was
/// trained on it.
Dataset open_run_dataset(const std::string& data, const std::string& val_data,
                         const std::string& checkpoint, const CheckpointInfo& info,
                         bool splits = true);
/// FileError for a text that has no whole block.
void check_block(const xgrad::text::Ids& ids, const std::string& name, std::size_t block_size,
                 const Vocabulary& vocabulary);
/// "--data" or "--val-data", whichever names another text than a run was trained on; else empty.
std::string other_text(const Dataset& dataset, const CheckpointInfo& info);

xgrad::nn::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size);
/// FileError if a model would be larger than the weights that a file holds: made before that is
/// known, it may be larger than memory.
void check_size(const xgrad::nn::GPTConfig& config, const Vocabulary& vocabulary, double weights,
                const std::string& path);
/// The model's part of a checkpoint's configuration.  FileError for one that does not say it, or
/// asks for more than the tensors hold.
xgrad::nn::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint,
                                       const CheckpointInfo& info);
/// "2 of the 16 values of NAME are not finite": of the first tensor with one; else empty.
std::string not_finite(const xgrad::nn::StateDict& tensors);
/// FileError that says so.
void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path);

/// The checksum of the names and values.
std::string weights_checksum(const xgrad::nn::StateDict& weights);
/// Adds the weights of the model that adapters belong to, if a checkpoint holds such.  FileError if
/// it is gone, or has other weights now.
void add_base(xgrad::io::Checkpoint& checkpoint, const CheckpointInfo& info);

struct TrainedModel {
  std::string path;  ///< of the checkpoint, or the folder of a pretrained model
  xgrad::nn::GPT model;
  CheckpointInfo info;
  std::string about;  ///< "PATH, after 300 steps"
};

/// Whether a folder's config.json has a "model_type", as those of pretrained models.
bool has_model_type(const std::string& folder);
/// The folder of a pretrained model that a path is, or whose model.safetensors it is: its
/// config.json has a "model_type", or it holds such a model's weights and no run.  Else empty.
std::string pretrained_folder(const std::string& path);
/// Whether a path is a safetensors file of weights with nanoGPT's names, as `export` writes it, and
/// neither a checkpoint nor in the folder of a pretrained model.
bool holds_weights_alone(const std::string& path);
/// That model.  Its vocabulary and number of heads are those of the file's metadata, or without
/// them the characters of the text `data` and `n_head`.  FileError if neither says them, and for
/// tensors that do not fit.
TrainedModel read_weights(const std::string& path, const std::string& data = "",
                          std::size_t n_head = 0);
/// That model.  FileError as of xgrad::io::load_pretrained() and read_tokenizer(), if there is no
/// tokenizer, or one with more tokens than the model has.
TrainedModel read_pretrained(const std::string& folder);
/// The files that a model is read from, none of which may be written over.
std::vector<std::string> files_of(const std::string& given);
/// The model of a checkpoint, of a run's folder, of that of a pretrained one, or of a file of
/// weights alone; with its adapters, if it has any.  Throws FileError for what is not a checkpoint
/// of this program, holds other tensors than its configuration says, or values that are not finite;
/// and `as_base`, which is to get adapters, for one that has some.
TrainedModel read_trained_model(const std::string& given, bool as_base = false);
/// The same with dropout off; says on standard error which it is.  `raw`: with a vocabulary that
/// adds nothing around a text.
TrainedModel load_trained_model(const std::string& given, bool raw = false);

}  // namespace char_transformer
