#pragma once
// The config.json of a pretrained model, for pretrained.cpp and for programs that store it in files
// of their own.

#include <string>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>

namespace xgrad::io {

/// Reads a file of at most 64 MiB.  Throws FileError.
Json read_json_file(const std::string& path);

/// Throws FileError that names the file, the key and what is supported.
nn::GPTConfig read_pretrained_config(const std::string& path);
/// The same of what such a file holds; `path` names it in messages.
nn::GPTConfig pretrained_config_of(const Json& json, const std::string& path);

/// The model_type that has these options.  ValueError naming those that no family has.
std::string pretrained_family(const nn::GPTConfig& config);
/// `ids` are its bos_token_id, eos_token_id and pad_token_id.  Null ones are written, too: without
/// them transformers has ids of its own.
std::string format_pretrained_config(const nn::GPTConfig& config,
                                     const Json& ids = JsonObject{{"bos_token_id", nullptr},
                                                                  {"eos_token_id", nullptr}});

}  // namespace xgrad::io
