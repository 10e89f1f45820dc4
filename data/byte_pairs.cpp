#include <xgrad/data/byte_pairs.hpp>

#include <utf8.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/merge_pairs.hpp>

namespace xgrad::text {

namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

using IdsByBytes = std::unordered_map<std::string_view, std::uint32_t>;

/// Finds added tokens in a text, the longest first.
class AddedTokens {
 public:
  void add(AddedToken token) {
    if (first_bytes_.find(token.text[0]) == std::string::npos)
      first_bytes_ += token.text[0];
    auto& as_long = by_length_[token.text.size()];
    as_long.emplace(token.text, std::move(token));
  }
  /// Splits a text: plain() gets each part between added tokens, found() each token.  A special
  /// token that stays text hides others within it.
  template <class Plain, class Found>
  void split(std::string_view text, SpecialTokens special, const Plain& plain,
             const Found& found) const {
    for (std::size_t i = 0; (i = text.find_first_of(first_bytes_, i)) != std::string_view::npos;) {
      const AddedToken* const token = at_beginning(text.substr(i));
      if (token == nullptr || (token->special && special == SpecialTokens::as_text)) {
        i += token == nullptr ? 1 : token->text.size();
        continue;
      }
      plain(text.substr(0, i));
      found(token->id);
      text.remove_prefix(i + token->text.size());
      i = 0;
    }
    plain(text);
  }

 private:
  const AddedToken* at_beginning(std::string_view text) const {
    for (const auto& [length, tokens] : by_length_)
      if (const auto at = tokens.find(text.substr(0, length)); at != tokens.end())
        return &at->second;
    return nullptr;
  }

  std::map<std::size_t, std::map<std::string, AddedToken, std::less<>>, std::greater<>> by_length_;
  std::string first_bytes_;
};

}  // namespace

struct BytePairs::Tables {
  explicit Tables(Parts all);
  Tables(const Tables&) = delete;  // they point to parts

  /// The ids of a pre-token.
  void merge(std::string_view piece, std::vector<std::uint32_t>& ids) const {
    ids.clear();
    for (const char c : piece)
      if (const std::uint32_t id = byte_ids[static_cast<unsigned char>(c)]; id != none)
        ids.push_back(id);
    merge_pairs(ids, [&](std::uint32_t left, std::uint32_t right) {
      const auto at = merges.find(std::uint64_t{left} << 32 | right);
      return at == merges.end() ? Merge() : at->second;
    });
  }

  const Parts parts;
  const PreTokenizer pre_tokenizer{parts.splits};
  std::array<std::uint32_t, 256> byte_ids{};
  std::unordered_map<std::uint64_t, Merge> merges;
  IdsByBytes whole;                  // pre-tokens that are one token
  std::size_t text_size;             // BytePairs::text_size()
  std::array<AddedTokens, 2> added;  // before and after normalization
};

BytePairs::Tables::Tables(Parts all) : parts(std::move(all)), text_size(parts.tokens.size()) {
  const auto& tokens = parts.tokens;
  // Added tokens, and those whose bytes only stand for their text.
  std::vector<bool> is_added(tokens.size()), alone(tokens.size());
  const auto shown = [&](std::uint32_t id) {
    return fmt::format("'{}' (id {})", printable_name(tokens[id]), id);
  };
  std::unordered_set<std::string_view> texts;
  for (const AddedToken& token : parts.added) {
    const std::string name = printable_name(token.text);
    const bool written = token.id < tokens.size() && token.text == written_token(tokens[token.id]);
    check<ValueError>(written || (token.id < tokens.size() && token.text == tokens[token.id]),
                      "BytePairs: the added token '{}' is not that of its id, {}", name, token.id);
    check<ValueError>(!is_added[token.id] && texts.insert(token.text).second,
                      "BytePairs: the added token '{}' is given twice", name);
    check<ValueError>(!token.text.empty() && utf8::is_valid(token.text.begin(), token.text.end()),
                      "BytePairs: the added token '{}' is empty, or not UTF-8", name);
    is_added[token.id] = true;
    alone[token.id] = !written;
    AddedToken wanted = token;
    if (token.normalized && parts.nfc)
      wanted.text = nfc(token.text);
    added[token.normalized ? 1 : 0].add(std::move(wanted));
  }
  IdsByBytes by_bytes;
  for (std::uint32_t id = 0; id < tokens.size(); ++id) {
    if (alone[id])
      continue;
    if (const auto [at, is_new] = by_bytes.emplace(tokens[id], id); !is_new)
      fail<ValueError>("BytePairs: {} has the bytes of id {}", shown(id), at->second);
    // A file has all these names in one list and could not tell them apart.
    if (!is_added[id] && texts.contains(written_token(tokens[id])))
      fail<ValueError>(
          "BytePairs: the added token '{}' is the written form of id {}: give it another text",
          printable_name(written_token(tokens[id])), id);
  }
  byte_ids.fill(none);
  for (const auto& [bytes, id] : by_bytes)
    if (bytes.size() == 1)
      byte_ids[static_cast<unsigned char>(bytes[0])] = id;
  std::vector<bool> in_merge(tokens.size());
  for (std::uint32_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto [left, right] = parts.merges[rank];
    for (const std::uint32_t id : {left, right})
      check<ValueError>(id < tokens.size() && !alone[id],
                        "BytePairs: merge {} names id {}, which is an added token or none", rank,
                        id);
    const auto joined = by_bytes.find(tokens[left] + tokens[right]);
    if (joined == by_bytes.end())
      fail<ValueError>("BytePairs: merge {} joins {} and {}, whose joined bytes are no token", rank,
                       shown(left), shown(right));
    check<ValueError>(
        merges.emplace(std::uint64_t{left} << 32 | right, Merge{rank, joined->second}).second,
        "BytePairs: merge {} is given twice", rank);
    in_merge[left] = in_merge[right] = in_merge[joined->second] = true;
  }
  while (text_size > 0 && is_added[text_size - 1] && !in_merge[text_size - 1] &&
         (alone[text_size - 1] || tokens[text_size - 1].size() > 1))
    --text_size;
  // Bytes that merge to their own token need no entry in `whole`.
  std::vector<std::uint32_t> merged;
  for (const auto& [bytes, id] : by_bytes) {
    if (!parts.ignore_merges)
      merge(bytes, merged);
    if ((parts.ignore_merges && id < text_size) || merged == std::vector{id})
      whole.emplace(bytes, id);
  }
}

BytePairs::BytePairs(Parts parts) : tables_(std::make_shared<const Tables>(std::move(parts))) {}

const BytePairs::Parts& BytePairs::parts() const { return tables_->parts; }

std::size_t BytePairs::text_size() const { return tables_->text_size; }

Ids BytePairs::encode(std::string_view utf8, SpecialTokens special) const {
  constexpr std::size_t many = 4096;
  const std::string text =
      utf8::is_valid(utf8.begin(), utf8.end()) ? "" : replace_invalid_utf8(utf8);
  const Tables& tables = *tables_;
  std::vector<std::uint32_t> found, merged;
  GrowingIds ids;
  ids.widen(static_cast<std::uint32_t>(std::max<std::size_t>(size(), 1) - 1));
  const auto token = [&](std::uint32_t id) { found.push_back(id); };
  const auto plain = [&](std::string_view part) {
    tables.pre_tokenizer.cut(part, [&](std::string_view piece) {
      if (const auto at = tables.whole.find(piece); at != tables.whole.end()) {
        found.push_back(at->second);
      } else {
        tables.merge(piece, merged);
        found.insert(found.end(), merged.begin(), merged.end());
      }
      if (found.size() >= many)
        ids.append(std::exchange(found, {}));
    });
  };
  tables.added[0].split(
      text.empty() ? utf8 : text, special,
      [&](std::string_view part) {
        const std::string normal = tables.parts.nfc ? nfc(part) : "";
        tables.added[1].split(tables.parts.nfc ? normal : part, special, plain, token);
      },
      token);
  ids.append(found);
  return std::move(ids).finish();
}

const std::string& BytePairs::bytes(std::int64_t id) const {
  check<ValueError>(id >= 0 && std::cmp_less(id, size()),
                    "BytePairs: id {} is outside a vocabulary of {} tokens", id, size());
  return parts().tokens[static_cast<std::size_t>(id)];
}

std::string BytePairs::decode(const Ids& ids) const {
  std::string result;
  for (std::size_t i = 0; i < ids.size(); ++i)
    result += bytes(ids[i]);
  return result;
}

std::optional<std::int64_t> BytePairs::find(std::string_view text) const {
  const auto& added = parts().added;
  const auto at = std::ranges::find(added, text, &AddedToken::text);
  return at == added.end() ? std::nullopt : std::optional<std::int64_t>(at->id);
}

namespace {

/// Counts all pairs in the words of a text, and updates the counts as pairs are merged.
class Learner {
 public:
  /// Adds a word of these ids, with the number of its occurrences.
  void add_word(std::vector<std::uint32_t> ids, std::int64_t count) {
    const auto word = static_cast<std::uint32_t>(words_.size());
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      change(key(ids[i], ids[i + 1]), count, word);
    words_.push_back({std::move(ids), count});
  }

  /// The most frequent pair, the one of the lowest ids among equals; none if there is no pair.
  std::optional<std::uint64_t> most_frequent() {
    std::ranges::sort(grown_);
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const std::uint64_t pair : grown_)
      queue_.emplace(pairs_[pair].count, ~pair);
    grown_.clear();
    while (!queue_.empty()) {
      const auto [count, inverted] = queue_.top();
      const std::int64_t now = pairs_[~inverted].count;
      if (now == count && now > 0)
        return ~inverted;
      queue_.pop();
      if (now < count && now > 0)  // the count fell after it was queued
        queue_.emplace(now, inverted);
    }
    return std::nullopt;
  }

  /// Replaces a pair by one token, from left to right.
  void merge(std::uint64_t pair, std::uint32_t id) {
    const auto left = static_cast<std::uint32_t>(pair >> 32),
               right = static_cast<std::uint32_t>(pair);
    std::vector<std::uint32_t> in = std::move(pairs_[pair].words);
    std::ranges::sort(in);
    in.erase(std::unique(in.begin(), in.end()), in.end());
    for (const std::uint32_t w : in) {
      auto& [ids, count] = words_[w];
      std::size_t to = 0;
      for (std::size_t i = 0; i < ids.size(); ++to) {
        if (ids[i] != left || i + 1 == ids.size() || ids[i + 1] != right) {
          ids[to] = ids[i++];
          continue;
        }
        if (to > 0) {
          change(key(ids[to - 1], left), -count, w);
          change(key(ids[to - 1], id), count, w);
        }
        if (i + 2 < ids.size()) {
          change(key(right, ids[i + 2]), -count, w);
          change(key(id, ids[i + 2]), count, w);
        }
        ids[to] = id;
        i += 2;
      }
      ids.resize(to);
    }
    pairs_[pair] = {};
  }

 private:
  struct Word {
    std::vector<std::uint32_t> ids;
    std::int64_t count;
  };
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words = {};  // words that contain it, or did
  };

  static std::uint64_t key(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }
  void change(std::uint64_t pair, std::int64_t by, std::uint32_t word) {
    Pair& counted = pairs_[pair];
    counted.count += by;
    if (by <= 0)
      return;
    grown_.push_back(pair);
    if (counted.words.empty() || counted.words.back() != word)
      counted.words.push_back(word);
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::vector<std::uint64_t> grown_;                                   // since the last query
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>> queue_;  // counts, pairs inverted
};

}  // namespace

BytePairs BytePairs::learn(std::string_view utf8, Size vocab_size,
                           const std::vector<std::string>& special,
                           const std::vector<PatternSplit>& splits) {
  check<ValueError>(std::cmp_greater_equal(vocab_size, 256 + special.size()),
                    "BytePairs: a vocabulary of {} has no room for 256 bytes and {}", vocab_size,
                    counted(special.size(), "special token", "special tokens"));
  std::string replaced;
  if (!utf8::is_valid(utf8.begin(), utf8.end()))
    utf8 = replaced = replace_invalid_utf8(utf8);
  Parts parts;
  parts.splits = splits;
  std::vector<std::uint32_t> order(256);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [](std::uint32_t byte) { return byte_characters()[byte]; });
  std::array<std::uint32_t, 256> byte_ids{};
  std::unordered_map<std::string, std::uint32_t> by_bytes;
  const auto token = [&](std::string bytes) {  // the id of a token, new or known
    const auto [at, is_new] =
        by_bytes.emplace(bytes, static_cast<std::uint32_t>(parts.tokens.size()));
    if (is_new)
      parts.tokens.push_back(std::move(bytes));
    return at->second;
  };
  for (const std::uint32_t byte : order)
    byte_ids[byte] = token(std::string(1, static_cast<char>(byte)));

  std::unordered_map<std::string_view, std::int64_t> counts;
  PreTokenizer(splits).cut(utf8, [&](std::string_view piece) { ++counts[piece]; });
  Learner learner;
  for (const auto& [word, count] : counts) {
    std::vector<std::uint32_t> ids;
    for (const char c : word)
      ids.push_back(byte_ids[static_cast<unsigned char>(c)]);
    learner.add_word(std::move(ids), count);
  }
  std::unordered_set<std::uint64_t> merged;
  while (std::cmp_less(parts.tokens.size() + special.size(), vocab_size)) {
    const auto pair = learner.most_frequent();
    if (!pair)
      break;
    const auto left = static_cast<std::uint32_t>(*pair >> 32),
               right = static_cast<std::uint32_t>(*pair);
    const std::uint32_t id = token(parts.tokens[left] + parts.tokens[right]);
    // A token that is made in two ways may form the same pair again.
    if (merged.insert(*pair).second)
      parts.merges.emplace_back(left, right);
    learner.merge(*pair, id);
  }
  for (const std::string& text : special) {
    parts.added.push_back({text, static_cast<std::uint32_t>(parts.tokens.size())});
    parts.tokens.push_back(text);
  }
  return BytePairs(std::move(parts));
}

}  // namespace xgrad::text
