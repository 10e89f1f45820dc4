#pragma once
// The safetensors format: a header in JSON that names tensors, then their bytes.
//
//   8 bytes   the header's length N, little-endian, at most 100,000,000
//   N bytes   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, with
//             "__metadata__" for a map of strings to strings; blanks may follow the last brace
//   the rest  row-major, little-endian values, tensor after tensor without holes
//
// The reader is strict: a file that breaks a rule is rejected with a FileError that names the file,
// the tensor, the rule and the byte, before anything is allocated for its values.
//
// Files written here have a checksum of all their bytes in their metadata, "xgrad_checksum",
// computed with zeros in place of its own digits.  A program that saves the same in another layout
// may keep it; one that changes anything must drop it.  Files without one, from other programs, can
// be read.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "../autograd/tensor.hpp"
#include "file.hpp"

namespace xgrad::io {

/// The header's entry of one tensor.
struct StoredTensor {
  std::string name;          ///< in the file
  std::string dtype;         ///< in the file's spelling: "F32", "BF16", ...
  Shape shape;               ///< empty for a single value
  std::uint64_t offset = 0;  ///< of its first byte in the file
  std::uint64_t bytes = 0;
};

/// An open safetensors file: the header is read and checked, values are read on request.
class SafetensorsFile {
 public:
  /// Throws FileError unless it is a safetensors file.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  /// Removes prefixes that all names share, such as DataParallel's "module.", until none of these
  /// is left.
  void take_off(const std::vector<std::string>& prefixes);
  /// Renames each tensor.  FileError if two get the same name.
  void rename(const std::function<std::string(const std::string&)>& to);
  /// Reads the whole file and throws FileError if its checksum is wrong; returns false if it has no
  /// checksum.
  bool verify() const;

  /// Reads an F32 or F64 tensor as it is, or an F16, BF16, F32 or F64 tensor in the requested
  /// dtype.  F64 as float32 rounds to the nearest, ties to even; all other conversions are exact.
  /// Throws FileError for an unknown name, another dtype, and a finite value that rounds to
  /// infinity, naming it.
  Tensor tensor(const std::string& name, std::optional<DType> dtype = {}) const;
  /// Rows first ... first + n - 1 of tensor(name, dtype), alone.
  Tensor rows(const std::string& name, std::size_t first, std::size_t n, DType dtype) const;
  /// Reads an I64 tensor.  Throws FileError for an unknown name or another dtype.
  Indices indices(const std::string& name) const;

 private:
  const StoredTensor& find(const std::string& name) const;
  template <class T>
  Array<T> read(const StoredTensor& stored) const;
  Tensor read(const StoredTensor& stored, std::optional<DType> dtype) const;

  ReadFile file_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// The contents of a safetensors file.
struct TensorFile {
  std::map<std::string, Tensor> tensors = {};   ///< F32 and F64
  std::map<std::string, Indices> indices = {};  ///< I64
  std::map<std::string, std::string> metadata = {};
};

/// Reads a whole file.  Throws FileError if it is not a safetensors file or its checksum is wrong,
/// and one that lists all tensors of unsupported dtypes.
TensorFile load_safetensors(const std::string& path);

/// Writes a file, which appears complete or not at all.  The same content gives the same bytes.
/// Throws ValueError for an undefined Tensor, a name or text that is not UTF-8, a name that occurs
/// twice or is "__metadata__", and for two names of one value (a tied weight is stored once);
/// FileError if it cannot be written.
void save_safetensors(const std::string& path, const TensorFile& content);

}  // namespace xgrad::io
