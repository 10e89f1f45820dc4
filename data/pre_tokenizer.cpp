#include <utf8.h>
#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/pre_tokenizer.hpp>

namespace xgrad::text {
namespace {

enum class Kind : std::uint8_t { letter, number, space, newline, other, end };

Kind kind_of(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
    return Kind::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
    return Kind::number;
  // U+0085, next line, is the one control character of White_Space outside ASCII.
  const bool separates = category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
  return separates || c == 0x85 ? Kind::space : Kind::other;
}

constexpr std::array<Kind, 128> ascii_kinds = [] {
  std::array<Kind, 128> kinds{};
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const std::size_t lower = c | 0x20;
    kinds[c] = lower >= 'a' && lower <= 'z'           ? Kind::letter
               : c >= '0' && c <= '9'                 ? Kind::number
               : c == '\r' || c == '\n'               ? Kind::newline
               : c == ' ' || (c >= '\t' && c <= '\r') ? Kind::space
                                                      : Kind::other;
  }
  return kinds;
}();

struct Reader {
  std::string_view text;
  bool numbers_end;  // the text ends before a number

  Kind kind(std::size_t i, std::size_t& next) const {
    if (i == text.size())
      return Kind::end;
    Kind kind;
    if (const auto byte = static_cast<unsigned char>(text[i]); byte < 0x80) {
      kind = ascii_kinds[byte];
      next = i + 1;
    } else {
      const char* at = text.data() + i;
      kind = kind_of(utf8::unchecked::next(at));
      next = static_cast<std::size_t>(at - text.data());
    }
    return kind == Kind::number && numbers_end ? Kind::end : kind;
  }
  Kind kind(std::size_t i) const {
    std::size_t next = i;
    return kind(i, next);
  }
  /// The end of the characters of a kind from i on, of at most so many.
  std::size_t run(std::size_t i, Kind wanted, std::size_t most = -1) const {
    for (std::size_t n = 0, next = i; n < most && kind(i, next) == wanted; ++n)
      i = next;
    return i;
  }
  /// The end of 's, 't, 're, 've, 'm, 'll or 'd at i; i if there is none.
  std::size_t contraction(std::size_t i, bool any_case) const {
    const auto letter = [&](std::size_t k) {
      const char c = k < text.size() ? text[k] : '\0';
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    const char a = letter(i + 1), b = letter(i + 2);
    if (letter(i) != '\'')
      return i;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
      return i + 2;
    if ((b == 'e' && (a == 'r' || a == 'v')) || (b == 'l' && a == 'l'))
      return i + 3;
    return any_case && text.substr(i + 1).starts_with("\u017F") ? i + 3 : i;
  }
  /// The end of \s*[\r\n]+ (if that is asked for), \s+(?!\S) or \s+, at white space.
  std::size_t white_space(std::size_t begin, bool to_newline) const {
    std::size_t i = begin, last = begin, newline = begin, next = begin;
    Kind k;
    for (; (k = kind(i, next)) == Kind::space || k == Kind::newline; i = next) {
      last = i;
      if (k == Kind::newline)
        newline = next;
    }
    if (to_newline && newline > begin)
      return newline;
    return k == Kind::end || last == begin ? i : last;  // the last one is left to what follows
  }
};

std::size_t gpt2_end(const Reader& text, std::size_t begin) {
  if (const std::size_t end = text.contraction(begin, false); end > begin)
    return end;
  const std::size_t word = text.text[begin] == ' ' ? begin + 1 : begin;
  const Kind kind = text.kind(word);
  if (kind == Kind::letter || kind == Kind::number || kind == Kind::other)
    return text.run(word, kind);
  return text.white_space(begin, false);
}

std::size_t cl100k_end(const Reader& text, std::size_t begin, std::size_t most_numbers) {
  if (const std::size_t end = text.contraction(begin, true); end > begin)
    return end;
  std::size_t next = begin;
  const Kind first = text.kind(begin, next);
  if (first == Kind::letter)
    return text.run(next, Kind::letter);
  if (first == Kind::number)
    return text.run(begin, Kind::number, most_numbers);
  const Kind second = text.kind(next);
  if (first != Kind::newline && second == Kind::letter)
    return text.run(next, Kind::letter);
  if (first == Kind::other || (text.text[begin] == ' ' && second == Kind::other))
    return text.run(text.run(next, Kind::other), Kind::newline);
  return text.white_space(begin, true);
}

}  // namespace

std::size_t piece_end(Pattern pattern, std::string_view utf8, std::size_t begin) {
  const Reader text{utf8, pattern == Pattern::smollm};
  switch (pattern) {
    case Pattern::smollm:
      if (std::size_t next = begin; text.kind(begin, next) == Kind::end)  // a number
        return next;
      [[fallthrough]];
    case Pattern::gpt2:
      return gpt2_end(text, begin);
    default:
      return cl100k_end(text, begin, pattern == Pattern::qwen2 ? 1 : 3);
  }
}

std::string nfc(std::string_view utf8) {
  // Characters below U+0300, whose bytes are below 0xCC, are what they should be.
  if (std::ranges::all_of(utf8, [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
    return std::string(utf8);
  constexpr auto form = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> text;
  std::array<utf8proc_int32_t, 32> parts;  // no character has more than 4
  for (const char *at = utf8.data(), *const end = at + utf8.size(); at != end;) {
    const auto c = static_cast<utf8proc_int32_t>(utf8::unchecked::next(at));
    const auto n = utf8proc_decompose_char(c, parts.data(), parts.size(), form, nullptr);
    check<ValueError>(n >= 0, "nfc: {}", utf8proc_errmsg(n));
    text.insert(text.end(), parts.begin(), parts.begin() + n);
  }
  // Marks stand in the order of their classes.  utf8proc's own sorting takes the square of a run.
  const auto mark_class = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  const auto is_mark = [&](utf8proc_int32_t c) { return mark_class(c) != 0; };
  for (auto begin = text.begin();
       (begin = std::find_if(begin, text.end(), is_mark)) != text.end();) {
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::ranges::stable_sort(begin, end, {}, mark_class);
    begin = end;
  }
  const auto length =
      utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()), form);
  std::string composed;
  for (auto c = text.begin(); c != text.begin() + length; ++c)
    utf8::unchecked::append(static_cast<char32_t>(*c), std::back_inserter(composed));
  return composed;
}

const std::array<char32_t, 256>& byte_characters() {
  static constexpr std::array<char32_t, 256> characters = [] {
    std::array<char32_t, 256> result{};
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool shown = (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD);
      result[b] = shown ? b : next++;
    }
    return result;
  }();
  return characters;
}

std::string written_token(std::string_view bytes) {
  std::string written;
  for (const char c : bytes)
    utf8::unchecked::append(byte_characters()[static_cast<unsigned char>(c)],
                            std::back_inserter(written));
  return written;
}

}  // namespace xgrad::text
