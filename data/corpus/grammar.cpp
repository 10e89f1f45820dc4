#include <algorithm>
#include <cmath>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/corpus/grammar.hpp>
#include <xgrad/data/corpus/grammar_rules.hpp>

namespace xgrad::data {
namespace {

struct Slot {
  std::size_t alternative = 0, begin = 0, end = 0;
};

/// Walks a derivation.  What differs between writing and reading is how an alternative is chosen
/// and what is done with a literal; everything else, and so the meaning of the notation, is here.
class Walk {
 public:
  // One slot more than there are: items that use none say slot 0, which must exist.
  explicit Walk(const Rules& rules) : rules_(rules), slots_(rules.slots.size() + 1) {}
  virtual ~Walk() = default;

 protected:
  virtual std::size_t choose(const Choice& choice, const std::vector<std::size_t>& others) = 0;
  virtual void literal(std::string_view text) = 0;
  virtual std::size_t position() const = 0;
  virtual std::string_view written(std::size_t begin, std::size_t end) const = 0;

  void walk(const Sequence& items) {
    for (const Item& item : items) {
      const Choice& choice = rules_.choices[item.choice];
      Slot& slot = slots_[item.slot];
      switch (item.kind) {
        case Item::Kind::literal:
          literal(item.text);
          break;
        case Item::Kind::choice:
          walk(choice.alternatives[choose(choice, item.others)].items);
          break;
        case Item::Kind::bind: {
          const std::size_t begin = position(), taken = choose(choice, item.others);
          walk(choice.alternatives[taken].items);
          slot = {taken, begin, position()};
          break;
        }
        case Item::Kind::again:
          literal(std::string(written(slot.begin, slot.end)));  // a copy: the writer appends it
          break;
        case Item::Kind::column:
          walk(choice.alternatives[slot.alternative].items);
          break;
      }
    }
  }

  void sentence() {
    const Choice& start = rules_.choices[rules_.start];
    walk(start.alternatives[choose(start, {})].items);
  }

  bool excluded(std::size_t alternative, const std::vector<std::size_t>& others) const {
    return std::any_of(others.begin(), others.end(),
                       [&](std::size_t s) { return slots_[s].alternative == alternative; });
  }

  /// The weights of the alternatives that are open.
  std::uint32_t open_weight(const Choice& choice, const std::vector<std::size_t>& others) const {
    if (others.empty())
      return choice.total;
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < choice.alternatives.size(); ++i)
      total += excluded(i, others) ? 0 : choice.alternatives[i].weight;
    return total;
  }

  const Rules& rules_;
  std::vector<Slot> slots_;
};

class Writer : public Walk {
 public:
  Writer(const Rules& rules, const RandomBits& random) : Walk(rules), random_(random) {}

  Sample write(std::size_t characters) {
    sample_.text.reserve(characters + characters / 16);
    while (sample_.text.size() < characters)
      sentence();
    return std::move(sample_);
  }

 private:
  /// A number below n, all equally likely.  The draws at the top, too few to go round once more,
  /// are drawn again.
  std::uint32_t below(std::uint32_t n) {
    const std::uint32_t spare = (0u - n) % n;  // 2^32 mod n
    std::uint32_t bits = random_();
    while (bits > ~spare)
      bits = random_();
    return bits % n;
  }

  std::size_t choose(const Choice& choice, const std::vector<std::size_t>& others) override {
    const std::uint32_t total = open_weight(choice, others);
    std::uint32_t left = below(total);
    for (std::size_t i = 0;; ++i) {
      if (excluded(i, others))
        continue;
      const std::uint32_t weight = choice.alternatives[i].weight;
      if (left < weight) {
        sample_.nll += std::log(static_cast<double>(total) / weight);
        return i;
      }
      left -= weight;
    }
  }

  void literal(std::string_view text) override { sample_.text.append(text); }
  std::size_t position() const override { return sample_.text.size(); }
  std::string_view written(std::size_t begin, std::size_t end) const override {
    return std::string_view(sample_.text).substr(begin, end - begin);
  }

  const RandomBits& random_;
  Sample sample_;
};

class Reader : public Walk {
 public:
  Reader(const Rules& rules, std::string_view text) : Walk(rules), text_(text) {
    score_.per_character.resize(text.size());
  }

  Score read() {
    try {
      while (at_ < text_.size())
        sentence();
    } catch (const EndOfText&) {
      score_.complete = false;
    }
    for (const double nll : score_.per_character)
      score_.nll += nll;
    return std::move(score_);
  }

 private:
  struct EndOfText {};

  /// Decides by the opening that the text has, and writes the surprise of its characters.  An
  /// opening can settle several choices, nested at the same position: the later ones find theirs in
  /// the path.
  std::size_t choose(const Choice& choice, const std::vector<std::size_t>& others) override {
    if (next_ == settled_.depth) {
      settled_ = recognise(choice, others);
      next_ = 0;
    }
    return settled_.path[next_++];
  }

  Opening recognise(const Choice& choice, const std::vector<std::size_t>& others) {
    if (at_ == text_.size())
      throw EndOfText{};
    const char first = text_[at_];
    alive_.clear();
    if (others.empty() && !choice.openings.empty()) {
      const auto& all = choice.openings;  // sorted
      auto o = std::partition_point(all.begin(), all.end(),
                                    [&](const Opening& p) { return p.text.front() < first; });
      for (; o != all.end() && o->text.front() == first; ++o)
        alive_.push_back(*o);
    } else {
      open(choice, others, Opening{}, first);
    }
    double mass = 1;
    for (std::size_t k = 0;; ++k) {
      if (at_ + k == text_.size())
        throw EndOfText{};
      const char c = text_[at_ + k];
      double kept = 0;
      std::size_t count = 0;
      for (const Opening& o : alive_) {
        if (o.text[k] == c) {
          kept += o.mass;
          alive_[count++] = o;
        }
      }
      if (count == 0)
        reject(at_ + k,
               k == 0 ? choice.name : fmt::format("'{}' in {}", alive_.front().text, choice.name));
      alive_.resize(count);
      score_.per_character[at_ + k] = std::max(0.0, std::log(mass / kept));
      mass = kept;
      // No opening is a prefix of another, so one that is complete is the only one left.
      if (alive_.front().text.size() == k + 1)
        return alive_.front();
    }
  }

  /// The openings of a choice that begin with a character, with what the slots hold now.
  void open(const Choice& choice, const std::vector<std::size_t>& others, const Opening& before,
            char c) {
    const double total = open_weight(choice, others);
    for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
      if (excluded(i, others))
        continue;
      Opening o = before;
      o.path[o.depth++] = static_cast<std::uint16_t>(i);
      o.mass *= choice.alternatives[i].weight / total;
      open(choice.alternatives[i].items.front(), o, c);
    }
  }

  void open(const Item& first, Opening o, char c) {
    const Choice& choice = rules_.choices[first.choice];
    const Slot& slot = slots_[first.slot];
    switch (first.kind) {
      case Item::Kind::literal:
        o.text = first.text;
        keep(o, c);
        break;
      case Item::Kind::choice:
      case Item::Kind::bind:
        open(choice, first.others, o, c);
        break;
      case Item::Kind::again:
        o.text = written(slot.begin, slot.end);
        keep(o, c);
        break;
      case Item::Kind::column:
        open(choice.alternatives[slot.alternative].items.front(), o, c);
        break;
    }
  }

  void keep(const Opening& o, char c) {
    if (o.text.front() == c)
      alive_.push_back(o);
  }

  void literal(std::string_view text) override {
    for (const char c : text) {
      if (at_ == text_.size())
        throw EndOfText{};
      if (text_[at_] != c)
        reject(at_, fmt::format("'{}'", text));
      ++at_;
    }
  }

  std::size_t position() const override { return at_; }
  std::string_view written(std::size_t begin, std::size_t end) const override {
    return text_.substr(begin, end - begin);
  }

  static std::string show(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7F ? fmt::format("'{}'", c) : fmt::format("0x{:02x}", byte);
  }

  [[noreturn]] void reject(std::size_t at, const std::string& wanted) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    fail<ValueError>(
        "the grammar cannot write this text: character {} (on line {}) is {}, which does not fit "
        "{}",
        at, line, show(text_[at]), wanted);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Opening> alive_;
  Opening settled_;
  std::size_t next_ = 0;
  Score score_;
};

}  // namespace

Grammar::Grammar(std::string_view source, std::string_view start) {
  auto rules = std::make_shared<Rules>(parse_rules(source, start));
  check_rules(*rules);
  rules_ = std::move(rules);
}

Sample Grammar::generate(std::size_t characters, const RandomBits& random) const {
  return Writer(*rules_, random).write(characters);
}

Score Grammar::score(std::string_view text) const { return Reader(*rules_, text).read(); }

}  // namespace xgrad::data
