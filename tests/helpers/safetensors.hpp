#pragma once
// Files in the safetensors format.

#include <cstdint>
#include <cstring>
#include <string>

#include "helpers/paths.hpp"

/// The path of a file that PyTorch wrote.
inline std::string golden_weights(const std::string& name) {
  return source_dir + "/tests/golden/weights/" + name + ".safetensors";
}

/// The bytes of a file: the header's length, the header, the data.
inline std::string file_of(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + data;
}
