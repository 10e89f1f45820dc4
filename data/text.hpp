#pragma once
// A text: its ids, held once; reading it; batches of it; characters that come byte by byte.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/tensor.hpp>
#include <xgrad/data/characters.hpp>

namespace xgrad::text {

/// Ids from 0 to 2^32 - 1, in two bytes each if all are below 65,536, else in four.  Copies and
/// parts share that memory; it never changes.
class Ids {
 public:
  /// None.
  Ids() = default;
  /// ValueError if one is negative, or 2^32 or above.
  explicit Ids(std::span<const std::int64_t> ids);
  Ids(std::initializer_list<std::int64_t> ids) : Ids(std::span(ids.begin(), ids.size())) {}

  std::size_t size() const { return size_; }
  /// The bytes that an id takes: 2 or 4.
  std::size_t itemsize() const { return itemsize_; }
  /// Id i, below size().
  std::int64_t operator[](std::size_t i) const;

  /// The part of `count` ids that begins with id `first`.  ValueError if it ends beyond the last.
  Ids part(std::size_t first, std::size_t count) const;
  /// Writes such a part to `to`.
  void copy(std::size_t first, std::size_t count, std::int64_t* to) const;

  friend bool operator==(const Ids& a, const Ids& b);

 private:
  friend class GrowingIds;
  Ids(std::shared_ptr<const void> memory, std::size_t size, std::size_t itemsize)
      : memory_(std::move(memory)), size_(size), itemsize_(itemsize) {}

  std::shared_ptr<const void> memory_;
  std::size_t size_ = 0;
  std::size_t itemsize_ = 2;
};

/// Ids in the making.  std::bad_alloc where the machine has no more memory (available_memory()).
class GrowingIds {
 public:
  std::size_t size() const {
    return std::visit([](const auto& ids) { return ids.size(); }, ids_);
  }
  /// Makes room in each for ids up to `largest`.
  void widen(std::uint32_t largest);
  /// Adds ids for which there is room.
  void append(std::span<const std::uint32_t> ids);
  /// Replaces each id i by table[i], for which there is room.
  void replace(std::span<const std::uint32_t> table);
  Ids finish() &&;

 private:
  using Narrow = std::vector<std::uint16_t>;
  std::variant<Narrow, std::vector<std::uint32_t>> ids_;
};

// Reading texts, and UTF-8 to and from code points.

/// A text as ids, and what they stand for.
struct Text {
  Characters characters;
  Ids ids;
};

/// A whole UTF-8 file, or pipe: its characters as Python's open(path, encoding="utf-8-sig").read()
/// gives them, where a byte order mark at the start is dropped, and "\r\n" and "\r" become "\n".
/// Python's reading is followed to the letter because the position of every later character, and so
/// every random batch, hangs on it.  Ids are those of `characters`, or without them of the text's
/// own.  The file is read once, piece by piece: nothing but the ids is held.  Throws FileError for
/// a file that is missing, a directory or device, unreadable, empty, or not UTF-8 (saying where,
/// and how to make UTF-8 of what seems to be UTF-16 or Latin-1), ValueError for characters that are
/// not known, as Characters::encode does.
Text read_text(const std::string& path, const std::optional<Characters>& characters = {});

/// The code points of UTF-8 bytes; newlines stay as they are.  `what` names the bytes in the
/// message.  Throws ValueError as read_text() does for what is not UTF-8.
std::u32string decode_utf8(std::string_view bytes, std::string_view what);

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.  Returns the last character that
/// there was; `before` is that of the part before, of a text that comes in several.
char32_t normalize_newlines(std::u32string& text, char32_t before = 0);

/// Code points as UTF-8.  Throws ValueError for a value that is not a code point (a surrogate, or
/// above U+10FFFF).
std::string encode_utf8(std::u32string_view text);

// Ids cut into what a model is trained and judged on.

/// A text in two parts, the later one kept from training.
struct Split {
  Ids train, validation;
};

/// The first int(fraction * size) ids and the rest, as nanoGPT cuts; they share memory.  Throws
/// ValueError unless 0 < fraction < 1.
Split split(const Ids& ids, double fraction = 0.9);

/// Inputs and targets, both (batch, block): y is x one character later.
struct Batch {
  Indices x, y;
};

/// Blocks that begin anywhere: torch.randint(size - block_size, (batch_size,)), one draw a block,
/// as nanoGPT draws them. Throws ValueError if data has fewer than block_size + 1 ids; `part` names
/// it in the message.
Batch random_batch(const Ids& data, std::size_t block_size, std::size_t batch_size,
                   Generator& generator, std::string_view part = "training");

/// The same in two steps: where blocks begin, and those that begin there.
std::vector<std::size_t> random_starts(const Ids& data, std::size_t block_size,
                                       std::size_t batch_size, Generator& generator,
                                       std::string_view part = "training");
Batch blocks_at(const Ids& data, std::size_t block_size, std::span<const std::size_t> starts);

/// How many blocks fit side by side: (size - 1) / block_size.  A loss averaged over all of them has
/// no sampling noise.  Throws ValueError if not one does.
std::size_t block_count(const Ids& data, std::size_t block_size,
                        std::string_view part = "validation");

/// Blocks first, first + 1, ... side by side; at most `count`, fewer at the end.  Throws ValueError
/// if there is no block `first`.
Batch block_batch(const Ids& data, std::size_t block_size, std::size_t first,
                  std::size_t count = 64, std::string_view part = "validation");

// Bytes that should be UTF-8 and need not be: those of tokens, which end anywhere.

/// Whole characters of bytes that come piece by piece.  What is not UTF-8 becomes U+FFFD, once for
/// the longest part that could begin a character, as in Python's bytes.decode(errors="replace").
class Utf8Stream {
 public:
  /// The characters that more bytes complete.
  std::string add(std::string_view bytes);
  /// What is left at the end: nothing, or U+FFFD for a character that was cut off.
  std::string finish();

 private:
  std::string begun_;  // of a character
};

/// Bytes with U+FFFD for what is not UTF-8, by the same rule.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace xgrad::text
