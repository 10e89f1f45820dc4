#pragma once
// The header of a safetensors file.  Internal: shared by the reader and the writer.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <xgrad/io/safetensors.hpp>

namespace xgrad::io {

inline constexpr std::uint64_t longest_header = 100'000'000;
inline constexpr const char* metadata_key = "__metadata__";
inline constexpr const char* checksum_key = "xgrad_checksum";

struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads and checks a header, which begins at byte 8 of a file that has data_bytes bytes after it.
/// Throws FileError naming path.
SafetensorsHeader parse_header(const std::string& path, std::string_view text,
                               std::uint64_t data_bytes);

/// The header of these tensors, whose offsets count from the first byte after it, padded with
/// blanks so that this byte's place is a multiple of 8, and with zeros for a checksum.  Throws
/// ValueError for text that is not UTF-8.
std::string format_header(const SafetensorsHeader& header);

/// Where the digits of the checksum stand in a header; npos if it has none.
std::size_t find_checksum(std::string_view text);
inline constexpr std::size_t checksum_digits = 16;

}  // namespace xgrad::io
