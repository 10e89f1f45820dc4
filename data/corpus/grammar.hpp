#pragma once
// A probabilistic grammar that knows the exact probability of every text it can write.
//
// A text is a row of sentences, each grown from the start rule by weighted choices.  The grammar is
// checked to be unambiguous: at every choice the possible beginnings are such that none is a prefix
// of another, so that reading the text alone shows which alternative was taken, and each text has
// exactly one derivation.  Its -log p is then a plain sum, and the mean per character is the
// entropy floor: no model of the text can do better in the long run.
//
// The notation, one definition at a time; a line that begins with a blank continues the one above
// (with a blank between, except after \n and >):
//
// clang-format off
//   # a comment
//   rule: alternative | 3 alternative | ...   a leading number is a weight, 1 if absent
//   rule[x, y]{z}: ...                        x and y are slots that the caller names; z is the
//                                             rule's own, and forgotten at its end
//   table people: name | trade | he           columns; each line below is a row, which may begin
//                                             with a weight
// clang-format on
//
// Inside an alternative or a cell:
//
//   \n            a newline; blanks around alternatives and cells are trimmed
//   _             a blank that is kept (at the ends, where others are trimmed)
//   <rule>        what the rule gives; <rule[a, b]> with slots a and b for its x and y
//   <s=rule>      the same, and slot s remembers it
//   <s=people>    a row of the table: writes its first column; <s=people.trade> writes another
//   <s=people!r>  any row but the one that slot r holds; likewise for rules, and !r!t for two
//   <s>           writes again exactly what was written when s was bound
//   <s.he>        writes a column of the row that s holds; choices in that cell are made afresh

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::data {

struct Rules;  // the grammar in compiled form: grammar_rules.hpp

/// Where random numbers come from: 32 uniform bits a call.
using RandomBits = std::function<std::uint32_t()>;

/// A text and its probability.
struct Sample {
  std::string text;
  double nll = 0;  ///< -log p of the text, in nats: the sum over the choices made in writing it
};

/// What reading a text found.
struct Score {
  double nll =
      0;  ///< -log p of the text; of its being the beginning of a longer one, if not complete
  std::vector<double>
      per_character;     ///< -log p of each character given all before it; their sum is nll
  bool complete = true;  ///< whether the text ends where a sentence ends
};

class Grammar {
 public:
  /// Reads and checks a grammar.  Throws ValueError that names the line or the rule, for: notation;
  /// unknown names; a choice that cannot be told from the text; a slot that may be unbound, or
  /// bound twice; and rules whose expected length is not finite.
  explicit Grammar(std::string_view source, std::string_view start = "scene");

  /// Whole sentences, until there are at least `characters` characters.  Draws integers only: a
  /// seed gives the same text on every machine.
  Sample generate(std::size_t characters, const RandomBits& random) const;

  /// The one derivation of a text that begins where a sentence begins, and may end anywhere.
  /// Character i's part is -log of p(text[0..i]) / p(text[0..i-1]), where p is the probability that
  /// a text of this grammar begins so: the exact conditional entropy, also inside a word that other
  /// words share letters with.  Throws ValueError with the position of the first character that the
  /// grammar cannot write there.
  Score score(std::string_view text) const;

 private:
  std::shared_ptr<const Rules> rules_;
};

}  // namespace xgrad::data
