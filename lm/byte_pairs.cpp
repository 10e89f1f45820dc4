#include "byte_pairs.hpp"

#include <utf8.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include "../autograd/fail.hpp"
#include "merge_pairs.hpp"

namespace xgrad::lm {

namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

using IdsByBytes = std::unordered_map<std::string_view, std::uint32_t>;

constexpr std::string_view space_mark = "\u2581";

/// The character of valid UTF-8 that begins, or ends, at a place; empty if there is none.
std::string_view character_at(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(begin + 1, text.size());
  while (end < text.size() && (text[end] & 0xC0) == 0x80)
    ++end;
  return text.substr(begin, end - begin);
}
std::string_view character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - std::min<std::size_t>(end, 1);
  while (begin > 0 && (text[begin] & 0xC0) == 0x80)
    --begin;
  return text.substr(begin, end - begin);
}

/// Whether a text has a match.
bool has(const PreTokenizer& matches, std::string_view text) {
  bool found = false;
  matches.cut(text, [&](std::string_view) { found = true; });
  return found;
}

/// The length of the first word of a text, which the next U+2581 ends, or only one after another
/// character.
std::size_t word_length(std::string_view text, bool each) {
  for (std::size_t at = 0; (at = text.find(space_mark, at + 1)) != std::string_view::npos;)
    if (each || !text.substr(0, at).ends_with(space_mark))
      return at;
  return text.size();
}

/// Finds added tokens in a text, the longest first.
class AddedTokens {
 public:
  void add(AddedToken token) {
    if (first_bytes_.find(token.text[0]) == std::string::npos)
      first_bytes_ += token.text[0];
    by_length_[token.text.size()].emplace(token.text, std::move(token));
  }
  /// Splits a text: plain() gets each part between added tokens, found() each token.  A token that
  /// stays text hides others within it.
  template <class Plain, class Found>
  void split(std::string_view text, SpecialTokens special, const Plain& plain,
             const Found& found) const {
    std::size_t begin = 0;  // of the part before the next token
    for (std::size_t i = 0; (i = text.find_first_of(first_bytes_, i)) != std::string_view::npos;) {
      const AddedToken* const token = at_beginning(text.substr(i));
      std::size_t first = i, end = i += token == nullptr ? 1 : token->text.size();
      if (token == nullptr || (token->special && special == SpecialTokens::as_text) ||
          (token->single_word &&
           (has(words_, character_before(text, first)) || has(words_, character_at(text, end)))))
        continue;
      if (token->lstrip)
        first = std::max(first, begin);
      while (token->lstrip && first > begin && has(spaces_, character_before(text, first)))
        first -= character_before(text, first).size();
      if (token->rstrip)
        end = std::max(end, begin);  // whitespace that the token before it has taken, too
      while (token->rstrip && has(spaces_, character_at(text, end)))
        end += character_at(text, end).size();
      if (first > begin)
        plain(text.substr(begin, first - begin));
      if (first < end)  // else whitespace that the token before it has taken
        found(token->id);
      begin = end;
    }
    plain(text.substr(begin));
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
  // Matches of Rust's \w and \s, which HuggingFace's tokenizers use here.
  const PreTokenizer words_{{{R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])", true, true}}};
  const PreTokenizer spaces_{{{R"(\s)", true, true}}};
};

/// Counts all pairs in the words of a text, and updates the counts as pairs are merged.
class Learner {
 public:
  /// Adds a word of these ids, with the number of its occurrences.
  void add_word(std::vector<std::uint32_t> ids, std::int64_t count) {
    const auto word = static_cast<std::uint32_t>(words_.size());
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      change(key(ids[i], ids[i + 1]), count, word);
    words_.emplace_back(std::move(ids), count);
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

  std::vector<std::pair<std::vector<std::uint32_t>, std::int64_t>> words_;  // ids and counts
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::vector<std::uint64_t> grown_;                                   // since the last query
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>> queue_;  // counts, pairs inverted
};

}  // namespace

struct BytePairs::Tables {
  explicit Tables(Parts all);
  Tables(const Tables&) = delete;  // they point to parts

  /// Calls put() with the tokens that merging begins with, and lost() with the number of bytes of
  /// each character that has none, before its unk.
  template <class Put, class Lost>
  void symbols(std::string_view text, const Put& put, const Lost& lost) const {
    const std::uint32_t unk = parts.characters ? parts.characters->unk.value_or(none) : none;
    const auto fallback = [&](char c) { return fallbacks[static_cast<unsigned char>(c)]; };
    bool unknown = false;  // an unk comes before the next token, but after bytes
    for (std::size_t begin = 0, n = 1; begin < text.size(); begin += n) {
      std::uint32_t id = byte_ids[static_cast<unsigned char>(text[begin])];
      n = parts.characters ? character_at(text, begin).size() : 1;
      const std::string_view symbol = text.substr(begin, n);
      if (n > 1)
        if (const auto at = character_ids.find(symbol); at != character_ids.end())
          id = at->second;
      if (id == none && std::ranges::find(symbol, none, fallback) == symbol.end()) {
        for (const char c : symbol)
          put(fallback(c));
        continue;
      }
      if (unknown && (id != none || !parts.characters->fuse_unk))
        put(unk);
      unknown = id == none && unk != none;
      if (id != none)
        put(id);
      else
        lost(marks() && symbol == space_mark ? 1 : n);
    }
    if (unknown)
      put(unk);
  }

  /// The ids of a pre-token.  Returns whether it has bytes without tokens.
  bool merge(std::string_view piece, std::vector<std::uint32_t>& ids) const {
    bool loses = false;
    ids.clear();
    symbols(
        piece, [&](std::uint32_t id) { ids.push_back(id); }, [&](std::size_t) { loses = true; });
    merge_pairs(ids, [&](std::uint32_t left, std::uint32_t right) {
      const auto at = merges.find(std::uint64_t{left} << 32 | right);
      return at == merges.end() ? Merge() : at->second;
    });
    return loses;
  }

  /// Appends a pre-token's bytes without tokens; its ids begin at the place `first`.
  void add_unknown(std::string_view piece, const std::vector<std::uint32_t>& ids, std::size_t first,
                   std::vector<UnknownBytes>& all) const {
    const auto size_of = [&](std::uint32_t id) { return parts.tokens[id].size(); };
    std::size_t kept = 0, i = 0, begin = 0;  // bytes of symbols; an id, and where it begins in them
    symbols(
        piece, [&](std::uint32_t id) { kept += size_of(id); },
        [&](std::size_t n) {
          while (i < ids.size() && begin + size_of(ids[i]) <= kept)
            begin += size_of(ids[i++]);
          if (all.empty() || all.back().at != first + i)
            all.push_back({first + i, 0});
          all.back().bytes += n;
        });
  }

  /// A text with U+2581 for spaces and, as `spaces` says, before it; it may `begin` the whole text.
  std::string marked(std::string_view text, bool begins) const {
    using enum CharacterTokens::Spaces;
    const auto spaces = parts.characters->spaces;
    const bool has_one = text.starts_with(' ') || text.starts_with(space_mark);
    std::string result;
    if (!text.empty() &&
        (spaces == prepended || (!has_one && (spaces == always || (spaces == first && begins)))))
      result = space_mark;
    for (const char c : text)
      result += c == ' ' ? space_mark : std::string_view(&c, 1);
    return result;
  }
  /// Whether spaces become U+2581, and whether a normalizer makes the marks.
  bool marks() const {
    return parts.characters && parts.characters->spaces != CharacterTokens::Spaces::kept;
  }
  bool marks_first() const {
    return parts.characters && parts.characters->spaces <= CharacterTokens::Spaces::replaced;
  }
  std::string normal(std::string_view text) const {
    const std::string result = parts.nfc ? nfc(text) : std::string(text);
    return marks_first() ? marked(result, false) : result;
  }

  /// Calls piece() with the pre-tokens of a normalized text.
  void cut(std::string_view text, bool begins,
           const std::function<void(std::string_view)>& piece) const {
    if (!parts.characters)
      return pre_tokenizer.cut(text, piece);
    const bool is_marked = marks_first() || !marks();
    const std::string all = is_marked ? std::string(text) : marked(text, begins);
    const bool split = parts.characters->split;
    for (std::string_view rest = all; !rest.empty();) {
      const std::size_t n = split || by_words ? word_length(rest, split) : rest.size();
      piece(rest.substr(0, n));
      rest.remove_prefix(n);
    }
  }

  const Parts parts;
  const PreTokenizer pre_tokenizer{parts.splits};
  std::array<std::uint32_t, 256> byte_ids{};   // of tokens of one byte
  std::array<std::uint32_t, 256> fallbacks{};  // of "<0x00>" to "<0xFF>"
  IdsByBytes character_ids;                    // of tokens of one longer character
  std::vector<std::string> decoded;            // bytes of tokens with CharacterTokens
  bool by_words = false;  // each word can be merged alone, which is faster: no merge joins two
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
  const auto& characters = parts.characters;
  const auto written = [&](std::uint32_t id) {
    return characters ? tokens[id] : written_token(tokens[id]);
  };
  if (characters)
    decoded = tokens;
  std::unordered_set<std::string_view> texts;
  for (const AddedToken& token : parts.added) {
    const std::string name = printable_name(token.text);
    const bool is_written = token.id < tokens.size() && token.text == written(token.id);
    check<ValueError>(is_written || (token.id < tokens.size() && token.text == tokens[token.id]),
                      "BytePairs: the added token '{}' is not that of its id, {}", name, token.id);
    check<ValueError>(!is_added[token.id] && texts.insert(token.text).second,
                      "BytePairs: the added token '{}' is given twice", name);
    check<ValueError>(!token.text.empty() && utf8::is_valid(token.text.begin(), token.text.end()),
                      "BytePairs: the added token '{}' is empty, or not UTF-8", name);
    is_added[token.id] = true;
    alone[token.id] = characters ? token.id >= characters->size : !is_written;
    AddedToken wanted = token;
    if (token.normalized)
      wanted.text = normal(token.text);
    if (characters)
      decoded[token.id] = wanted.text;
    added[token.normalized ? 1 : 0].add(std::move(wanted));
  }
  if (characters) {
    text_size = characters->size;
    check<ValueError>(parts.splits.empty(), "BytePairs: a vocabulary of characters has no splits");
    check<ValueError>(text_size <= tokens.size(), "BytePairs: characters.size is {} of {} tokens",
                      text_size, tokens.size());
    check<ValueError>(!characters->unk || *characters->unk < text_size,
                      "BytePairs: unk is {}, but characters.size {}", *characters->unk, text_size);
  }
  IdsByBytes by_bytes;
  for (std::uint32_t id = 0; id < tokens.size(); ++id) {
    check<ValueError>(id < text_size || is_added[id],
                      "BytePairs: {} is no added token, but characters.size is {}", shown(id),
                      text_size);
    if (characters) {
      check<ValueError>(utf8::is_valid(tokens[id].begin(), tokens[id].end()),
                        "BytePairs: {} is not UTF-8", shown(id));
      for (std::size_t at = 0;
           marks() && (at = decoded[id].find(space_mark, at)) != decoded[id].npos;)
        decoded[id].replace(at, space_mark.size(), " ");
    }
    if (alone[id])
      continue;
    if (const auto [at, is_new] = by_bytes.emplace(tokens[id], id); !is_new)
      fail<ValueError>("BytePairs: {} has the bytes of id {}", shown(id), at->second);
    // A file has all these names in one list and could not tell them apart.
    if (!is_added[id] && texts.contains(written(id)))
      fail<ValueError>(
          "BytePairs: the added token '{}' is the written form of id {}: give it another text",
          printable_name(written(id)), id);
  }
  byte_ids.fill(none);
  fallbacks.fill(none);
  for (const auto& [bytes, id] : by_bytes)
    if (bytes.size() == 1)
      byte_ids[static_cast<unsigned char>(bytes[0])] = id;
    else if (characters && character_at(bytes, 0).size() == bytes.size())
      character_ids.emplace(bytes, id);
  for (std::size_t byte = 0; byte < 256 && characters; ++byte)
    if (const auto at = by_bytes.find(fmt::format("<0x{:02X}>", byte)); at != by_bytes.end()) {
      if (decoded[at->second] == at->first)
        decoded[at->second] = static_cast<char>(byte);
      fallbacks[byte] = characters->byte_fallback ? at->second : none;
    }
  by_words = marks() && !parts.ignore_merges && character_ids.contains(space_mark) &&
             (characters->unk || std::ranges::find(fallbacks, none) == fallbacks.end());
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
    by_words = by_words && word_length(joined->first, false) == joined->first.size();
  }
  while (!characters && text_size > 0 && is_added[text_size - 1] && !in_merge[text_size - 1] &&
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

Ids BytePairs::encode(std::string_view utf8, SpecialTokens special,
                      std::vector<UnknownBytes>* unknown) const {
  constexpr std::size_t many = 4096;
  const std::string text =
      utf8::is_valid(utf8.begin(), utf8.end()) ? "" : replace_invalid_utf8(utf8);
  const Tables& tables = *tables_;
  std::vector<std::uint32_t> found, merged;
  GrowingIds ids;
  ids.widen(static_cast<std::uint32_t>(std::max<std::size_t>(size(), 1) - 1));
  const auto token = [&](std::uint32_t id) { found.push_back(id); };
  const auto piece = [&](std::string_view text_of_it) {
    if (const auto at = tables.whole.find(text_of_it); at != tables.whole.end()) {
      found.push_back(at->second);
    } else {
      if (tables.merge(text_of_it, merged) && unknown != nullptr)
        tables.add_unknown(text_of_it, merged, ids.size() + found.size(), *unknown);
      found.insert(found.end(), merged.begin(), merged.end());
    }
    if (found.size() >= many)
      ids.append(std::exchange(found, {}));
  };
  const std::string_view all = text.empty() ? utf8 : text;
  tables.added[0].split(
      all, special,
      [&](std::string_view part) {
        const bool changes = tables.parts.nfc || tables.marks_first();
        const std::string changed = changes ? tables.normal(part) : "";
        const std::string_view normal = changes ? changed : part;
        const auto plain = [&](std::string_view rest) {
          tables.cut(rest, part.data() == all.data() && rest.data() == normal.data(), piece);
        };
        tables.added[1].split(normal, special, plain, token);
      },
      token);
  ids.append(found);
  return std::move(ids).finish();
}

const std::string& BytePairs::bytes(std::int64_t id) const {
  check<ValueError>(id >= 0 && std::cmp_less(id, size()),
                    "BytePairs: id {} is outside a vocabulary of {} tokens", id, size());
  const auto& all = parts().characters ? tables_->decoded : parts().tokens;
  return all[static_cast<std::size_t>(id)];
}

bool BytePairs::is_special(std::int64_t id) const {
  return std::ranges::any_of(parts().added, [&](const AddedToken& token) {
    return token.special && std::cmp_equal(token.id, id);
  });
}

std::string BytePairs::decode(const Ids& ids, bool skip_special_tokens) const {
  std::string result;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (const std::string& own = bytes(ids[i]); !skip_special_tokens || !is_special(ids[i]))
      result += own;
  if (strips() && result.starts_with(' '))
    result.erase(0, 1);
  return result;
}

std::optional<std::int64_t> BytePairs::find(std::string_view text) const {
  const auto& added = parts().added;
  const auto at = std::ranges::find(added, text, &AddedToken::text);
  return at == added.end() ? std::nullopt : std::optional<std::int64_t>(at->id);
}

BytePairs BytePairs::learn(std::string_view utf8, Dim vocab_size,
                           const std::vector<std::string>& special,
                           const std::vector<PatternSplit>& splits) {
  check<ValueError>(std::cmp_greater_equal(vocab_size.value, 256 + special.size()),
                    "BytePairs: a vocabulary of {} has no room for 256 bytes and {}",
                    vocab_size.value, counted(special.size(), "special token", "special tokens"));
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
  while (std::cmp_less(parts.tokens.size() + special.size(), vocab_size.value)) {
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

}  // namespace xgrad::lm
