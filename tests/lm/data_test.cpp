// Text, characters and batches.

#include <sys/stat.h>

#include <fstream>
#include <numeric>
#include <thread>
#include <xgrad/autograd/error.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/text.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using namespace xgrad::lm;

namespace {

std::vector<std::int64_t> numbers_to(std::size_t n) {
  std::vector<std::int64_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Ids count_to(std::size_t n) { return Ids(numbers_to(n)); }

/// The code points of a file.
std::u32string read(const std::string& path) {
  const auto [characters, ids] = read_text(path);
  return decode_utf8(characters.decode(ids), path);
}

}  // namespace

TEST_CASE("a text file is read as code points", "[data]") {
  TemporaryFolder folder;
  const std::string path = folder / "text.txt";

  SECTION("one, two, three and four bytes") {
    write_bytes(path, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x86");
    CHECK(read(path) == U"a\u00E9\u20AC\U0001F986");
  }
  SECTION("a byte order mark is dropped, at the start alone") {
    write_bytes(path, "\xEF\xBB\xBFx\xEF\xBB\xBF");
    CHECK(read(path) == U"x\uFEFF");
    write_bytes(path, "\xEF\xBB\xBF");
    CHECK_THAT(message_of<FileError>([&] { read_text(path); }), ContainsSubstring("is empty"));
  }
  SECTION("all newlines are the same newline") {
    write_bytes(path, "a\r\nb\rc\nd\r\r\n\n\r");
    CHECK(read(path) == U"a\nb\nc\nd\n\n\n\n");
  }
  SECTION("a zero byte is a character") {
    write_bytes(path, std::string_view("a\0b", 3));
    CHECK(read(path).size() == 3);
  }
}

TEST_CASE("a text is the same wherever its pieces end", "[data]") {
  TemporaryFolder folder;
  const std::string path = folder / "text.txt";
  for (std::size_t shift = 65536 - 8; shift <= 65536; ++shift) {
    const std::string before(shift, 'x'), after(70000, 'y');
    write_bytes(path, before + "\xF0\x9F\xA6\x86\r\n\xE2\x82\xAC" + after);
    CHECK((read(path) ==
           std::u32string(shift, U'x') + U"\U0001F986\n\u20AC" + std::u32string(70000, U'y')));
    write_bytes(path, before + "\r\r\n" + after);
    CHECK((read(path) == std::u32string(shift, U'x') + U"\n\n" + std::u32string(70000, U'y')));
    // An incomplete character, before another one and at the end.
    for (const std::string& rest : {after, std::string()}) {
      write_bytes(path, before + "\xF0\x9F\xA6" + rest);
      CHECK_THAT(message_of<FileError>([&] { read_text(path); }),
                 ContainsSubstring("byte " + std::to_string(shift) + ": 0xf0"));
    }
  }
}

TEST_CASE("a text is read from a pipe, once", "[data]") {
  TemporaryFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 1000; ++i)
      file << std::string(99, 'a') << '\n' << std::flush;
  });
  const Text text = read_text(path);
  writer.join();
  CHECK(text.characters.list() == U"\na");
  CHECK(text.ids.size() == 100000);
}

TEST_CASE("a text in the ids of known characters", "[data]") {
  TemporaryFolder folder;
  const std::string path = folder / "text.txt";
  const Characters characters = Characters::of(U"abcx");
  write_bytes(path, "cab");
  CHECK(read_text(path, characters).ids == Ids{2, 0, 1});
  CHECK(read_text(path, characters).characters == characters);
  CHECK(read_text(path).ids == Ids{2, 0, 1});
  write_bytes(path, "cabby");
  CHECK_THAT(message_of<ValueError>([&] { read_text(path, characters); }),
             ContainsSubstring("lacks 'y'"));
}

TEST_CASE("ids take two or four bytes", "[data]") {
  CHECK(Ids().itemsize() == 2);
  CHECK(Ids{65535}.itemsize() == 2);
  CHECK(Ids{65536}.itemsize() == 4);
  CHECK(Ids{4294967295}.itemsize() == 4);
  CHECK_THAT(message_of<ValueError>([] { Ids({0, -1}); }), ContainsSubstring("-1 at position 1"));
  CHECK_THROWS_AS(Ids({4294967296}), ValueError);
  CHECK(Ids{1, 2} == Ids{1, 2});
  CHECK_FALSE(Ids{1, 2} == Ids{1, 3});
  CHECK_FALSE(Ids{1, 2} == Ids{1});
  CHECK(Ids{1, 65536}.part(0, 1) == Ids{1});

  const Ids ids{5, 6, 70000, 8};
  CHECK(ids.part(1, 2) == Ids{6, 70000});
  CHECK(ids.part(4, 0) == Ids());
  std::vector<std::int64_t> wide(2);
  ids.copy(2, 2, wide.data());
  CHECK(wide == std::vector<std::int64_t>{70000, 8});
  CHECK((ids[0] == 5 && ids.part(1, 3)[1] == 70000 && Ids{3, 4}[1] == 4));
  CHECK_THROWS_AS(ids.part(4, 1), ValueError);
  CHECK_THROWS_AS(ids.part(5, 0), ValueError);
  CHECK_THROWS_AS(ids.part(1, static_cast<std::size_t>(-1)), ValueError);
  CHECK_THROWS_AS(ids.copy(3, 2, wide.data()), ValueError);
}

TEST_CASE("ids become wider as characters come", "[data]") {
  for (const std::size_t different : {256, 65536, 65537}) {
    // In falling order, unlike the ids; each occurs once, and the last twice.
    std::u32string text;
    for (std::size_t i = 0; i < different; ++i)
      text.push_back(static_cast<char32_t>(0x10FFFF - i));
    text.push_back(text.front());
    const Characters characters = Characters::of(text);
    const Ids ids = characters.encode(text);
    CHECK(ids.itemsize() == (different <= 65536 ? 2 : 4));
    std::vector<std::int64_t> expected = numbers_to(different);
    std::ranges::reverse(expected);
    expected.push_back(static_cast<std::int64_t>(different) - 1);
    CHECK((ids == Ids(expected)));
    // The width depends on the vocabulary, not on the text.
    CHECK(characters.encode(U"\U0010FFFF") == Ids{static_cast<std::int64_t>(different) - 1});
  }
}

TEST_CASE("a text that cannot be read says why", "[data]") {
  TemporaryFolder folder;
  const std::string path = folder / "text.txt";

  CHECK_THAT(message_of<FileError>([&] { read_text(folder / "absent.txt"); }),
             ContainsSubstring("absent.txt") && ContainsSubstring("no such file"));
  CHECK_THAT(message_of<FileError>([&] { read_text(folder / "."); }),
             ContainsSubstring("directory"));
  CHECK_THAT(message_of<FileError>([&] { read_text("/dev/zero"); }),
             ContainsSubstring("/dev/zero: is neither a file nor a pipe"));
  write_bytes(path, "");
  CHECK_THAT(message_of<FileError>([&] { read_text(path); }),
             ContainsSubstring(path) && ContainsSubstring("empty"));

  // A lone continuation byte, a cut-off character, an overlong '/', a surrogate, a byte that never
  // occurs, and a value above the last code point.
  const std::pair<std::string, std::string> bad[] = {
      {"ab\x80", "0x80"},         {"ab\xE2\x82", "0xe2"}, {"ab\xC0\xAF", "0xc0"},
      {"ab\xED\xA0\x80", "0xed"}, {"ab\xFFz", "0xff"},    {"ab\xF4\x90\x80\x80", "0xf4"},
  };
  for (const auto& [bytes, shown] : bad) {
    write_bytes(path, bytes);
    CHECK_THAT(message_of<FileError>([&] { read_text(path); }),
               ContainsSubstring(path) && ContainsSubstring("byte 2") && ContainsSubstring(shown));
    CHECK_THAT(message_of<ValueError>([&bytes = bytes] { decode_utf8(bytes, "the prompt"); }),
               StartsWith("the prompt") && ContainsSubstring("byte 2") && ContainsSubstring(shown));
  }
}

TEST_CASE("a text in another encoding is rejected with a command that converts it", "[data]") {
  using namespace std::literals;
  TemporaryFolder folder;
  const std::string path = folder / "text.txt";
  const auto wide = [](std::u16string_view text, bool little) {
    std::string bytes;
    for (const char16_t c : text) {
      const char low = static_cast<char>(c & 0xFF), high = static_cast<char>(c >> 8);
      bytes += little ? low : high;
      bytes += little ? high : low;
    }
    return bytes;
  };
  const auto says = [&](const std::string& bytes, const std::string& encoding) {
    CAPTURE(bytes.substr(0, 40), encoding);
    write_bytes(path, bytes);
    const std::string of_file = message_of<FileError>([&] { read_text(path); });
    const std::string of_bytes = message_of<ValueError>([&] { decode_utf8(bytes, "--prompt"); });
    for (const std::string& message : {of_file, of_bytes}) {
      CHECK_THAT(message, ContainsSubstring(": not UTF-8"));
      if (encoding.empty())
        CHECK(message.find("iconv") == std::string::npos);
      else
        CHECK_THAT(message,
                   ContainsSubstring("it seems to be " + encoding + "; ") &&
                       ContainsSubstring("'iconv -f " + encoding + " -t UTF-8 OLD > NEW'"));
    }
  };
  const std::u16string_view text = u"To be, or not to be\u2026\n";
  says(wide(u"\uFEFF", true) + wide(text, true), "UTF-16");
  says(wide(u"\uFEFF", false) + wide(text, false), "UTF-16");
  says(wide(text, true), "UTF-16LE");  // whose bytes may all be valid UTF-8
  says(wide(text, false), "UTF-16BE");
  says(wide(u"caf\u00E9\n", true), "UTF-16LE");
  says("\xFF\xFE\0\0T\0\0\0"s, "UTF-32");
  says("caf\xE9 cr\xE8me", "LATIN1");
  says(
      "Stra\xDF"
      "e",
      "LATIN1");
  says(std::string(100'000, 'a') + " \xE9t\xE9 ", "LATIN1");  // after the first chunk
  says(
      "Gr\xFC\xDF"
      "e",
      "LATIN1");
  says(
      "Gr\xFC\xDF"
      "e aus K\xF6ln",
      "LATIN1");
  says("\x93quoted\x94 caf\xE9", "WINDOWS-1252");
  // No guess for damaged UTF-8, for other scripts, and for files that are no text.
  says("caf\xC3\xA9, \xC3\xA9t\xC3\xA9, na\xC3", "");
  says("\xD0\xF1\xE8\xE2\xE5\xF2 \xEC\xE8\xF0", "");
  says(
      "\x7F"
      "ELF\x02\x01\x01\0\0\xE9 "s,
      "");
  // A few zeros are characters.
  write_bytes(path, "a\0b c\0d e"s);
  CHECK(read_text(path).ids.size() == 9);
  CHECK(decode_utf8("\0a"s, "text").size() == 2);
}

TEST_CASE("UTF-8 there and back", "[data]") {
  const std::u32string text = U"a\u007F\u0080\u07FF\u0800\uFFFD\U00010000\U0010FFFF\r\n";
  CHECK(decode_utf8(encode_utf8(text), "text") == text);
  CHECK(encode_utf8(U"\u00E9") == "\xC3\xA9");
  CHECK(decode_utf8("", "nothing").empty());
  const char32_t surrogate = 0xD800, too_large = 0x110000;
  CHECK_THROWS_AS(encode_utf8({&surrogate, 1}), ValueError);
  CHECK_THROWS_AS(encode_utf8({&too_large, 1}), ValueError);
}

TEST_CASE("ids follow the order of code points", "[data]") {
  const Characters characters = Characters::of(U"to be,\nor n\u00F6t");
  CHECK(characters.list() == U"\n ,benort\u00F6");
  CHECK(characters.size() == 10);
  CHECK(characters.contains(U'\u00F6'));
  CHECK_FALSE(characters.contains(U'a'));
  CHECK(characters.encode(U"t\n\u00F6") == Ids{8, 0, 9});
  CHECK(characters.encode(U"").size() == 0);
  CHECK(characters.decode(Ids{8, 0, 9}) == "t\n\xC3\xB6");
  CHECK(Characters::of(U"").size() == 0);
  CHECK(Characters::from_list(characters.list()) == characters);
  CHECK_FALSE(Characters::of(U"abc") == characters);
}

TEST_CASE("unknown characters are named, each once", "[data]") {
  const Characters characters = Characters::of(U"abc");
  const std::string few = message_of<ValueError>([&] { characters.encode(U"a\u00E9x\tx\u00E9"); });
  CHECK_THAT(few, ContainsSubstring("lacks '\xC3\xA9' (U+00E9), 'x' (U+0078), U+0009"));
  CHECK(few.ends_with("U+0009"));
  std::u32string ideographs;
  for (char32_t c = 0x4E00; c < 0x4E00 + 103; ++c)
    ideographs += c;
  const std::string many = message_of<ValueError>([&] { characters.encode(ideographs); });
  CHECK_THAT(many, ContainsSubstring("(U+4E63) and 3 more") && !ContainsSubstring("U+4E64"));
}

TEST_CASE("a bad list and bad ids are rejected", "[data]") {
  CHECK_THAT(message_of<ValueError>([] { Characters::from_list(U"ba"); }),
             ContainsSubstring("sorted"));
  CHECK_THROWS_AS(Characters::from_list(U"aab"), ValueError);
  const Characters characters = Characters::of(U"abc");
  CHECK_THAT(message_of<ValueError>([&] { characters.decode(Ids{0, 3}); }),
             ContainsSubstring("id 3 at position 1") && ContainsSubstring("3 characters"));
}

TEST_CASE("a text is cut where nanoGPT cuts it", "[data]") {
  const Split a = split(count_to(10));
  CHECK(a.train == count_to(9));
  CHECK(a.validation == Ids{9});
  // int(0.9 * 1115394) of the usual Shakespeare text.
  CHECK(split(count_to(1115394)).train.size() == 1003854);
  CHECK(split(count_to(7), 0.5).train.size() == 3);
  CHECK_THROWS_AS(split(count_to(7), 0.0), ValueError);
  CHECK_THROWS_AS(split(count_to(7), 1.0), ValueError);
  CHECK_THROWS_AS(split(count_to(7), std::nan("")), ValueError);
}

TEST_CASE("random batches begin where PyTorch's begin", "[data]") {
  const auto data = count_to(1000);
  Generator generator(1337), same(1337);
  for (int step = 0; step < 3; ++step) {
    const Batch batch = random_batch(data, 8, 4, generator);
    REQUIRE(batch.x.shape() == Shape{4, 8});
    REQUIRE(batch.y.shape() == Shape{4, 8});
    for (std::size_t b = 0; b < 4; ++b) {
      const auto start = static_cast<std::int64_t>(same.random() % (1000 - 8));
      for (std::size_t t = 0; t < 8; ++t) {
        CHECK(batch.x.data()[b * 8 + t] == start + static_cast<std::int64_t>(t));
        CHECK(batch.y.data()[b * 8 + t] == start + static_cast<std::int64_t>(t) + 1);
      }
    }
  }
}

TEST_CASE("a text of one block and one character is enough", "[data]") {
  Generator generator(1);
  const Batch batch = random_batch(count_to(9), 8, 2, generator);
  CHECK(batch.x.data()[8] == 0);
  CHECK(batch.y.data()[15] == 8);
  CHECK(block_count(count_to(9), 8) == 1);
  CHECK(block_count(count_to(16), 8) == 1);
  CHECK(block_count(count_to(17), 8) == 2);

  const std::string said =
      message_of<ValueError>([&] { random_batch(count_to(8), 8, 2, generator); });
  CHECK_THAT(said, ContainsSubstring("training") && ContainsSubstring("has 8 characters") &&
                       ContainsSubstring("block of 8"));
  CHECK_THAT(message_of<ValueError>([] { block_count(count_to(3), 8); }),
             ContainsSubstring("validation"));
  CHECK_THROWS_AS(random_batch({}, 8, 2, generator), ValueError);
  CHECK_THROWS_AS(random_batch(count_to(9), 8, 0, generator), ValueError);
  CHECK_THROWS_AS(random_batch(count_to(9), 0, 2, generator), ValueError);
  // More elements than any number holds, and more bytes.
  CHECK_THROWS_AS(random_batch(count_to(9), 8, std::size_t{1} << 61, generator), ShapeError);
  CHECK_THROWS_AS(random_batch(count_to(9), 8, std::size_t{1} << 56, generator), std::bad_alloc);
  CHECK_THROWS_AS(block_count(count_to(9), static_cast<std::size_t>(-1)), ValueError);
}

TEST_CASE("documents begin after the ids that end one", "[data][documents]") {
  const Ids data{7, 8, 1, 9, 9, 2, 3, 9, 4, 9, 9, 9, 5};
  const auto starts_of = [&](const std::vector<std::size_t>& starts,
                             const std::vector<std::int64_t>& end) {
    const Indices first = document_starts(data, 4, starts, end);
    REQUIRE(first.shape() == Shape{starts.size(), 4});
    return std::vector<std::int64_t>(first.data(), first.data() + first.numel());
  };
  using Starts = std::vector<std::int64_t>;
  CHECK(starts_of({0, 3}, {1}) == Starts{0, 0, 0, 3, 0, 0, 0, 0});
  CHECK(starts_of({2, 4, 8}, {9, 9}) == Starts{0, 0, 0, 3, 0, 1, 1, 1, 0, 0, 0, 3});
  CHECK(starts_of({4, 5}, {1, 9, 9}) == Starts{0, 1, 1, 1, 0, 0, 0, 0});  // begun before the block
  CHECK(starts_of({0}, {6}) == Starts{0, 0, 0, 0});
  CHECK_THROWS_WITH(starts_of({0}, {}), ContainsSubstring("ends with no ids"));
  CHECK_THROWS_WITH(starts_of({9}, {1}), ContainsSubstring("no block of 4 begins at 9 of 13"));
}

TEST_CASE("blocks side by side cover the validation split once", "[data]") {
  const auto data = count_to(4 * 7 + 3);
  REQUIRE(block_count(data, 4) == 7);
  std::vector<std::int64_t> seen, targets;
  std::vector<std::size_t> sizes;
  for (std::size_t first = 0; first < 7; first += 3) {
    const Batch batch = block_batch(data, 4, first, 3);
    sizes.push_back(batch.x.shape()[0]);
    seen.insert(seen.end(), batch.x.data(), batch.x.data() + batch.x.numel());
    targets.insert(targets.end(), batch.y.data(), batch.y.data() + batch.y.numel());
  }
  CHECK(sizes == std::vector<std::size_t>{3, 3, 1});
  CHECK(seen == numbers_to(28));
  for (std::size_t i = 0; i < 28; ++i)
    CHECK(targets[i] == seen[i] + 1);
  CHECK(block_batch(count_to(64 * 70 + 1), 64, 0).x.shape() == Shape{64, 64});
  CHECK_THROWS_AS(block_batch(data, 4, 7), ValueError);
  CHECK_THROWS_AS(block_batch(data, 4, 0, 0), ValueError);
}
