#include <utf8.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/byte_pairs.hpp>
#include <xgrad/data/utf8_stream.hpp>

namespace xgrad::text {
namespace {

/// Counts of all pairs in the words of a text, kept right as pairs are merged.
class Learner {
 public:
  /// A word of these ids that occurs so often.
  void add_word(std::vector<std::uint32_t> ids, std::int64_t count) {
    const auto word = static_cast<std::uint32_t>(words_.size());
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      change(key(ids[i], ids[i + 1]), count, word);
    words_.push_back({std::move(ids), count});
  }

  /// The most frequent pair, of several the one of the lowest ids, unless there is none.
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
      if (now < count && now > 0)  // it fell since it was put there
        queue_.emplace(now, inverted);
    }
    return std::nullopt;
  }

  /// Makes one token of a pair, from left to right.
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
    std::vector<std::uint32_t> words = {};  // where it is, or was
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
  std::vector<std::uint64_t> grown_;                                   // since the queue was asked
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
  const auto token = [&](std::string bytes) {  // that there is, or a new one
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
    // A token that is made in two ways may meet again a token that it met before.
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
