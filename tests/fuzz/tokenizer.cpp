// Vocabularies from tokenizer.json, and texts split and encoded by each pattern.

#include <xgrad/autograd/error.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

namespace lm = xgrad::lm;

void run(std::string_view bytes) {
  refused<xgrad::FileError>([&] {
    const lm::BytePairs read = xgrad::lm::read_tokenizer(file_with(bytes));
    demand(xgrad::lm::tokenizer_of(xgrad::lm::tokenizer_json(read), "its own") == read,
           "a vocabulary there and back differs");
    xgrad::lm::text_template(xgrad::io::parse_json(bytes, 0, 16), read, "it");
    read.encode(bytes, lm::SpecialTokens::recognised);
  });
  const std::string valid = lm::replace_invalid_utf8(bytes);
  const auto learned = lm::BytePairs::learn(bytes.substr(0, 200), 270, {"<|a|>"});
  demand(learned.decode(learned.encode(bytes, lm::SpecialTokens::recognised)) == valid,
         "a text there and back differs");
  refused<xgrad::ValueError>([&] {
    const std::string_view text = std::string_view(valid).substr(0, 200);
    std::string whole;
    lm::PreTokenizer({{std::string(text)}}).cut(text, [&](auto piece) { whole += piece; });
    demand(whole == text, "the pieces of a text are not that text");
  });
  demand(lm::nfc(lm::nfc(valid)) == lm::nfc(valid), "a normal text is not normal");
}

std::vector<std::string> seeds() {
  const auto small = lm::BytePairs::learn("ab ab abc it's 12", 260, {"<|a|>"});
  xgrad::io::JsonObject begun = *xgrad::lm::tokenizer_json(small).as<xgrad::io::JsonObject>();
  for (auto& [key, value] : begun)
    if (key == "post_processor")
      value = xgrad::io::parse_json(R"({"type":"TemplateProcessing","single":[{"SpecialToken":)"
                                    R"({"id":"S"}},{"Sequence":{"id":"A"}}],"special_tokens":)"
                                    R"({"S":{"ids":[259]}}})",
                                    0, 16);
  std::string marks = "a";
  while (marks.size() < 60'000)
    marks += "\u0301\u0323";
  return {
      "",
      marks,
      xgrad::io::format_json(begun),
      R"([^\s\p{Han}[.]]|\w(?i:a)(a+)+b(?=\x{41}))",
      R"({"added_tokens":[{"id":5,"content":"x","special":false,"normalized":true,"lstrip":true,)"
      R"("rstrip":true,"single_word":true}],"normalizer":{"type":"Sequence","normalizers":[)"
      R"({"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},)"
      R"("content":"▁"}]},"model":{"byte_fallback":true,"unk_token":"<u>","fuse_unk":true,)"
      R"("vocab":{"<u>":0,"▁":1,"a":2,"▁a":3,"<0x0A>":4},"merges":[["▁","a"]]}})",
      R"({"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"},)"
      R"("model":{"vocab":{"▁":0},"merges":[]}})",
      "We'll <|a|> 123\r\n\n  x\xFF\xC3\xA9 \xC2\x85 e\xCC\x81",
      xgrad::io::format_json(xgrad::lm::tokenizer_json(small))};
}

}  // namespace

const Target tokenizer{"tokenizer", run, seeds};

}  // namespace fuzz
