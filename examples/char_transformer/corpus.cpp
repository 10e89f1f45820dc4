#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/corpus/grammar.hpp>

namespace xgrad::text {
namespace {

struct Rule;

/// A piece of a cell: a literal, or what stands between < and >.
struct Item {
  enum class Kind { literal, choice, again, column } kind = Kind::literal;
  std::string text = {};                                 // the literal, or the column's name
  const Rule* rule = nullptr;                            // of a choice
  std::size_t slot = 26;                                 // a to z, and one that nobody reads
  std::vector<std::size_t> arguments = {}, others = {};  // slots that a choice is given
};

using Cell = std::vector<Item>;

struct Rule {
  std::vector<std::string> columns;  // their names; the first is the rule's own
  std::vector<std::size_t> formals;
  std::vector<std::uint32_t> weights;    // of the alternatives
  std::uint32_t total = 0;               // of the weights
  std::vector<std::vector<Cell>> cells;  // [column][alternative]
};

using RuleMap = std::map<std::string, Rule, std::less<>>;

std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// Takes what stands before the first separator off a text, together with the separator.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view before = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(before.size() + 1, text.size()));
  return before;
}

std::vector<std::size_t> read_slots(std::string_view names) {
  std::vector<std::size_t> slots;
  for (const char c : names) {
    check<ValueError>(c >= 'a' && c <= 'z', "grammar: '{}' in '{}' is not a slot", c, names);
    slots.push_back(static_cast<std::size_t>(c - 'a'));
  }
  return slots;
}

Item read_reference(std::string_view text, const RuleMap& rules) {
  if (text.size() == 1)
    return {.kind = Item::Kind::again, .slot = read_slots(text)[0]};
  if (text.find('.') == 1)
    return {.kind = Item::Kind::column,
            .text = std::string(text.substr(2)),
            .slot = read_slots(text.substr(0, 1))[0]};
  const std::string_view whole = text;
  Item item{.kind = Item::Kind::choice};
  if (text.find('=') == 1)
    item.slot = read_slots(take(text, '='))[0];
  const auto rule = rules.find(take(text, ' '));
  check<ValueError>(rule != rules.end(), "grammar: <{}> names no rule", whole);
  item.rule = &rule->second;
  (text.starts_with('!') ? item.others : item.arguments) =
      read_slots(text.substr(text.starts_with('!')));
  check<ValueError>(item.arguments.size() == item.rule->formals.size(),
                    "grammar: <{}> gives {} slots, but the rule takes {}", whole,
                    item.arguments.size(), item.rule->formals.size());
  return item;
}

Cell read_cell(std::string_view text, const RuleMap& rules) {
  Cell cell;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '<') {
      cell.push_back(read_reference(take(text, '>'), rules));
      continue;
    }
    if (cell.empty() || cell.back().kind != Item::Kind::literal)
      cell.emplace_back();
    cell.back().text += c == '_' ? ' ' : c == '\\' ? '\n' : c;
    if (c == '\\') {
      check<ValueError>(take(text, 'n').empty(), "grammar: a backslash that is not \\n");
      text = trim(text);
    }
  }
  return cell;
}

RuleMap read_rules(std::string_view source) {
  RuleMap rules;
  std::vector<std::pair<Rule*, std::string>> bodies;  // read when all names are known
  while (!source.empty()) {
    std::string_view line = take(source, '\n');
    if (line.empty() || line.front() == '#')
      continue;
    if (line.front() == ' ' && !bodies.empty()) {
      (bodies.back().second += ' ') += trim(line);
      continue;
    }
    std::string_view formals = take(line, ':'), columns = take(formals, ' ');
    const auto [at, fresh] = rules.emplace(columns.substr(0, columns.find('.')), Rule());
    check<ValueError>(fresh, "grammar: {} is defined twice", at->first);
    Rule& rule = at->second;
    rule.formals = read_slots(formals);
    while (!columns.empty())
      rule.columns.emplace_back(take(columns, '.'));
    rule.cells.resize(rule.columns.size());
    bodies.emplace_back(&rule, line);
  }
  for (const auto& [rule, body] : bodies) {
    std::string_view rest = body;
    do {
      std::string_view text = trim(take(rest, '|'));
      std::uint32_t& weight = rule->weights.emplace_back(1);
      const auto digits = std::from_chars(text.data(), text.data() + text.size(), weight);
      text.remove_prefix(static_cast<std::size_t>(digits.ptr - text.data()));
      rule->total += weight;
      for (std::vector<Cell>& column : rule->cells) {
        column.push_back(read_cell(trim(take(text, '/')), rules));
        check<ValueError>(!column.back().empty(), "grammar: {} has an empty cell",
                          rule->columns[0]);
      }
      check<ValueError>(text.empty(), "grammar: {} has too many cells", rule->columns[0]);
    } while (!rest.empty());
  }
  return rules;
}

/// What was taken when a slot was bound, and where in the text it is written.
struct Slot {
  const Rule* rule = nullptr;
  std::size_t alternative = 0, begin = 0, end = 0;
};

using Frame = std::array<Slot, 27>;

const Slot& bound(const Frame& frame, std::size_t slot) {
  check<ValueError>(frame[slot].rule, "grammar: slot {} is not bound",
                    "abcdefghijklmnopqrstuvwxyz"[slot]);
  return frame[slot];
}

const Cell& column(const Item& item, const Frame& frame) {
  const Slot& slot = bound(frame, item.slot);
  const auto& names = slot.rule->columns;
  const auto at = std::find(names.begin(), names.end(), item.text);
  check<ValueError>(at != names.end(), "grammar: {} has no column {}", names[0], item.text);
  return slot.rule->cells[static_cast<std::size_t>(at - names.begin())][slot.alternative];
}

/// The weight of an alternative: 0 if it may not be taken.
std::uint32_t weight(const Item& item, const Frame& frame, std::size_t alternative) {
  for (const std::size_t other : item.others) {
    if (bound(frame, other).alternative == alternative)
      return 0;
  }
  return item.rule->weights[alternative];
}

std::uint32_t total_weight(const Item& item, const Frame& frame) {
  std::uint32_t total = item.rule->total;
  for (std::size_t i = 0; !item.others.empty() && i < item.rule->weights.size(); ++i)
    total -= item.rule->weights[i] - weight(item, frame, i);
  check<ValueError>(total > 0, "grammar: nothing of {} is left to take", item.rule->columns[0]);
  return total;
}

/// What the alternatives of a choice see.
Frame enter(const Item& item, const Frame& frame) {
  Frame inner = frame;
  for (std::size_t i = 0; i < item.arguments.size(); ++i)
    inner[item.rule->formals[i]] = frame[item.arguments[i]];
  return inner;
}

class Writer {
 public:
  Writer(std::size_t characters, const RandomBits& random)
      : characters_(characters), random_(random) {}

  Sample write(const Item& start) {
    while (text_.size() < characters_) {
      Frame frame;
      write({start}, frame);
    }
    text_.resize(characters_);
    nll_.resize(characters_);
    return {std::move(text_), std::move(nll_)};
  }

 private:
  void write(const Cell& cell, Frame& frame) {
    for (const Item& item : cell) {
      if (text_.size() >= characters_)
        return;
      switch (item.kind) {
        case Item::Kind::literal:
          append(item.text);
          break;
        case Item::Kind::again:
          append(std::string(written(item, frame)));
          break;
        case Item::Kind::column:
          write(column(item, frame), frame);
          break;
        case Item::Kind::choice:
          if (!decision_)
            decision_ = &item, decision_frame_ = &frame;
          Slot slot = {item.rule, choose(item, frame), text_.size()};
          Frame inner = enter(item, frame);
          write(item.rule->cells[0][slot.alternative], inner);
          if (item.rule->formals.empty())
            frame = inner;
          slot.end = text_.size();
          frame[item.slot] = slot;
          break;
      }
    }
  }

  std::string_view written(const Item& item, const Frame& frame) const {
    const Slot& slot = bound(frame, item.slot);
    return std::string_view(text_).substr(slot.begin, slot.end - slot.begin);
  }

  std::size_t choose(const Item& item, const Frame& frame) const {
    const std::uint32_t n = total_weight(item, frame);
    // A number below n, all equally likely: the 2^32 mod n largest draws are drawn again.
    std::uint32_t bits = random_();
    while (bits > ~((0u - n) % n))
      bits = random_();
    std::uint32_t left = bits % n;
    std::size_t i = 0;
    for (; left >= weight(item, frame, i); ++i)
      left -= weight(item, frame, i);
    return i;
  }

  /// Writes a literal.  If a decision led to it, it competes with that decision's other openings.
  void append(std::string_view literal) {
    mass_.assign(literal.size() + 1, 0);
    mass_.back() = 1;
    if (decision_) {
      mass_.back() = 0;
      opening_ = literal;
      alike_ = 0;
      add_openings(*decision_, *decision_frame_, 1);
      check<ValueError>(alike_ == 1,
                        "grammar: '{}' does not tell which alternative of {} was taken", literal,
                        decision_->rule->columns[0]);
      decision_ = nullptr;
    }
    for (std::size_t k = literal.size(); k-- > 1;)
      mass_[k] += mass_[k + 1];
    mass_[0] = 1;
    for (std::size_t k = 0; k < literal.size(); ++k)
      nll_.push_back(std::max(0.0, std::log(mass_[k] / mass_[k + 1])));
    text_ += literal;
  }

  void add_openings(const Item& item, const Frame& frame, double mass) {
    switch (item.kind) {
      case Item::Kind::literal:
        return add_opening(item.text, mass);
      case Item::Kind::again:
        return add_opening(written(item, frame), mass);
      case Item::Kind::column:
        return add_openings(column(item, frame)[0], frame, mass);
      case Item::Kind::choice:
        const Frame inner = enter(item, frame);
        const double share = mass / total_weight(item, frame);
        for (std::size_t i = 0; i < item.rule->weights.size(); ++i) {
          const Item& first = item.rule->cells[0][i][0];
          if (first.kind == Item::Kind::literal && first.text[0] != opening_[0])
            continue;  // as most do: a matter of speed
          if (const std::uint32_t w = weight(item, frame, i))
            add_openings(first, inner, share * w);
        }
    }
  }

  void add_opening(std::string_view other, double mass) {
    std::size_t k = 0;
    while (k < std::min(other.size(), opening_.size()) && other[k] == opening_[k])
      ++k;
    mass_[k] += mass;
    alike_ += k == other.size() || k == opening_.size();
  }

  std::size_t characters_;
  const RandomBits& random_;
  std::string text_;
  std::vector<double> nll_;
  const Item* decision_ = nullptr;  // a choice that was made, but is not yet seen in the text
  const Frame* decision_frame_ = nullptr;
  std::string_view opening_;  // what will show it
  std::vector<double> mass_;  // of the openings that share k characters with it
  std::size_t alike_ = 0;     // openings that it begins with or that begin with it, itself included
};

}  // namespace

struct Grammar::Rules {
  RuleMap all;
  Item start;
};

Grammar::Grammar(std::string_view source, std::string_view start) {
  auto rules = std::make_shared<Rules>();
  rules->all = read_rules(source);
  rules->start = read_reference(start, rules->all);
  rules_ = std::move(rules);
}

Sample Grammar::generate(std::size_t characters, const RandomBits& random) const {
  return Writer(characters, random).write(rules_->start);
}

}  // namespace xgrad::text
