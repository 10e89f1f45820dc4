#include "safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include "../autograd/fail.hpp"
#include "json.hpp"

namespace xgrad::io {

inline constexpr std::uint64_t longest_header = 100'000'000;
inline constexpr const char* metadata_key = "__metadata__";
inline constexpr const char* checksum_key = "xgrad_checksum";

/// The layout of a file, which depends on its contents alone: saving the same in any order gives
/// the same checksum.
struct Arranged {
  std::string header;  ///< padded with blanks to a multiple of 8 bytes; zeros for the checksum
  std::vector<std::string> order;  ///< of the tensors
};
inline constexpr std::size_t checksum_digits = 16;

namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::size_t most_dimensions = 64;  // NumPy's and PyTorch's limit

/// The size of an element of each supported dtype.  A tensor of another dtype is rejected when it
/// is loaded, so its size is not needed here.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> element_bytes{
    {{"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"I64", 8}}};

/// A text from the file, which may be anything, in printable form.
std::string shown(const std::string& text) { return printable_name(text); }
template <class T>
const T& shown(const T& other) {
  return other;
}

/// Parses one header; all messages begin with its path.
struct Reader {
  const std::string& path;
  std::uint64_t data_begin;
  std::uint64_t data_bytes;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<decltype(shown(std::declval<Args>()))...> format,
                           const Args&... args) const {
    fail<FileError>("{}: not a safetensors file: {}", path, fmt::format(format, shown(args)...));
  }

  Json parse(std::string_view text) const {
    if (text.empty() || text.front() != '{')
      refuse("its header does not begin with '{{' (byte {})", length_bytes);
    const std::size_t last = text.find_last_not_of(' ');
    if (text[last] != '}')
      refuse("its header ends with something other than '}}' and blanks (byte {})",
             length_bytes + last);
    try {
      return parse_json(text, length_bytes);
    } catch (const ValueError& error) {
      refuse("its header {}", std::string(error.what()));
    }
  }

  std::map<std::string, std::string> metadata(const Json& entry) const {
    const auto* const object = entry.as<JsonObject>();
    if (object == nullptr)
      refuse("{} is not an object", metadata_key);
    std::map<std::string, std::string> result;
    for (const auto& [key, value] : *object) {
      const auto* const text = value.as<std::string>();
      if (text == nullptr)
        refuse("{} maps '{}' to something other than a string", metadata_key, key);
      result.emplace(key, *text);
    }
    return result;
  }

  std::size_t whole_number(const std::string& name, const char* what, const Json& entry) const {
    const auto* const number = entry.as<std::uint64_t>();
    if (number == nullptr || !std::in_range<std::size_t>(*number))
      refuse("tensor '{}': {} holds {}, not a whole number from 0 to 2^{} - 1", name, what,
             format_json(entry, InvalidUtf8::replaced), 8 * sizeof(std::size_t));
    return static_cast<std::size_t>(*number);
  }

  Shape shape(const std::string& name, const Json& entry) const {
    const auto* const sizes = entry.as<JsonArray>();
    if (sizes == nullptr)
      refuse("tensor '{}': shape is not a list", name);
    if (sizes->size() > most_dimensions)
      refuse("tensor '{}': its shape has {} dimensions, and at most {} are allowed", name,
             sizes->size(), most_dimensions);
    Shape shape;
    for (const Json& size : *sizes)
      shape.push_back(whole_number(name, "shape", size));
    return shape;
  }

  /// The bytes of a tensor of this shape and dtype; for an unknown dtype, by its offsets.
  std::uint64_t size(const std::string& name, const StoredTensor& stored) const {
    const auto* const row = std::ranges::find(element_bytes, std::string_view(stored.dtype),
                                              &std::pair<std::string_view, std::uint64_t>::first);
    // Multiplies only sizes that are not zero, so that an empty tensor's strides cannot overflow,
    // either.
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    std::uint64_t product = row == element_bytes.end() ? 8 : 8 * row->second;  // bits
    bool empty = false;
    for (const std::size_t length : stored.shape) {
      empty = empty || length == 0;
      if (length != 0 && product > most / length)
        refuse("tensor '{}': the product of shape {} overflows", name, to_string(stored.shape));
      product *= std::max<std::uint64_t>(length, 1);
    }
    if (row == element_bytes.end())
      return stored.bytes;
    return empty ? 0 : product / 8;
  }

  StoredTensor tensor(const std::string& name, const Json& entry) const {
    const auto* const object = entry.as<JsonObject>();
    if (object == nullptr)
      refuse("tensor '{}' is not described by an object", name);
    for (const char* const key : {"dtype", "shape", "data_offsets"}) {
      if (entry.find(key) == nullptr)
        refuse("tensor '{}' has no {}", name, key);
    }
    for (const auto& [key, value] : *object) {
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        refuse("tensor '{}' has the unknown key '{}'", name, key);
    }
    const auto* const dtype = entry.find<std::string>("dtype");
    if (dtype == nullptr)
      refuse("tensor '{}': dtype is not a string", name);
    const auto* const offsets = entry.find<JsonArray>("data_offsets");
    if (offsets == nullptr || offsets->size() != 2)
      refuse("tensor '{}': data_offsets is not a list of two numbers", name);
    const std::uint64_t begin = whole_number(name, "data_offsets", offsets->front());
    const std::uint64_t end = whole_number(name, "data_offsets", offsets->back());
    if (begin > end)
      refuse("tensor '{}': data_offsets [{}, {}) end before they begin", name, begin, end);
    if (end > data_bytes)
      refuse("tensor '{}': data_offsets [{}, {}) go beyond the file, which has {} bytes of data",
             name, begin, end, data_bytes);

    StoredTensor stored{name, *dtype, shape(name, *entry.find("shape")), data_begin + begin,
                        end - begin};
    const std::uint64_t expected = size(name, stored);
    if (stored.bytes != expected)
      refuse("tensor '{}': shape {} of {} has {} bytes, but data_offsets [{}, {}) hold {}", name,
             to_string(stored.shape), stored.dtype, expected, begin, end, stored.bytes);
    return stored;
  }

  /// Tensors follow one another from the first byte to the last.
  void check_layout(const std::map<std::string, StoredTensor>& tensors) const {
    std::vector<const std::pair<const std::string, StoredTensor>*> order;
    for (const auto& entry : tensors)
      order.push_back(&entry);
    // By the end as well: of two that begin at one byte, the empty one comes first.
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->second.offset, a->second.bytes) <
             std::pair(b->second.offset, b->second.bytes);
    });
    std::uint64_t at = data_begin;
    for (const auto* const entry : order) {
      const auto& [name, stored] = *entry;
      if (stored.offset > at)
        refuse("tensor '{}': there is a hole of {} before it (byte {})", name,
               counted(stored.offset - at, "byte", "bytes"), at);
      if (stored.offset < at)
        refuse("tensor '{}' overlaps the one before it by {} (byte {})", name,
               counted(at - stored.offset, "byte", "bytes"), stored.offset);
      at += stored.bytes;
    }
    if (at != data_begin + data_bytes)
      refuse("{} the last tensor (byte {})",
             counted(data_begin + data_bytes - at, "byte follows", "bytes follow"), at);
  }
};

using Bytes = std::span<const std::byte>;
using Described = std::map<std::string, std::pair<StoredTensor, Bytes>>;

}  // namespace

/// The layout of these tensors; their offsets are ignored.  Throws ValueError for text that is not
/// UTF-8.
Arranged arranged(std::map<std::string, StoredTensor> tensors,
                  std::map<std::string, std::string> metadata) {
  Arranged result;
  for (const auto& [name, stored] : tensors)
    result.order.push_back(name);
  // Wide values first, so that each begins at a multiple of its width, which readers that map the
  // file into memory need.
  std::stable_partition(result.order.begin(), result.order.end(),
                        [&](const std::string& name) { return tensors.at(name).dtype != "F32"; });
  std::uint64_t end = 0;
  for (const std::string& name : result.order) {
    StoredTensor& stored = tensors.at(name);
    stored.offset = std::exchange(end, end + stored.bytes);
  }
  metadata[checksum_key] = std::string(checksum_digits, '0');
  JsonObject json{{metadata_key, JsonObject(metadata.begin(), metadata.end())}};
  for (const auto& [name, stored] : tensors) {
    check<ValueError>(stored.shape.size() <= most_dimensions,
                      "safetensors: '{}' has {} dimensions, and a file holds at most {}", name,
                      stored.shape.size(), most_dimensions);
    json.emplace_back(
        name, JsonObject{{"data_offsets", JsonArray{stored.offset, stored.offset + stored.bytes}},
                         {"dtype", stored.dtype},
                         {"shape", JsonArray(stored.shape.begin(), stored.shape.end())}});
  }
  try {
    result.header = format_json(json);
  } catch (const ValueError&) {
    fail<ValueError>("safetensors: a name or a text of the metadata is not UTF-8");
  }
  while ((length_bytes + result.header.size()) % 8 != 0)
    result.header += ' ';
  return result;
}

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and values are read and written as they are in memory");

template <class T>
constexpr const char* name_of = std::is_same_v<T, float>    ? "F32"
                                : std::is_same_v<T, double> ? "F64"
                                                            : "I64";

template <class T>
static std::pair<StoredTensor, Bytes> describe(const T* data, const Shape& shape) {
  const Bytes bytes = std::as_bytes(std::span(data, numel(shape)));
  return {StoredTensor{"", name_of<T>, shape, 0, bytes.size()}, bytes};
}

static Described describe(const TensorFile& content) {
  Described described;
  std::map<const Value*, std::string> names;
  for (const auto& [name, x] : content.tensors) {
    check<ValueError>(x.defined(), "save_safetensors: tensor '{}' is undefined", name);
    const auto [first, is_new] = names.emplace(x.identity().value.get(), name);
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

/// Adds a header with zeros for the checksum's digits; the values follow.
static void add_header(Checksum& checksum, const std::string& header) {
  const std::uint64_t length = header.size();
  checksum.add(&length, sizeof(length));
  checksum.add(header.data(), header.size());
}

/// IEEE 754 half precision: a sign, 5 bits of exponent, 10 of fraction.
static float from_f16(std::uint16_t half) {
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

/// Throws FileError if a finite value has no finite float32.
static void check_range(const Tensor& x, const std::string& path, const std::string& name) {
  const double* const values = x.data<double>();
  for (Size i = 0; i < x.numel(); ++i) {
    if (std::isfinite(values[i]) && !std::isfinite(static_cast<float>(values[i])))
      fail<FileError>("{}: tensor '{}' (F64) holds {} at place {}, which float32 cannot hold", path,
                      name, values[i], i);
  }
}

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
                   counted(file_.size() - sizeof(length), "byte follows", "bytes follow"));
  std::string text(length, ' ');
  file_.read(text.data(), text.size(), sizeof(length));
  const Reader reader{file_.path(), sizeof(length) + length,
                      file_.size() - sizeof(length) - length};
  const Json json = reader.parse(text);
  for (const auto& [name, entry] : *json.as<JsonObject>()) {
    if (name == metadata_key)
      metadata_ = reader.metadata(entry);
    else
      tensors_.emplace(name, reader.tensor(name, entry));
  }
  reader.check_layout(tensors_);
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
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, tensor] : tensors_)
    tensors.emplace(tensor.name, tensor);
  const Arranged written = arranged(tensors, metadata_);
  Checksum checksum;
  add_header(checksum, written.header);
  std::vector<char> part(std::size_t{1} << 20);
  for (const std::string& name : written.order) {
    const StoredTensor& tensor = tensors.at(name);
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
    return convert_from.template operator()<std::uint16_t>(
        [](std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t{upper} << 16); });
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
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, entry] : described)
    tensors.emplace(name, entry.first);
  auto [text, order] = arranged(std::move(tensors), content.metadata);
  const std::uint64_t length = text.size();
  check<ValueError>(length <= longest_header,
                    "save_safetensors: {}: the header would have {} bytes, and at most {} are "
                    "allowed",
                    path, length, longest_header);

  Checksum checksum;
  add_header(checksum, text);
  for (const std::string& name : order) {
    const Bytes bytes = described.at(name).second;
    checksum.add(bytes.data(), bytes.size());
  }
  // (In a name or a value, both quotes would be escaped; at the end of a key, the first one.)
  const std::string key = fmt::format("\"{}\":\"", checksum_key);
  std::size_t at = text.find(key);
  while (text[at - 1] == '\\')
    at = text.find(key, at + 1);
  text.replace(at + key.size(), checksum_digits, checksum.digits());

  AtomicFile file(path);
  file.write(&length, sizeof(length));
  file.write(text);
  for (const std::string& name : order)
    file.write(described.at(name).second.data(), described.at(name).second.size());
  file.commit();
}

}  // namespace xgrad::io
