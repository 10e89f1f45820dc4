#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/listed.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/io/safetensors_header.hpp>

namespace xgrad::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and values are read and written as they are in memory");

template <class T>
constexpr const char* name_of = nullptr;
template <>
constexpr const char* name_of<float> = "F32";
template <>
constexpr const char* name_of<double> = "F64";
template <>
constexpr const char* name_of<std::int64_t> = "I64";

struct Bytes {
  const void* data;
  std::size_t size;
};

template <class T>
std::pair<StoredTensor, Bytes> describe(const T* data, const Shape& shape) {
  const std::size_t bytes = numel(shape) * sizeof(T);
  return {StoredTensor{"", name_of<T>, shape, 0, bytes}, {data, bytes}};
}

using Described = std::map<std::string, std::pair<StoredTensor, Bytes>>;

Described describe(const TensorFile& content) {
  Described described;
  std::map<const Value*, std::string> names;
  for (const auto& [name, x] : content.tensors) {
    check<ValueError>(x.defined(), "save_safetensors: tensor '{}' is undefined", name);
    const auto [first, is_new] = names.emplace(x.impl().value.get(), name);
    check<ValueError>(
        is_new, "save_safetensors: '{}' and '{}' are the same value; store a tied weight once",
        first->second, name);
    described.emplace(name, dispatch(x.dtype(), [&x = x]<class T>() {
                        return describe(x.data<T>(), x.shape());
                      }));
  }
  for (const auto& [name, ids] : content.indices) {
    check<ValueError>(described.emplace(name, describe(ids.data(), ids.shape())).second,
                      "save_safetensors: '{}' names a Tensor and Indices", name);
  }
  check<ValueError>(described.count(metadata_key) == 0,
                    "save_safetensors: '{}' cannot name a tensor", metadata_key);
  return described;
}

/// Of a header that has zeros for its digits; the values follow.
void add_header(Checksum& checksum, const std::string& header) {
  const std::uint64_t length = header.size();
  checksum.add(&length, sizeof(length));
  checksum.add(header.data(), header.size());
}

/// IEEE 754 half precision: a sign, 5 bits of exponent, 10 of fraction.
float from_f16(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t fraction = half & 0x3FF;
  if (exponent == 0) {  // zero and subnormals
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : static_cast<std::uint32_t>(exponent + 112);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// The upper half of a float32.
float from_bf16(std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t{upper} << 16); }

/// Throws FileError if a finite value has no finite float32.
void check_range(const Tensor& x, const std::string& path, const std::string& name) {
  const double* const values = x.data<double>();
  for (Size i = 0; i < x.numel(); ++i) {
    if (std::isfinite(values[i]) && !std::isfinite(static_cast<float>(values[i])))
      fail<FileError>("{}: tensor '{}' (F64) holds {} at place {}, which float32 cannot hold", path,
                      name, values[i], i);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  std::uint64_t length = 0;
  check<FileError>(file_.size() >= sizeof(length),
                   "{}: not a safetensors file: it has {}, and 8 are needed for the header's "
                   "length",
                   file_.path(), counted(file_.size(), "byte", "bytes"));
  file_.read(&length, sizeof(length), 0);
  check<FileError>(length <= longest_header,
                   "{}: not a safetensors file: its first 8 bytes are no header's length, which is "
                   "at most {} (byte 0)",
                   file_.path(), longest_header);
  check<FileError>(length <= file_.size() - sizeof(length),
                   "{}: not a safetensors file: the header's length is {} (byte 0), but only {}",
                   file_.path(), length,
                   file_.size() - sizeof(length) == 1
                       ? "1 byte follows"
                       : fmt::format("{} bytes follow", file_.size() - sizeof(length)));
  std::string text(length, ' ');
  file_.read(text.data(), text.size(), sizeof(length));
  SafetensorsHeader header =
      parse_header(file_.path(), text, file_.size() - sizeof(length) - length);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

void SafetensorsFile::take_off(const std::vector<std::string>& prefixes) {
  const auto all_have = [&](std::size_t off, const std::string& prefix) {
    return !tensors_.empty() && !prefix.empty() &&
           std::ranges::all_of(tensors_, [&](const auto& entry) {
             return entry.first.compare(off, prefix.size(), prefix) == 0;
           });
  };
  std::size_t off = 0;
  for (auto prefix = prefixes.begin(); prefix != prefixes.end();)
    if (all_have(off, *prefix)) {
      off += prefix->size();
      prefix = prefixes.begin();
    } else {
      ++prefix;
    }
  rename([&](const std::string& name) { return name.substr(off); });
}

void SafetensorsFile::rename(const std::function<std::string(const std::string&)>& to) {
  std::map<std::string, StoredTensor> renamed;
  for (const auto& [name, stored] : tensors_)
    check<FileError>(renamed.emplace(to(name), stored).second,
                     "{}: tensor '{}' is given twice, once with a prefix", path(), to(name));
  tensors_ = std::move(renamed);
}

bool SafetensorsFile::verify() const {
  const auto stored = metadata_.find(checksum_key);
  if (stored == metadata_.end())
    return false;
  SafetensorsHeader header{.tensors = {}, .metadata = metadata_};
  for (const auto& [name, tensor] : tensors_)
    header.tensors.emplace(tensor.name, tensor);
  const Arranged written = arranged(header);
  Checksum checksum;
  add_header(checksum, written.header);
  std::vector<char> part(std::size_t{1} << 20);
  for (const std::string& name : written.order) {
    const StoredTensor& tensor = header.tensors.at(name);
    for (std::uint64_t done = 0; done < tensor.bytes; done += part.size()) {
      part.resize(std::min<std::uint64_t>(std::size_t{1} << 20, tensor.bytes - done));
      file_.read(part.data(), part.size(), tensor.offset + done);
      checksum.add(part.data(), part.size());
    }
  }
  check<FileError>(checksum.digits() == stored->second,
                   "{}: the file has been damaged: its checksum is {}, and should be {}; if "
                   "another program changed it on purpose, it must leave '{}' out of the metadata",
                   path(), checksum.digits(), stored->second, checksum_key);
  return true;
}

const StoredTensor& SafetensorsFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  check<FileError>(found != tensors_.end(), "{}: has no tensor '{}'", path(), name);
  return found->second;
}

template <class T>
Array<T> SafetensorsFile::read(const StoredTensor& stored) const {
  Array<T> array = empty_array<T>(stored.shape);
  file_.read(array.data(), stored.bytes, stored.offset);
  return array;
}

Tensor SafetensorsFile::read(const StoredTensor& stored, std::optional<DType> dtype) const {
  const auto convert_from = [&]<class Stored, class Convert>(Convert convert) {
    std::vector<Stored> values(stored.bytes / sizeof(Stored));
    file_.read(values.data(), stored.bytes, stored.offset);
    return dispatch(*dtype, [&]<class T>() {
      Array<T> array = empty_array<T>(stored.shape);
      std::transform(values.begin(), values.end(), array.data(),
                     [&](Stored x) { return static_cast<T>(convert(x)); });
      return Tensor(std::move(array));
    });
  };
  if (dtype && stored.dtype == "F16")
    return convert_from.template operator()<std::uint16_t>(from_f16);
  if (dtype && stored.dtype == "BF16")
    return convert_from.template operator()<std::uint16_t>(from_bf16);
  const bool wide = stored.dtype == name_of<double>;
  if (!wide && stored.dtype != name_of<float>)
    fail<FileError>("{}: tensor '{}' has dtype {}; a Tensor holds F32 or F64", path(), stored.name,
                    stored.dtype);
  const Tensor x = wide ? Tensor(read<double>(stored)) : Tensor(read<float>(stored));
  if (wide && dtype == DType::float32)
    check_range(x, path(), stored.name);
  return !dtype || x.dtype() == *dtype ? x : x.to(*dtype);
}

Tensor SafetensorsFile::tensor(const std::string& name, std::optional<DType> dtype) const {
  return read(find(name), dtype);
}
Tensor SafetensorsFile::rows(const std::string& name, std::size_t first, std::size_t n,
                             DType dtype) const {
  StoredTensor part = find(name);
  const std::size_t all = part.shape.empty() ? 0 : part.shape[0];
  if (first > all || n > all - first)
    fail<ValueError>("{}: tensor '{}' {} has no rows {} to {}", path(), name, to_string(part.shape),
                     first, first + n);
  part.shape[0] = n;
  const std::uint64_t row = all == 0 ? 0 : part.bytes / all;
  part.offset += first * row;
  part.bytes = n * row;
  return read(part, dtype);
}

Indices SafetensorsFile::indices(const std::string& name) const {
  const StoredTensor& stored = find(name);
  check<FileError>(stored.dtype == name_of<std::int64_t>,
                   "{}: tensor '{}' has dtype {}; Indices hold I64", path(), name, stored.dtype);
  return Indices(read<std::int64_t>(stored));
}

TensorFile load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<std::string> unsupported;
  for (const auto& [name, stored] : file.tensors()) {
    constexpr std::array supported = {name_of<float>, name_of<double>, name_of<std::int64_t>};
    if (std::find(supported.begin(), supported.end(), stored.dtype) == supported.end())
      unsupported.push_back(fmt::format("'{}' ({})", printable_name(name), stored.dtype));
  }
  check<FileError>(unsupported.empty(), "{}: only F32, F64 and I64 can be loaded, not {}", path,
                   listed(unsupported));
  file.verify();
  TensorFile content;
  content.metadata = file.metadata();
  content.metadata.erase(checksum_key);
  for (const auto& [name, stored] : file.tensors()) {
    if (stored.dtype == name_of<std::int64_t>)
      content.indices.emplace(name, file.indices(name));
    else
      content.tensors.emplace(name, file.tensor(name));
  }
  return content;
}

void save_safetensors(const std::string& path, const TensorFile& content) {
  const Described described = describe(content);
  SafetensorsHeader header{.tensors = {}, .metadata = content.metadata};
  for (const auto& [name, entry] : described)
    header.tensors.emplace(name, entry.first);
  auto [text, order] = arranged(std::move(header));
  const std::uint64_t length = text.size();
  check<ValueError>(length <= longest_header,
                    "save_safetensors: {}: the header would have {} bytes, and at most {} are "
                    "allowed",
                    path, length, longest_header);

  Checksum checksum;
  add_header(checksum, text);
  for (const std::string& name : order) {
    const Bytes& bytes = described.at(name).second;
    checksum.add(bytes.data, bytes.size);
  }
  text.replace(find_checksum(text), checksum_digits, checksum.digits());

  AtomicFile file(path);
  file.write(&length, sizeof(length));
  file.write(text);
  for (const std::string& name : order)
    file.write(described.at(name).second.data, described.at(name).second.size);
  file.commit();
}

}  // namespace xgrad::io
