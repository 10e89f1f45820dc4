#pragma once
// This program's entries of a checkpoint and of config.json; the texts and the model that they
// name.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/nn/layers.hpp>

#include "corpus.hpp"
#include "recipe.hpp"
#include "runs/format.hpp"
#include "vocabulary.hpp"

namespace program {

/// The evaluations of a run so far.
struct Evaluations {
  struct Best {
    std::uint64_t step;  ///< steps made before it was measured
    double loss;
  };
  std::uint64_t last = 0;    ///< steps made before the latest; 0: none yet
  std::optional<Best> best;  ///< the lowest loss
};

/// The batches whose mean is a loss: "20 random batches".
std::string format_batches(std::size_t n);
/// Whether an evaluation is due after this number of steps.
bool evaluation_due(const Recipe& recipe, std::uint64_t steps);
/// Whether a run has ended: all steps are made and evaluated.
bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations);

/// A model's adapters (xgrad::lm::add_adapters) and their base model.
struct Lora {
  xgrad::nn::LoraOptions options;   ///< without targets: those of nn::add_lora, of older runs
  std::string base, base_checksum;  ///< its absolute path; of its weights
};
/// Gives them to a model; `values_follow`: zeros, of any rank.
void add_adapters(xgrad::lm::GPT& model, const Lora& lora, bool values_follow = false);

struct CheckpointInfo {
  xgrad::io::Json config;  ///< an object with nanoGPT's names
  Vocabulary vocabulary = {};
  std::string text = {};      ///< Dataset::sum of a run; empty if unknown
  std::string val_text = {};  ///< its Dataset::val_sum
  Evaluations evaluations = {};
  /// The whole configuration of a pretrained model; then `config` has only sizes.
  std::optional<xgrad::lm::GPTConfig> model = {};
  /// The other entries of its folder: xgrad::lm::read_pretrained_metadata().
  xgrad::io::JsonObject metadata = {};
  std::optional<Lora> lora = {};
};

xgrad::io::Json to_json(const CheckpointInfo& info);
/// The metadata that `export` writes with a model: its base's, or without a base the id of the
/// vocabulary's <|endoftext|>, and a tokenizer_config.json.
xgrad::io::JsonObject metadata_of(const CheckpointInfo& info);
/// The ids that end a text by this metadata.
std::vector<std::int64_t> end_of_text(const CheckpointInfo& info);
/// The entries of a checkpoint.  FileError for a checkpoint of another program.
CheckpointInfo read_checkpoint_info(const xgrad::io::Checkpoint& checkpoint);

using runs::read_object, runs::text_in;
/// The text of config.json.
std::string format_config(const TrainOptions& options, std::size_t vocab_size);

/// A text, as ids, split in two.
struct Dataset {
  std::string name;             ///< for people: the file, or a name of the embedded corpus
  std::string training_name;    ///< "the training split of NAME", or NAME with --val-data
  std::string validation_name;  ///< "the validation split of NAME", or the file of --val-data
  Vocabulary vocabulary;
  xgrad::lm::Ids all;  ///< of the text `name`; empty for tokens of a split text
  xgrad::lm::Split ids;
  /// The bytes without tokens, of `all` in `train` if it is not split.
  struct {
    UnknownBytes train, validation;
  } unknown = {};
  /// Checksums, of the ids if they are characters and of the text if they are tokens, and of the
  /// text of --val-data; empty without one.
  std::string sum, val_sum;
  std::vector<std::int64_t> document_end = {};  ///< of document_end_of()
  std::vector<double> nll;  ///< -log p of each character to validate on; empty if unknown

  /// The mean of nll over this many characters to validate on, without the first, which is no
  /// target: the lowest possible loss.
  std::optional<double> entropy(std::size_t characters) const;
};

/// Reads a text; an empty path means the text of a preset.  The last tenth of its characters is for
/// validation, unless `validation` names another text; as in nanoGPT it is split before it becomes
/// tokens, or, without `splits`, not at all.  Ids are those of `vocabulary`; by default those of
/// the text's own characters or, unless `learn` is 0, of this many tokens, learned from the
/// training split.  Throws FileError for a file that cannot be read, is not UTF-8, or has unknown
/// characters.
Dataset open_dataset(const std::string& path, const std::string& validation,
                     const std::string& preset, const std::optional<Vocabulary>& vocabulary = {},
                     std::size_t learn = 0, bool splits = true);
/// The texts of a run: those of --data and --val-data, by default those in config.json beside the
/// checkpoint.  If that names none, the embedded corpus, provided that the checkpoint was trained
/// on it.
Dataset open_run_dataset(const std::string& data, const std::string& val_data,
                         const std::string& checkpoint, const CheckpointInfo& info,
                         bool splits = true);
/// The digits of the id that --document-end names; "" if it is a text.  ValueError for "id:x".
std::string end_id(const std::string& given, const Vocabulary& vocabulary);
/// The ids of --document-end: those of a text; one for "id:N", and for a number N unless the
/// vocabulary is of characters and has its digits; empty for an empty text.  ValueError for unknown
/// characters, and for an id that the vocabulary does not have.
std::vector<std::int64_t> document_end_of(const std::string& given, const Vocabulary& vocabulary);
/// How often these ids end a document in a text.
std::size_t count_documents(const xgrad::lm::Ids& text, std::span<const std::int64_t> end);
/// FileError, which names the text, if no document of it ends with --document-end, or if tokens
/// hide an end, because they depend on their neighbours.
void check_document_end(const std::string& given, const xgrad::lm::Ids& text,
                        const std::string& name, const Vocabulary& vocabulary);
/// FileError for a text shorter than one block.
void check_block(const xgrad::lm::Ids& ids, const std::string& name, std::size_t block_size,
                 const Vocabulary& vocabulary);
/// "--data" or "--val-data" if it names another text than the run was trained on; else empty.
std::string other_text(const Dataset& dataset, const CheckpointInfo& info);

xgrad::lm::GPTConfig model_config(const Recipe& recipe, std::size_t vocab_size);
/// FileError if a model would be larger than the weights in a file, and perhaps than memory.  Call
/// it before making the model.
void check_size(const xgrad::lm::GPTConfig& config, const Vocabulary& vocabulary, double weights,
                const std::string& path);
/// The model's part of a checkpoint's configuration.  FileError if it is missing, or asks for more
/// than the tensors hold.
xgrad::lm::GPTConfig read_model_config(const xgrad::io::Checkpoint& checkpoint,
                                       const CheckpointInfo& info);
/// "2 of the 16 values of NAME are not finite", for the first such tensor; else empty.
std::string not_finite(const xgrad::nn::StateDict& tensors);
/// Throws this as a FileError.
void check_finite(const xgrad::nn::StateDict& tensors, const std::string& path);

/// Adds the weights of the base model to a checkpoint of adapters.  `base`, if not empty, is its
/// new path.  FileError if that model is gone or has changed.
void add_base(xgrad::io::Checkpoint& checkpoint, CheckpointInfo& info, const std::string& base);

struct TrainedModel {
  std::string path;  ///< of the checkpoint, or the folder of a pretrained model
  xgrad::lm::GPT model;
  CheckpointInfo info;
  std::string about;  ///< "PATH, after 300 steps"
};

/// Whether a folder's config.json has a "model_type", as a pretrained model's.
bool has_model_type(const std::string& folder);
/// The folder of a pretrained model, given by its path or by that of its model.safetensors: its
/// config.json has a "model_type", or it holds such a model's weights and no run.  Else empty.
std::string pretrained_folder(const std::string& path);
/// Whether a path is a safetensors file of weights with nanoGPT's names, as `export` writes it, and
/// neither a checkpoint nor in the folder of a pretrained model.
bool holds_weights_alone(const std::string& path);
/// Reads that model.  Its vocabulary and number of heads are those of the file's metadata, by
/// default the characters of the text `data` and `n_head`.  FileError if neither names them, and
/// for tensors that do not fit.
TrainedModel read_weights(const std::string& path, const std::string& data = "",
                          std::size_t n_head = 0);
/// Reads that model.  FileError as of xgrad::lm::load_pretrained() and read_tokenizer(), without a
/// tokenizer, or for one with more tokens than the model has.
TrainedModel read_pretrained(const std::string& folder);
/// The folder of PEFT's adapters, given by its path or by that of one of its two files; empty for
/// others, and for the folder of a run that has a checkpoint.
std::string adapters_folder(const std::string& path);
/// The model that a folder's adapters belong to: `given`, or base_model_name_or_path in the folder,
/// beside it or here.  FileError if there is none.
std::string base_of_adapters(const std::string& folder, const std::string& given);
/// The files that a model is read from, which must not be overwritten.
std::vector<std::string> files_of(const std::string& given, const std::string& base = "");
/// Reads the model of a checkpoint, of a run's or a pretrained model's folder, of adapters, or of a
/// file of weights alone; with its adapters, if it has any, whose base model is in `base` unless
/// that is empty.  Throws FileError for a file that is not a checkpoint of this program, tensors
/// that differ from its configuration, values that are not finite, a `base` without adapters, and,
/// `as_base` for adapters, for a model that has some.
TrainedModel read_trained_model(const std::string& given, const std::string& base = "",
                                bool as_base = false);
/// The same with dropout off; names the model on standard error.  `raw`: with a vocabulary that
/// adds nothing around a text.
TrainedModel load_trained_model(const std::string& given, const std::string& base = "",
                                bool raw = false);

}  // namespace program
