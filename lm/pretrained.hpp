#pragma once
// Pretrained decoders in the folders of HuggingFace's transformers: config.json, and the weights in
// model.safetensors or in the files named by model.safetensors.index.json.
//
//   lm::GPT model = lm::load_pretrained("smollm2-135m");
//   lm::save_pretrained("mine", model, false, lm::read_pretrained_metadata("smollm2-135m"));
//
// The families are gpt2, llama (also SmolLM), mistral, qwen2 and qwen3, by config.json's
// model_type.  Configuration settings that GPTConfig lacks are rejected by name.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "../io/json.hpp"
#include "gpt.hpp"

namespace xgrad::lm {

struct PretrainedOptions {
  DType dtype = DType::float32;  ///< of the model; the file may hold F16, BF16, F32 or F64
  double dropout = 0;
  /// Weights as of nn::to_bfloat16(), for inference alone, and never in float32: half the memory,
  /// and half the time for a token.  BF16 weights are loaded unchanged.  ValueError with another
  /// dtype than float32, FileError for a finite value that rounds to infinity.
  bool bfloat16 = false;
};

/// The model in a folder.  Throws FileError, before anything is allocated for its weights, for a
/// missing or damaged file, for an unsupported configuration, and one that lists all names that are
/// missing, unexpected, or of another shape or an unsupported dtype.  Names may lack "transformer."
/// or "model."; buffers that some versions of transformers saved (causal masks, rotary frequencies)
/// are skipped.
GPT load_pretrained(const std::string& folder, const PretrainedOptions& options = {});

/// The text files of a folder that describe the use of its model.
inline constexpr const char* pretrained_files[] = {
    "generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
    "chat_template.jinja"};
/// An object of these files' texts, by name, with "config.json" for an object of its bos_token_id,
/// eos_token_id and pad_token_id.  Absent files and ids are omitted.  FileError, also for a text
/// that is not UTF-8, and as of end_of_text_ids().
io::JsonObject read_pretrained_metadata(const std::string& folder);
/// The ids that end a text by such an object: the eos_token_id, one or a list, of
/// generation_config.json or, without that file, of config.json.  FileError, which names `path`.
std::vector<std::int64_t> end_of_text_ids(const io::Json& metadata, const std::string& path);

/// The settings in the generation_config.json of such an object by which GPT can draw, without
/// absent and null ones: do_sample (0 or 1), temperature, top_k, top_p, min_p, repetition_penalty
/// and no_repeat_ngram_size.  FileError, which names `path` and the key, for other values.
std::map<std::string, double> generation_settings(const io::Json& metadata,
                                                  const std::string& path);

/// FileError with a cure for a GGUF file, for Python's pickles (pytorch_model.bin), and for a
/// folder that has nothing else.
void check_weights_kind(const std::string& path);

/// Writes config.json, model.safetensors, in float32, and the texts of `metadata` into a folder,
/// which is made if necessary.  The family is pretrained_family(); biases that the model lacks and
/// its family has are zeros.  Throws ValueError naming the options that no family has, and
/// FileError if a file cannot be written, or exists unless `overwrite`; then nothing has been
/// written.
void save_pretrained(const std::string& folder, const GPT& model, bool overwrite = false,
                     const io::Json& metadata = {});

/// A parameter of GPT, and the stored tensors that are its rows, stacked.
struct PretrainedTensor {
  std::string name;
  Shape shape;
  bool transposed = false;  ///< stored transposed, (in, out), as GPT-2's Conv1D
  bool zero = false;        ///< stored as zeros: a bias that the model lacks and its family has
  std::vector<std::pair<std::string, std::size_t>> parts = {};  ///< names and numbers of rows
};
/// The table of a model's parameters.  ValueError names the options that no family has.
std::vector<PretrainedTensor> pretrained_tensors(const GPTConfig& config);
/// Converts values or gradients from the names and shapes of GPT's parameters to those of the
/// files.  One ValueError lists everything missing, unexpected or misshapen.
nn::StateDict to_pretrained(const GPTConfig& config, const nn::StateDict& state);

// The config.json of a pretrained model, for pretrained.cpp and for programs that store it
// elsewhere.

/// Calls f; its ValueErrors become FileErrors that name the file.
template <class F>
auto of_file(const std::string& file, const F& f) {
  try {
    return f();
  } catch (const ValueError& error) {
    throw FileError(file + ": " + error.what());
  }
}

/// Reads a file of at most 64 MiB.  Throws FileError.
io::Json read_json_file(const std::string& path);

/// The value of a key; null if it is missing or JSON's null.
const io::Json* given(const io::Json& json, const char* key);

/// Throws a FileError that names the file, the key and the supported values.
GPTConfig read_pretrained_config(const std::string& path);
/// The same from parsed JSON; `path` names it in messages.
GPTConfig pretrained_config_of(const io::Json& json, const std::string& path);

/// The model_type that has these options: gpt2 for learned positions, qwen3 for qk_norm, qwen2 for
/// biases of queries, keys and values alone, else mistral with a window, and llama without.
/// ValueError naming options that no family has.
std::string pretrained_family(const GPTConfig& config);
/// `ids` are its bos_token_id, eos_token_id and pad_token_id.  Null ones are written, too, because
/// transformers has defaults for missing ones.
std::string format_pretrained_config(const GPTConfig& config,
                                     const io::Json& ids = io::JsonObject{
                                         {"bos_token_id", nullptr}, {"eos_token_id", nullptr}});

}  // namespace xgrad::lm
