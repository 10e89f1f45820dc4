#pragma once
// A probabilistic grammar that knows exactly how probable each character is that it writes.
//
// A text grows from the start rule, again and again, by weighted choices.  What a choice leads to
// begins with some literal, its opening; no opening of a choice is the beginning of another, so the
// text alone tells which was taken, and has one derivation.  If m(k) is the probability, summed
// over the openings, that the next k characters are those of the one taken, character k has
// p = m(k + 1) / m(k).
//
// The notation; a line that begins with a blank continues the one above:
//
//   # a comment
//   rule: alternative | 3 alternative | ...   a leading number is a weight, 1 if absent
//   rule xy: ...                              x and y are slots that the caller names.  What such a
//                                             rule binds itself is forgotten at its end
//   table.trade.he: Wick / smith / he | ...   alternatives of several cells, the columns
//
// Slots are small letters.  Inside an alternative or a cell:
//
//   \n            a newline; blanks after it, and around alternatives and cells, are trimmed
//   _             a blank that is kept
//   <rule>        what the rule gives, of a table the first column; <rule ab> with slots a and b
//                 for its x and y
//   <s=rule>      the same, and slot s remembers it
//   <s=rule !rt>  the same, but not the alternative that slot r or t holds
//   <s>           writes again exactly what was written when s was bound
//   <s.trade>     a column of the alternative that s holds; choices in that cell are made afresh

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::text {

/// Where random numbers come from: 32 uniform bits a call.
using RandomBits = std::function<std::uint32_t()>;

/// A text, and -log p of each character given all before it, in nats; exact.
struct Sample {
  std::string text;
  std::vector<double> nll;
};

class Grammar {
 public:
  /// Reads a grammar.  A rule must not begin with itself.  Throws ValueError that names the rule if
  /// the notation is wrong or a name unknown.
  explicit Grammar(std::string_view source, std::string_view start = "scene");

  /// The first `characters` characters of an endless text.  Draws integers only: the same bits give
  /// the same text on every machine.  Throws ValueError that names the rule if the text does not
  /// tell which alternative was taken, or none is left, or a slot or column is missing.
  Sample generate(std::size_t characters, const RandomBits& random) const;

 private:
  struct Rules;
  std::shared_ptr<const Rules> rules_;
};

}  // namespace xgrad::text
