#include "vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numbers>
#include <optional>
#include <xgrad/lm/text.hpp>

#include "output.hpp"

namespace program {

namespace lm = xgrad::lm;

Vocabulary::Vocabulary(const xgrad::io::Json& user, const std::string& path) {
  if (const auto* const list = user.find<std::string>("characters")) {
    try {
      kind_ = lm::Characters::from_list(lm::decode_utf8(*list, "characters"));
    } catch (const ValueError& error) {
      fail<FileError>("{}: the metadata's 'characters': {}", path, reason(error));
    }
  } else if (const auto* const tokenizer = user.find("tokenizer")) {
    *this = of_tokenizer(*tokenizer, path + ": the metadata's 'tokenizer'");
  } else {
    throw FileError(path +
                    ": a checkpoint of another program: it has neither characters nor a tokenizer");
  }
}

Vocabulary Vocabulary::of_tokenizer(const xgrad::io::Json& json, const std::string& what) {
  Vocabulary result(xgrad::lm::tokenizer_of(json, what));
  result.template_ = xgrad::lm::text_template(json, *result.pairs(), what);
  if (auto characters = xgrad::lm::characters_of(*result.pairs());
      characters && result.template_.before.empty() && result.template_.after.empty())
    return Vocabulary(*std::move(characters));
  result.tokenizer_ = xgrad::io::format_json(json);
  return result;
}

std::string Vocabulary::count(std::size_t n) const { return format_count(n, unit()); }

std::pair<std::string, xgrad::io::Json> Vocabulary::stored() const {
  if (!tokenizer_.empty())
    return {"tokenizer", xgrad::io::parse_json(tokenizer_, 0, 64)};
  if (pairs())
    return {"tokenizer", xgrad::lm::tokenizer_json(*pairs())};
  return {"characters", lm::encode_utf8(characters()->list())};
}

xgrad::io::Json Vocabulary::tokenizer_json() const {
  return pairs() ? stored().second : xgrad::lm::tokenizer_json(*characters());
}

lm::Ids Vocabulary::encode(const std::string& utf8, UnknownBytes* unknown) const {
  return pairs() ? pairs()->encode(utf8, lm::SpecialTokens::recognised, unknown)
                 : characters()->encode(lm::decode_utf8(utf8, "the text"));
}

std::vector<std::int64_t> Vocabulary::in_template(std::vector<std::int64_t> ids) const {
  const auto& [before, after] = template_;
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

lm::Ids Vocabulary::encode_text(const std::string& utf8, UnknownBytes* unknown) const {
  const lm::Ids ids = encode(utf8, unknown);
  if (ids.size() == 0 || (template_.before.empty() && template_.after.empty()))
    return ids;
  std::vector<std::int64_t> list(ids.size());
  ids.copy(0, ids.size(), list.data());
  for (std::size_t i = 0; unknown != nullptr && i < unknown->size(); ++i)
    (*unknown)[i].at += template_.before.size();
  return lm::Ids(in_template(std::move(list)));
}

static std::size_t sum_of(const UnknownBytes& unknown) {
  std::size_t n = 0;
  for (const auto& [at, bytes] : unknown)
    n += bytes;
  return n;
}

std::size_t Vocabulary::unknown_bytes(const std::string& utf8) const {
  UnknownBytes unknown;
  if (pairs())
    encode(utf8, &unknown);
  return sum_of(unknown);
}

/// The id of unknown characters, if the vocabulary has one.
static std::optional<std::uint32_t> unk_of(const Vocabulary& vocabulary) {
  const lm::BytePairs* const pairs = vocabulary.pairs();
  return pairs && pairs->parts().characters ? pairs->parts().characters->unk : std::nullopt;
}

void warn_of_unknown(const std::string& what, const std::string& utf8, const UnknownBytes& unknown,
                     const Vocabulary& vocabulary) {
  const auto unk = unk_of(vocabulary);
  if (!unknown.empty())
    warn(fmt::format("{}: the vocabulary has no tokens for {} of {}, which {}", what,
                     format_count(sum_of(unknown)), format_count(utf8.size(), "byte"),
                     unk ? "become " + vocabulary.piece(*unk) : "are dropped"));
}

std::string Vocabulary::bytes(std::int64_t id) const {
  if (std::cmp_greater_equal(id, size()))
    return "";
  return pairs() ? pairs()->bytes(id) : characters()->decode({id});
}

std::string Vocabulary::bytes(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  std::string all;
  for (const std::int64_t id : ids)
    if (!skip_special_tokens || !is_special(id))
      all += bytes(id);
  if (pairs() && pairs()->strips() && all.starts_with(' '))
    all.erase(0, 1);
  return all;
}

std::string Vocabulary::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  return lm::replace_invalid_utf8(bytes(ids, skip_special_tokens));
}

std::string Vocabulary::piece(std::int64_t id) const {
  if (std::cmp_greater_equal(id, size()))
    return "\uFFFD";
  const std::string all = bytes(id);
  if (lm::replace_invalid_utf8(all) == all)
    return all;
  std::string shown;
  bool inside = false;  // of < and >
  for (const char c : all) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80)
      shown += fmt::format("{}{:02X}", inside ? "\u00A0" : "<", byte);
    else
      shown += (inside ? ">" : "") + std::string(1, c);
    inside = byte >= 0x80;
  }
  return shown + (inside ? ">" : "");
}

std::vector<std::string> Vocabulary::labels(std::span<const std::int64_t> ids) const {
  std::vector<std::string> shown(ids.size());
  std::string all;
  std::vector<std::size_t> token_of;  // of each byte
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0)  // other ids have no bytes
      all += bytes(ids[i]);
    token_of.resize(all.size(), i);
  }
  for (std::size_t at = 0, length = 1; at < all.size(); at += length) {
    std::string character;  // the shortest valid UTF-8
    for (length = 1; length <= 4 && at + length <= all.size() && character.empty(); ++length)
      if (const std::string part = all.substr(at, length); lm::replace_invalid_utf8(part) == part)
        character = part;
    length = std::max<std::size_t>(character.size(), 1);
    const std::size_t first = token_of[at], last = token_of[at + length - 1];
    if (character.empty())
      shown[first] += fmt::format("<{:02X}>", static_cast<unsigned char>(all[at]));
    else if (first == last)
      shown[first] += character;
    else
      for (std::size_t i = first; i <= last; ++i)
        shown[i] += character + std::array{"₁", "₂", "₃", "₄"}[i - first];
  }
  return shown;
}

double Vocabulary::bits_per_byte(double loss, const lm::Ids& ids, std::size_t n,
                                 const UnknownBytes& unknown) const {
  std::vector<std::size_t> sizes(size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = bytes(static_cast<std::int64_t>(i)).size();
  const auto size_of = [&](std::size_t at) { return sizes[static_cast<std::size_t>(ids[at])]; };
  std::size_t all = 0;
  for (std::size_t i = 1; i <= n; ++i)
    all += size_of(i);
  const auto unk = unk_of(*this);
  for (const auto& [at, bytes] : unknown)
    if (at >= 1 && at <= n)
      all += bytes - (unk && ids[at] == *unk ? size_of(at) : 0);
  return loss * static_cast<double>(n) / static_cast<double>(all) / std::numbers::ln2;
}

}  // namespace program
