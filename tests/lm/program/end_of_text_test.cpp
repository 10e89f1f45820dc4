// xgrad with the metadata of a pretrained folder: the tokens that begin and end a text.

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "lm/program/run.hpp"

namespace {

/// `base`: a Llama whose tokenizer begins a text with <|begin|>, and whose greedy text ends.
struct EndingFolder : TinyFolder {
  static constexpr std::int64_t begin = 280, end = 281;
  xgrad::lm::BytePairs tokens =
      xgrad::lm::BytePairs::learn(tiny_text(), 282, {"<|begin|>", "<|end|>"});
  lm::GPT model = [] {
    xgrad::manual_seed(5);
    lm::GPT random(lm::GPTConfig::llama({.block_size = 32,
                                         .vocab_size = 282,
                                         .n_layer = 1,
                                         .n_head = 2,
                                         .n_embd = 16,
                                         .n_inner = 24}));
    for (xgrad::Tensor p : nn::parameters(random))
      p.copy_(xgrad::randn(p.shape()));
    return random;
  }();
  std::vector<std::int64_t> written = generated({});  ///< after <|begin|>the cat
  std::int64_t other = written.front();
  std::int64_t last = *std::ranges::find_if(  ///< ends it, by generation_config.json
      written, [this](std::int64_t id) { return id != other; });

  EndingFolder() {
    lm::save_pretrained(*this / "base", model);
    Json tokenizer = Json::parse(io::format_json(lm::tokenizer_json(tokens)));
    tokenizer["post_processor"] = Json::parse(
        R"({"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": false},
            {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "B", "type_id": 0}},
             {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
             "special_tokens": {"B": {"id": "B", "ids": [280], "tokens": ["<|begin|>"]}}}]})");
    tokenizer["model"]["fuse_unk"] = false;
    write_bytes(*this / "base/tokenizer.json", tokenizer.dump());
    configure({{"bos_token_id", 280}, {"eos_token_id", 281}, {"pad_token_id", nullptr}});
    write_bytes(*this / "base/generation_config.json",
                Json{{"eos_token_id", {281, last}}, {"top_p", 0.9}}.dump());
    write_bytes(*this / "base/tokenizer_config.json", R"({"eos_token":   "<|end|>"})");
    write_bytes(*this / "base/special_tokens_map.json", R"({"eos_token": "<|end|>"})");
    write_bytes(*this / "base/chat_template.jinja", "{{ messages }}\n");
  }
  /// Sets keys of config.json, or with "" removes them.
  void configure(const Json& changes) const {
    Json config = Json::parse(read_bytes(*this / "base/config.json"));
    for (const auto& [key, value] : changes.items())
      if (value == "")
        config.erase(key);
      else
        config[key] = value;
    write_bytes(*this / "base/config.json", config.dump());
  }
  std::vector<std::int64_t> ids(const std::string& text, bool raw = false) const {
    const auto encoded = tokens.encode(text);
    std::vector<std::int64_t> list(encoded.size());
    encoded.copy(0, encoded.size(), list.data());
    if (!raw)
      list.insert(list.begin(), begin);
    return list;
  }
  static xgrad::Indices row(std::span<const std::int64_t> ids) {
    auto list = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, ids.size()});
    std::ranges::copy(ids, list.data());
    return xgrad::Indices(std::move(list));
  }
  std::vector<std::int64_t> generated(std::vector<std::int64_t> ends, bool raw = false) const {
    xgrad::Generator generator(0);
    const xgrad::Indices all = model.generate(row(ids("the cat", raw)), 20, generator,
                                              {.temperature = 0, .eos_token_id = ends});
    return {all.data() + ids("the cat", raw).size(), all.data() + all.numel()};
  }
  std::string text_of(const std::vector<std::int64_t>& more, bool special = false) const {
    std::string all = special ? "<|begin|>the cat" : "the cat";
    for (const std::int64_t id : more)
      all += special || id < begin ? tokens.bytes(id) : "";
    return xgrad::lm::replace_invalid_utf8(all) + "\n";
  }
  std::string sampled(const std::string& checkpoint, const Arguments& more = {}) const {
    Arguments all = {"sample",   "--checkpoint", checkpoint,      "--prompt", "the cat",
                     "--tokens", "20",           "--temperature", "0"};
    return output(overridden(all, more));
  }
  std::string output(const Arguments& arguments) const {
    const Result result = ran(*this, arguments);
    return result.out;
  }
  /// A run of `base` that does not change its weights.
  Result train(const Arguments& more = {}) const {
    return run_well(*this, overridden("train --init-from base --data text --out run --block-size 8 "
                                      "--max-iters 1 --learning-rate 0 --min-lr 0 --warmup-iters 0 "
                                      "--eval-iters 1 --batch-size 2 --weight-decay 0 --dropout 0",
                                      more));
  }
};

double loss_in(const std::string& out) { return std::stod(out.substr(out.find("loss ") + 5)); }

std::string first_token_of_page(const std::string& path) {
  const std::string html = read_bytes(path), data = "id=\"data\">";
  const std::size_t at = html.find(data) + data.size();
  return Json::parse(html.substr(at, html.find("</script>", at) - at)).at("tokens").at(0);
}

}  // namespace

TEST_CASE("xgrad: export keeps all that a pretrained folder says", "[pretrained]") {
  const EndingFolder folder;
  const std::vector<std::string> texts = {"generation_config.json", "tokenizer_config.json",
                                          "special_tokens_map.json", "chat_template.jinja"};
  folder.train();
  folder.train("--out adapters --lora-rank 2");
  folder.train("--out again --init-from run");
  folder.output("export --checkpoint base --out of-base/");
  folder.output("export --checkpoint adapters --out of-adapters/");
  fs::rename(folder / "base", folder / "moved");
  folder.output("export --checkpoint run --out of-run/");
  folder.output("export --checkpoint again --out of-again/");
  const auto json = [&](const std::string& path) { return Json::parse(read_bytes(folder / path)); };
  for (const std::string out : {"of-base", "of-run", "of-adapters", "of-again"}) {
    INFO(out);
    for (const std::string& name : texts)
      CHECK(read_bytes(folder / out + "/" + name) == read_bytes(folder / "moved/" + name));
    for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"})
      CHECK(json(out + "/config.json").at(key) == json("moved/config.json").at(key));
    CHECK(json(out + "/tokenizer.json") == json("moved/tokenizer.json"));
    CHECK(folder.sampled(out) == folder.sampled("moved"));
  }
  // Another model's texts are removed if there are none.
  for (const std::string& name : texts)
    fs::remove(folder / "moved/" + name);
  const Arguments over = {"export --checkpoint moved --out of-run/ --overwrite"};
  check_refused(folder, over, 1, {"of-run/generation_config.json: of another model"});
  // Unknown names are not written anywhere.
  io::TensorFile file = io::load_safetensors(folder / "run/checkpoint.safetensors");
  Json user = Json::parse(file.metadata["user"]);
  user["metadata"] = {{"../escaped", "text"}, {"config.json", {{"vocab_size", 1}}}};
  file.metadata["user"] = user.dump();
  io::save_safetensors(folder / "hostile", file);
  folder.output("export --checkpoint hostile --out new/");
  CHECK_FALSE(fs::exists(folder / "escaped"));
  CHECK(json("new/config.json").at("vocab_size") == 282);
}

TEST_CASE("xgrad: a vocabulary of one's own has its end of text", "[pretrained]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--tokens bpe --vocab-size 260 --bias true --out run --max-iters 1"));
  io::TensorFile file = io::load_safetensors(folder / "run/checkpoint.safetensors");
  for (const std::string special : {"<|other|>", "<|endoftext|>"}) {
    Json user = Json::parse(file.metadata["user"]);
    user["tokenizer"] = Json::parse(io::format_json(
        lm::tokenizer_json(xgrad::lm::BytePairs::learn(tiny_text(), 260, {special}))));
    file.metadata["user"] = user.dump();
    io::save_safetensors(folder / "run/checkpoint.safetensors", file);
    REQUIRE(run(folder, {"export", "--checkpoint", "run", "--out", special + "/"}).code == 0);
    const Json config = Json::parse(read_bytes(folder / special + "/config.json"));
    CHECK(config.at("eos_token_id") == (special == "<|other|>" ? Json(nullptr) : Json(259)));
    CHECK(config.at("bos_token_id").is_null());
  }
}

TEST_CASE("xgrad: texts begin as the tokenizer says", "[pretrained]") {
  const EndingFolder folder;
  const std::string few = "the cat sat on mat 3.\n";
  write_bytes(folder / "few", few);
  const Result trained = folder.train();
  for (const std::string raw : {"false", "true"}) {
    const bool is_raw = raw == "true";
    const std::string first = is_raw ? "the" : "<|begin|>";
    CHECK(folder.sampled("base", {"--raw", raw, "--ignore-eos", "true"}) ==
          folder.text_of(folder.generated({}, is_raw)));
    const auto ids = folder.ids(few, is_raw);
    const auto all = std::span(ids);
    const xgrad::Tensor loss =
        folder.model.loss(folder.row(all.first(ids.size() - 1)), folder.row(all.subspan(1)));
    CHECK(loss_in(folder.output({"eval", "--checkpoint", "base", "--data", "few", "--raw", raw})) ==
          Approx(loss.item()).epsilon(1e-6));
    check_contains(folder.output({"graph", "--checkpoint", "base", "--format", "text", "--prompt",
                                  "the cat", "--raw", raw}),
                   {"The loss on \"" + first + "|"});
    for (const Arguments& text : {Arguments{"--prompt 'the cat'"}, {"--data few"}}) {
      folder.output(overridden({"explain", "--checkpoint", "base", "--out", "page.html",
                                "--overwrite", "true", "--raw", raw},
                               text));
      CHECK(first_token_of_page(folder / "page.html") == first);
    }
  }
  // tokenizer.json alone counts, whatever the file beside it says.
  const std::string ours = folder.output("eval --checkpoint base --data few");
  write_bytes(folder / "base/tokenizer_config.json",
              R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": false,
                  "add_prefix_space": true, "eos_token": "<|end|>"})");
  CHECK(folder.output("eval --checkpoint base --data few") == ours);
  // The texts of a run begin so, too, and eval computes its loss.
  CHECK(lines_of(folder.output("eval --checkpoint run")).at(0) == lines_of(trained.out).at(0));
  folder.output("explain --checkpoint run --out text.html");
  CHECK(first_token_of_page(folder / "text.html") == "<|begin|>");
  const Result twice = run(folder, "sample --checkpoint base --prompt <|begin|>a");
  check_contains(twice.err, {"--prompt begins with <|begin|>, which the tokenizer adds as well"});
  CHECK_THAT(folder.sampled("base", "--prompt '' --special-tokens true"), StartsWith("<|begin|>"));
  CHECK_THAT(folder.sampled("run", "--prompt '' --raw true"), StartsWith("\n"));
}

TEST_CASE("xgrad: sample ends where the model's text does", "[pretrained]") {
  const EndingFolder folder;
  folder.train();
  REQUIRE(std::ranges::count(folder.written, folder.last) > 0);
  CHECK(folder.sampled("run") == folder.text_of(folder.generated({folder.last})));
  const auto check_ends = [&](const std::vector<std::int64_t>& ends) {
    CHECK(folder.sampled("base") == folder.text_of(folder.generated(ends)));
    CHECK(folder.sampled("base", "--ignore-eos true") == folder.text_of(folder.written));
  };
  check_ends({folder.last});
  folder.configure({{"eos_token_id", folder.other}});
  check_ends({folder.last});
  fs::remove(folder / "base/generation_config.json");
  check_ends({folder.other});
  folder.configure({{"eos_token_id", nullptr}});
  check_ends({});
}

TEST_CASE("xgrad: special tokens are printed on request", "[pretrained]") {
  EndingFolder folder;
  // A token that is written often is special.
  Json tokenizer = Json::parse(read_bytes(folder / "base/tokenizer.json"));
  const std::string often = folder.tokens.bytes(folder.last);
  REQUIRE(xgrad::lm::replace_invalid_utf8(often) == often);
  tokenizer["added_tokens"].push_back({{"id", folder.last},
                                       {"content", xgrad::lm::written_token(often)},
                                       {"special", true},
                                       {"normalized", false}});
  write_bytes(folder / "base/tokenizer.json", tokenizer.dump());
  const Arguments on = {"--ignore-eos true"};
  const std::string all = folder.text_of(folder.written, true);
  CHECK(folder.sampled("base", overridden(on, "--special-tokens true")) == all);
  auto seen = folder.written;
  std::erase(seen, folder.last);
  CHECK(folder.sampled("base", on) == folder.text_of(seen));
  // They end a text whether they are printed or not, as in a batch.
  seen.resize(std::ranges::find(folder.written, folder.last) - folder.written.begin());
  CHECK(folder.sampled("base") == folder.text_of(seen));
  CHECK(folder.sampled("base", overridden(on, {"--stop", often})) == folder.text_of(seen));
  CHECK_THAT(folder.output({"sample", "base", "--prompt", "the cat", "--prompt", "a", "--tokens",
                            "20", "--temperature", "0", "--stop", often}),
             StartsWith(folder.text_of(seen) + "---------------\na"));
  folder.train();
  CHECK_THAT(read_bytes(folder / "run/samples.jsonl"), !ContainsSubstring("<|begin|>"));

  const auto ids =
      folder.tokens.encode("<|begin|>the cat<|end|>", xgrad::lm::SpecialTokens::recognised);
  CHECK(folder.tokens.decode(ids) == "<|begin|>the cat<|end|>");
  CHECK(folder.tokens.decode(ids, true) == "the cat");
}

TEST_CASE("xgrad: sample draws as generation_config.json says", "[pretrained]") {
  const EndingFolder folder;
  const auto drawn = [&](const char* config, const Arguments& more = {},
                         const std::string& says = "") {
    write_bytes(folder / "base/generation_config.json", config);
    const Arguments all = {"sample base --prompt 'the cat' --tokens 20 --seed 3"};
    const Result result = ran(folder, overridden(all, more));
    check_contains(result.err, {says});
    CHECK((result.err.find("generation_config") == std::string::npos) == says.empty());
    return result.out;
  };
  // The same texts as transformers', for 234 of 234 in tokenizers of three kinds; its default top_k
  // is 50.
  const std::string line = "xgrad: generation_config.json: ",
                    greedy = drawn("{}", "--temperature 0");
  CHECK(
      drawn(R"({"do_sample": true})", {}, line + "temperature 1, top_k 50; flags override it\n") ==
      drawn("{}", "--temperature 1 --top-k 50"));
  CHECK(drawn(R"({"do_sample": true, "temperature": 1.7, "top_k": 0, "top_p": 0.9, "min_p": 0.02,
                  "repetition_penalty": 1.2, "no_repeat_ngram_size": 2})",
              {},
              line + "temperature 1.7, top_k 0, top_p 0.9, min_p 0.02, repetition_penalty 1.2, "
                     "no_repeat_ngram_size 2; flags override it\n") ==
        drawn("{}",
              "--temperature 1.7 --top-p 0.9 --min-p 0.02 --repetition-penalty 1.2 "
              "--no-repeat-ngram 2"));
  for (const char* const config : {R"({"do_sample": false})", R"({"temperature": 0.3, "top_k": 9})",
                                   R"({"top_k": null, "top_p": 1})"})
    CHECK(drawn(config, {},
                line + "the likeliest token each time, because do_sample is not true") == greedy);
  CHECK(drawn(R"({"repetition_penalty": 1.4})", {}, "repetition_penalty 1.4") ==
        drawn("{}", "--temperature 0 --repetition-penalty 1.4"));
  CHECK(drawn(R"({"eos_token_id": null, "do_sample": null})") == drawn("{}"));
  // Flags win.
  CHECK(drawn(R"({"do_sample": true, "temperature": 2, "top_k": 3, "repetition_penalty": 1.5})",
              "--temperature 1.5 --top-k 40 --repetition-penalty 1") ==
        drawn("{}", "--temperature 1.5 --top-k 40"));
  CHECK(drawn(R"({"do_sample": false})", "--temperature 1.5", line + "top_k 50;") ==
        drawn("{}", "--temperature 1.5 --top-k 50"));
  // A run of such a model, and what is exported, draw so, too.
  const char* const config = R"({"do_sample": true, "temperature": 1.7, "top_k": 7})";
  const std::string expected = drawn(config, {}, "top_k 7");
  folder.train();
  folder.output("export run --out exported/");
  for (const std::string from : {"run", "exported"})
    CHECK(folder.output({"sample", from, "--prompt", "the cat", "--tokens", "20", "--seed", "3"}) ==
          expected);
  for (const auto& [text, says] :
       {std::pair(R"({"temperature": "hot"})", "temperature is \"hot\"; it must be a number"),
        {R"({"top_p": 1.5})", "top_p is 1.5; it must be a number from 1e-09 to 1"},
        {R"({"top_k": 2.5})", "top_k is 2.5; it must be a whole number"},
        {R"({"do_sample": 1})", "do_sample is 1; it must be true or false"}}) {
    write_bytes(folder / "base/generation_config.json", text);
    check_refused(folder, "sample base", 1, {"base: generation_config.json: ", says});
  }
}

TEST_CASE("xgrad: the sample at the end has --sample-tokens", "[shown]") {
  const EndingFolder folder;
  const auto sample_of = [&](const Arguments& arguments) {
    const Result result = run_well(folder, arguments);
    const std::string sample = result.out.substr(result.out.find(" each.\n") + 7);
    CHECK((result.err.find("What the model writes") == std::string::npos) == sample.empty());
    return sample;
  };
  const auto own = [&](const Arguments& more) {
    return sample_of(tiny_train(overridden(more, "--max-iters 1"))).size();
  };
  CHECK(own("--out a") == 502);
  CHECK(own("--out b --sample-tokens 7") == 9);
  CHECK(own("--out c --sample-tokens 0") == 0);
  // Large models are slow: 64 tokens are the default.
  write_bytes(folder / "base/generation_config.json", "{}");
  const Result few = folder.train("--out few"),
               same = folder.train("--out same --sample-tokens 64"),
               more = folder.train("--out more --sample-tokens 65");
  CHECK(few.out == same.out);
  CHECK(few.out.size() < more.out.size());
}
