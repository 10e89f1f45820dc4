#pragma once
// Token ids in compact memory; characters as ids; UTF-8 that arrives byte by byte.

#include <algorithm>
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
#include "../autograd/error.hpp"
#include "../autograd/shape.hpp"

namespace xgrad::lm {

/// Ids from 0 to 2^32 - 1, in two bytes each if all are below 65,536, else in four.  Copies and
/// parts share this memory, which never changes.
class Ids {
 public:
  /// No ids.
  Ids() = default;
  /// ValueError if one is negative, or 2^32 or above.
  explicit Ids(std::span<const std::int64_t> ids);
  Ids(std::initializer_list<std::int64_t> ids) : Ids(std::span(ids.begin(), ids.size())) {}

  std::size_t size() const { return size_; }
  /// The bytes of each id: 2 or 4.
  std::size_t itemsize() const { return itemsize_; }
  /// Id i, below size().
  std::int64_t operator[](std::size_t i) const;

  /// The part of `count` ids from id `first` on.  ValueError if it ends beyond the last.
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

/// Builds Ids.  std::bad_alloc if the machine has no more memory (available_memory()).
class GrowingIds {
 public:
  std::size_t size() const;
  /// Makes each id's width sufficient for ids up to `largest`.
  void widen(std::uint32_t largest);
  /// Appends ids that fit the width.
  void append(std::span<const std::uint32_t> ids);
  /// Replaces each id i by table[i]; all fit the width.
  void replace(std::span<const std::uint32_t> table);
  Ids finish() &&;

 private:
  using Narrow = std::vector<std::uint16_t>;
  std::variant<Narrow, std::vector<std::uint32_t>> ids_;
};

// The vocabulary of a character-level model: its characters and their ids.

/// A text has characters that a vocabulary lacks.
struct UnknownCharacter : ValueError {
  using ValueError::ValueError;
};

/// Distinct characters, sorted by code point; a character's id is its place.  The same ids as
/// nanoGPT's sorted(set(text)).
class Characters {
 public:
  /// No characters.
  Characters() = default;

  /// The characters that occur in a text, each once.
  static Characters of(std::u32string_view text);

  /// A stored vocabulary, as list() gave it.  Throws ValueError if it is not sorted or has a
  /// character twice: then ids would differ from those at the time of storing.
  static Characters from_list(std::u32string_view list);

  Size size() const { return static_cast<Size>(list_.size()); }

  /// The characters in the order of their ids.
  const std::u32string& list() const { return list_; }

  /// Whether a character has an id.
  bool contains(char32_t c) const { return std::ranges::binary_search(list_, c); }

  /// The ids of a text's characters.  Throws an UnknownCharacter that names each unknown character
  /// once (the first hundred).
  Ids encode(std::u32string_view text) const;

  /// The UTF-8 text of ids.  Throws ValueError for an id that is not below size().
  std::string decode(const Ids& ids) const;

  friend bool operator==(const Characters&, const Characters&) = default;

 private:
  friend class Encoder;
  std::u32string list_;
};

/// Encodes a text that arrives in parts and is read once: numbers characters in order of appearance
/// and replaces these numbers in the end.
class Encoder {
 public:
  /// Adds a part.  ValueError for a value that is no code point.
  void add(std::u32string_view text);
  /// The number of characters so far.
  std::size_t size() const { return ids_.size(); }
  /// The distinct characters.
  Characters characters() const;
  /// The ids of all characters.  Throws as Characters::encode.
  Ids finish(const Characters& characters) &&;

 private:
  std::uint32_t number_of(char32_t c);

  std::u32string seen_;                                // distinct, in order of appearance
  std::vector<std::vector<std::uint32_t>> number_of_;  // by code point, in rows of 256; or none
  GrowingIds ids_;
};

// Bytes that are meant as UTF-8: a token may end within a character.

/// Turns bytes that arrive in parts into whole characters.  Bytes that are not UTF-8 become U+FFFD,
/// one for each longest part that could begin a character, as in Python's
/// bytes.decode(errors="replace").
class Utf8Stream {
 public:
  /// Adds bytes and returns the characters that they complete.
  std::string add(std::string_view bytes);
  /// The end of the text: empty, or U+FFFD for an incomplete character.
  std::string finish();

 private:
  std::string begun_;  // an incomplete character
};

/// Bytes with U+FFFD for bytes that are not UTF-8, by the same rule.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace xgrad::lm
