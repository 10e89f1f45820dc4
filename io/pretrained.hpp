#pragma once
// Pretrained decoders in the folders of HuggingFace's transformers: config.json, and the weights in
// model.safetensors or in the files that model.safetensors.index.json names.
//
//   nn::GPT model = io::load_pretrained("smollm2-135m");
//   io::save_pretrained("mine", model, false, io::read_pretrained_metadata("smollm2-135m"));
//
// The families are gpt2, llama (SmolLM is one of them; mistral without a window in effect is read
// as one) and qwen2, as config.json's model_type names them.  Settings of a configuration that
// nn::GPTConfig lacks are refused by name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>

namespace xgrad::io {

struct PretrainedOptions {
  DType dtype = DType::float32;  ///< of the model; the file may hold F16, BF16, F32 or F64
  double dropout = 0;
  /// As nn::to_bfloat16() leaves it, for answers alone, and never there in float32: half the
  /// memory, and half the time for a token.  Weights that are BF16 in the file are the file's.
  /// ValueError with another dtype than float32, FileError for a finite value that rounds to
  /// infinity.
  bool bfloat16 = false;
};

/// The model in a folder.  Throws FileError, before anything is allocated for its weights, for a
/// file that is not there or damaged, for a configuration that asks for what is not supported, and
/// one that lists all names that are missing, unexpected, of another shape or unsupported dtype.
/// Names may lack "transformer." or "model."; buffers that transformers saved at some time (causal
/// masks, rotary frequencies) are passed over.
nn::GPT load_pretrained(const std::string& folder, const PretrainedOptions& options = {});

/// The text files of a folder that say how its model is used.
inline constexpr const char* pretrained_files[] = {
    "generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
    "chat_template.jinja"};
/// An object of these files' texts, by name; and under "config.json" an object of its bos_token_id,
/// eos_token_id and pad_token_id.  Absent files and ids are left out.  FileError, also for a text
/// that is not UTF-8, and as of end_of_text_ids().
JsonObject read_pretrained_metadata(const std::string& folder);
/// The ids that end a text by such an object: the eos_token_id, one or a list, of
/// generation_config.json or, without that file, of config.json.  FileError, which names `path`.
std::vector<std::int64_t> end_of_text_ids(const Json& metadata, const std::string& path);

/// FileError that says what to do: for a GGUF file and for Python's pickles (pytorch_model.bin), or
/// a folder that has nothing else, and for the folder of a PEFT adapter.
void check_weights_kind(const std::string& path);

/// Writes config.json, model.safetensors, in float32, and the texts of `metadata` into a folder
/// that is made if it is not there.  Biases that the model lacks and its family has are zeros: a
/// model with learned positions is a GPT-2.  Throws ValueError naming the options that no family
/// has, and FileError for what cannot be written, or is there already unless `overwrite`; then
/// nothing has been written.
void save_pretrained(const std::string& folder, const nn::GPT& model, bool overwrite = false);
void save_pretrained(const std::string& folder, const nn::GPT& model, bool overwrite,
                     const Json& metadata);

/// A parameter of nn::GPT, and the tensors in these files that are its rows, one below the other.
struct PretrainedTensor {
  std::string name;
  Shape shape;
  bool transposed = false;  ///< in the files, as GPT-2's Conv1D, (in, out)
  bool zero = false;        ///< zeros in the files: a bias that the model lacks and its family has
  std::vector<std::pair<std::string, std::size_t>> parts = {};  ///< names and numbers of rows
};
/// The table of a model's parameters.  ValueError names the options that no family has.
std::vector<PretrainedTensor> pretrained_tensors(const nn::GPTConfig& config);
/// Converts values or gradients from the names and shapes of nn::GPT's parameters to those of the
/// files.  One ValueError lists all that are missing, unexpected or misshapen.
nn::StateDict to_pretrained(const nn::GPTConfig& config, const nn::StateDict& state);

// The config.json of a pretrained model, for pretrained.cpp and for programs that store it in files
// of their own.

/// Reads a file of at most 64 MiB.  Throws FileError.
Json read_json_file(const std::string& path);

/// Throws FileError that names the file, the key and the supported values.
nn::GPTConfig read_pretrained_config(const std::string& path);
/// The same of such a file's text; `path` names it in messages.
nn::GPTConfig pretrained_config_of(const Json& json, const std::string& path);

/// The model_type that has these options.  ValueError naming those that no family has.
std::string pretrained_family(const nn::GPTConfig& config);
/// `ids` are its bos_token_id, eos_token_id and pad_token_id.  Null ones are written, too, as the
/// first two are without `ids`: else transformers has ids of its own.
std::string format_pretrained_config(const nn::GPTConfig& config);
std::string format_pretrained_config(const nn::GPTConfig& config, const Json& ids);

}  // namespace xgrad::io
