#pragma once
// The vocabulary of a character-level model: which characters there are, and which id each has.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::data {

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

  std::size_t size() const { return list_.size(); }

  /// The characters in the order of their ids.
  const std::u32string& list() const { return list_; }

  /// Whether a character has an id.
  bool contains(char32_t c) const;

  /// The id of every character of a text.  Throws ValueError that names each unknown character once
  /// (the first hundred).
  std::vector<std::int64_t> encode(std::u32string_view text) const;

  /// The UTF-8 text that ids stand for.  Throws ValueError for an id that is negative or not below
  /// size().
  std::string decode(std::span<const std::int64_t> ids) const;

  friend bool operator==(const Characters&, const Characters&) = default;

 private:
  [[noreturn]] void reject(std::u32string_view text) const;

  std::u32string list_;
};

}  // namespace xgrad::data
