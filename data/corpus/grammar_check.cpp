// What makes a grammar's probabilities exact: that each text has one derivation, and that slots
// hold what is expected.
//
// Slots: a pass over the rules finds, for each place, which slots are bound there on every way
// (must) and on some way (may).  A slot is used only where it must be bound, and bound only where
// it cannot be yet.
//
// Choices: an opening is what an alternative begins with, down to the first literal.  If no opening
// of a choice is a prefix of another, the text decides every choice the moment it is met.  Where an
// opening is a slot's text, all that the slot may hold is tried, except combinations that cannot
// be: one slot with two values, or two slots with one value where each is bound to something other
// than the other.

#include <algorithm>
#include <bitset>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/corpus/grammar_rules.hpp>

namespace xgrad::data {
namespace {

using Slots = std::bitset<256>;

/// Which slots are bound at a place, or by what lies between two places.
struct Bound {
  Slots must, may;
  bool operator==(const Bound&) const = default;
};

/// That a slot holds an alternative, or does not.
struct Known {
  std::size_t slot, alternative;
  bool holds;
};

struct KnownOpening {
  Opening opening;
  std::vector<Known> known;
};

std::string family(const Choice& choice) { return choice.name.substr(0, choice.name.find('.')); }

class Checker {
 public:
  explicit Checker(Rules& rules) : rules_(rules), choices_(rules.choices) {}

  void run() {
    check<ValueError>(rules_.slots.size() <= Slots().size(), "grammar: more than {} slots",
                      Slots().size());
    check_families();
    find_effects();
    find_entries();
    for (std::size_t c = 0; c < choices_.size(); ++c)
      check_slots(c);
    std::set<std::size_t> taken = {rules_.start};
    for (std::size_t c = 0; c < choices_.size(); ++c) {
      if (reached_[c])
        add_taken(choices_[c], taken);
    }
    // What is called is compiled after what calls it: backwards, so that the rule at fault is named
    // and not one that calls it.
    for (auto c = taken.rbegin(); c != taken.rend(); ++c)
      check_openings(choices_[*c]);
    check_length();
  }

 private:
  template <class... Args>
  [[noreturn]] static void error(const Choice& choice, fmt::format_string<Args...> format,
                                 Args&&... args) {
    fail<ValueError>("grammar, rule {}: {}", choice.name,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string& name(std::size_t slot) const { return rules_.slots[slot]; }

  /// What a slot is bound to is always the same rule or the same table, so that its alternatives
  /// can be compared.
  void check_families() const {
    for (std::size_t s = 0; s < rules_.slots.size(); ++s) {
      for (const std::size_t c : rules_.bound_to[s]) {
        const Choice& first = choices_[*rules_.bound_to[s].begin()];
        if (family(choices_[c]) != family(first))
          error(choices_[c], "slot {} is also bound to {}", name(s), first.name);
      }
    }
  }

  static bool enters(const Item& item) {
    return item.kind != Item::Kind::literal && item.kind != Item::Kind::again;
  }

  /// What an item leaves bound.
  Bound effect(const Item& item) const {
    Bound result = enters(item) ? effects_[item.choice] : Bound{};
    if (item.kind == Item::Kind::bind) {
      result.must.set(item.slot);
      result.may.set(item.slot);
    }
    return result;
  }

  void find_effects() {
    effects_.assign(choices_.size(), {Slots().set(), Slots()});
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t c = 0; c < choices_.size(); ++c) {
        Bound all{Slots().set(), Slots()};
        for (const Alternative& alternative : choices_[c].alternatives) {
          Bound one;
          for (const Item& item : alternative.items) {
            one.must |= effect(item).must;
            one.may |= effect(item).may;
          }
          all.must &= one.must;
          all.may |= one.may;
        }
        for (const std::size_t local : choices_[c].locals) {
          all.must.reset(local);
          all.may.reset(local);
        }
        changed = changed || all != effects_[c];
        effects_[c] = all;
      }
    }
  }

  /// Calls f(item, bound before it) for every item of a choice.
  template <class F>
  void visit(std::size_t c, F&& f) {
    for (const Alternative& alternative : choices_[c].alternatives) {
      Bound bound = entries_[c];
      for (const Item& item : alternative.items) {
        f(item, bound);
        bound.must |= effect(item).must;
        bound.may |= effect(item).may;
      }
    }
  }

  void find_entries() {
    entries_.assign(choices_.size(), {Slots().set(), Slots()});
    reached_.assign(choices_.size(), false);
    entries_[rules_.start] = {};
    reached_[rules_.start] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t c = 0; c < choices_.size(); ++c) {
        if (!reached_[c])
          continue;
        visit(c, [&](const Item& item, const Bound& before) {
          if (!enters(item))
            return;
          Bound& entry = entries_[item.choice];
          const Bound merged{entry.must & before.must, entry.may | before.may};
          changed = changed || merged != entry || !reached_[item.choice];
          entry = merged;
          reached_[item.choice] = true;
        });
      }
    }
  }

  void check_slots(std::size_t c) {
    const Choice& choice = choices_[c];
    if (!reached_[c])
      return;
    visit(c, [&](const Item& item, const Bound& before) {
      const bool uses = item.kind == Item::Kind::again || item.kind == Item::Kind::column;
      if (uses && !before.must[item.slot])
        error(choice, "<{}> names no rule, nor a slot that is sure to be bound there",
              name(item.slot));
      if (item.kind != Item::Kind::bind)
        return;
      if (before.may[item.slot] || effects_[item.choice].may[item.slot])
        error(choice, "slot {} may be bound already", name(item.slot));
      if (item.others.size() >= choices_[item.choice].alternatives.size())
        error(choice, "<{}=...> may have nothing left to take", name(item.slot));
      for (const std::size_t other : item.others) {
        if (!before.must[other])
          error(choice, "<{}=...!{}>: slot {} may be unbound there", name(item.slot), name(other),
                name(other));
        if (family(choices_[*rules_.bound_to[other].begin()]) != family(choices_[item.choice]))
          error(choice, "<{}=...!{}>: the two come from different tables", name(item.slot),
                name(other));
      }
      for (std::size_t s = 0; s < rules_.slots.size(); ++s) {
        if (before.may[s] &&
            std::find(item.others.begin(), item.others.end(), s) == item.others.end())
          may_agree_.insert(std::minmax(s, item.slot));
      }
    });
  }

  static void add_taken(const Choice& choice, std::set<std::size_t>& taken) {
    for (const Alternative& alternative : choice.alternatives) {
      for (const Item& item : alternative.items) {
        if (item.kind == Item::Kind::choice || item.kind == Item::Kind::bind)
          taken.insert(item.choice);
      }
    }
  }

  void check_openings(Choice& choice) {
    found_.clear();
    open(choice, choice, {}, {}, 0);
    std::sort(found_.begin(), found_.end(),
              [](const auto& a, const auto& b) { return a.opening.text < b.opening.text; });
    bool fixed = true;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      fixed = fixed && found_[i].known.empty();
      // Sorted, whatever this one is a prefix of follows it directly.
      for (std::size_t j = i + 1; j < found_.size(); ++j) {
        const std::string_view a = found_[i].opening.text, b = found_[j].opening.text;
        if (!b.starts_with(a))
          break;
        if (possible(found_[i].known, found_[j].known))
          error(choice, "cannot tell its alternatives apart: one can begin '{}', another '{}'", a,
                b);
      }
    }
    if (!fixed)
      return;
    for (const KnownOpening& k : found_)
      choice.openings.push_back(k.opening);
  }

  void open(const Choice& top, const Choice& choice, const Opening& before,
            const std::vector<Known>& known, std::size_t level) {
    if (level > 4 * Opening::deepest || before.depth == Opening::deepest)
      error(top, "it can begin with itself, or its beginning is nested too deeply, in {}",
            choice.name);
    for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
      Opening o = before;
      o.path[o.depth++] = static_cast<std::uint16_t>(i);
      o.mass *= choice.alternatives[i].weight / static_cast<double>(choice.total);
      open(top, choice.alternatives[i].items.front(), o, known, level + 1);
    }
  }

  void open(const Choice& top, const Item& first, const Opening& before, std::vector<Known> known,
            std::size_t level) {
    switch (first.kind) {
      case Item::Kind::literal:
        found_.push_back({before, known});
        found_.back().opening.text = first.text;
        break;
      case Item::Kind::choice:
        open(top, choices_[first.choice], before, known, level);
        break;
      case Item::Kind::bind:
        open_each(top, first.choice, before, first.others, false, known, level);
        break;
      case Item::Kind::again:
        for (const std::size_t c : rules_.bound_to[first.slot])
          open_each(top, c, before, {first.slot}, true, known, level);
        break;
      case Item::Kind::column:
        open_each(top, first.choice, before, {first.slot}, true, known, level);
        break;
    }
  }

  /// The openings of a choice's alternatives, with what taking each says about slots.
  void open_each(const Choice& top, std::size_t c, const Opening& before,
                 const std::vector<std::size_t>& slots, bool holds, const std::vector<Known>& known,
                 std::size_t level) {
    const Choice& choice = choices_[c];
    if (slots.empty())
      return open(top, choice, before, known, level);
    if (level > 4 * Opening::deepest || before.depth == Opening::deepest)
      error(top, "it can begin with itself, or its beginning is nested too deeply, in {}",
            choice.name);
    for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
      std::vector<Known> more = known;
      for (const std::size_t s : slots)
        more.push_back({s, i, holds});
      Opening o = before;
      ++o.depth;
      open(top, choice.alternatives[i].items.front(), o, more, level + 1);
    }
  }

  /// Whether two openings can stand beside each other, by what they say about slots.
  bool possible(const std::vector<Known>& a, const std::vector<Known>& b) const {
    for (const Known& x : a) {
      for (const Known& y : b) {
        const bool same = x.alternative == y.alternative;
        if (x.slot == y.slot) {
          if ((x.holds && y.holds && !same) || (x.holds != y.holds && same))
            return false;
        } else if (x.holds && y.holds && same && differ(x.slot, y.slot)) {
          return false;
        }
      }
    }
    return true;
  }

  /// Whether two slots never hold the same alternative.
  bool differ(std::size_t s, std::size_t t) const {
    return family(choices_[*rules_.bound_to[s].begin()]) ==
               family(choices_[*rules_.bound_to[t].begin()]) &&
           !may_agree_.contains(std::minmax(s, t));
  }

  /// Rules may call themselves, but not so often that a sentence need not end.  Slots are averaged
  /// over.
  void check_length() const {
    std::vector<double> length(choices_.size());
    for (int round = 0; round < 10000; ++round) {
      double change = 0;
      for (std::size_t c = 0; c < choices_.size(); ++c) {
        double mean = 0;
        for (const Alternative& alternative : choices_[c].alternatives) {
          double one = 0;
          for (const Item& item : alternative.items) {
            if (item.kind == Item::Kind::literal)
              one += static_cast<double>(item.text.size());
            else if (enters(item))
              one += length[item.choice];
            else
              one += length[*rules_.bound_to[item.slot].begin()];
          }
          mean += one * alternative.weight / choices_[c].total;
        }
        change = std::max(change, std::abs(mean - length[c]));
        length[c] = mean;
        if (mean > 1e8)
          error(choices_[c], "it calls itself so often that its expected length is not finite");
      }
      if (change < 1e-3)
        return;
    }
    error(choices_[rules_.start], "its expected length is not finite");
  }

  Rules& rules_;
  std::vector<Choice>& choices_;
  std::vector<Bound> effects_, entries_;
  std::vector<bool> reached_;
  std::set<std::pair<std::size_t, std::size_t>> may_agree_;
  std::vector<KnownOpening> found_;
};

}  // namespace

void check_rules(Rules& rules) { Checker(rules).run(); }

}  // namespace xgrad::data
