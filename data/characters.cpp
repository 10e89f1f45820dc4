#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/text.hpp>

namespace xgrad::text {
namespace {

constexpr std::size_t code_points = 0x110000;

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
  Encoder encoder;
  encoder.add(text);
  return encoder.characters();
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

Ids Characters::encode(std::u32string_view text) const {
  Encoder encoder;
  encoder.add(text);
  return std::move(encoder).finish(*this);
}

std::string Characters::decode(const Ids& ids) const {
  std::u32string text;
  text.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (std::cmp_greater_equal(ids[i], size()))
      fail<ValueError>("decode: id {} at position {} is outside a vocabulary of {}", ids[i], i,
                       counted(size(), "character", "characters"));
    text.push_back(list_[static_cast<std::size_t>(ids[i])]);
  }
  return encode_utf8(text);
}

std::uint32_t Encoder::number_of(char32_t c) {
  constexpr std::size_t row_size = 256;
  constexpr std::uint32_t none = 0xFFFFFFFF;
  if (c >= code_points)
    fail<ValueError>("Characters: 0x{:X} is not a code point", static_cast<std::uint32_t>(c));
  if (number_of_.empty())
    number_of_.resize(code_points / row_size);
  std::vector<std::uint32_t>& row = number_of_[c / row_size];
  if (row.empty())
    row.assign(row_size, none);
  std::uint32_t& number = row[c % row_size];
  if (number == none) {
    number = static_cast<std::uint32_t>(seen_.size());
    seen_.push_back(c);
  }
  return number;
}

void Encoder::add(std::u32string_view text) {
  std::array<std::uint32_t, 4096> numbers;
  for (std::size_t n; !text.empty(); text.remove_prefix(n)) {
    n = std::min(text.size(), numbers.size());
    std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n), numbers.begin(),
                   [&](char32_t c) { return number_of(c); });
    ids_.widen(static_cast<std::uint32_t>(seen_.size() - 1));
    ids_.append(std::span(numbers).first(n));
  }
}

Characters Encoder::characters() const {
  Characters result;
  result.list_ = seen_;
  std::ranges::sort(result.list_);
  return result;
}

Ids Encoder::finish(const Characters& characters) && {
  std::vector<std::uint32_t> ids;
  std::vector<std::string> unknown;
  for (const char32_t c : seen_) {
    const auto at = std::ranges::lower_bound(characters.list_, c);
    if (at == characters.list_.end() || *at != c)
      unknown.push_back(name_of(c));
    ids.push_back(static_cast<std::uint32_t>(at - characters.list_.begin()));
  }
  if (!unknown.empty()) {
    fail<ValueError>("encode: the vocabulary of {} lacks {}",
                     counted(characters.size(), "character", "characters"), listed(unknown));
  }
  ids_.widen(static_cast<std::uint32_t>(std::max<std::size_t>(characters.size(), 1) - 1));
  ids_.replace(ids);
  return std::move(ids_).finish();
}

}  // namespace xgrad::text
