#include "text.hpp"

#include <utf8.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include "../autograd/fail.hpp"

namespace xgrad::lm {

namespace {

std::ifstream open_text(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    fail<FileError>("{}: {}", path,
                    status.type() == std::filesystem::file_type::not_found
                        ? "no such file"
                        : "cannot be opened: " + error.message());
  // Opening a directory succeeds on Linux and reads nothing, so it would look like an empty file.
  check<FileError>(!std::filesystem::is_directory(status), "{}: is a directory, not a text", path);
  // Some devices never end.
  check<FileError>(std::filesystem::is_regular_file(status) || std::filesystem::is_fifo(status),
                   "{}: is neither a file nor a pipe", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail<FileError>("{}: cannot be opened: {}", path, std::strerror(errno));
  return file;
}

/// UTF-16LE or UTF-16BE if every other byte of the text's beginning is zero, as when most
/// characters are ASCII.  Such zeros are valid UTF-8, but not in a text.
std::string_view utf16_by_zeros(std::string_view bytes) {
  bytes = bytes.substr(0, 1024);
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    zeros[i % 2] += bytes[i] == '\0' ? 1 : 0;
  const auto most = [&](int place) {
    return zeros[1 - place] == 0 && 4 * zeros[place] >= bytes.size() && bytes.size() >= 4;
  };
  return most(1) ? "UTF-16LE" : most(0) ? "UTF-16BE" : "";
}

/// A guess at the encoding of a chunk that is not UTF-8, by iconv's names; empty if there is none.
std::string_view encoding_of(std::string_view bytes, bool at_start) {
  using namespace std::literals;
  if (at_start && (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)))
    return "UTF-32";
  if (at_start && (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")))
    return "UTF-16";
  if (at_start && !utf16_by_zeros(bytes).empty())
    return utf16_by_zeros(bytes);
  // In Latin-1, accented letters occur between ASCII letters, at most three together; in most other
  // encodings such bytes come in runs.  A text has no control characters.
  std::size_t high = 0, run = 0, in_utf8 = 0;
  bool windows = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < ' ' && "\t\n\f\r"sv.find(bytes[i]) == std::string_view::npos)
      return "";
    run = byte < 0x80 ? 0 : run + 1;
    if (run > 3)
      return "";
    high += run > 0 ? 1 : 0;
    windows = windows || (byte >= 0x80 && byte < 0xA0);
    const bool ends = i + 1 == bytes.size() || static_cast<unsigned char>(bytes[i + 1]) < 0x80;
    in_utf8 +=
        ends && utf8::is_valid(bytes.begin() + (i + 1 - run), bytes.begin() + (i + 1)) ? run : 0;
  }
  return 2 * in_utf8 >= high || 3 * high > 2 * bytes.size() ? ""
         : windows                                          ? "WINDOWS-1252"
                                                            : "LATIN1";
}

/// How to convert an encoding to UTF-8.
std::string cure(std::string_view encoding) {
  return fmt::format("it seems to be {0}; 'iconv -f {0} -t UTF-8 OLD > NEW' converts it", encoding);
}

/// `piece` begins at byte `begin` of the text, and its byte `bad` is not UTF-8.
template <class E>
[[noreturn]] void fail_at(std::string_view what, std::string_view piece, std::size_t begin,
                          std::size_t bad) {
  const std::string_view encoding = encoding_of(piece, begin == 0);
  fail<E>("{}: not UTF-8 at byte {}: 0x{:02x} does not begin a valid character{}{}", what,
          begin + bad, static_cast<unsigned char>(piece[bad]), encoding.empty() ? "" : "; ",
          encoding.empty() ? "" : cure(encoding));
}

/// The length of the beginning that is UTF-8.
std::size_t valid_bytes(std::string_view bytes) {
  return static_cast<std::size_t>(utf8::find_invalid(bytes.begin(), bytes.end()) - bytes.begin());
}

std::u32string decode_valid(std::string_view bytes) {
  std::u32string text(bytes.size(), U'\0');
  const auto end = utf8::unchecked::utf8to32(bytes.begin(), bytes.end(), text.begin());
  text.erase(end, text.end());
  return text;
}

}  // namespace

Text read_text(const std::string& path, const std::optional<Characters>& characters) {
  constexpr std::size_t piece = 65536, longest = 4;  // bytes; of a character
  std::ifstream file = open_text(path);
  Encoder encoder;
  std::string bytes;       // the next chunk, after the rest of the last
  std::size_t offset = 0;  // of bytes in the file
  char32_t before = 0;
  while (file) {
    const std::size_t left = bytes.size();
    bytes.resize(left + piece);
    file.read(bytes.data() + left, piece);
    bytes.resize(left + static_cast<std::size_t>(file.gcount()));
    if (file.bad())
      fail<FileError>("{}: reading failed after {}", path,
                      counted(offset + bytes.size(), "byte", "bytes"));
    const std::size_t valid = valid_bytes(bytes);
    // The next chunk may complete a character.
    if (valid < bytes.size() && (!file || bytes.size() - valid >= longest))
      fail_at<FileError>(path, bytes, offset, valid);
    if (const auto utf16 = utf16_by_zeros(offset == 0 ? bytes : ""); !utf16.empty())
      fail<FileError>("{}: not UTF-8: {}", path, cure(utf16));
    std::u32string text = decode_valid(std::string_view(bytes).substr(0, valid));
    if (offset == 0 && text.starts_with(U'\uFEFF'))  // the byte order mark
      text.erase(0, 1);
    before = normalize_newlines(text, before);
    encoder.add(text);
    bytes.erase(0, valid);
    offset += valid;
  }
  check<FileError>(encoder.size() > 0, "{}: the file is empty", path);
  Characters known = characters ? *characters : encoder.characters();
  Ids ids = std::move(encoder).finish(known);
  return {std::move(known), std::move(ids)};
}

char32_t normalize_newlines(std::u32string& text, char32_t before) {
  std::size_t to = 0;
  for (const char32_t c : text) {
    if (c != U'\n' || before != U'\r')
      text[to++] = c == U'\r' ? U'\n' : c;
    before = c;
  }
  text.resize(to);
  return before;
}

std::u32string decode_utf8(std::string_view bytes, std::string_view what) {
  if (const std::size_t valid = valid_bytes(bytes); valid < bytes.size())
    fail_at<ValueError>(what, bytes, 0, valid);
  if (const auto utf16 = utf16_by_zeros(bytes); !utf16.empty())
    fail<ValueError>("{}: not UTF-8: {}", what, cure(utf16));
  return decode_valid(bytes);
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t c : text) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
      fail<ValueError>("encode_utf8: 0x{:X} is not a code point", static_cast<std::uint32_t>(c));
    utf8::unchecked::append(c, std::back_inserter(bytes));
  }
  return bytes;
}

static void check_size(const Ids& data, std::size_t block_size, std::string_view part) {
  check<ValueError>(block_size > 0, "block_size must be at least 1");
  // Avoids the sum block_size + 1, which could overflow.
  check<ValueError>(data.size() > block_size,
                    "the {} split has {} characters, but a block of {} needs one more than that",
                    part, data.size(), block_size);
}

Split split(const Ids& ids, double fraction) {
  check<ValueError>(fraction > 0 && fraction < 1,
                    "split: the fraction is {}, but must be between 0 and 1", fraction);
  const auto n = static_cast<std::size_t>(fraction * static_cast<double>(ids.size()));
  return {ids.part(0, n), ids.part(n, ids.size() - n)};
}

std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part) {
  check_size(data, block_size, part);
  check<ValueError>(batch_size > 0, "batch_size must be at least 1");
  const std::size_t starts = data.size() - block_size;
  // From here on PyTorch takes 64-bit draws.
  check<ValueError>(starts <= std::numeric_limits<std::uint32_t>::max(),
                    "the {} split is too long: {} characters", part, data.size());
  numel(Shape{batch_size, block_size});  // ShapeError before any draw
  std::vector<std::size_t> all(batch_size);
  for (std::size_t& start : all)
    start = generator.random() % starts;
  return all;
}

static void check_block(const Ids& data, std::size_t block_size, std::size_t start) {
  check<ValueError>(start < data.size() && block_size < data.size() - start,
                    "blocks_at: no block of {} begins at {} of {}", block_size, start, data.size());
}

Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts) {
  const Shape shape = {starts.size(), block_size};
  Array<std::int64_t> x = empty_array<std::int64_t>(shape), y = empty_array<std::int64_t>(shape);
  for (std::size_t b = 0; b < starts.size(); ++b) {
    check_block(data, block_size, starts[b]);
    data.copy(starts[b], block_size, x.data() + b * block_size);
    data.copy(starts[b] + 1, block_size, y.data() + b * block_size);
  }
  return {Indices(std::move(x)), Indices(std::move(y))};
}

Indices document_starts(const Ids& data, std::size_t block_size,
                        std::span<const std::size_t> starts, std::span<const std::int64_t> end) {
  check<ValueError>(!end.empty(), "document_starts: a document ends with no ids");
  auto first = empty_array<std::int64_t>({starts.size(), block_size});
  std::int64_t* to = first.data();
  for (const std::size_t start : starts) {
    check_block(data, block_size, start);
    const auto ends_before = [&](std::size_t place) {
      for (std::size_t i = 0; i < end.size(); ++i)
        if (place <= i || data[place - 1 - i] != end[end.size() - 1 - i])
          return false;
      return true;
    };
    for (std::size_t t = 0, begin = 0; t < block_size; ++t) {
      begin = ends_before(start + t) ? t : begin;
      *to++ = static_cast<std::int64_t>(begin);
    }
  }
  return Indices(std::move(first));
}

Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part) {
  return blocks_at(data, block_size, random_starts(data, block_size, batch_size, generator, part));
}

std::size_t block_count(const Ids& data, std::size_t block_size, std::string_view part) {
  check_size(data, block_size, part);
  return (data.size() - 1) / block_size;
}

Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first, std::size_t count,
                  std::string_view part) {
  const std::size_t blocks = block_count(data, block_size, part);
  check<ValueError>(first < blocks && count > 0,
                    "block_batch: no {} blocks from number {} on, of {} in the {} split", count,
                    first, blocks, part);
  std::vector<std::size_t> starts(std::min(count, blocks - first));
  for (std::size_t b = 0; b < starts.size(); ++b)
    starts[b] = (first + b) * block_size;
  return blocks_at(data, block_size, starts);
}

}  // namespace xgrad::lm
