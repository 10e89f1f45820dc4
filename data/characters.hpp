#pragma once
// The vocabulary of a character-level model: which characters there are, and which id each has.

#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/shape.hpp>
#include <xgrad/data/text.hpp>

namespace xgrad::text {

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
  /// Adds a piece.  ValueError for what is not a code point.
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

}  // namespace xgrad::text
