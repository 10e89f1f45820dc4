#pragma once
// The ids of a text, held once; characters as ids, and characters that come byte by byte.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/autograd/shape.hpp>

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
  std::size_t size() const;
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

// The vocabulary of a character-level model: which characters there are, and which id each has.

/// Distinct characters, sorted by code point; a character's id is its place.  The same ids as
/// nanoGPT's sorted(set(text)).
class Characters {
 public:
  /// No characters at all.
  Characters() = default;

  /// The characters that occur in a text, each once.
  static Characters of(std::u32string_view text);

  /// A stored vocabulary, as list() gave it.  Throws ValueError if it is not sorted or has a
  /// character twice: ids would then mean something else than when it was stored.
  static Characters from_list(std::u32string_view list);

  Size size() const { return static_cast<Size>(list_.size()); }

  /// The characters in the order of their ids.
  const std::u32string& list() const { return list_; }

  /// Whether a character has an id.
  bool contains(char32_t c) const;

  /// The id of every character of a text.  Throws ValueError that names each unknown character once
  /// (the first hundred).
  Ids encode(std::u32string_view text) const;

  /// The UTF-8 text that ids stand for.  Throws ValueError for an id that is not below size().
  std::string decode(const Ids& ids) const;

  friend bool operator==(const Characters&, const Characters&) = default;

 private:
  friend class Encoder;
  std::u32string list_;
};

/// Makes ids of a text that comes piece by piece and is read once: characters are numbered as they
/// come, and in the end these numbers are replaced.
class Encoder {
 public:
  /// Adds a piece.  ValueError for a value that is no code point.
  void add(std::u32string_view text);
  /// How many characters there were.
  std::size_t size() const { return ids_.size(); }
  /// Which, each once.
  Characters characters() const;
  /// Their ids.  Throws as Characters::encode.
  Ids finish(const Characters& characters) &&;

 private:
  std::uint32_t number_of(char32_t c);

  std::u32string seen_;                                // each once, in the order they came in
  std::vector<std::vector<std::uint32_t>> number_of_;  // by code point, in rows of 256; or none
  GrowingIds ids_;
};

// Bytes that should be UTF-8 and need not be: a token may end within a character.

/// Whole characters of bytes that come piece by piece.  Bytes that are not UTF-8 become U+FFFD,
/// once for the longest part that could begin a character, as in Python's
/// bytes.decode(errors="replace").
class Utf8Stream {
 public:
  /// The characters that more bytes complete.
  std::string add(std::string_view bytes);
  /// The rest at the end: nothing, or U+FFFD for a character that was cut off.
  std::string finish();

 private:
  std::string begun_;  // of a character
};

/// Bytes with U+FFFD for bytes that are not UTF-8, by the same rule.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace xgrad::text
