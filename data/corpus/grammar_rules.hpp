#pragma once
// A grammar in compiled form.  Internal: shared by the reader of the notation, the checker, and the
// two that walk it.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::data {

struct Item {
  enum class Kind {
    literal,  ///< writes `text`
    choice,   ///< takes one of the alternatives of `choice`
    bind,     ///< the same, and `slot` remembers which one, and what was written
    again,    ///< writes what was written when `slot` was bound
    column,   ///< writes the alternative of `choice` that `slot` holds: a cell of a table's row
  };
  Kind kind = Kind::literal;
  std::string text = {};
  std::size_t choice = 0;
  std::size_t slot = 0;
  std::vector<std::size_t> others = {};  ///< bind: slots whose alternatives may not be taken
};

using Sequence = std::vector<Item>;

struct Alternative {
  std::uint32_t weight = 1;
  Sequence items;
};

/// A way in which a choice can begin: the text up to the next choice, and the choices that lead
/// there.
struct Opening {
  static constexpr std::size_t deepest = 8;
  std::string_view text;
  double mass = 1;
  std::array<std::uint16_t, deepest> path = {};
  std::size_t depth = 0;
};

/// A rule, or one column of a table.
struct Choice {
  std::string name;
  std::vector<Alternative> alternatives;
  std::vector<std::size_t> locals;  ///< slots that are forgotten when it ends
  std::uint32_t total = 0;          ///< of the weights
  std::vector<Opening> openings;    ///< sorted; by check_rules, unless they depend on slots
};

struct Rules {
  std::vector<Choice> choices;
  std::vector<std::string> slots;               ///< their names
  std::vector<std::set<std::size_t>> bound_to;  ///< the choices that each slot is bound to
  std::size_t start = 0;
};

/// Reads the notation.  Throws ValueError with the line.
Rules parse_rules(std::string_view source, std::string_view start);

/// Checks what Grammar promises and fills in the openings.  Throws ValueError with the rule.
void check_rules(Rules& rules);

}  // namespace xgrad::data
