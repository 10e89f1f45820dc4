#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/io/safetensors_header.hpp>

namespace xgrad::io {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::size_t most_dimensions = 64;  // NumPy's and PyTorch's limit

/// The bytes of an element of the dtypes that can be read.  Others are for whoever asks for such a
/// tensor to refuse, so their sizes are not known here.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> element_bytes{
    {{"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"I64", 8}}};

/// What a message says of a text from the file, which may be anything.
std::string shown(const std::string& text) { return printable_name(text); }
template <class T>
const T& shown(const T& other) {
  return other;
}

/// One reading of one header: what all messages begin with.
struct Reader {
  const std::string& path;
  std::uint64_t data_begin;
  std::uint64_t data_bytes;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<decltype(shown(std::declval<Args>()))...> format,
                           const Args&... args) const {
    fail<FileError>("{}: not a safetensors file: {}", path, fmt::format(format, shown(args)...));
  }

  Json parse(std::string_view text) const;
  std::map<std::string, std::string> metadata(const Json& entry) const;
  StoredTensor tensor(const std::string& name, const Json& entry) const;
  std::uint64_t whole_number(const std::string& name, const char* what, const Json& entry) const;
  Shape shape(const std::string& name, const Json& entry) const;
  std::uint64_t size(const std::string& name, const StoredTensor& stored) const;
  void check_layout(const std::map<std::string, StoredTensor>& tensors) const;
};

Json Reader::parse(std::string_view text) const {
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

std::map<std::string, std::string> Reader::metadata(const Json& entry) const {
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

std::uint64_t Reader::whole_number(const std::string& name, const char* what,
                                   const Json& entry) const {
  const auto* const number = entry.as<std::uint64_t>();
  if (number == nullptr)
    refuse("tensor '{}': {} holds {}, which is not a whole number from 0 to 2^64 - 1", name, what,
           format_json(entry, InvalidUtf8::replaced));
  return *number;
}

Shape Reader::shape(const std::string& name, const Json& entry) const {
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

/// The bytes that a tensor of this shape and dtype has; those that it says, of an unknown dtype.
std::uint64_t Reader::size(const std::string& name, const StoredTensor& stored) const {
  const auto* const row = std::ranges::find(element_bytes, std::string_view(stored.dtype),
                                            &std::pair<std::string_view, std::uint64_t>::first);
  // The product is taken over the sizes that are not zero, so that an empty tensor's strides are
  // numbers, too.
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

StoredTensor Reader::tensor(const std::string& name, const Json& entry) const {
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
void Reader::check_layout(const std::map<std::string, StoredTensor>& tensors) const {
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
           data_begin + data_bytes - at == 1
               ? "1 byte follows"
               : fmt::format("{} bytes follow", data_begin + data_bytes - at),
           at);
}

}  // namespace

SafetensorsHeader parse_header(const std::string& path, std::string_view text,
                               std::uint64_t data_bytes) {
  const Reader reader{path, length_bytes + text.size(), data_bytes};
  const Json json = reader.parse(text);
  SafetensorsHeader header;
  for (const auto& [name, entry] : *json.as<JsonObject>()) {
    if (name == metadata_key)
      header.metadata = reader.metadata(entry);
    else
      header.tensors.emplace(name, reader.tensor(name, entry));
  }
  reader.check_layout(header.tensors);
  return header;
}

Arranged arranged(SafetensorsHeader header) {
  Arranged result;
  for (const auto& [name, stored] : header.tensors)
    result.order.push_back(name);
  // Wide values first: then each begins at a multiple of its width, as readers that map the file
  // into memory need it.
  std::stable_partition(result.order.begin(), result.order.end(), [&](const std::string& name) {
    return header.tensors.at(name).dtype != "F32";
  });
  std::uint64_t end = 0;
  for (const std::string& name : result.order) {
    StoredTensor& stored = header.tensors.at(name);
    stored.offset = std::exchange(end, end + stored.bytes);
  }
  header.metadata[checksum_key] = std::string(checksum_digits, '0');
  JsonObject json{{metadata_key, JsonObject(header.metadata.begin(), header.metadata.end())}};
  for (const auto& [name, stored] : header.tensors) {
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

// In a name or a value, the quotes would be escaped.
std::size_t find_checksum(std::string_view text) {
  const std::string key = fmt::format("\"{}\":\"", checksum_key);
  const std::size_t at = text.find(key);
  return at == std::string_view::npos || text.size() - at - key.size() < checksum_digits
             ? std::string_view::npos
             : at + key.size();
}

}  // namespace xgrad::io
