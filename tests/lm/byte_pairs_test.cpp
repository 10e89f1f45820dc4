// Byte pairs: pre-tokenization, merges, decoding.

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <xgrad/lm/byte_pairs.hpp>
#include <xgrad/lm/merge_pairs.hpp>
#include <xgrad/lm/text.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"

using namespace xgrad;
using namespace xgrad::lm;

namespace {

using Splits = std::vector<PatternSplit>;
const std::string cl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const Splits gpt2_pattern{{}}, smollm_pattern{{R"(\p{N})"}, {}}, llama3_pattern{{cl100k}},
    qwen2_pattern{{std::string(cl100k).erase(cl100k.find("{1,3}"), 5)}};
const std::array all_patterns{gpt2_pattern, smollm_pattern, llama3_pattern, qwen2_pattern};

/// Pre-tokens, separated by bars.
std::string pieces_of(const Splits& splits, std::string_view text) {
  std::string result;
  PreTokenizer(splits).cut(text, [&](std::string_view piece) {
    result += (result.empty() ? "" : "|") + std::string(piece);
  });
  return result;
}

/// All bytes, then these tokens; merges by their texts.
BytePairs::Parts small_parts(const std::vector<std::array<std::string, 2>>& merges) {
  BytePairs::Parts parts;
  for (int b = 0; b < 256; ++b)
    parts.tokens.emplace_back(1, static_cast<char>(b));
  const auto id = [&](const std::string& token) {
    const auto at = std::ranges::find(parts.tokens, token);
    REQUIRE(at != parts.tokens.end());
    return static_cast<std::uint32_t>(at - parts.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    parts.merges.emplace_back(id(left), id(right));
    if (std::ranges::find(parts.tokens, left + right) == parts.tokens.end())
      parts.tokens.push_back(left + right);
  }
  return parts;
}

/// A valid text of many scripts, with matches for all patterns.
std::string random_text(std::mt19937& random, std::size_t characters) {
  const std::u32string special = U" \n\r\t'sStTlLdDrReEvVmM019\u0301\u00A0\u2028\u017F\u200D<|>";
  constexpr std::array<std::array<char32_t, 2>, 9> ranges{{{0x20, 0x7E},
                                                           {0, 0x17F},
                                                           {0x370, 0x5FF},
                                                           {0x900, 0xE7F},
                                                           {0x3000, 0x30FF},
                                                           {0x4E00, 0x9FFF},
                                                           {0xAC00, 0xD7A3},
                                                           {0x1F300, 0x1FAFF},
                                                           {0x10000, 0x10FFFF}}};
  std::u32string text;
  while (text.size() < characters) {
    const auto& [low, high] = ranges[random() % ranges.size()];
    text += random() % 2 == 0 ? special[random() % special.size()]
                              : static_cast<char32_t>(low + random() % (high - low + 1));
  }
  return encode_utf8(text);
}

std::string random_letters(std::size_t n, std::mt19937& random) {
  std::string word(n, ' ');
  std::ranges::generate(word, [&] { return static_cast<char>('a' + random() % 3); });
  return word;
}

}  // namespace

TEST_CASE("a text is cut as HuggingFace's tokenizers cut it", "[byte_pairs]") {
  // The pre-tokens of these texts by tokenizers 0.23, with the pre_tokenizers of the four.
  const std::vector<std::array<std::string, 4>> cases = {
      {{"We|'ll| see|:| they|'ve| 12345| cats|,| it|'s| 3|.|14|!",
        "We|'ll| see|:| they|'ve| |1|2|3|4|5| cats|,| it|'s| |3|.|1|4|!",
        "We|'ll| see|:| they|'ve| |123|45| cats|,| it|'s| |3|.|14|!",
        "We|'ll| see|:| they|'ve| |1|2|3|4|5| cats|,| it|'s| |3|.|1|4|!"}},
      {{"SHE|'|S| HERE|,| I|'|LL|'d| o|'|Re| '|tis", "SHE|'|S| HERE|,| I|'|LL|'d| o|'|Re| '|tis",
        "SHE|'S| HERE|,| I|'LL|'d| o|'Re| '|tis", "SHE|'S| HERE|,| I|'LL|'d| o|'Re| '|tis"}},
      {{"a| | b|   \n\n | c| \t\r\n| d|  ", "a| | b|   \n\n | c| \t\r\n| d|  ",
        "a| | b|   \n\n| | c| \t\r\n| d|  ", "a| | b|   \n\n| | c| \t\r\n| d|  "}},
      {{"x|\u00A0|y|\u3000|\u2028|z|\302\205| \u200B|w|\u1680",
        "x|\u00A0|y|\u3000|\u2028|z|\302\205| \u200B|w|\u1680",
        "x|\u00A0y|\u3000|\u2028z|\302\205| \u200B|w|\u1680",
        "x|\u00A0y|\u3000|\u2028z|\302\205| \u200B|w|\u1680"}},
      {{"it|'|\u017F| '|S|''|s|'", "it|'|\u017F| '|S|''|s|'", "it|'\u017F| '|S|''|s|'",
        "it|'\u017F| '|S|''|s|'"}},
      {{"\u00E9t\u00E9| \u0440\u0443\u0441\u0441\u043A\u0438\u0439| \u4E2D\u6587\u5B57| "
        "12\u0663\u0664\u00BD\u2163| \u0E44\u0E17\u0E22|\u0E4C",
        "\u00E9t\u00E9| \u0440\u0443\u0441\u0441\u043A\u0438\u0439| \u4E2D\u6587\u5B57| "
        "|1|2|\u0663|\u0664|\u00BD|\u2163| \u0E44\u0E17\u0E22|\u0E4C",
        "\u00E9t\u00E9| \u0440\u0443\u0441\u0441\u043A\u0438\u0439| \u4E2D\u6587\u5B57| "
        "|12\u0663|\u0664\u00BD\u2163| \u0E44\u0E17\u0E22|\u0E4C",
        "\u00E9t\u00E9| \u0440\u0443\u0441\u0441\u043A\u0438\u0439| \u4E2D\u6587\u5B57| "
        "|1|2|\u0663|\u0664|\u00BD|\u2163| \u0E44\u0E17\u0E22|\u0E4C"}},
      {{"\U0001F469\u200D\U0001F680| ok|\U0001F44D\U0001F3FD!!|\n|\n|?",
        "\U0001F469\u200D\U0001F680| ok|\U0001F44D\U0001F3FD!!|\n|\n|?",
        "\U0001F469\u200D\U0001F680| ok|\U0001F44D\U0001F3FD!!\n\n|?",
        "\U0001F469\u200D\U0001F680| ok|\U0001F44D\U0001F3FD!!\n\n|?"}},
      {{"e|\u0301| \u0915|\u094D|\u0937|\u093F| 7| | 8|\n|9| ",
        "e|\u0301| \u0915|\u094D|\u0937|\u093F| |7|  |8|\n|9| ",
        "e|\u0301| \u0915|\u094D\u0937|\u093F| |7| | |8|\n|9| ",
        "e|\u0301| \u0915|\u094D\u0937|\u093F| |7| | |8|\n|9| "}},
      {{"#|include| <|x|>|\r\n|\t|int| | i| =| 0|;|\r\n",
        "#|include| <|x|>|\r\n|\t|int| | i| =| |0|;|\r\n",
        "#include| <|x|>\r\n|\tint| | i| =| |0|;\r\n",
        "#include| <|x|>\r\n|\tint| | i| =| |0|;\r\n"}},
      {{" '| | '|\n| '|s", " '| | '|\n| '|s", " '| | '\n| '|s", " '| | '\n| '|s"}},
      {{"\034|\013|\014|\001|a| \177", "\034|\013|\014|\001|a| \177", "\034|\013|\014|\001a| \177",
        "\034|\013|\014|\001a| \177"}},
      {{"  | 12| 345| | 6", "   |1|2| |3|4|5|  |6", "  | |12| |345| | |6",
        "  | |1|2| |3|4|5| | |6"}},
  };
  for (const auto& expected : cases) {
    std::string text = expected[0];
    std::erase(text, '|');
    for (std::size_t i = 0; i < all_patterns.size(); ++i)
      CHECK(pieces_of(all_patterns[i], text) == expected[i]);
  }
  CHECK(pieces_of(gpt2_pattern, "") == "");
  CHECK(pieces_of(llama3_pattern, std::string_view("\0a", 2)) == std::string_view("\0a", 2));
}

TEST_CASE("code points that are unknown are neither letters nor numbers", "[byte_pairs]") {
  CHECK(pieces_of(gpt2_pattern, "a\u0378b\U0003FFFF.") == "a|\u0378|b|\U0003FFFF.");
  CHECK(pieces_of(llama3_pattern, "\uE000\uFFFFa") == "\uE000\uFFFF|a");
}

TEST_CASE("any pattern cuts a text as in HuggingFace's tokenizers", "[byte_pairs]") {
  struct Case {
    Splits splits;
    std::string text, expected;  // of tokenizers 0.23
  };
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])",
                    lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])", begin = R"([^\r\n\p{L}\p{N}]?)",
                    end = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)";
  const Splits o200k{{begin + upper + "*" + lower + "+" + end + begin + upper + "+" + lower + "*" +
                      end + R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
  const Splits deepseek{
      {R"(\p{N}{1,3})"},
      {"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"},
      {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
       R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
  const Splits bloom{{" ?[^(\\s|[.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C])]+"}};
  for (const auto& [splits, text, expected] :
       {Case{o200k,
             "HelloWorld's iPhone15 costs 12345\u20AC at\r\n https://a.b/c  \u01C5a \u4E2Dabc!",
             "Hello|World's| i|Phone|15| costs| |123|45|\u20AC| at|\r\n| https|://|a|.b|/c| | "
             "\u01C5a| \u4E2Dabc|!"},
        {deepseek, "It's 12345 \u4E2D\u6587ab\u30AB #tag (x) caf\u00E9! =>\n\n e\u0301",
         "It|'s| |123|45| |\u4E2D\u6587|ab|\u30AB| #|tag| (|x|)| caf\u00E9|!| =>\n\n| e\u0301"},
        {bloom, "Bonjour, le (monde) b\u3002 x...y", "Bonjour|,| le| (|monde|)| b|\u3002| x|...|y"},
        {{{R"(\w+|[^\w\s]+)"}},
         "a_b c\u0301d x\u00B2\u203Fy \u24B6-1\u180E2 \u200D",
         "a_b| |c\u0301d| |x\u00B2\u203Fy| |\u24B6|-|1|\u180E|2| |\u200D"},
        {{{R"(\W)"}}, "c\u0301d-x \u24B6", "c\u0301d|-|x| |\u24B6"},
        {{{R"(\s+)", true}}, "a b\u180E c\u0085d", "a|b\u180E|c|d"},
        {{{R"(\p{Han}+)", true, true}}, "a\u4E2D\u3001\u6587b\u3007", "\u4E2D|\u6587|\u3007"},
        {{{R"((?=\p{Lu}))"}}, "aBcDE\u00C9", "a|Bc|D|E|\u00C9"},
        {{{"^.|$"}}, "ab\ncd\n\nx", "a|b|\n|c|d|\n|\n|x"},
        {{{"(?i)STR|[k]"}}, "\u017Ftr\u212Ak", "\u017Ftr|\u212A|k"},
        {{}, "a b", "a b"}}) {
    INFO(text);
    CHECK(pieces_of(splits, text) == expected);
  }
}

TEST_CASE("patterns that cannot be used are refused", "[byte_pairs]") {
  for (const auto& [pattern, says] : std::vector<std::array<std::string, 2>>{
           {"a(b", "'a(b' is not a regular expression: missing closing parenthesis"},
           {"\xFF", "is not a regular expression: UTF-8 error"},
           {R"(\p{Nothing})", "unknown property"},
           {"(?:a{999}){9999}", "too large"},
           {"(*UTF)a", "'(*UTF)a' at byte 0, which is not supported"},
           {R"(\p{N}{1,3}+)", "'{1,3}+' at byte 5"},
           {"a{2}?", "'{2}?' at byte 1"},
           {"a{,2}", "'{,2}' at byte 1"},
           {"x[[:alpha:]]", "'[:alpha:' at byte 2"},
           {"[a[^b]]", "'[^b]]' at byte 2"},
           {"[a&&b]", "'&&b]' at byte 2"},
           {"[]a]", "'[]a]' at byte 0"},
           {"[+-[b]]", "'[b]]' at byte 3"},
           {R"([\W])", R"('\W]' at byte 1)"},
           {R"(\h)", R"('\h' at byte 0)"},
           {R"(\x80)", R"('\x80' at byte 0)"},
           {R"(\p{^L})", R"('\p{^L}' at byte 0)"},
           {"(?m:a)", "'(?m:a)' at byte 0"},
           {"a(?i)b", "'(?i)b' at byte 1"}})
    CHECK_THAT(message_of<ValueError>([&, &of = pattern] { PreTokenizer({{of}}); }),
               ContainsSubstring(says));
  CHECK_THROWS_AS(PreTokenizer(Splits(33)), ValueError);
  // (a+)+ matches in 2^40 ways; a group that is repeated needs more than the stack that JIT has.
  auto parts = small_parts({});
  parts.splits = {{"(a+)+[bc]"}};
  CHECK_THAT(message_of<ValueError>([&] { BytePairs(parts).encode(std::string(40, 'a') + "d"); }),
             ContainsSubstring("cannot be matched from byte 0 of 41 on: PCRE2 says 'match limit"));
  CHECK(pieces_of({{"(?:a|b)+"}}, std::string(20'000, 'b')).size() == 20'000);
}

TEST_CASE("the pair of the lowest rank is merged, the leftmost first", "[byte_pairs]") {
  const BytePairs v(small_parts({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "bc"}, {" ", "a"}}));
  CHECK(v.encode("abc") == Ids{'a', 256});  // "bc" before "ab"
  CHECK(v.encode("ab") == Ids{257});
  CHECK(v.encode("aaa") == Ids{258, 'a'});
  CHECK(v.encode("aaaa") == Ids{258, 258});
  CHECK(v.encode("aabc") == Ids{259});
  CHECK(v.encode("x a") == Ids{'x', 260});
  CHECK(v.encode(" aa") == Ids{' ', 258});
  CHECK(v.encode("") == Ids());
  CHECK(v.decode(v.encode("x aabcab")) == "x aabcab");
  CHECK(v.bytes(259) == "aabc");
  CHECK(v.size() == 261);
  CHECK(v.encode("\xC3\xA9") == Ids{0xC3, 0xA9});
}

TEST_CASE("a piece that is a token is not merged if merges are ignored", "[byte_pairs]") {
  auto parts = small_parts({{"a", "b"}, {"b", "c"}});
  parts.tokens.push_back("abc");
  CHECK(BytePairs(parts).encode("abc xabc") == Ids{256, 'c', ' ', 'x', 256, 'c'});
  parts.ignore_merges = true;
  CHECK(BytePairs(parts).encode("abc xabc") == Ids{258, ' ', 'x', 256, 'c'});
}

TEST_CASE("bytes without a token are dropped", "[byte_pairs]") {
  auto parts = small_parts({{"a", "b"}});
  parts.tokens[4] = "unused";
  CHECK(BytePairs(parts).encode("\x04 a\x04\x04") == Ids{' ', 'a'});
  CHECK(BytePairs(parts).encode("\x04") == Ids());
}

TEST_CASE("special tokens are recognised when asked", "[byte_pairs]") {
  auto parts = small_parts({{"<", "|"}});
  parts.tokens.insert(parts.tokens.end(), {"<|end|>", "<|end|>of", "word", "e\u0301"});
  parts.added = {{"<|end|>", 257}, {"<|end|>of", 258}, {"word", 259, false, true}};
  const BytePairs v(parts);
  const auto recognised = [](const BytePairs& of, std::string_view text) {
    return of.encode(text, SpecialTokens::recognised);
  };
  CHECK(v.encode("<|end|>") == Ids{256, 'e', 'n', 'd', '|', '>'});
  CHECK(recognised(v, "<|end|>") == Ids{257});
  CHECK(recognised(v, "a<|end|><|end|>ofx") == Ids{'a', 257, 258, 'x'});
  CHECK(recognised(v, "<|end|") == Ids{256, 'e', 'n', 'd', '|'});
  CHECK(v.encode("swords") == Ids{'s', 259, 's'});  // not special, so recognised anywhere
  CHECK(recognised(v, "wo<|end|>rd") == Ids{'w', 'o', 257, 'r', 'd'});
  // One that is not special stays text within a special one's text.
  auto covered = parts;
  covered.tokens.push_back("<word>");
  covered.added[2].normalized = false;  // both are searched for before normalization
  covered.added.push_back({"<word>", 261});
  CHECK(BytePairs(covered).encode("<word>word") == Ids{'<', 'w', 'o', 'r', 'd', '>', 259});
  CHECK(recognised(BytePairs(covered), "<word>word") == Ids{261, 259});
  CHECK(v.find("<|end|>") == 257);
  CHECK(v.find("<|other|>") == std::nullopt);
  CHECK(v.decode({257, 'a'}) == "<|end|>a");

  // The text between is normalized, and then searched for the tokens that are, too.
  parts.nfc = true;
  CHECK(recognised(BytePairs(parts), "e\u0301<|end|>") == Ids{0xC3, 0xA9, 257});
  parts.added.push_back({"e\u0301", 260, false, false});
  CHECK(BytePairs(parts).encode("xe\u0301") == Ids{'x', 260});
  parts.added.back().normalized = true;
  CHECK(BytePairs(parts).encode("x\u00E9") == Ids{'x', 260});
}

TEST_CASE("an added token may be written as one that text becomes", "[byte_pairs]") {
  auto parts = small_parts({{"\xC5", "\x82"}, {"a", "b"}, {"b", "a"}});
  parts.added = {{"\u00C5", 0xC5}, {"ab", 257, false}, {"a", 'a'}};
  const BytePairs v(parts);
  CHECK(v.text_size() == 259);
  CHECK(v.encode("\u0142") == Ids{256});
  CHECK(v.encode("\u017E\u00C5a") == Ids{0xC5, 0xBE, 0xC3, 0x85, 'a'});
  CHECK(v.encode("bab", SpecialTokens::recognised) == Ids{'b', 257});
  CHECK(v.encode("\u00C5\u017Eba", SpecialTokens::recognised) == Ids{0xC5, 0xC5, 0xBE, 'b', 'a'});
  CHECK(v.decode({0xC5, 0xBE}) == "\u017E");
  parts.tokens.push_back("\u4E2D");
  parts.added.push_back({"\u4E2D", 259});
  CHECK(BytePairs(parts).text_size() == 259);
}

TEST_CASE("of added tokens the longest is found", "[byte_pairs]") {
  auto parts = small_parts({});
  for (std::uint32_t i = 0; i < 300; ++i) {
    parts.tokens.push_back(std::string(1 + i % 7, '<') + std::to_string(i));
    parts.added.push_back({parts.tokens.back(), 256 + i});
  }
  const BytePairs v(parts);
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::string text;
    while (text.size() < 40)
      text += random() % 2 == 0 ? "<" : std::to_string(random() % 400);
    std::vector<std::int64_t> expected;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t best = static_cast<unsigned char>(text[at]);  // of one byte
      for (std::size_t id = 256; id < parts.tokens.size(); ++id)
        if (text.compare(at, parts.tokens[id].size(), parts.tokens[id]) == 0 &&
            parts.tokens[id].size() > parts.tokens[best].size())
          best = id;
      expected.push_back(static_cast<std::int64_t>(best));
      at += parts.tokens[best].size();
    }
    CHECK(v.encode(text, SpecialTokens::recognised) == Ids(expected));
  }
}

TEST_CASE("a vocabulary that contradicts itself is refused", "[byte_pairs]") {
  const auto message = [](const auto& change) {
    auto parts = small_parts({{"a", "b"}});
    change(parts);
    return message_of<ValueError>([&] { BytePairs v(parts); });
  };
  using Parts = BytePairs::Parts;
  CHECK_THAT(message([](Parts& p) { p.tokens.push_back("ab"); }),
             ContainsSubstring("'ab' (id 257) has the bytes of id 256"));
  CHECK_THAT(message([](Parts& p) { p.merges.emplace_back('x', 'y'); }),
             ContainsSubstring("merge 1 joins 'x' (id 120) and 'y' (id 121)"));
  CHECK_THAT(message([](Parts& p) { p.merges.emplace_back('a', 'b'); }),
             ContainsSubstring("merge 1 is given twice"));
  CHECK_THAT(message([](Parts& p) { p.merges.emplace_back(700, 'b'); }),
             ContainsSubstring("merge 1 names id 700"));
  CHECK_THAT(message([](Parts& p) { p.added = {{"ab", 255}}; }),
             ContainsSubstring("'ab' is not that of its id, 255"));
  CHECK_THAT(message([](Parts& p) { p.added = {{"ab", 999}}; }), ContainsSubstring("999"));
  CHECK_THAT(message([](Parts& p) {
               p.tokens.insert(p.tokens.end(), {"<s>", "<s>"});
               p.added = {{"<s>", 257}, {"<s>", 258}};
             }),
             ContainsSubstring("'<s>' is given twice"));
  CHECK_THAT(message([](Parts& p) {
               p.tokens.push_back("");
               p.added = {{"", 257}};
             }),
             ContainsSubstring("is empty"));
  const BytePairs v(small_parts({}));
  CHECK_THAT(message_of<ValueError>([&] { v.decode({5, 256}); }),
             ContainsSubstring("id 256 is outside a vocabulary of 256 tokens"));
  CHECK_THROWS_AS(v.bytes(-1), ValueError);
}

TEST_CASE("all bytes come back from ids", "[byte_pairs]") {
  std::mt19937 random(7);
  const std::string learned_from = random_text(random, 3000) + random_text(random, 3000);
  for (const Splits& pattern : all_patterns) {
    const BytePairs v = BytePairs::learn(learned_from, 700, {"<|endoftext|>"}, pattern);
    for (int i = 0; i < 100; ++i) {
      const std::string text = random_text(random, 1 + random() % 200);
      CHECK(v.decode(v.encode(text)) == text);
      CHECK(v.decode(v.encode(text, SpecialTokens::recognised)) == text);
      std::string broken = text;
      broken[random() % broken.size()] = static_cast<char>(random());
      CHECK(v.decode(v.encode(broken)) == replace_invalid_utf8(broken));
    }
  }
}

TEST_CASE("invalid UTF-8 is replaced as in Python", "[byte_pairs]") {
  // bytes.decode(errors="replace")
  const std::vector<std::array<std::string, 2>> cases = {
      {"a\xC3", "a\uFFFD"},
      {"\xE2\x82z", "\uFFFDz"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF0\x9F\x98\xC3\xA9", "\uFFFD\u00E9"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xC0\x80", "\uFFFD\uFFFD"},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xF5\x80", "\uFFFD\uFFFD"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\x41"},
      {"\xEF\xBF\xBF\xF4\x8F\xBF\xBF", "\uFFFF\U0010FFFF"},
  };
  for (const auto& [bytes, expected] : cases)
    CHECK(replace_invalid_utf8(bytes) == expected);
}

TEST_CASE("a stream never breaks a character", "[byte_pairs]") {
  Utf8Stream stream;
  CHECK(stream.add("a\xF0\x9F") == "a");
  CHECK(stream.add("\x98") == "");
  CHECK(stream.add("\x80z\xC3") == "\U0001F600z");
  CHECK(stream.add("x") == "\uFFFDx");
  CHECK(stream.add("\xE2") == "");
  CHECK(stream.finish() == "\uFFFD");
  CHECK(stream.finish() == "");

  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = random_text(random, 50);
    bytes[random() % bytes.size()] = static_cast<char>(random());
    std::string streamed;
    for (std::size_t begin = 0, n; begin < bytes.size(); begin += n) {
      n = 1 + random() % 5;
      streamed += stream.add(std::string_view(bytes).substr(begin, n));
    }
    CHECK(streamed + stream.finish() == replace_invalid_utf8(bytes));
  }
}

TEST_CASE("a vocabulary is learned from a text", "[byte_pairs]") {
  // The words are "ab", " ab" twice, " abc" and " b".
  const BytePairs v = BytePairs::learn("ab ab ab abc b", 260, {"<|endoftext|>"});
  const auto& tokens = v.parts().tokens;
  CHECK(tokens.size() == 260);
  CHECK((tokens[0] == "!" && tokens[93] == "~" && tokens[94] == "\xA1" &&
         tokens[188] == std::string(1, 0)));
  CHECK((tokens[256] == "ab" && tokens[257] == " ab"));
  CHECK(tokens[258] == " b");  // as frequent as " abc", whose first id is higher
  CHECK(v.find("<|endoftext|>") == 259);
  CHECK(v.encode("ab ab") == Ids{256, 257});

  // Among equals: the lowest first id, then the lowest second one, in the order of
  // byte_characters().
  CHECK(BytePairs::learn("ba", 257).parts().tokens[256] == "ba");
  CHECK(BytePairs::learn("ca\nab\nac", 257).parts().tokens[256] == "ab");
  CHECK(BytePairs::learn("aaaa", 300).parts().tokens.size() == 258);  // "aa", "aaaa", and no more
  CHECK(BytePairs::learn("", 300).size() == 256);
  CHECK(BytePairs::learn("ab\xFF", 300, {}, llama3_pattern).parts().splits == llama3_pattern);
  CHECK_THAT(message_of<ValueError>([] { BytePairs::learn("ab", 256, {"<s>"}); }),
             ContainsSubstring("256 has no room for 256 bytes and 1 special token"));
}

TEST_CASE("learning counts pairs as counting them anew does", "[byte_pairs]") {
  std::mt19937 random(11);
  std::vector<std::string> words;
  std::string text;
  for (int i = 0; i < 60; ++i) {
    words.push_back(random_letters(1 + random() % 12, random));
    text += (i > 0 ? "\n" : "") + words.back();
  }
  const BytePairs v = BytePairs::learn(text, 256 + 60);
  // Each word as its tokens; each step counts all pairs and merges the best one.
  std::vector<std::vector<std::string>> split;
  for (const std::string& word : words) {
    split.emplace_back();
    for (const char c : word)
      split.back().emplace_back(1, c);
  }
  std::vector<std::string> tokens(v.parts().tokens.begin(), v.parts().tokens.begin() + 256);
  for (const auto& [left, right] : v.parts().merges) {
    std::map<std::pair<std::size_t, std::size_t>, int> counts;
    const auto id = [&](const std::string& token) {
      return static_cast<std::size_t>(std::ranges::find(tokens, token) - tokens.begin());
    };
    for (const auto& word : split)
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        ++counts[{id(word[i]), id(word[i + 1])}];
    const auto best = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
    REQUIRE(best->first == std::pair<std::size_t, std::size_t>(left, right));
    const std::string a = tokens[left], b = tokens[right];
    if (id(a + b) == tokens.size())
      tokens.push_back(a + b);
    for (auto& word : split)
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == a && word[i + 1] == b) {
          word[i] += b;
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
  CHECK(tokens == v.parts().tokens);
}

TEST_CASE("a long piece is merged as a short one, and not in the square of its length",
          "[byte_pairs]") {
  // Merges as rules: a table has the rank of each pair of ids.
  std::mt19937 random(5);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Merge> table;
  std::uint32_t next = 3;
  for (std::uint32_t rank = 0; rank < 300; ++rank, ++next)
    table.try_emplace({random() % next, random() % next}, Merge{rank, next});
  const auto find = [&](std::uint32_t left, std::uint32_t right) {
    const auto at = table.find({left, right});
    return at == table.end() ? Merge() : at->second;
  };
  for (const std::size_t n : {1, 2, 63, 64, 65, 66, 100, 500}) {
    std::vector<std::uint32_t> ids(n), slow;
    std::ranges::generate(ids, [&] { return random() % 3; });
    slow = ids;
    for (;;) {  // by the definition
      Merge best;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < slow.size(); ++i)
        if (const Merge m = find(slow[i], slow[i + 1]); m.rank < best.rank)
          best = m, at = i;
      if (best.rank == Merge::never)
        break;
      slow[at] = best.id;
      slow.erase(slow.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    merge_pairs(ids, find);
    CHECK(ids == slow);
  }
  for (const std::size_t n : {64, 65, 1000, 100000}) {
    std::vector<std::uint32_t> ids(n);
    std::ranges::generate(ids, [&] { return random() % 3; });
    CHECK(merge_pairs(ids, find) <= 64 * n);
    std::vector<std::uint32_t> same(n, 0);  // halves, and halves again
    CHECK(merge_pairs(same, [](std::uint32_t a, std::uint32_t b) {
            return a == b ? Merge{a, a + 1} : Merge();
          }) <= 64 * n);
    CHECK(same[0] == (n == 65 ? 6 : n == 64 ? 6 : n == 1000 ? 9 : 16));
  }
}
