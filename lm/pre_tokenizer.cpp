#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include "../autograd/fail.hpp"
#include "pre_tokenizer.hpp"

static_assert(PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40, "xgrad needs PCRE2 10.40 or newer");

namespace xgrad::lm {

struct CompiledSplit : PatternSplit {
  std::shared_ptr<pcre2_code> code;
};

namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// A pattern in PCRE2's syntax, with ^ and $ matching at lines.  Null, with the error in `why`, if
/// it is invalid.
std::shared_ptr<pcre2_code> compile(const std::string& pattern, std::string& why) {
  const std::string all = "(*LF)" + pattern;
  int error = 0;
  std::size_t place = 0;
  std::shared_ptr<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(all.data()), all.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &place, nullptr),
      pcre2_code_free);
  if (code == nullptr)
    why = fmt::format("{} (at byte {} of '{}')", message_of(error), place, printable_name(all));
  else
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // if this fails, PCRE2 interprets it
  return code;
}

/// Translates a pattern from Oniguruma's syntax for Ruby (HuggingFace's tokenizers) to PCRE2's.
std::string translated(std::string_view pattern) {
  constexpr std::string_view word =
      R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
  std::string result, why;
  int depth = 0;  // of nested classes
  for (std::size_t i = 0, n = 1; i < pattern.size(); i += n) {
    const std::string_view rest = pattern.substr(i);
    const auto at = [&](std::size_t k) { return k < rest.size() ? rest[k] : '\0'; };
    const auto has = [&](std::size_t k, std::string_view one_of) {
      return one_of.find(at(k)) != std::string_view::npos;
    };
    bool alike = true;  // same meaning in Oniguruma and PCRE2, or translated
    n = at(0) == '\\' ? 2 : 1;
    std::string text(rest.substr(0, n));
    if (text == "\\s" || text == "\\S") {  // PCRE2's own \s includes U+180E
      text = text == "\\s" ? R"(\p{WSpace})" : R"(\P{WSpace})";
    } else if (text == "\\w" || (text == "\\W" && depth == 0)) {
      text = depth > 0 ? word : fmt::format("[{}{}]", text == "\\w" ? "" : "^", word);
    } else if (text == "\\p" || text == "\\P") {  // PCRE2's own \p{Han} tests Script_Extensions
      n = std::min(rest.find('}'), rest.size() - 1) + 1;
      text = rest.substr(0, n);
      const std::string script =
          text.substr(0, 3) + "sc:" + text.substr(std::min<std::size_t>(n, 3));
      text = compile(script, why) == nullptr ? text : script;
      alike = at(3) != '^';
    } else if (n == 2) {
      alike = std::isalnum(static_cast<unsigned char>(at(1))) == 0 || has(1, "dDnrtf") ||
              rest.starts_with("\\x{");
    } else if (at(0) == '[' || (at(0) == ']' && depth > 0)) {
      const bool opens = at(0) == '[', outer = depth == (opens ? 0 : 1);
      depth += opens ? 1 : -1;
      n = opens && at(1) == '^' ? 2 : 1;
      text = outer ? rest.substr(0, n) : "";  // a class within a class adds its characters
      alike =
          !(opens && has(n, ":]")) && (outer || (n == 1 && pattern[i - 1] != '-' && at(1) != '-'));
    } else if (depth > 0) {
      alike = !rest.starts_with("&&");
    } else if (at(0) == '(' && has(1, "*?")) {
      alike = at(1) == '?' && (has(2, ":=!>") || (at(2) == '<' && has(3, "=!")) ||
                               rest.starts_with("(?i:") || (i == 0 && rest.starts_with("(?i)")));
    } else if (at(0) == '{') {
      const std::size_t end = rest.find_first_not_of("0123456789,", 1);
      alike = at(end) != '}' ||
              (at(1) != ',' && at(end + 1) != '+' && (at(end + 1) != '?' || rest.find(',') < end));
    }
    if (!alike)
      fail<ValueError>(
          "PreTokenizer: the pattern '{}' has '{}' at byte {}, which is not supported; write it in "
          "classes, groups and quantifiers that Oniguruma and PCRE2 interpret alike",
          printable_name(pattern), printable_name(rest.substr(0, 8)), i);
    result += text;
  }
  return result;
}

/// Applies the splits to one text.
struct Cutter {
  const std::vector<CompiledSplit>& splits;
  const std::function<void(std::string_view)>& piece;
  std::shared_ptr<pcre2_match_data> found{pcre2_match_data_create(1, nullptr),
                                          pcre2_match_data_free};
  std::shared_ptr<pcre2_match_context> limits{pcre2_match_context_create(nullptr),
                                              pcre2_match_context_free};

  /// Finds the next match of a split from `from` on; returns whether there is one.
  bool find(const CompiledSplit& split, std::string_view text, std::size_t from) const {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(split.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         from, PCRE2_NO_UTF_CHECK | options, found.get(), limits.get());
    };
    int result = match(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = match(PCRE2_NO_JIT);
    if (result < PCRE2_ERROR_NOMATCH)
      fail<ValueError>(
          "PreTokenizer: the pattern '{}' cannot be matched from byte {} of {} on: PCRE2 says "
          "'{}'; write it without nested repetitions, which backtrack too much",
          printable_name(split.pattern), from, text.size(), message_of(result));
    return result != PCRE2_ERROR_NOMATCH;
  }

  void cut(std::size_t k, std::string_view text) const {
    if (text.empty())
      return;
    if (k == splits.size())
      return piece(text);
    const CompiledSplit& split = splits[k];
    std::size_t begin = 0;
    const auto part = [&](std::size_t end, bool match) {
      if (!split.removed || match == split.invert)
        cut(k + 1, text.substr(begin, end - begin));
      begin = end;
    };
    const std::size_t* const match = pcre2_get_ovector_pointer(found.get());
    for (std::size_t from = 0; from <= text.size() && find(split, text, from);) {
      const std::size_t first = match[0], end = match[1];
      if (end == begin) {  // an empty match at the end of another
        do
          ++from;
        while (from < text.size() && (text[from] & 0xC0) == 0x80);
      } else {
        part(first, false);
        part(end, true);
        from = end;
      }
    }
    part(text.size(), false);
  }
};

}  // namespace

bool matches_whole(const std::string& pattern, const std::string& text) {
  std::string why;
  const auto code = compile(pattern, why);
  check<ValueError>(code != nullptr, "the pattern '{}' is not a regular expression: {}",
                    printable_name(pattern), why);
  const std::shared_ptr<pcre2_match_data> found{pcre2_match_data_create(1, nullptr),
                                                pcre2_match_data_free};
  const int result = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, found.get(), nullptr);
  check<ValueError>(result >= 0 || result == PCRE2_ERROR_NOMATCH,
                    "the pattern '{}' cannot be matched: PCRE2 says '{}'", printable_name(pattern),
                    message_of(result));
  return result >= 0;
}

PreTokenizer::PreTokenizer(const std::vector<PatternSplit>& splits) {
  std::vector<CompiledSplit> all;
  for (const PatternSplit& split : splits) {
    std::string why;
    all.push_back({split, compile(translated(split.pattern), why)});
    check<ValueError>(all.back().code != nullptr,
                      "PreTokenizer: the pattern '{}' is not a regular expression: {}",
                      printable_name(split.pattern), why);
  }
  check<ValueError>(all.size() <= 32, "PreTokenizer: there are {} splits; at most 32 are supported",
                    all.size());
  splits_ = std::make_shared<const std::vector<CompiledSplit>>(std::move(all));
}

void PreTokenizer::cut(std::string_view utf8,
                       const std::function<void(std::string_view)>& piece) const {
  const Cutter cutter{*splits_, piece};
  const std::size_t steps = std::min<std::size_t>(10'000 + 64 * utf8.size(), 0xFFFFFFFF);
  pcre2_set_match_limit(cutter.limits.get(), static_cast<std::uint32_t>(steps));
  cutter.cut(0, utf8);
}

std::string nfc(std::string_view utf8) {
  // Characters below U+0300, whose bytes are below 0xCC, are normalized already.
  if (std::ranges::all_of(utf8, [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
    return std::string(utf8);
  constexpr auto form = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> text;
  std::array<utf8proc_int32_t, 32> parts;  // no character decomposes into more than 4
  for (const char *at = utf8.data(), *const end = at + utf8.size(); at != end;) {
    const auto c = static_cast<utf8proc_int32_t>(utf8::unchecked::next(at));
    const auto n = utf8proc_decompose_char(c, parts.data(), parts.size(), form, nullptr);
    check<ValueError>(n >= 0, "nfc: {}", utf8proc_errmsg(n));
    text.insert(text.end(), parts.begin(), parts.begin() + n);
  }
  // Sorts marks by class.  utf8proc's own sorting is quadratic in the length of a run.
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

}  // namespace xgrad::lm
