// HuggingFace's files of byte-level vocabularies.

#include <string>
#include <vector>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/lm/byte_pairs.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using lm::BytePairs;
using lm::PatternSplit;

namespace {

/// 256 bytes, "ab" (256), " ab" (257), " b" (258), "<|endoftext|>" (259).
BytePairs small_vocabulary() { return BytePairs::learn("ab ab ab abc b", 260, {"<|endoftext|>"}); }

std::string small_tokenizer() { return io::format_json(lm::tokenizer_json(small_vocabulary())); }

/// A text with one part replaced.
std::string with_change(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string byte_level =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

// Tokenizers of Llama 2's kind and texts, with what HuggingFace's tokenizers make of them:
// golden/llama_tokenizer.py.
const io::Json& llama_golden() {
  static const io::Json json = io::parse_json(
      io::read_file(source_dir + "/tests/lm/golden/llama_tokenizer.json", 1 << 20), 0, 16);
  return json;
}

/// The tokenizer.json of a case.
std::string llama_tokenizer(std::size_t i) {
  const io::Json& golden = llama_golden();
  const io::Json& chosen = (*golden.find<io::JsonArray>("cases"))[i];
  io::JsonObject tokenizer = *chosen.find<io::JsonObject>("tokenizer");
  for (auto& [key, value] : tokenizer)
    if (key == "model") {
      io::JsonObject model = *value.as<io::JsonObject>();
      const auto& vocabularies = *golden.find<io::JsonArray>("vocabularies");
      for (const auto& part :
           *vocabularies[*chosen.find<std::uint64_t>("vocabulary")].as<io::JsonObject>())
        model.push_back(part);
      value = std::move(model);
    }
  return io::format_json(tokenizer);
}

lm::Ids ids_of(const io::Json& json, const char* key) {
  std::vector<std::int64_t> ids;
  for (const io::Json& id : *json.find<io::JsonArray>(key))
    ids.push_back(static_cast<std::int64_t>(*id.as<std::uint64_t>()));
  return lm::Ids(ids);
}

}  // namespace

TEST_CASE("a learned vocabulary is read again from tokenizer.json", "[tokenizer]") {
  TemporaryFolder folder;
  const std::string path = folder / "tokenizer.json";
  for (const std::vector<PatternSplit>& splits :
       {{{}}, {}, {{"\\d"}, {}}, std::vector<PatternSplit>{{"a+", true}, {"b", false, true}}})
    for (const bool on : {false, true}) {
      auto parts =
          BytePairs::learn("It's 12 ab\u00E9\u4E2D ab", 270, {"<|a|>", "\u00E9\u4E2D"}, splits)
              .parts();
      parts.nfc = parts.ignore_merges = on;
      parts.added[1].special = parts.added[1].normalized = on;
      const BytePairs v(parts);
      lm::write_tokenizer(path, v);
      CHECK(lm::read_tokenizer(path) == v);
      CHECK(lm::tokenizer_of(lm::tokenizer_json(v), "a checkpoint") == v);
    }
  CHECK(folder.count() == 1);
  CHECK_FALSE(small_vocabulary() == lm::read_tokenizer(path));
}

TEST_CASE("a tokenizer.json is written as HuggingFace's tokenizers read it", "[tokenizer]") {
  const std::string text = small_tokenizer();
  CHECK_THAT(text, StartsWith(R"({"version":"1.0","truncation":null,"padding":null,)"
                              R"("added_tokens":[{"id":259,"content":"<|endoftext|>",)"
                              R"("single_word":false,"lstrip":false,"rstrip":false,)"
                              R"("normalized":false,"special":true}],"normalizer":null,)"
                              R"("pre_tokenizer":)" +
                              byte_level + R"(,"post_processor":null,"decoder":)" + byte_level +
                              R"(,"model":{"type":"BPE","ignore_merges":false,"vocab":{"!":0,)"));
  // The space is written as U+0120, and the byte 0xAD as the last of these characters.
  CHECK_THAT(text, EndsWith("\"\u0143\":255,\"ab\":256,\"\u0120ab\":257,\"\u0120b\":258},"
                            "\"merges\":[\"a b\",\"\u0120 ab\",\"\u0120 b\"]}}"));
  // An added token before others keeps its place.
  auto parts = small_vocabulary().parts();
  parts.tokens.emplace_back("xyz");
  CHECK_THAT(io::format_json(lm::tokenizer_json(BytePairs(parts))),
             ContainsSubstring(R"("<|endoftext|>":259,"xyz":260})"));
}

TEST_CASE("other ways to write the same tokenizer.json", "[tokenizer]") {
  const std::string text = small_tokenizer();
  const auto read = [](const std::string& json) {
    return lm::tokenizer_of(io::parse_json(json, 0, 9), "a text");
  };
  CHECK(read(with_change(text, R"("a b")", R"(["a","b"])")) == small_vocabulary());
  CHECK(read(with_change(text, byte_level,
                         R"({"trim_offsets":false,"add_prefix_space":false,)"
                         R"("type":"ByteLevel"})")) == small_vocabulary());
  CHECK(read(with_change(text, R"("type":"BPE",)",
                         R"("dropout":null,"unk_token":"<|endoftext|>",)"
                         R"("continuing_subword_prefix":"",)")) == small_vocabulary());
  CHECK(read(with_change(text, R"("post_processor":null)",
                         R"("post_processor":{"type":"ByteLevel"})")) == small_vocabulary());
  // As AutoTokenizer, which ignores both when it loads.
  CHECK(read(with_change(with_change(text, R"("truncation":null)",
                                     R"("truncation":{"direction":"Right","max_length":1,)"
                                     R"("strategy":"LongestFirst","stride":0})"),
                         R"("padding":null)", R"("padding":{"strategy":{"Fixed":9},"pad_id":5})"))
            .encode("ab ab") == small_vocabulary().encode("ab ab"));
  CHECK(read(with_change(text, R"("normalizer":null)",
                         R"("normalizer":{"type":"Sequence",)"
                         R"("normalizers":[{"type":"NFC"}]})"))
            .parts()
            .nfc);
  const std::string sequence =
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},)"
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"String":"a.'1\u00E9"},)"
      R"("behavior":"Removed","invert":true}]},{"type":"ByteLevel","add_prefix_space":false,)"
      R"("use_regex":false}]})";
  CHECK(read(with_change(text, byte_level, sequence)).parts().splits ==
        std::vector<PatternSplit>{{R"(\p{N}+)"}, {"a\\.\\'1\u00E9", true, true}});
}

TEST_CASE("an added token that the vocabulary has, too, keeps its place in it", "[tokenizer]") {
  const auto id = [&](const std::string& bytes) { return small_vocabulary().encode(bytes)[0]; };
  std::string text = small_tokenizer();
  for (const auto& [content, of] :
       {std::pair("\u00C5", id("\u017E")), {"ab", id("ab")}, {"!", id("!")}})
    text = with_change(text, R"("added_tokens":[)",
                       R"("added_tokens":[{"content":")" + std::string(content) + R"(","id":)" +
                           std::to_string(of) + R"(,"special":true,"normalized":false},)");
  const BytePairs v = lm::tokenizer_of(io::parse_json(text, 0, 9), "a text");
  for (const std::string plain : {"\u017E\u0142\u00C5", "ab abab", "!a!", "<|endoftext|>"})
    CHECK(v.encode(plain) == small_vocabulary().encode(plain));
  CHECK(v.encode("\u00C5\u017E", lm::SpecialTokens::recognised) ==
        lm::Ids{id("\u017E"), id("\u017E"), small_vocabulary().encode("\u017E")[1]});
  CHECK(lm::tokenizer_of(lm::tokenizer_json(v), "again") == v);
  CHECK(v.parts().tokens == small_vocabulary().parts().tokens);
}

TEST_CASE("tokenizers of characters give HuggingFace's ids", "[tokenizer]") {
  const auto& cases = *llama_golden().find<io::JsonArray>("cases");
  REQUIRE(cases.size() == 17);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const BytePairs v = lm::tokenizer_of(io::parse_json(llama_tokenizer(i), 0, 16), "a case");
    INFO(io::format_json(*cases[i].find("tokenizer")));
    CHECK(lm::tokenizer_of(lm::tokenizer_json(v), "its own") == v);
    for (const io::Json& expected : *cases[i].find<io::JsonArray>("texts")) {
      const auto& text = *expected.find<std::string>("text");
      INFO(io::format_json(expected));
      const lm::Ids ids = v.encode(text, lm::SpecialTokens::recognised);
      CHECK(ids == ids_of(expected, "ids"));
      CHECK(v.encode(text) == ids_of(expected, "plain"));
      CHECK(v.decode(ids) == *expected.find<std::string>("decoded"));
    }
  }
}

TEST_CASE("a token of characters is printed with spaces, and its bytes", "[tokenizer]") {
  const BytePairs v = lm::tokenizer_of(io::parse_json(llama_tokenizer(0), 0, 16), "a case");
  const lm::Ids ids = v.encode("the the\u4E2D");
  std::string all;
  for (std::size_t i = 0; i < ids.size(); ++i)
    all += v.bytes(ids[i]);
  CHECK(all == " the the\u4E2D");
  CHECK(v.bytes(13) == "\n");
  CHECK(v.decode(ids) == "the the\u4E2D");
}

TEST_CASE("bytes without tokens are given with their places", "[tokenizer]") {
  using Places = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto unknown = [](std::size_t i, const std::string& text) {
    std::vector<lm::UnknownBytes> all;
    const BytePairs v = lm::tokenizer_of(io::parse_json(llama_tokenizer(i), 0, 16), "a case");
    const lm::Ids ids = v.encode(text, lm::SpecialTokens::recognised, &all);
    CHECK(ids == v.encode(text, lm::SpecialTokens::recognised));
    const auto unk = v.parts().characters->unk;
    Places places;
    for (const auto& [at, bytes] : all) {
      CHECK((!unk || ids[at] == *unk));
      places.emplace_back(at, bytes);
    }
    return places;
  };
  CHECK(unknown(0, "q\u4E2D").empty());  // these characters have tokens for their bytes
  // HuggingFace's tokenizers have their unknown tokens at the same places.  "<unk>" in the text is
  // a token of the vocabulary.
  CHECK(unknown(12, "the theqq\u4E2D a") == Places{{1, 5}});  // dropped within "\u2581the\u2581"
  CHECK(unknown(10, "the theqq\u4E2D a<unk>q") == Places{{2, 5}, {7, 1}});  // fused
  CHECK(unknown(11, "the theqq\u4E2D a<unk>q") == Places{{2, 1}, {3, 1}, {4, 3}, {9, 1}});
  CHECK(unknown(16, "th\u4E2De q") == Places{{2, 3}, {4, 1}});
}

TEST_CASE("characters become a tokenizer.json, and come back", "[tokenizer]") {
  const auto characters = lm::Characters::of(
      U"\n\t\"'\\ ab\u0301\u00E9\u2581\u4E2D\u200D\uFEFF\U0001F600<" + std::u32string(1, 0));
  const io::Json json = lm::tokenizer_json(characters);
  const std::string text = io::format_json(json);
  check_contains(text, {R"("added_tokens":[],"normalizer":null,"pre_tokenizer":null,)",
                        R"("decoder":{"type":"Fuse"},"model":{"type":"BPE",)",
                        R"("unk_token":null,"vocab":{"\u0000":0,"\t":1,"\n":2," ":3,"\"":4,)",
                        "\"\U0001F600\":16},\"merges\":[]}}"});
  const BytePairs read = lm::tokenizer_of(io::parse_json(text, 0, 9), "a text");
  REQUIRE(lm::characters_of(read));
  CHECK(*lm::characters_of(read) == characters);
  for (std::int64_t id = 0; id < 17; ++id)
    CHECK(read.bytes(id) == characters.decode({id}));
  // A tokenizer with anything more is not one of characters alone.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {R"("merges":[])", R"("merges":[["a","b"]])"},
           {R"("a":)", R"("ab":)"},
           {R"("normalizer":null)", R"("normalizer":{"type":"NFC"})"},
           {R"("unk_token":null)", R"("unk_token":"a")"},
           {R"("\t":1,"\n":2)", R"("\n":1,"\t":2)"}}) {
    INFO(to);
    std::string changed = with_change(text, from, to);
    if (from.starts_with("\"merges"))
      changed = with_change(changed, R"("<":)", R"("ab":)");
    CHECK_FALSE(lm::characters_of(lm::tokenizer_of(io::parse_json(changed, 0, 9), "a text")));
  }
  CHECK_FALSE(lm::characters_of(small_vocabulary()));
  // Without Fuse, HuggingFace's tokenizers put spaces between tokens.
  CHECK_THAT(message_of<FileError>([&] {
               lm::tokenizer_of(
                   io::parse_json(with_change(text, R"({"type":"Fuse"})", "null"), 0, 9), "FILE");
             }),
             ContainsSubstring("the pre_tokenizer null does not end with ByteLevel"));
}

TEST_CASE("GPT-2's two files are read", "[tokenizer]") {
  TemporaryFolder folder;
  const std::string vocab = folder / "vocab.json", merges = folder / "merges.txt";
  const std::string text = small_tokenizer();
  const std::size_t begin = text.find("\"vocab\":") + 8;
  const std::string tokens = text.substr(begin, text.find("},\"merges\"") - begin);
  write_bytes(vocab, tokens + R"(,"<|endoftext|>":259})");
  write_bytes(merges, "#version: 0.2\na b\n\u0120 ab\n\u0120 b\n");
  CHECK(lm::read_tokenizer(vocab, merges) == small_vocabulary());
  write_bytes(merges, "#version: 0.2\r\na b\r\n\u0120 ab\r\n\u0120 b\r\n");
  CHECK(lm::read_tokenizer(vocab, merges) == small_vocabulary());

  write_bytes(merges, "#version: 0.2\na b\n\nab\n");
  CHECK_THAT(message_of<FileError>([&] { lm::read_tokenizer(vocab, merges); }),
             ContainsSubstring("merges.txt: line 4, 'ab', is not two tokens"));
  write_bytes(merges, "a q\n");
  CHECK_THAT(message_of<FileError>([&] { lm::read_tokenizer(vocab, merges); }),
             ContainsSubstring("merge 0 joins 'a'"));
  write_bytes(vocab, "[]");
  CHECK_THAT(message_of<FileError>([&] { lm::read_tokenizer(vocab, merges); }),
             ContainsSubstring("the vocabulary is not an object"));
  CHECK_THROWS_AS(lm::read_tokenizer(vocab, folder / "none"), FileError);
}

TEST_CASE("tokens that a tokenizer.json adds around a text", "[tokenizer]") {
  const auto of = [](const std::string& processor) {
    const std::string json = with_change(small_tokenizer(), R"("post_processor":null)",
                                         R"("post_processor":)" + processor);
    return lm::text_template(io::parse_json(json, 0, 16), small_vocabulary(), "FILE");
  };
  const std::string A = R"({"Sequence":{"id":"A","type_id":0}})",
                    S = R"({"SpecialToken":{"id":"S","type_id":0}})";
  const auto single = [&](const std::string& parts, const std::string& ids = "[259,7]") {
    return R"({"type":"TemplateProcessing","single":[)" + parts +
           R"(],"pair":[],"special_tokens":{"S":{"id":"S","ids":)" + ids + R"(,"tokens":[]}}})";
  };
  const auto sequence = [](const std::string& parts) {
    return R"({"type":"Sequence","processors":[)" + parts + "]}";
  };
  using List = std::vector<std::int64_t>;
  struct Case {
    std::string processor;
    List before, after;
  };
  for (const auto& [processor, before, after] :
       {Case{"null", {}, {}}, Case{R"({"type":"ByteLevel"})", {}, {}}, Case{single(A), {}, {}},
        Case{single(S + "," + A), {259, 7}, {}},
        Case{single(S + "," + A + "," + S, "[1]"), {1}, {1}}, Case{sequence(""), {}, {}},
        Case{sequence(R"({"type":"ByteLevel"},)" + single(A + "," + S)), {}, {259, 7}}}) {
    INFO(processor);
    CHECK(of(processor).before == before);
    CHECK(of(processor).after == after);
  }
  for (const auto& [processor, says] : std::vector<std::pair<std::string, std::string>>{
           {R"({"type":"RobertaProcessing"})", "RobertaProcessing is not supported; ByteLevel"},
           {"3", "type is missing"},
           {R"({"type":"Sequence"})", "processors is missing"},
           {R"({"type":"TemplateProcessing"})", "single is missing"},
           {single(S), "has the text 0 times"},
           {single(A + "," + A), "has the text 2 times"},
           {single("3," + A), "no ids, 64 at most, for 3"},
           {single(R"({"SpecialToken":{"id":"T"}},)" + A), "no ids, 64 at most, for {\"Special"},
           {single(S + "," + A, "[-1]"), "no ids, 64 at most, for {\"SpecialToken"},
           {single(S + "," + A, "[260]"), "id 260 is outside a vocabulary of 260 tokens"},
           {sequence(single(S + "," + A) + "," + single(A + "," + S)), "there are two templates"}})
    check_contains(message_of<FileError>([&, &text = processor] { of(text); }),
                   {"FILE: post_processor: ", says});
}

// HuggingFace's tokenizers 0.23 make one U+FFFD of each byte of the run: four.
TEST_CASE("a byte token that is no UTF-8 leaves the characters beside it", "[tokenizer]") {
  const BytePairs v = lm::tokenizer_of(io::parse_json(llama_tokenizer(0), 0, 16), "");
  const auto byte = [](std::int64_t b) { return 3 + b; };  // the id of <0x00> is 3
  const lm::Ids ids{byte(0xE2), byte(0x82), byte(0xAC), byte(0xE2)};
  CHECK(lm::replace_invalid_utf8(v.decode(ids)) == "\u20AC\uFFFD");
}

TEST_CASE("unsupported settings of a tokenizer of characters are rejected", "[tokenizer]") {
  const std::string llama = llama_tokenizer(0);
  for (const auto& [from, to, says] : std::vector<std::array<std::string, 3>>{
           {R"("type":"Prepend")", R"("type":"Lowercase")", R"("type":"Lowercase","prepend")"},
           {R"("prepend":")", R"("prepend":"_)", R"("prepend":"_)"},
           {R"({"String":" "})", R"({"Regex":" "})", R"({"Regex":" "})"},
           {R"("normalizers":[)", R"("normalizers":[{"type":"Prepend","prepend":"▁"},)",
            "Prepend without Replace, or twice"},
           {R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})", R"({"type":"NFC"})",
            "Prepend without Replace, or twice"},
           {R"("pre_tokenizer":null)", R"("pre_tokenizer":)" + byte_level, "pre_tokenizer {"},
           {R"("type":"Fuse")", R"("type":"WordPiece")", R"({"type":"WordPiece"} is not supp)"},
           {R"("start":1)", R"("start":2)", R"("start":2,"stop":0} is not supported)"},
           {R"("byte_fallback":true)", R"("byte_fallback":3)", "byte_fallback 3 is not supported"},
           {R"("unk_token":"<unk>")", R"("unk_token":"<other>")",
            R"(unk_token "<other>" is not in the vocabulary)"},
           {R"("unk_token":"<unk>")", R"("unk_token":7)", "unk_token 7 is not in the vocabulary"},
           {R"("fuse_unk":true)", R"("fuse_unk":"yes")", R"(fuse_unk "yes" is not supported)"}}) {
    INFO(to);
    const io::Json json = io::parse_json(with_change(llama, from, to), 0, 16);
    check_contains(message_of<FileError>([&] { lm::tokenizer_of(json, "FILE"); }),
                   {"FILE: ", says});
  }
  auto parts = lm::tokenizer_of(io::parse_json(llama, 0, 16), "").parts();
  const auto refused = [&](const auto& change, const std::string& says) {
    auto changed = parts;
    change(changed);
    CHECK_THAT(message_of<ValueError>([&] { BytePairs v(changed); }), ContainsSubstring(says));
  };
  refused([](auto& p) { p.splits.emplace_back(); }, "has no splits");
  refused([](auto& p) { p.characters->size = 9999; }, "characters.size is 9999 of");
  refused([](auto& p) { --p.characters->size; }, "is no added token, but characters.size is");
  refused([](auto& p) { p.characters->unk = 9999; }, "unk is 9999, but characters.size");
  refused([](auto& p) { p.tokens.back() = "\xFF"; }, "is not UTF-8");
}

TEST_CASE("an unsupported tokenizer.json is rejected, and the reason named", "[tokenizer]") {
  struct Case {
    std::string from, to, message;
  };
  const std::string metaspace = R"({"type":"Metaspace","replacement":"_","split":true})";
  const std::string split = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)";
  const std::vector<Case> cases = {
      {R"("type":"BPE")", R"("type":"WordPiece")",
       R"(type "WordPiece" is not supported; "BPE" is)"},
      {R"("type":"BPE")", R"("type":"Unigram")", R"("Unigram")"},
      {R"("type":"BPE")", R"("type":"BPE","byte_fallback":true)", "byte_fallback true is not"},
      {R"("normalizer":null)",
       R"("normalizer":{"type":"Replace","pattern":{"String":" "},)"
       R"("content":"_"})",
       R"("content":"_"} is not supported; {"type":"NFC"} or)"},
      {R"("type":"BPE")", R"("type":"BPE","dropout":0.1)", "dropout 0.1 is not supported"},
      {R"("type":"BPE")", R"("type":"BPE","end_of_word_suffix":"</w>")", R"("</w>")"},
      {R"("ignore_merges":false)", R"("ignore_merges":"true")", R"(ignore_merges "true" is not)"},
      {R"("normalizer":null)", R"("normalizer":{"type":"Lowercase"})",
       R"({"type":"Lowercase"} is not supported; {"type":"NFC"} or)"},
      {byte_level, "null", "the pre_tokenizer null does not end with ByteLevel"},
      {byte_level, metaspace, R"("replacement":"_","split":true} is not supported)"},
      {byte_level, R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})",
       "add_prefix_space true is not supported"},
      {byte_level, R"({"type":"Sequence","pretokenizers":[)" + byte_level + "," + byte_level + "]}",
       "ByteLevel after ByteLevel is not supported"},
      {byte_level,
       split + R"({"Regex":"a(b"},"behavior":"Isolated","invert":false},)" + byte_level + "]}",
       "the pattern 'a(b' is not a regular expression"},
      {byte_level, split + R"({"Regex":"a"},"behavior":"Contiguous","invert":false}]})",
       R"(behavior "Contiguous" is not supported; "Isolated" or "Removed" is)"},
      {byte_level, split + R"({"Regex":"a"},"behavior":"Isolated","invert":false}]})",
       "does not end with ByteLevel"},
      {R"("added_tokens":[)", R"("added_tokens":1,"others":[)", "added_tokens 1 is not"},
      {R"("decoder":{"type":"ByteLevel")", R"("decoder":{"type":"WordPiece")", "\"WordPiece\""},
      {R"("lstrip":false)", R"("lstrip":1)", "lstrip 1 is not supported; null or false or true"},
      {R"("model")", R"("no_model")", "it has no model"},
      {R"("vocab")", R"("tokens")", "vocab is missing"},
      {R"("merges")", R"("pairs")", "merges is missing"},
      {R"("content")", R"("text")", "content is missing"},
      {R"("id":259)", R"("id":"259")", "id is missing or of the wrong type"},
      {R"("id":259)", R"("id":99999999999)", "99999999999 is no id"},
      {R"("id":259)", R"("id":260)", "'<|endoftext|>' has id 260 of 260 tokens: there are gaps"},
      {R"("id":259)", R"("id":258)", "both have id 258"},
      {R"("ab":256)", R"("ab":-1)", "the id of 'ab' is not a whole number"},
      {R"("ab":256)", R"("ab":256,"<|endoftext|>":260)", "has id 259, and 260 in the vocabulary"},
      {R"("ab":256)", R"("a b":256)", "'a b' has a character that represents no byte"},
      {R"("a b")", R"("a zz")", "merge 0, 'a' with 'zz': 'zz' is not in the vocabulary"},
      {R"("a b")", R"("a c")", "merge 0 joins 'a'"},
      {R"("a b")", R"("ab")", R"(merge 0 is neither "a b" nor ["a", "b"])"},
      {R"("a b")", R"(["a","b","c"])", "merge 0 is neither"},
      {R"("a b")", R"("a b","a b")", "merge 1 is given twice"},
      {R"("a b")", R"("<|endoftext|> b")", "merge 0 joins '<|endoftext|>' (id 259) and"},
      {R"("!":0)", R"("no":0)", ""},
      {R"("a b")", R"("a b)", "is not JSON (byte"},
  };
  TemporaryFolder folder;
  const std::string path = folder / "tokenizer.json";
  for (const auto& [from, to, message] : cases) {
    INFO(to);
    write_bytes(path, with_change(small_tokenizer(), from, to));
    if (message.empty())
      CHECK_NOTHROW(lm::read_tokenizer(path));
    else
      check_contains(message_of<FileError>([&] { lm::read_tokenizer(path); }), {path, message});
  }
  // If a byte has no token, an unk_token would replace it.
  write_bytes(path, with_change(with_change(small_tokenizer(), R"("!":0)", R"("no":0)"),
                                R"("type":"BPE")", R"("type":"BPE","unk_token":"a")"));
  CHECK_THAT(message_of<FileError>([&] { lm::read_tokenizer(path); }),
             ContainsSubstring(R"(unk_token "a" is not supported; null is)"));
  for (const std::string text : {"", "null", "[1]", "{}", "{\"model\":3}"}) {
    write_bytes(path, text);
    CHECK_THAT(message_of<FileError>([&] { lm::read_tokenizer(path); }), StartsWith(path + ": "));
  }
  // The file is cut off at many places.
  const std::string whole = small_tokenizer();
  for (std::size_t n = 0; n < whole.size(); n += 97) {
    write_bytes(path, whole.substr(0, n));
    CHECK_THROWS_AS(lm::read_tokenizer(path), FileError);
  }
}
