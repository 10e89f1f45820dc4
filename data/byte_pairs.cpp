#include <utf8.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/byte_pairs.hpp>
#include <xgrad/data/merge_pairs.hpp>
#include <xgrad/data/utf8_stream.hpp>

namespace xgrad::text {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

using IdsByBytes = std::unordered_map<std::string_view, std::uint32_t>;

/// Added tokens, of which the longest is found first.
class AddedTokens {
 public:
  void add(AddedToken token) {
    if (first_bytes_.find(token.text[0]) == std::string::npos)
      first_bytes_ += token.text[0];
    auto& as_long = by_length_[token.text.size()];
    as_long.emplace(token.text, std::move(token));
  }
  /// Calls plain() with each part of a text without them, and found() with each of them.  A special
  /// one that is to be text covers others, too.
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

  /// What a piece becomes.
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
  IdsByBytes whole;                  // the pieces that become one token
  std::size_t text_size;             // BytePairs::text_size()
  std::array<AddedTokens, 2> added;  // before and after normalization
};

BytePairs::Tables::Tables(Parts all) : parts(std::move(all)), text_size(parts.tokens.size()) {
  const auto& tokens = parts.tokens;
  // Added tokens, and those of them whose bytes stand for nothing but their text.
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
                      "BytePairs: the added token '{}' is there twice", name);
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
    // Files, where these are names in one list, could not tell them apart.
    if (!is_added[id] && texts.contains(written_token(tokens[id])))
      fail<ValueError>(
          "BytePairs: the added token '{}' is how id {} is written: give it another text",
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
                        "BytePairs: merge {} is of id {}, which is an added token's, or none's",
                        rank, id);
    const auto joined = by_bytes.find(tokens[left] + tokens[right]);
    if (joined == by_bytes.end())
      fail<ValueError>("BytePairs: merge {} joins {} and {}, which together are no token", rank,
                       shown(left), shown(right));
    check<ValueError>(
        merges.emplace(std::uint64_t{left} << 32 | right, Merge{rank, joined->second}).second,
        "BytePairs: merge {} is there twice", rank);
    in_merge[left] = in_merge[right] = in_merge[joined->second] = true;
  }
  while (text_size > 0 && is_added[text_size - 1] && !in_merge[text_size - 1] &&
         (alone[text_size - 1] || tokens[text_size - 1].size() > 1))
    --text_size;
  // A token's bytes become that token by merging, as a rule, and then need not be merged.
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

}  // namespace xgrad::text
