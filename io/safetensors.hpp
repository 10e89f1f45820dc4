#pragma once
// The safetensors format: a header in JSON that names tensors, then their bytes.
//
//   8 bytes   the header's length N, little-endian, at most 100,000,000
//   N bytes   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, with
//             "__metadata__" for a map of strings to strings; blanks may follow the last brace
//   the rest  row-major, little-endian values, tensor after tensor without holes
//
// Reading is strict: a file that breaks a rule is refused with a FileError that names the file, the
// tensor, the rule and the byte, before anything is allocated for its values.
//
// Files that are written here have a checksum in their metadata, "xgrad_checksum", of all bytes of
// the file, with zeros for the checksum's own digits.  A program that saves the
// same again, in other bytes, may keep it; one that changes anything leaves it out.  Files without
// one, as others write them, are read as well.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/io/file.hpp>

namespace xgrad::io {

/// The header's entry of one tensor.
struct StoredTensor {
  std::string name;          ///< in the file
  std::string dtype;         ///< as the file spells it: "F32", "BF16", ...
  Shape shape;               ///< empty for a single value
  std::uint64_t offset = 0;  ///< of its first byte in the file
  std::uint64_t bytes = 0;
};

/// A safetensors file that is open: the header is read and checked, values are read when asked for.
class SafetensorsFile {
 public:
  /// Throws FileError unless it is a safetensors file.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const;
  /// If all names begin with one of these, takes it off them, and so on until they do not: as
  /// "module." of PyTorch's DataParallel.
  void take_off(const std::vector<std::string>& prefixes);
  /// Gives each tensor another name.  FileError if two would have the same.
  void rename(const std::function<std::string(const std::string&)>& to);
  /// Reads the whole file and throws FileError if its checksum is another; returns false
  /// if it has no checksum.
  bool verify() const;

  /// Reads an F32 or F64 tensor as it is, or an F16, BF16, F32 or F64 tensor as the dtype asked
  /// for. F64 as float32 rounds to the nearest, ties to even; all other conversions are exact.
  /// Throws FileError for a name that is not there, another dtype, and a finite value that rounds
  /// to infinity, naming it.
  Tensor tensor(const std::string& name, std::optional<DType> dtype = {}) const;
  /// Rows first ... first + n - 1 of what tensor(name, dtype) reads, alone.
  Tensor rows(const std::string& name, std::size_t first, std::size_t n, DType dtype) const;
  /// Reads an I64 tensor.  Throws FileError for a name that is not there, or another dtype.
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

/// Reads a whole file.  Throws FileError for a file that is no safetensors file or has another
/// checksum, and one that lists all tensors of dtypes that have no counterpart here.
TensorFile load_safetensors(const std::string& path);

/// Writes a file, which appears complete or not at all.  The same content gives the same bytes.
/// Throws ValueError for an undefined Tensor, a name or text that is not UTF-8, a name that stands
/// twice or is "__metadata__", and for two names of one value (a tied weight is stored once);
/// FileError for what cannot be written.
void save_safetensors(const std::string& path, const TensorFile& content);

}  // namespace xgrad::io
