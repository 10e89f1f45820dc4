// xgrad train --tokens bpe, and commands on its models.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "lm/program/run.hpp"

namespace {

/// A text with characters of one, two, three and four bytes.
std::string many_scripts() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "the cat s\xC3\xA4t on mat " + std::to_string(i % 7) +
            ",\nthe \xE7\x8C\xAB did not \xF0\x9F\x90\x88.\n";
  return text;
}

Arguments bpe_train(const Arguments& more = {}) {
  return overridden(tiny_train("--tokens bpe --vocab-size 280 --out run"), more);
}

struct TokensFolder : TemporaryFolder {
  TokensFolder() { write_bytes(*this / "text", many_scripts()); }
};

xgrad::lm::BytePairs tokens_in(const std::string& path) {
  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
  CHECK(checkpoint.user.find("characters") == nullptr);
  return xgrad::lm::tokenizer_of(*checkpoint.user.find("tokenizer"), path);
}

/// The standard output of a command that succeeds.
std::string printed_by(const TemporaryFolder& folder, const Arguments& arguments) {
  const Result result = ran(folder, arguments);
  return result.out;
}

double number_before(const std::string& text, const std::string& words) {
  const std::size_t end = text.find(words), begin = text.rfind(' ', end - 1);
  return std::stod(text.substr(begin));
}

}  // namespace

TEST_CASE("xgrad: a vocabulary of byte pairs", "[tokens]") {
  const TokensFolder folder;
  const Result trained = run_well(folder, bpe_train());
  const std::string checkpoint = "run/checkpoint.safetensors", text = many_scripts();
  const auto tokens = tokens_in(folder / checkpoint);
  CHECK(tokens.size() == 280);
  // The vocabulary is learned from the training split, nine tenths of the characters; the text is
  // encoded as a whole.
  const auto characters = xgrad::lm::decode_utf8(text, "text");
  const std::size_t n = characters.size() * 9 / 10;
  const std::string train = xgrad::lm::encode_utf8(characters.substr(0, n)),
                    validation = xgrad::lm::encode_utf8(characters.substr(n));
  CHECK(tokens == xgrad::lm::BytePairs::learn(train, 280));
  const auto ids = tokens.encode(validation);
  const std::size_t all = tokens.encode(train).size() + ids.size();
  check_contains(trained.err,
                 {fmt::format("text: 1,{:03} tokens of a vocabulary of 280; ", all - 1000),
                  fmt::format(" to train on, {} to validate.", ids.size()), "ln 280 = 5.6348.",
                  "40 of 32 tokens (4 blocks of 8)"});
  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK(config.at("tokens") == "bpe");
  CHECK(config.at("vocab_size") == 280);

  // loss * tokens / bytes / ln 2 over the blocks that were validated.
  const Json last = metrics_of(folder / "run").back();
  const std::size_t blocks = (ids.size() - 1) / 8;
  const auto bytes = static_cast<double>(tokens.decode(ids.part(1, 8 * blocks)).size());
  const double bits = last.at("final_val_loss").get<double>() * 8 * static_cast<double>(blocks) /
                      bytes / std::log(2);
  CHECK(last.at("bits_per_byte").get<double>() == Approx(bits).epsilon(1e-7));
  CHECK(number_before(trained.out, " bits per byte)") == Approx(bits).epsilon(1e-5));
  const std::string scored = run_well(folder, "eval --checkpoint run").out;
  CHECK(lines_of(scored).at(0) == lines_of(trained.out).at(0));
  // With --data, the whole text is one split.
  check_contains(run_well(folder, "eval --checkpoint run --data text").out,
                 {fmt::format("Over all {} blocks of ", (tokens.encode(text).size() - 1) / 8)});
  check_contains(run_well(folder, "eval --checkpoint run --split train").out,
                 {"train_loss ", "the training split of "});
  check_contains(run_well(folder, "eval --checkpoint run --split all").out,
                 {fmt::format("Over all {} blocks of ", (tokens.encode(text).size() - 1) / 8)});

  // The same run from config.json, and one that is resumed in the middle, end with the same bytes.
  run_well(folder, "train --config run/config.json --out again");
  for (const char* const name : {"checkpoint.safetensors", "config.json"})
    CHECK(read_bytes(folder / "again/" + name) == read_bytes(folder / "run/" + name));
  run_well(folder, bpe_train("--out half --max-iters 20"));
  run_well(folder, bpe_train("--out half --resume auto"));
  CHECK(timeless_metrics_of(folder / "half").back() == timeless_metrics_of(folder / "run").back());
  CHECK(read_bytes(folder / "half/checkpoint.safetensors") == read_bytes(folder / checkpoint));
  CHECK(read_bytes(folder / "half/config.json") == read_bytes(folder / "run/config.json"));
  run_well(folder, tiny_train("--init-from run --out from --max-iters 2"));
  CHECK(tokens_in(folder / "from/checkpoint.safetensors") == tokens);
  CHECK(Json::parse(read_bytes(folder / "from/config.json")).at("tokens") == "bpe");
  check_contains(run_well(folder, "compare run from").out, {"  bits per byte "});

  run_well(folder, "export --checkpoint run");
  const auto metadata = xgrad::io::load_safetensors(folder / "model.safetensors").metadata;
  CHECK(xgrad::lm::tokenizer_of(xgrad::io::parse_json(metadata.at("tokenizer"), 0, 9), "") ==
        tokens);
}

TEST_CASE("xgrad: samples of byte pairs are whole characters", "[tokens]") {
  const TokensFolder folder;
  run_well(folder, bpe_train("--max-iters 5 --eval-interval 1"));
  const auto sample = [&](const Arguments& more) {
    const Arguments all =
        overridden({"sample --checkpoint run --temperature 2 --tokens 300"}, more);
    return run_well(folder, all).out;
  };
  const std::string whole = sample({});
  CHECK_THAT(whole, StartsWith("\n"));
  CHECK_THAT(whole, ContainsSubstring("\uFFFD"));  // it has learned next to nothing
  CHECK(xgrad::lm::replace_invalid_utf8(whole) == whole);
  const std::string prompt = "\xE7\x8C\xAB <|";
  CHECK_THAT(sample({"--prompt", prompt}), StartsWith(prompt));
  // A stop may be in the middle of a token.
  for (const std::string& stop : {whole.substr(whole.find("t", 1), 1), std::string("at")})
    if (const std::size_t at = whole.find(stop, 1); at != std::string::npos)
      CHECK(sample({"--stop", stop}) == whole.substr(0, at + stop.size()) + "\n");
  CHECK(sample({"--stop", "\xE7\x8C\xAB\xE7\x8C\xAB\xE7\x8C\xAB"}) == whole);
  const std::vector<std::string> rows = lines_of(read_bytes(folder / "run/samples.jsonl"));
  REQUIRE(rows.size() == 5);
  for (const std::string& row : rows)
    CHECK(Json::parse(row).at("text").get<std::string>().size() > 8);  // parse() requires UTF-8
  check_refused(folder, {"sample", "--checkpoint", "run", "--prompt", "a\xFF"}, 1,
                {"--prompt: not UTF-8 at byte 1"});
}

TEST_CASE("xgrad: pages show tokens as pieces of text", "[tokens]") {
  const TokensFolder folder;
  run_well(folder, bpe_train("--max-iters 2"));
  printed_by(folder, {"explain", "--checkpoint", "run", "--prompt", "the \xF0\x9F\x90\x81"});
  const std::string html = read_bytes(folder / "explain.html"), begin = "id=\"data\">";
  const std::size_t at = html.find(begin) + begin.size();
  const Json page = Json::parse(html.substr(at, html.find("</script>", at) - at));
  const std::vector<std::string> tokens = page.at("tokens"), classes = page.at("classes");
  REQUIRE(classes.size() == 280);
  CHECK(tokens.front().starts_with("t"));
  CHECK(tokens.back() == "🐁₃");  // the last of the parts of a character
  check_contains(html, {"of the next token", "The text: the 🐁"});
  const auto all = tokens_in(folder / "run/checkpoint.safetensors");
  for (std::size_t id = 0; id < classes.size(); ++id)
    if (const std::string& bytes = all.bytes(static_cast<std::int64_t>(id));
        xgrad::lm::replace_invalid_utf8(bytes) == bytes)
      CHECK(classes[id] == bytes);
  for (const char* const part : {"s<C3>", "<A4>t", " <E7\u00A08C>", "<90\u00A088>.", "<81>"})
    CHECK(std::ranges::count(classes, part) == 1);
  const std::string graph =
      printed_by(folder, "graph --checkpoint run --format text --prompt 'x 0!'");
  check_contains(graph, {"The loss on \"x| ", "0|!\""});
  check_refused(folder, "graph --checkpoint run --prompt t", 1,
                {"--prompt has 1 token; this model takes 2 to 9"});
  printed_by(folder, "explain --checkpoint run --data text --out data.html");
  write_bytes(folder / "short", "t");
  check_refused(folder, "explain --checkpoint run --data short --out x.html", 1,
                {"this model and short allow 0"});
  // The model is exported to a file, with its vocabulary.
  printed_by(folder, "export --checkpoint run --out state.safetensors");
  printed_by(folder, "train --init-from state.safetensors --data text --max-iters 0 --out again");
  CHECK(tokens_in(folder / "again/checkpoint.safetensors") == all);
}

TEST_CASE("xgrad: vocabularies that cannot be", "[tokens]") {
  const TokensFolder folder;
  const auto refused = [&](const Arguments& arguments, int code,
                           const std::vector<std::string>& fragments) {
    check_refused(folder, arguments, code, fragments);
  };
  for (const char* const size : {"100", "256", "0", "-1", "1e4", "1000001"})
    refused(
        bpe_train({"--vocab-size", size}), 2,
        {"--vocab-size: '" + std::string(size) + "' is not a whole number from 257 to 1000000"});
  refused(tiny_train("--vocab-size 300"), 2, {"--vocab-size requires --tokens bpe"});
  refused(bpe_train("--tokens words"), 2, {"--tokens: 'words' is not one of characters, bpe"});
  write_bytes(folder / "bad", many_scripts() + "\xE7\x8C!");
  refused(bpe_train("--data bad"), 1,
          {fmt::format("bad: not UTF-8 at byte {}: 0xe7", many_scripts().size())});
  refused(bpe_train("--val-data bad"), 1, {"bad: not UTF-8 at byte"});
  // A text that gives fewer tokens than requested.
  write_bytes(folder / "few", times(200, "ab ab ab\n"));
  const Result few =
      run_well(folder, bpe_train("--data few --block-size 1 --out 'few run' --vocab-size 5000"));
  check_contains(few.err, {" and not 5000, because no pairs are left; "});
  run_well(folder, bpe_train("--data few --block-size 1 --out 'few run' --resume auto --vocab-size "
                             "5000 --max-iters 41"));
  write_bytes(folder / "tiny", "abcabcabc");
  refused(bpe_train("--data tiny"), 1,
          {"the training split of tiny: ", ": too few for --block-size 8"});

  run_well(folder, bpe_train("--max-iters 2"));
  write_bytes(folder / "ascii", tiny_text());
  run_well(folder, tiny_train("--data ascii --out characters --max-iters 2"));
  refused("train --resume run --tokens characters", 1,
          {"--tokens characters is given, but the run has bpe"});
  refused("train --resume characters --tokens bpe", 1,
          {"--tokens bpe is given, but the run has characters"});
  refused(tiny_train("--init-from characters --tokens bpe --out no"), 1,
          {"--tokens bpe is given, but the model has characters"});
  refused(bpe_train("--init-from run --vocab-size 281 --out no"), 1,
          {"--vocab-size 281 is given, but the model has 280"});

  const auto changed = [&](auto&& change, const std::vector<std::string>& fragments) {
    xgrad::io::TensorFile file = xgrad::io::load_safetensors(folder / "run/checkpoint.safetensors");
    Json json = Json::parse(file.metadata["user"]);
    change(json["tokenizer"]);
    file.metadata["user"] = json.dump();
    xgrad::io::save_safetensors(folder / "changed", file);
    for (const char* const name : {"sample", "eval", "explain", "graph"})
      refused({name, "--checkpoint", "changed"}, 1, fragments);
  };
  const std::string where = "changed: the metadata's 'tokenizer': ";
  changed([](Json& json) { json = nullptr; }, {where});
  changed([](Json& json) { json["model"].erase("merges"); }, {where, "merges"});
  changed([](Json& json) { json["model"]["type"] = "WordPiece"; }, {where, "WordPiece"});
  changed([](Json& json) { json["model"]["merges"][3] = "z"; }, {where, "merge 3"});
  changed(
      [](Json& json) {  // the last token and its merge
        Json& vocab = json["model"]["vocab"];
        for (auto at = vocab.begin(); at != vocab.end(); ++at)
          if (*at == 279) {
            vocab.erase(at);
            break;
          }
        json["model"]["merges"].erase(json["model"]["merges"].size() - 1);
      },
      {"changed: does not fit the model", "transformer.wte.weight is (280, 16) here"});
}

TEST_CASE("xgrad: bits per byte of characters", "[tokens]") {
  const TrainedFolder folder;
  const Json last = metrics_of(folder / "run").back();
  CHECK(last.at("bits_per_byte").get<double>() ==
        Approx(last.at("final_val_loss").get<double>() / std::log(2)).epsilon(1e-7));
}
