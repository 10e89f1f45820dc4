#pragma once
// The header of a safetensors file.  Internal: shared by the reader and the writer.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
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

/// How a file is written: depends on what it holds alone, so whoever saves that again, in whatever
/// order, has the same checksum.
struct Arranged {
  std::string
      header;  ///< padded with blanks to a multiple of 8 bytes, and with zeros for a checksum
  std::vector<std::string> order;  ///< of the tensors
};
/// Of these tensors, whatever their offsets.  Throws ValueError for text that is not UTF-8.
Arranged arranged(SafetensorsHeader header);

/// Where the digits of the checksum stand in a header; npos if it has none.
std::size_t find_checksum(std::string_view text);
inline constexpr std::size_t checksum_digits = 16;

}  // namespace xgrad::io
