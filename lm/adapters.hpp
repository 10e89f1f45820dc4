#pragma once
// Adapters (nn::add_lora) in the folders of HuggingFace's PEFT: adapter_config.json, and matrices
// by the names of transformers' modules in adapter_model.safetensors.
//
//   lm::GPT model = lm::load_pretrained("smollm2-135m");
//   lm::load_adapters("poems", model);
//   lm::merge_lora(model);  // or train its parameters further, and
//   lm::save_adapters("poems-2", model, "smollm2-135m");

#include <string>
#include <vector>
#include "../autograd/random.hpp"
#include "gpt.hpp"

namespace xgrad::lm {

/// An adapter_config.json.
struct AdapterConfig {
  nn::LoraOptions lora;  ///< its targets are modules; use_rslora is in alpha
  /// A regular expression that targets match as well, unless their whole name is listed: of
  /// target_modules, or of layers_to_transform and layers_pattern.  Empty: none.
  std::string pattern;
  std::string base;                               ///< base_model_name_or_path
  std::vector<std::string> modules_to_save = {};  ///< whose own weights are in the file, too
};
/// FileError, which names the key, for adapters that nn::Linear cannot have: of another peft_type,
/// with biases, patterns of ranks, DoRA and the like.  lora_dropout is not applied.
AdapterConfig read_adapter_config(const std::string& folder);

/// nn::add_lora() with names of transformers' modules as targets.  Each module has its own
/// adapters: a Llama's q_proj, k_proj and v_proj, which are parts of c_attn; a GPT-2's c_attn.  A
/// tied lm_head may have some, which the embedding does not have.
void add_adapters(GPT& model, const nn::LoraOptions& options = {},
                  Generator& generator = default_generator());

/// The same with zeros, whose values follow, as load_adapters() does it: adapters of any rank, and
/// targets may choose nothing.
void add_empty_adapters(GPT& model, const nn::LoraOptions& options);

/// Gives a model the adapters of a folder, and freezes its other parameters.  FileError for
/// unreadable files, for adapters that do not fit, with the names of all missing, unexpected or
/// misshapen matrices, for those that save_adapters() wrote for other weights, and for files that
/// hold weights of the model itself, as PEFT adds them for lm_head, unless they are this model's;
/// ValueError as of nn::add_lora().  Then the model has not changed.
AdapterConfig load_adapters(const std::string& folder, GPT& model);

/// Writes a model's adapters, and the checksum of its other weights, into a folder, which is made
/// if necessary.  `base` is the path of these weights.  ValueError for a model without adapters, or
/// with different ranks or scales; FileError if a file cannot be written, or exists unless
/// `overwrite`.  Then nothing has been written.
void save_adapters(const std::string& folder, const GPT& model, const std::string& base,
                   bool overwrite = false);

/// A checksum of names and values, in float32, without adapters.
std::string base_checksum(const nn::StateDict& state);

}  // namespace xgrad::lm
