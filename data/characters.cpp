#include <algorithm>
#include <functional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/text.hpp>

namespace xgrad::data {
namespace {

constexpr std::size_t code_points = 0x110000;
constexpr std::size_t most_named = 100;

/// 'x' (U+0078); for what a terminal cannot show, the code point alone.
std::string name_of(char32_t c) {
  const auto number = static_cast<std::uint32_t>(c);
  const bool control = number < 0x20 || (number >= 0x7F && number < 0xA0);
  const bool invisible = (number >= 0x200B && number <= 0x200F) || number == 0xFEFF;
  if (control || invisible)
    return fmt::format("U+{:04X}", number);
  return fmt::format("'{}' (U+{:04X})", encode_utf8(std::u32string_view(&c, 1)), number);
}

}  // namespace

Characters Characters::of(std::u32string_view text) {
  // A flag per code point: one pass, and the characters come out sorted.
  std::vector<bool> seen(code_points);
  for (const char32_t c : text) {
    if (c >= code_points)
      fail<ValueError>("Characters: 0x{:X} is not a code point", static_cast<std::uint32_t>(c));
    seen[c] = true;
  }
  Characters result;
  for (std::size_t c = 0; c < code_points; ++c) {
    if (seen[c])
      result.list_.push_back(static_cast<char32_t>(c));
  }
  return result;
}

Characters Characters::from_list(std::u32string_view list) {
  const auto bad = std::adjacent_find(list.begin(), list.end(), std::greater_equal<>());
  if (bad != list.end())
    fail<ValueError>(
        "Characters: a stored list must be sorted without repeats, but {} comes before {}",
        name_of(*bad), name_of(bad[1]));
  Characters result;
  result.list_ = list;
  return result;
}

bool Characters::contains(char32_t c) const {
  return std::binary_search(list_.begin(), list_.end(), c);
}

std::vector<std::int64_t> Characters::encode(std::u32string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (const char32_t c : text) {
    const auto at = std::lower_bound(list_.begin(), list_.end(), c);
    if (at == list_.end() || *at != c)
      reject(text);
    ids.push_back(at - list_.begin());
  }
  return ids;
}

void Characters::reject(std::u32string_view text) const {
  std::u32string unknown;
  for (const char32_t c : text) {
    if (!contains(c) && unknown.find(c) == std::u32string::npos)
      unknown.push_back(c);
  }
  std::string names;
  for (std::size_t i = 0; i < std::min(unknown.size(), most_named); ++i)
    names += (i == 0 ? "" : ", ") + name_of(unknown[i]);
  if (unknown.size() > most_named)
    names += fmt::format(" and {} more", unknown.size() - most_named);
  fail<ValueError>("encode: the vocabulary of {} characters lacks {}", size(), names);
}

std::string Characters::decode(std::span<const std::int64_t> ids) const {
  std::u32string text;
  text.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= size())
      fail<ValueError>("decode: id {} at position {} is outside a vocabulary of {} characters",
                       ids[i], i, size());
    text.push_back(list_[static_cast<std::size_t>(ids[i])]);
  }
  return encode_utf8(text);
}

}  // namespace xgrad::data
