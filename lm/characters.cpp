#include "characters.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <new>
#include "../autograd/fail.hpp"
#include "../autograd/memory.hpp"
#include "text.hpp"

namespace xgrad::lm {

Ids::Ids(std::span<const std::int64_t> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    check<ValueError>(std::in_range<std::uint32_t>(ids[i]),
                      "Ids: {} at position {} is not an id; they are from 0 to 2^32 - 1", ids[i],
                      i);
  const std::vector<std::uint32_t> narrow(ids.begin(), ids.end());
  GrowingIds growing;
  growing.widen(narrow.empty() ? 0 : std::ranges::max(narrow));
  growing.append(narrow);
  *this = std::move(growing).finish();
}

std::int64_t Ids::operator[](std::size_t i) const {
  return itemsize_ == 2 ? std::int64_t{static_cast<const std::uint16_t*>(memory_.get())[i]}
                        : std::int64_t{static_cast<const std::uint32_t*>(memory_.get())[i]};
}

Ids Ids::part(std::size_t first, std::size_t count) const {
  check<ValueError>(first <= size_ && count <= size_ - first,
                    "Ids: there are {}, not {} from number {} on", size_, count, first);
  const auto* const begin = static_cast<const char*>(memory_.get()) + first * itemsize_;
  return {std::shared_ptr<const void>(memory_, begin), count, itemsize_};
}

void Ids::copy(std::size_t first, std::size_t count, std::int64_t* to) const {
  const Ids from = part(first, count);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = from[i];
}

bool operator==(const Ids& a, const Ids& b) {
  bool equal = a.size_ == b.size_;
  for (std::size_t i = 0; equal && i < a.size_; ++i)
    equal = a[i] == b[i];
  return equal;
}

std::size_t GrowingIds::size() const {
  return std::visit([](const auto& ids) { return ids.size(); }, ids_);
}
void GrowingIds::widen(std::uint32_t largest) {
  if (const auto* const narrow = std::get_if<Narrow>(&ids_); narrow != nullptr && largest > 0xFFFF)
    ids_ = std::vector<std::uint32_t>(narrow->begin(), narrow->end());
}

void GrowingIds::append(std::span<const std::uint32_t> more) {
  std::visit(
      [&]<class T>(std::vector<T>& ids) {
        constexpr std::size_t much = (std::size_t{64} << 20) / sizeof(T);
        const std::size_t size = ids.size() + more.size();
        if (size > ids.capacity()) {
          const std::size_t room = std::max(size, ids.size() + ids.size() / 2);
          // The system may promise memory that it does not have, and end the process later.
          if (room > much && room > available_memory() / sizeof(T))
            throw std::bad_alloc();
          ids.reserve(room);
        }
        for (const std::uint32_t id : more)
          ids.push_back(static_cast<T>(id));
      },
      ids_);
}

void GrowingIds::replace(std::span<const std::uint32_t> table) {
  std::visit(
      [&]<class T>(std::vector<T>& ids) {
        for (T& id : ids)
          id = static_cast<T>(table[id]);
      },
      ids_);
}

Ids GrowingIds::finish() && {
  return std::visit(
      []<class T>(std::vector<T>& ids) -> Ids {
        const auto owner = std::make_shared<const std::vector<T>>(std::move(ids));
        return {{owner, owner->data()}, owner->size(), sizeof(T)};
      },
      ids_);
}

namespace {

/// 'x' (U+0078); the code point alone for a character that a terminal cannot show.
std::string name_of(char32_t c) {
  const auto number = static_cast<std::uint32_t>(c);
  const bool control = number < 0x20 || (number >= 0x7F && number < 0xA0);
  const bool invisible = (number >= 0x200B && number <= 0x200F) || number == 0xFEFF;
  if (control || invisible)
    return fmt::format("U+{:04X}", number);
  return fmt::format("'{}' (U+{:04X})", encode_utf8(std::u32string_view(&c, 1)), number);
}

enum class Utf8Prefix { character, incomplete, invalid };

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
  constexpr std::size_t code_points = 0x110000, row_size = 256;
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
  if (!unknown.empty())
    fail<UnknownCharacter>("encode: the vocabulary of {} lacks {}",
                           counted(characters.size(), "character", "characters"), listed(unknown));
  ids_.widen(static_cast<std::uint32_t>(std::max<std::size_t>(characters.size(), 1) - 1));
  ids_.replace(ids);
  return std::move(ids_).finish();
}

/// Whether the bytes begin with a character, with an incomplete one, or with neither.  `length` is
/// that of the longest part that could begin a character.  Unicode 15, section 3.9, table 3-7.
static Utf8Prefix classify(std::string_view bytes, std::size_t& length) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const std::size_t whole = first < 0x80    ? 1
                            : first < 0xC2  ? 0
                            : first < 0xE0  ? 2
                            : first < 0xF0  ? 3
                            : first <= 0xF4 ? 4
                                            : 0;
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (length = 1; length < whole; ++length, low = 0x80, high = 0xBF) {
    if (length == bytes.size())
      return Utf8Prefix::incomplete;
    const auto byte = static_cast<unsigned char>(bytes[length]);
    if (byte < low || byte > high)
      return Utf8Prefix::invalid;
  }
  return whole > 0 ? Utf8Prefix::character : Utf8Prefix::invalid;
}

std::string Utf8Stream::add(std::string_view bytes) {
  const std::string joined = begun_.append(bytes);
  begun_.clear();
  std::string characters;
  for (std::size_t i = 0, length = 0; i < joined.size(); i += length) {
    const Utf8Prefix prefix = classify(std::string_view(joined).substr(i), length);
    if (prefix == Utf8Prefix::incomplete)
      begun_ = joined.substr(i);
    else
      characters.append(prefix == Utf8Prefix::character ? joined.substr(i, length) : "\uFFFD");
  }
  return characters;
}

std::string Utf8Stream::finish() { return std::exchange(begun_, {}).empty() ? "" : "\uFFFD"; }

std::string replace_invalid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.add(bytes);
  return text += stream.finish();
}

}  // namespace xgrad::lm
