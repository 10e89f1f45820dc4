#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include "../autograd/fail.hpp"
#include "../io/file.hpp"
#include "pretrained.hpp"
#include "text.hpp"
#include "tokenizer.hpp"

namespace xgrad::lm {

using namespace io;
namespace {

using Merges = std::vector<std::pair<std::string_view, std::string_view>>;
using Parts = BytePairs::Parts;
using Spaces = CharacterTokens::Spaces;

constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;

/// The bytes of a token written in byte_characters(); an added token with other characters
/// stands for its own UTF-8.
std::string bytes_of(std::string_view token, bool added) {
  std::string bytes;
  for (const char32_t c : decode_utf8(token, "a token")) {
    static const auto& all = byte_characters();
    const auto at = c < 0x80 && c > ' ' ? all.begin() + c : std::ranges::find(all, c);
    if (at == all.end() && added)
      return std::string(token);
    check<ValueError>(at != all.end(), "the token '{}' has a character that represents no byte",
                      printable_name(token));
    bytes += static_cast<char>(at - all.begin());
  }
  return bytes;
}

/// The value of a key.
template <class T>
const T& value(const Json& json, const char* key) {
  const T* const found = json.find<T>(key);
  check<ValueError>(found != nullptr, "{} is missing or of the wrong type", key);
  return *found;
}

/// Rejects all values but those that change nothing.
void only(const Json& json, const char* key, std::initializer_list<std::string_view> values) {
  const Json* const found = json.find(key);
  const std::string text = found == nullptr ? "null" : format_json(*found);
  check<ValueError>(std::ranges::find(values, text) != values.end(),
                    "{} {} is not supported; {} is", key, printable_name(text),
                    fmt::join(values.begin(), values.end(), " or "));
}

/// An optional true or false.
bool flag(const Json& json, const char* key) {
  only(json, key, {"null", "false", "true"});
  return json.find<bool>(key) != nullptr && *json.find<bool>(key);
}

// Parts of a tokenizer.json that are supported in these forms alone.
constexpr std::array normalizers = {R"({"type":"NFC"})", R"({"type":"Prepend","prepend":"▁"})",
                                    R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})"};
constexpr std::array metaspaces = {  // by Spaces from `never` on; then older ones
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})",
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first"})",
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
    R"({"type":"Metaspace","replacement":"▁","add_prefix_space":true})"};
constexpr std::array decoders = {R"({"type":"Replace","pattern":{"String":"▁"},"content":" "})",
                                 R"({"type":"ByteFallback"})", R"({"type":"Fuse"})",
                                 R"({"type":"Strip","content":" ","start":1,"stop":0})"};

/// The place of the form whose values a part has.
std::size_t form_of(const Json& part, std::span<const char* const> forms) {
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Json form = parse_json(forms[i]);
    if (std::ranges::all_of(*form.as<JsonObject>(), [&](const auto& entry) {
          const Json* const found = part.find(entry.first);
          return found != nullptr && *found == entry.second;
        }))
      return i;
  }
  fail<ValueError>("{} is not supported; {} is", printable_name(format_json(part)),
                   fmt::join(forms, " or "));
}

/// Calls f with each part of a Sequence, or with the only one.
void each_part(const Json& json, const char* key, const std::function<void(const Json&)>& f) {
  if (value<std::string>(json, "type") != "Sequence")
    return f(json);
  for (const Json& part : value<JsonArray>(json, key))
    each_part(part, key, f);
}

/// Whether a decoder joins tokens as they are.
bool is_fuse(const Json* decoder) {
  bool fuses = false, others = decoder == nullptr;
  if (!others)
    each_part(*decoder, "decoders", [&](const Json& part) {
      const auto& type = value<std::string>(part, "type");
      fuses |= type == "Fuse";
      others |= type != "Fuse" && type != "ByteFallback";
    });
  return fuses && !others;
}

/// Reads `nfc` and, unless ByteLevel is to follow, `characters`.
void read_characters(const Json& json, const Json& model, Parts& parts) {
  std::array<int, 3> found{};
  if (const Json* const normalizer = given(json, "normalizer"))
    each_part(*normalizer, "normalizers",
              [&](const Json& part) { ++found[form_of(part, normalizers)]; });
  const auto [nfc, prepend, replace] = found;
  check<ValueError>(prepend <= std::min(replace, 1),
                    "the normalizer has Prepend without Replace, or twice");
  parts.nfc = nfc > 0;
  const Json* const splitter = given(json, "pre_tokenizer");
  const auto* const type = splitter == nullptr ? nullptr : splitter->find<std::string>("type");
  CharacterTokens options;
  if (replace > 0) {
    only(json, "pre_tokenizer", {"null"});
    options.spaces = prepend > 0 ? Spaces::prepended : Spaces::replaced;
  } else if (type != nullptr && *type == "Metaspace") {
    constexpr std::array spaces = {Spaces::never, Spaces::first, Spaces::always, Spaces::always};
    options.spaces = spaces[form_of(*splitter, metaspaces)];
    options.split = splitter->find("split") == nullptr || flag(*splitter, "split");
  } else if (splitter == nullptr && is_fuse(given(json, "decoder"))) {
    options.spaces = Spaces::kept;
  } else {
    return;
  }
  options.strip = false;
  if (const Json* const decoder = given(json, "decoder"))
    each_part(*decoder, "decoders", [&](const Json& part) {
      const bool metaspace = value<std::string>(part, "type") == "Metaspace";
      options.strip |= metaspace ? form_of(part, metaspaces) > 0 : form_of(part, decoders) == 3;
    });
  options.byte_fallback = flag(model, "byte_fallback");
  options.fuse_unk = flag(model, "fuse_unk");
  options.size = static_cast<std::uint32_t>(value<JsonObject>(model, "vocab").size());
  if (const Json* const unk = given(model, "unk_token")) {
    const auto* const name = unk->as<std::string>();
    const auto* const id =
        name == nullptr ? nullptr : model.find("vocab")->find<std::uint64_t>(*name);
    check<ValueError>(id != nullptr, "unk_token {} is not in the vocabulary",
                      printable_name(format_json(*unk)));
    options.unk = static_cast<std::uint32_t>(*id);
  }
  parts.characters = options;
}

/// Adds the splits of a pre_tokenizer, whose last part must be ByteLevel.
void read_splits(const Json& json, std::vector<PatternSplit>& splits, bool& ended) {
  const auto& type = value<std::string>(json, "type");
  check<ValueError>(!ended, "{} after ByteLevel is not supported", printable_name(type));
  if (type == "Sequence") {
    for (const Json& part : value<JsonArray>(json, "pretokenizers"))
      read_splits(part, splits, ended);
  } else if (type == "Digits") {
    splits.emplace_back().pattern =
        value<bool>(json, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)";
  } else if (type == "ByteLevel") {
    only(json, "add_prefix_space", {"false"});
    only(json, "use_regex", {"null", "true", "false"});
    if (given(json, "use_regex") == nullptr || flag(json, "use_regex"))
      splits.emplace_back();
    ended = true;
  } else {
    only(json, "type", {R"("Split")", R"("Digits")", R"("ByteLevel")", R"("Sequence")"});
    const Json* const pattern = json.find("pattern");
    check<ValueError>(pattern != nullptr, "Split has no pattern");
    PatternSplit& split = splits.emplace_back();
    if (const auto* const literal = pattern->find<std::string>("String")) {
      split.pattern.clear();
      for (const char c : *literal)  // any other character may be escaped
        split.pattern += (c < 0 || std::isalnum(c) != 0 ? "" : "\\") + std::string(1, c);
    } else {
      split.pattern = value<std::string>(*pattern, "Regex");
    }
    only(json, "behavior", {R"("Isolated")", R"("Removed")"});
    split.removed = value<std::string>(json, "behavior") == "Removed";
    split.invert = value<bool>(json, "invert");
  }
}

Json byte_level(bool use_regex) {
  return JsonObject{{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", use_regex}};
}

/// The parts of a normalizer or decoder as one.
Json sequence_of(const char* key, const std::vector<const char*>& forms) {
  if (forms.size() < 2)
    return forms.empty() ? Json(nullptr) : parse_json(forms[0]);
  return parse_json(fmt::format(R"({{"type":"Sequence","{}":[{}]}})", key, fmt::join(forms, ",")),
                    0, 9);
}

Json pre_tokenizer_json(const std::vector<PatternSplit>& splits) {
  const bool ends_with_gpt2 = !splits.empty() && splits.back() == PatternSplit();
  JsonArray steps;
  for (const PatternSplit& split :
       std::span(splits).first(splits.size() - (ends_with_gpt2 ? 1 : 0)))
    steps.emplace_back(JsonObject{{"type", "Split"},
                                  {"pattern", JsonObject{{"Regex", split.pattern}}},
                                  {"behavior", split.removed ? "Removed" : "Isolated"},
                                  {"invert", split.invert}});
  steps.push_back(byte_level(ends_with_gpt2));
  return steps.size() == 1
             ? steps[0]
             : Json(JsonObject{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}});
}

/// Completes a vocabulary with its tokens and merges.
Parts vocabulary(Parts parts, const JsonObject& vocab, const Merges& merges) {
  std::unordered_map<std::string_view, std::uint64_t> ids;
  std::unordered_map<std::string_view, bool> added;  // whether the vocabulary has it, too
  for (const auto& [token, id] : vocab) {
    check<ValueError>(id.as<std::uint64_t>() != nullptr, "the id of '{}' is not a whole number",
                      printable_name(token));
    ids.emplace(token, *id.as<std::uint64_t>());
  }
  for (const AddedToken& token : parts.added) {
    const auto [at, is_new] = ids.emplace(token.text, token.id);
    added.emplace(token.text, !is_new);
    const std::uint64_t id = at->second;
    check<ValueError>(id == token.id, "the added token '{}' has id {}, and {} in the vocabulary",
                      printable_name(token.text), token.id, id);
  }
  std::vector<const std::string_view*> names(ids.size());
  parts.tokens.resize(ids.size());
  for (const auto& [token, id] : ids) {
    check<ValueError>(id < names.size(), "'{}' has id {} of {} tokens: there are gaps before it",
                      printable_name(token), id, names.size());
    if (const auto* const other = std::exchange(names[id], &token))
      fail<ValueError>("'{}' and '{}' both have id {}", printable_name(*other),
                       printable_name(token), id);
    const auto other = added.find(token);
    const bool alone = other != added.end() && !other->second;
    parts.tokens[id] =
        alone || parts.characters ? std::string(token) : bytes_of(token, other != added.end());
  }
  parts.merges.reserve(merges.size());
  for (const auto& merge : merges) {
    const auto id_of = [&](std::string_view part) {
      const auto at = ids.find(part);
      if (at == ids.end())
        fail<ValueError>("merge {}, '{}' with '{}': '{}' is not in the vocabulary",
                         parts.merges.size(), printable_name(merge.first),
                         printable_name(merge.second), printable_name(part));
      return static_cast<std::uint32_t>(at->second);
    };
    parts.merges.emplace_back(id_of(merge.first), id_of(merge.second));
  }
  return parts;
}

BytePairs tokenizer(const Json& json) {
  const Json* const model = json.find("model");
  check<ValueError>(model != nullptr, "not a tokenizer.json: it has no model");
  if (model->find("type") != nullptr)  // absent in old files
    only(*model, "type", {R"("BPE")"});
  only(*model, "dropout", {"null", "0.0", "0"});
  only(*model, "continuing_subword_prefix", {"null", R"("")"});
  only(*model, "end_of_word_suffix", {"null", R"("")"});
  Parts parts;
  parts.splits.clear();
  read_characters(json, *model, parts);
  if (!parts.characters) {
    const Json* const pre_tokenizer = json.find("pre_tokenizer");
    bool ended = false;
    if (pre_tokenizer != nullptr && pre_tokenizer->as<JsonObject>() != nullptr)
      read_splits(*pre_tokenizer, parts.splits, ended);
    check<ValueError>(ended, "the pre_tokenizer {} does not end with ByteLevel, as it must",
                      pre_tokenizer == nullptr ? "" : printable_name(format_json(*pre_tokenizer)));
    only(*model, "byte_fallback", {"null", "false"});
    if (json.find<JsonObject>("decoder") != nullptr)
      only(*json.find("decoder"), "type", {R"("ByteLevel")"});
    else
      only(json, "decoder", {"null"});
  }
  parts.ignore_merges = flag(*model, "ignore_merges");
  const auto* const added = json.find<JsonArray>("added_tokens");
  if (added == nullptr)
    only(json, "added_tokens", {"null"});
  for (const Json& token : added == nullptr ? JsonArray() : *added) {
    const auto id = value<std::uint64_t>(token, "id");
    check<ValueError>(id <= 0xFFFFFFFF, "added_tokens: {} is no id", id);
    parts.added.push_back({value<std::string>(token, "content"), static_cast<std::uint32_t>(id),
                           value<bool>(token, "special"), value<bool>(token, "normalized"),
                           flag(token, "lstrip"), flag(token, "rstrip"),
                           flag(token, "single_word")});
  }
  Merges merges;
  merges.reserve(value<JsonArray>(*model, "merges").size());
  for (const Json& merge : value<JsonArray>(*model, "merges")) {
    const auto* const joined = merge.as<std::string>();
    const auto* const pair = merge.as<JsonArray>();
    const std::size_t space = joined == nullptr ? std::string::npos : joined->find(' ');
    const auto part = [&](std::size_t i) {
      return pair != nullptr && pair->size() == 2 ? (*pair)[i].as<std::string>() : nullptr;
    };
    if (space != std::string::npos)
      merges.emplace_back(std::string_view(*joined).substr(0, space),
                          std::string_view(*joined).substr(space + 1));
    else if (part(0) != nullptr && part(1) != nullptr)
      merges.emplace_back(*part(0), *part(1));
    else
      fail<ValueError>(R"(merge {} is neither "a b" nor ["a", "b"])", merges.size());
  }
  const BytePairs result(vocabulary(std::move(parts), value<JsonObject>(*model, "vocab"), merges));
  const auto& tokens = result.parts().tokens;
  if (!result.parts().characters && std::ranges::count(tokens, 1U, &std::string::size) < 256)
    only(*model, "unk_token", {"null"});  // it would replace bytes without a token
  return result;
}

/// Reads the template of a post_processor's part.
void read_template(const Json& processor, TextTemplate& result) {
  const auto& type = value<std::string>(processor, "type");
  if (type == "ByteLevel")
    return;
  check<ValueError>(type == "TemplateProcessing",
                    "{} is not supported; ByteLevel, TemplateProcessing and Sequence are",
                    printable_name(type));
  check<ValueError>(result.before.empty() && result.after.empty(), "there are two templates");
  const Json* const tokens = processor.find("special_tokens");
  const auto& parts = value<JsonArray>(processor, "single");
  check<ValueError>(parts.size() <= 64, "its template has {} parts; at most 64 are supported",
                    parts.size());
  std::size_t texts = 0;
  for (const Json& part : parts) {
    if (part.find("Sequence") != nullptr) {
      ++texts;
      continue;
    }
    const Json* const token = part.find("SpecialToken");
    const auto* const name = token == nullptr ? nullptr : token->find<std::string>("id");
    const Json* const known = name == nullptr || tokens == nullptr ? nullptr : tokens->find(*name);
    const auto* const ids = known == nullptr ? nullptr : known->find<JsonArray>("ids");
    check<ValueError>(ids != nullptr && ids->size() <= 64 &&
                          std::ranges::all_of(*ids,
                                              [](const Json& id) {
                                                return id.as<std::uint64_t>() &&
                                                       *id.as<std::uint64_t>() <= 0xFFFFFFFF;
                                              }),
                      "special_tokens has no ids, 64 at most, for {}",
                      printable_name(format_json(part)));
    for (const Json& id : *ids)
      (texts > 0 ? result.after : result.before)
          .push_back(static_cast<std::int64_t>(*id.as<std::uint64_t>()));
  }
  check<ValueError>(texts == 1, "its template has the text {} times; it must be once", texts);
}

}  // namespace

TextTemplate text_template(const Json& json, const BytePairs& vocabulary, const std::string& what) {
  TextTemplate result;
  const Json* const processor = given(json, "post_processor");
  if (processor == nullptr)
    return result;
  return of_file(what + ": post_processor", [&] {
    each_part(*processor, "processors", [&](const Json& part) { read_template(part, result); });
    for (const auto* const ids : {&result.before, &result.after})
      for (const std::int64_t id : *ids)
        vocabulary.bytes(id);
    return result;
  });
}

BytePairs tokenizer_of(const Json& json, const std::string& what) {
  return of_file(what, [&] { return tokenizer(json); });
}

BytePairs read_tokenizer(const std::string& path) {
  return of_file(path, [&] { return tokenizer(parse_json(read_file(path, most_bytes), 0, 16)); });
}

BytePairs read_tokenizer(const std::string& vocab_json, const std::string& merges_txt) {
  const Json json =
      of_file(vocab_json, [&] { return parse_json(read_file(vocab_json, most_bytes)); });
  const std::string lines = read_file(merges_txt, most_bytes);
  Merges merges;
  for (std::size_t begin = 0, number = 1, end; begin < lines.size(); begin = end + 1, ++number) {
    end = std::min(lines.find('\n', begin), lines.size());
    std::string_view line = std::string_view(lines).substr(begin, end - begin);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (line.starts_with("#version") || line.empty())
      continue;
    const std::size_t space = line.find(' ');
    if (space == line.npos)
      fail<FileError>("{}: line {}, '{}', is not two tokens", merges_txt, number,
                      printable_name(line));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return of_file(fmt::format("{} with {}", vocab_json, merges_txt), [&] {
    const auto* const vocab = json.as<JsonObject>();
    check<ValueError>(vocab != nullptr, "the vocabulary is not an object");
    Parts parts;
    constexpr const char* end_of_text = "<|endoftext|>";
    if (const auto* const id = json.find<std::uint64_t>(end_of_text); id != nullptr)
      parts.added.push_back({end_of_text, static_cast<std::uint32_t>(*id)});
    return BytePairs(vocabulary(std::move(parts), *vocab, merges));
  });
}

Json tokenizer_json(const BytePairs& vocabulary) {
  const Parts& parts = vocabulary.parts();
  const auto& characters = parts.characters;
  const auto written = [&](std::size_t id) {
    return characters ? parts.tokens[id] : written_token(parts.tokens[id]);
  };
  JsonArray added, merges;
  std::vector<const std::string*> names(parts.tokens.size());
  for (const AddedToken& token : parts.added) {
    names[token.id] = &token.text;
    added.emplace_back(JsonObject{{"id", std::uint64_t{token.id}},
                                  {"content", token.text},
                                  {"single_word", token.single_word},
                                  {"lstrip", token.lstrip},
                                  {"rstrip", token.rstrip},
                                  {"normalized", token.normalized},
                                  {"special", token.special}});
  }
  // An added token before others must be in the vocabulary, too: readers count on from its end.
  JsonObject vocab;
  for (std::size_t id = 0; id < vocabulary.text_size(); ++id)
    vocab.emplace_back(names[id] ? *names[id] : written(id), std::uint64_t{id});
  for (const auto& [left, right] : parts.merges)
    if (characters)  // they may contain spaces
      merges.emplace_back(JsonArray{written(left), written(right)});
    else
      merges.emplace_back(written(left) + ' ' + written(right));
  Json pre_tokenizer, decoder;
  std::vector<const char*> normalize(normalizers.begin(),
                                     normalizers.begin() + (parts.nfc ? 1 : 0));
  JsonObject model = {{"type", "BPE"}, {"ignore_merges", parts.ignore_merges}};
  if (characters) {
    const auto form = static_cast<std::size_t>(characters->spaces);
    const bool kept = characters->spaces == Spaces::kept, strip = !kept && characters->strip;
    const int first = !kept ? 0 : characters->byte_fallback ? 1 : 2;
    decoder = sequence_of("decoders", {decoders.begin() + first, decoders.end() - (strip ? 0 : 1)});
    if (form < 2) {
      normalize.insert(normalize.end(), normalizers.begin() + 1 + form, normalizers.end());
    } else if (!kept) {
      JsonObject metaspace = *parse_json(metaspaces[form - 2]).as<JsonObject>();
      metaspace.emplace_back("split", characters->split);
      pre_tokenizer = std::move(metaspace);
    }
    model.emplace_back("byte_fallback", characters->byte_fallback);
    model.emplace_back("fuse_unk", characters->fuse_unk);
    model.emplace_back("unk_token", characters->unk ? Json(written(*characters->unk)) : nullptr);
  } else {
    pre_tokenizer = pre_tokenizer_json(parts.splits);
    decoder = byte_level(true);
  }
  model.emplace_back("vocab", std::move(vocab));
  model.emplace_back("merges", std::move(merges));
  return JsonObject{{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", std::move(added)},
                    {"normalizer", sequence_of("normalizers", normalize)},
                    {"pre_tokenizer", std::move(pre_tokenizer)},
                    {"post_processor", nullptr},
                    {"decoder", std::move(decoder)},
                    {"model", std::move(model)}};
}

/// A character as a token of one, and nothing else.
static BytePairs tokens_of(const Characters& characters) {
  Parts parts;
  parts.splits.clear();
  parts.characters = {.size = static_cast<std::uint32_t>(characters.size()),
                      .spaces = Spaces::kept,
                      .byte_fallback = false,
                      .strip = false};
  for (const char32_t c : characters.list())
    parts.tokens.push_back(encode_utf8({&c, 1}));
  return BytePairs(std::move(parts));
}

Json tokenizer_json(const Characters& characters) { return tokenizer_json(tokens_of(characters)); }

std::optional<Characters> characters_of(const BytePairs& vocabulary) {
  if (!vocabulary.parts().characters)
    return {};
  try {
    std::u32string all;
    for (const std::string& token : vocabulary.parts().tokens)
      all += decode_utf8(token, "a token");
    if (auto characters = Characters::from_list(all); tokens_of(characters) == vocabulary)
      return characters;
  } catch (const ValueError&) {  // they are in another order
  }
  return {};
}

void write_tokenizer(const std::string& path, const BytePairs& vocabulary) {
  write_file(path, format_json(tokenizer_json(vocabulary), InvalidUtf8::refused, 2));
}

}  // namespace xgrad::lm
