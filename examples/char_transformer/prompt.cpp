#include "prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/data/text.hpp>

#include "output.hpp"

namespace char_transformer {

namespace text = xgrad::text;

std::string read_prompt(const std::string& path) {
  const text::Text read = text::read_text(path);
  std::string prompt = read.characters.decode(read.ids);
  if (prompt.ends_with('\n'))
    prompt.pop_back();
  return prompt;
}

text::Ids encode_given(const std::string& what, const std::string& given,
                       const text::Characters& characters) {
  std::u32string decoded = text::decode_utf8(given, what);
  if (decoded.starts_with(U'\uFEFF'))
    decoded.erase(0, 1);
  for (std::size_t at = 0; (at = decoded.find(U'\r', at)) != decoded.npos;)
    decoded.replace(at, decoded[at + 1] == U'\n' ? 2 : 1, 1, U'\n');
  try {
    return characters.encode(decoded);
  } catch (const xgrad::ValueError& error) {
    constexpr std::size_t most = 100;
    const std::u32string& known = characters.list();
    throw xgrad::ValueError(
        fmt::format("{}: {}; it knows {}{}", what, reason(error),
                    xgrad::printable_name(text::encode_utf8(known.substr(0, most))),
                    known.size() > most ? " and more" : ""));
  }
}

text::Ids encode_prompt(const std::string& what, const std::string& given,
                        const text::Characters& characters) {
  if (!given.empty())
    return encode_given(what, given, characters);
  return characters.contains(U'\n') ? characters.encode(U"\n") : text::Ids({0});
}

std::vector<std::int64_t> list_of(const text::Ids& ids) {
  std::vector<std::int64_t> list(ids.size());
  ids.copy(0, ids.size(), list.data());
  return list;
}

xgrad::Indices as_row(std::span<const std::int64_t> ids) {
  auto list = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, ids.size()});
  std::ranges::copy(ids, list.data());
  return xgrad::Indices(std::move(list));
}

std::string shown(char32_t c) {
  for (const auto& [special, letter] :
       {std::pair{U'\n', 'n'}, {U'\t', 't'}, {U'\r', 'r'}, {U'\\', '\\'}, {U'\'', '\''}})
    if (c == special)
      return fmt::format("'\\{}'", letter);
  return fmt::format("'{}'", xgrad::printable_name(text::encode_utf8({&c, 1})));
}

}  // namespace char_transformer
