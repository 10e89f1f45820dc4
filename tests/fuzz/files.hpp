#pragma once
// Helpers for targets that read files.

#include <string>
#include <string_view>

namespace fuzz {

/// The path of a file with these bytes, valid until the next call.
const std::string& file_with(std::string_view bytes);

/// A configuration of a very small model, and a checkpoint or a state dict of that model.
extern const char* const small_config;
std::string small_checkpoint(const std::string& config);
std::string small_state_dict(const std::string& config);

}  // namespace fuzz
