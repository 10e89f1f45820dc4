// xgrad with the folder of a pretrained model in place of a checkpoint.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include "lm/program/run.hpp"

namespace {

/// A text, and a model in `llama` with its tokenizer and unused ids.
struct PretrainedFolder : TinyFolder {
  xgrad::lm::BytePairs tokens = xgrad::lm::BytePairs::learn(tiny_text(), 280);
  PretrainedFolder() {
    xgrad::manual_seed(5);
    save("llama", lm::GPTConfig::llama(sizes()));
  }
  static lm::GPTConfig sizes() {
    return {.block_size = 32,
            .vocab_size = 288,
            .n_layer = 2,
            .n_head = 4,
            .n_embd = 16,
            .n_kv_head = 2,
            .n_inner = 24};
  }
  void save(const std::string& name, const lm::GPTConfig& config) const {
    lm::save_pretrained(*this / name, lm::GPT(config));
    lm::write_tokenizer(*this / name + "/tokenizer.json", tokens);
  }
  xgrad::Indices row(const std::string& text, std::size_t begin, std::size_t end) const {
    const auto ids = tokens.encode(text);
    auto list = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, end - begin});
    ids.copy(begin, end - begin, list.data());
    return xgrad::Indices(std::move(list));
  }
};

Arguments tuned(const Arguments& more = {}) {
  Arguments all = {
      "train --init-from llama --data text --out run --block-size 8 --max-iters 4 --batch-size 2 "
      "--eval-iters 2 --eval-interval 2 --dropout 0.1"};
  return overridden(all, more);
}

}  // namespace

TEST_CASE("xgrad: a pretrained model writes, is measured and is shown", "[pretrained]") {
  const PretrainedFolder folder;
  const lm::GPT model = lm::load_pretrained(folder / "llama");
  const Result written = ran(
      folder, "sample --checkpoint llama --prompt 'the cat' --tokens 200 --temperature 1 --seed 3");
  CHECK(written.err == "xgrad: llama, a pretrained model\n");
  xgrad::Generator generator(3);
  const std::size_t n = folder.tokens.encode("the cat").size();
  const xgrad::Indices ids =
      model.generate(folder.row("the cat", 0, n), 200, generator, {.temperature = 1});
  xgrad::lm::Utf8Stream characters;
  std::string expected;
  std::size_t unknown = 0;  // without a token: they print nothing
  for (std::size_t i = 0; i < n + 200; ++i)
    if (ids.data()[i] < 280)
      expected += characters.add(folder.tokens.bytes(ids.data()[i]));
    else
      ++unknown;
  CHECK(unknown > 0);
  CHECK(written.out == expected + characters.finish() + "\n");

  const std::string few = "the cat sat on mat 3,\nthe dog did not.\n";
  write_bytes(folder / "few", few);
  const std::size_t m = folder.tokens.encode(few).size();
  REQUIRE(m < 32);
  const Result scored = ran(folder, "eval --checkpoint llama --data few");
  CHECK(number_after(scored.out, "loss ") ==
        Approx(model.loss(folder.row(few, 0, m - 1), folder.row(few, 1, m)).item()).epsilon(1e-6));
  check_contains(scored.out, {fmt::format("Over the only block of few, {} tokens each.", m - 1)});
  CHECK(ran(folder, "eval llama/model.safetensors --data few").out == scored.out);
  const std::size_t all = folder.tokens.encode(tiny_text()).size();
  check_contains(ran(folder, "eval --checkpoint llama --data text").out,
                 {fmt::format("Over all {} blocks of text, 32 tokens each.", (all - 1) / 32)});
  check_contains(ran(folder, "eval --checkpoint llama --data text --block-size 8").out,
                 {fmt::format("Over all {} blocks of text, 8 tokens each.", (all - 1) / 8)});
  check_refused(folder, "eval --checkpoint llama --data text --block-size 33", 1,
                {"--block-size 33 is given, but the model has 32"});

  check_contains(ran(folder, "explain --checkpoint llama --prompt 'the cat'").out,
                 {"explain.html: ", " tokens\n"});
  check_contains(read_bytes(folder / "explain.html"), {"2 layers, 4 heads each, on the prompt"});
  check_contains(ran(folder, "graph --checkpoint llama --format text --prompt 'a cat'").out,
                 {"The loss on \"a|", "transformer.wte.weight"});
  for (const Arguments& arguments : {Arguments{"eval"}, {"explain --overwrite"}})
    check_refused(folder, overridden(arguments, "--checkpoint llama"), 1,
                  {"llama: a pretrained model, whose text is unknown; --data FILE"});
  // No file of it is overwritten.
  for (const std::string name : {"explain", "graph", "export"}) {
    const std::string out = name == "export" ? "llama/model.safetensors" : "llama/config.json";
    check_refused(folder, {name, "--checkpoint", "llama", "--out", out, "--overwrite"}, 1,
                  {out + ": is the same file as the input " + out});
  }
  check_refused(folder, "export --checkpoint llama --out llama/ --overwrite", 1,
                {"is the same file as the input"});
  check_refused(folder, tuned("--out llama"), 1, {"llama: is a pretrained model's folder"});
  check_refused(folder, tuned("--out llama --resume auto"), 1,
                {"llama: is a pretrained model's folder"});
  check_refused(folder, "train --resume llama", 1, {"llama: the folder holds no checkpoint"});
  // Folders of other formats.
  fs::create_directory(folder / "peft");
  write_bytes(folder / "peft/adapter_config.json", "{}");
  write_bytes(folder / "peft/adapter_model.safetensors", "");
  write_bytes(folder / "x.gguf", "GGUF\3");
  fs::copy(folder / "llama", folder / "pickles");
  fs::rename(folder / "pickles/model.safetensors", folder / "pickles/pytorch_model.bin");
  for (const auto& [given, says] : {std::pair("peft", "adapter_config.json: peft_type is missing"),
                                    {"x.gguf", "is a GGUF file"},
                                    {"pickles", "pytorch_model.bin holds Python pickles"}})
    for (const Arguments& arguments :
         {Arguments{"sample --checkpoint"}, {"export --checkpoint"}, {"train --init-from"}}) {
      Arguments with_path = arguments;
      with_path.push_back(given);
      check_refused(folder, with_path, 1, {given, says});
    }
}

TEST_CASE("xgrad: fine-tuning a pretrained model", "[pretrained]") {
  const PretrainedFolder folder;
  const Result trained = run_well(folder, tuned());
  check_contains(trained.err,
                 {"From:  llama, a pretrained model.\n", " tokens of a vocabulary of 280; ",
                  "n_layer 2, n_head 4, n_embd 16: "});
  const lm::GPT model = lm::load_pretrained(folder / "llama");
  const std::vector<Json> rows = metrics_of(folder / "run");
  CHECK(rows.at(0).at("val_loss_before").get<double>() == Approx(std::log(288)).margin(0.3));
  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK(config.at("block_size") == 8);
  CHECK(config.at("n_layer") == 2);
  CHECK(config.at("tokens") == "bpe");
  CHECK(config.at("vocab_size") == 288);
  // The whole model goes into the checkpoint, and training continues from there to the bit.
  run_well(folder, tuned("--out half --max-iters 2 --lr-decay-iters 4"));
  run_well(folder, "train --resume half --max-iters 4");
  CHECK(read_bytes(folder / "half/checkpoint.safetensors") ==
        read_bytes(folder / "run/checkpoint.safetensors"));
  CHECK(timeless_metrics_of(folder / "half").back() == timeless_metrics_of(folder / "run").back());
  run_well(folder, "train --config run/config.json --out again");
  CHECK(read_bytes(folder / "again/checkpoint.safetensors") ==
        read_bytes(folder / "run/checkpoint.safetensors"));
  const std::string scored = run_well(folder, "eval --checkpoint run").out;
  CHECK(lines_of(scored).at(0) == lines_of(trained.out).at(0));
  run_well(folder, "sample --checkpoint run --tokens 50");
  ran(folder, "explain --checkpoint run");
  ran(folder, "graph --checkpoint run --prompt 'the cat'");
  run_well(folder, tuned("--init-from run --out more --block-size 16"));

  // Back to its folder.
  CHECK(ran(folder, "export --checkpoint run --out tuned/").out ==
        "tuned/: config.json, model.safetensors, tokenizer.json\n");
  CHECK(lm::read_tokenizer(folder / "tuned/tokenizer.json") == folder.tokens);
  const auto checkpoint = io::load_checkpoint(folder / "run/checkpoint.safetensors").model;
  const auto exported = nn::state_dict(lm::load_pretrained(folder / "tuned"));
  REQUIRE(exported.size() == checkpoint.size());
  for (const auto& [name, x] : exported)
    for (const auto& [other, y] : checkpoint)
      if (name == other)
        CHECK(allclose(x, y, 0, 0));
  ran(folder, "export --checkpoint run --out tuned/ --overwrite");
  check_refused(folder, "export --checkpoint run --out run/ --overwrite", 1,
                {"config.json: is a file of the run"});
  // A run's own model is a GPT-2; biases that it lacks are zeros.
  for (const std::string bias : {"true", "false"}) {
    run_well(folder, tiny_train({"--bias", bias, "--out", "own" + bias, "--max-iters", "1"}));
    const std::string said =
        ran(folder, {"export", "--checkpoint", "own" + bias, "--out", "gpt2" + bias + "/"}).out;
    check_contains(said, {"model.safetensors, tokenizer.json, tokenizer_config.json\n"});
    CHECK((said.find("\nBiases that the model lacks, and") != said.npos) == (bias == "false"));
    const nn::StateDict weights = nn::state_dict(lm::load_pretrained(folder / "gpt2" + bias));
    const auto norm = std::ranges::find(weights, "transformer.h.0.ln_1.bias",
                                        [](const auto& named) { return named.first; });
    REQUIRE(norm != weights.end());
    CHECK((norm->second != 0).any() == (bias == "true"));
  }

  const auto refused = [&](const Arguments& more, const std::string& says) {
    check_refused(folder, tuned(more), 1, {says});
  };
  refused("--n-layer 3 --out no", "--n-layer 3 is given, but the model has 2");
  refused("--n-embd 32 --out no", "--n-embd 32 is given, but the model has 16");
  refused("--block-size 64 --out no", "--block-size 64 is given, but the model has 32");
  refused("--tokens characters --out no", "--tokens characters is given, but the model has bpe");

  const auto changed = [&](const char* key, const Json& value, const std::string& says) {
    io::TensorFile file = io::load_safetensors(folder / "run/checkpoint.safetensors");
    Json json = Json::parse(file.metadata["user"]);
    json["model"][key] = value;
    file.metadata["user"] = json.dump();
    io::save_safetensors(folder / "changed", file);
    for (const Arguments& arguments : {Arguments{"sample"}, {"graph --overwrite"}, {"export"}})
      check_refused(folder, overridden(arguments, "--checkpoint changed"), 1, {"changed: ", says});
  };
  changed("model_type", "bert", "'model': model_type is \"bert\"");
  changed("num_hidden_layers", 1000000, "its 'model' asks for more weights than it has");
  changed("hidden_size", 1 << 20, "its 'model' asks for more weights than it has");
  changed("vocab_size", 279, "fewer ids than its 280 tokens");
  changed("num_hidden_layers", 1, "does not fit the model");
}

TEST_CASE("xgrad: a pretrained Mistral and a Qwen3", "[pretrained]") {
  const PretrainedFolder folder;
  lm::GPTConfig mistral = lm::GPTConfig::llama(PretrainedFolder::sizes()), qwen3 = mistral;
  mistral.sliding_window = 5;
  qwen3.qk_norm = true;
  qwen3.head_dim = 6;
  for (const auto& [name, config] : {std::pair<std::string, lm::GPTConfig>("mistral", mistral),
                                     std::pair<std::string, lm::GPTConfig>("qwen3", qwen3)}) {
    INFO(name);
    xgrad::manual_seed(7);
    folder.save(name, config);
    ran(folder, {"explain", "--checkpoint", name, "--prompt", "a cat", "--overwrite"});
    // Checkpoints keep windows and norms, those of adapters too.
    for (const Arguments& adapters : {Arguments{}, {"--lora-rank 2"}}) {
      Arguments more = {"--init-from", name, "--block-size", "16"};
      more.insert(more.end(), adapters.begin(), adapters.end());
      const std::string run = "out-" + name + (adapters.empty() ? "" : "-adapters"),
                        half = "half-" + run;
      run_well(folder, tuned(overridden(more, {"--out", run})));
      run_well(folder, tuned(overridden(
                           more, {"--out", half, "--max-iters", "2", "--lr-decay-iters", "4"})));
      run_well(folder, {"train", "--resume", half, "--max-iters", "4"});
      for (const std::string& from : {run, half})
        ran(folder, {"export", "--checkpoint", from, "--out", "new-" + from + "/"});
      for (const char* const file : {"/config.json", "/model.safetensors"})
        CHECK(read_bytes(folder / "new-" + run + file) ==
              read_bytes(folder / "new-" + half + file));
      const lm::GPT again = lm::load_pretrained(folder / "new-" + run);
      CHECK(again.config.sliding_window == config.sliding_window);
      CHECK(again.config.qk_norm == config.qk_norm);
    }
  }
}

TEST_CASE("xgrad: bytes that a tokenizer does not know", "[pretrained]") {
  PretrainedFolder folder;
  auto parts = folder.tokens.parts();
  REQUIRE(tiny_text().find('z') == std::string::npos);
  *std::ranges::find(parts.tokens, "z") = "never";
  lm::write_tokenizer(folder / "llama/tokenizer.json", xgrad::lm::BytePairs(parts));
  write_bytes(folder / "zoo", tiny_text() + "zzz");
  check_contains(ran(folder, "eval --checkpoint llama --data zoo").err,
                 {"the text: the vocabulary has no tokens for 3 of ", " bytes, which are dropped"});
  check_contains(ran(folder, tuned("--data zoo")).err,
                 {"the validation split: the vocabulary has no tokens for 3 of "});
  check_contains(ran(folder, "sample --checkpoint llama --prompt az").err,
                 {"--prompt: the vocabulary has no tokens for 1 of 2 bytes"});
  check_refused(folder, "sample --checkpoint llama --prompt z", 1,
                {"--prompt: the vocabulary has tokens for none of it"});
  check_refused(folder, tuned("--out no --sample-prompt z"), 1,
                {"--sample-prompt: the vocabulary has tokens for none of it"});
  check_refused(folder, "sample --checkpoint llama --stop az", 1,
                {"--stop: the vocabulary has no tokens for some of it"});
}

TEST_CASE("xgrad: a run's folder has its tokens", "[pretrained]") {
  TinyFolder folder;
  write_bytes(folder / "text", tiny_text() + "\"\\\te\u0301\u4E2D\u2581\U0001F600\" 'x'\n");
  for (const std::string kind : {"characters", "bpe"}) {
    INFO(kind);
    const std::string run = kind, out = kind + "-folder", prompt = "\"\\\te\u0301\U0001F600\n";
    Arguments train = tiny_train({"--out", run, "--tokens", kind, "--block-size", "16"});
    if (kind == "bpe")
      train = overridden(train, "--vocab-size 300");
    run_well(folder, train);
    run_well(folder, {"export", run, "--out", out});  // a name without an extension is a folder
    CHECK(Json::parse(read_bytes(folder / out + "/tokenizer_config.json")) ==
          Json{{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"clean_up_tokenization_spaces", false}});
    const Json tokenizer = Json::parse(read_bytes(folder / out + "/tokenizer.json"));
    CHECK(tokenizer.at("model").at("vocab").size() ==
          Json::parse(read_bytes(folder / out + "/config.json")).at("vocab_size"));
    const auto said = [&](const std::string& model, const Arguments& more) {
      return ran(folder, overridden({more[0], model}, {more.begin() + 1, more.end()})).out;
    };
    const Arguments eval = {"eval --data text --block-size 16"},
                    sample = {"sample", "--prompt", prompt, "--temperature", "0", "--tokens", "9"};
    CHECK(said(out, eval) == said(run, eval));
    CHECK(said(out, sample) == said(run, sample));
    // A run begins there, keeps its kind, and gives the folder again.
    const Result more = run_well(folder, {"train", "--init-from", out, "--data", "text", "--out",
                                          run + "-more", "--max-iters", "0"});
    check_contains(more.err, {kind == "bpe" ? " tokens of a voc" : " characters of a voc"});
    run_well(folder, {"export", run + "-more", "--out", out + "-more/"});
    for (const char* const file :
         {"/tokenizer.json", "/tokenizer_config.json", "/config.json", "/model.safetensors"})
      CHECK(read_bytes(folder / out + "-more" + file) == read_bytes(folder / out + file));
  }
  check_refused(folder, "sample characters-folder --prompt Q", 1,
                {"--prompt: the vocabulary of 32 characters ", "lacks 'Q' (U+0051); it knows "});
}

TEST_CASE("xgrad: export writes safetensors and folders alone", "[pretrained]") {
  const TrainedFolder folder;
  for (const std::string out : {"poems.gguf", "poems.onnx", "poems.pt", "poems.bin", "run/a.b"}) {
    check_refused(folder, {"export", "run", "--out", out}, 2,
                  {"--out " + out + ": export writes NAME.safetensors, or a folder"});
    check_refused(folder, {"export", "run", "--out", out, "--adapters"}, 2, {"--out " + out});
  }
  check_refused(folder, "export run --out a.safetensors --adapters", 2,
                {"--adapters writes a folder: --out DIR/"});
  run_well(folder, "export run --out a.safetensors");
  CHECK(fs::is_regular_file(folder / "a.safetensors"));
  fs::create_directory(folder / "v1.5");
  run_well(folder, "export run --out v1.5");
  CHECK(fs::exists(folder / "v1.5/tokenizer.json"));
}

TEST_CASE("xgrad: characters that a tokenizer makes <unk>", "[pretrained]") {
  const PretrainedFolder folder;
  xgrad::lm::BytePairs::Parts parts;
  parts.splits.clear();
  parts.tokens = {"<unk>", "\u2581", "a", "b"};
  parts.characters = {.size = 4, .byte_fallback = false, .unk = 0};
  lm::write_tokenizer(folder / "llama/tokenizer.json", xgrad::lm::BytePairs(parts));
  write_bytes(folder / "unknown", times(400, "\u4E2Da"));
  const Result scored = ran(folder, "eval llama --data unknown --block-size 32");
  check_contains(scored.err, {"the text: the vocabulary has no tokens for 1,200 of 1,600 bytes, "
                              "which become <unk>\n"});
  // 25 blocks of 32, after the first id, which is the space's.
  CHECK(number_after(scored.out, ", ") ==
        Approx(number_after(scored.out, "loss ") * 800 / 1600 / std::log(2)).epsilon(1e-5));
  check_contains(ran(folder, "sample llama --prompt a.").err,
                 {"--prompt: the vocabulary has no tokens for 1 of 2 bytes, which become <unk>"});
  for (const std::string end : {".", "a.", "\n"})
    check_refused(folder, {"eval", "llama", "--data", "unknown", "--document-end", end}, 1,
                  {"--document-end '", "the vocabulary has no tokens for some of it"});
  // The same of bytes that are dropped: the text has 4 for 2 ids that are scored.
  parts.characters->unk.reset();
  lm::write_tokenizer(folder / "llama/tokenizer.json", xgrad::lm::BytePairs(parts));
  const Result dropped = ran(folder, "eval llama --data unknown --block-size 20");
  check_contains(dropped.err, {"1,200 of 1,600 bytes, which are dropped\n"});
  CHECK(number_after(dropped.out, ", ") ==
        Approx(number_after(dropped.out, "loss ") / 4 / std::log(2)).epsilon(1e-5));
}

TEST_CASE("xgrad: a tokenizer of Llama 2's kind", "[pretrained]") {
  PretrainedFolder folder;
  xgrad::lm::BytePairs::Parts parts;
  parts.splits.clear();
  parts.tokens = {"<unk>", "\u2581", "t", "h", "e", "\u2581t", "\u2581th", "\u2581the"};
  parts.merges = {{1, 2}, {5, 3}, {6, 4}};
  for (int byte = 0; byte < 256; ++byte)
    parts.tokens.push_back(fmt::format("<0x{:02X}>", byte));
  parts.characters.emplace().size = static_cast<std::uint32_t>(parts.tokens.size());
  const xgrad::lm::BytePairs tokens(parts);
  lm::write_tokenizer(folder / "llama/tokenizer.json", tokens);
  const std::string out =
      ran(folder, {"sample", "llama", "--prompt", "the cat\u00E9", "--tokens", "30"}).out;
  CHECK_THAT(out, StartsWith("the cat\u00E9"));  // without the space that the tokenizer adds
  run_well(folder, tuned());
  const std::string after = ran(folder, "sample run --prompt the --tokens 0").out;
  CHECK(after == "the\n");
  run_well(folder, "export --checkpoint run --out out/");
  CHECK(lm::read_tokenizer(folder / "out/tokenizer.json") == tokens);
}

TEST_CASE("xgrad: folders of pretrained models that do not do", "[pretrained]") {
  const PretrainedFolder folder;
  const auto refused = [&](const std::vector<std::string>& fragments) {
    for (const Arguments& arguments : {Arguments{"sample --checkpoint llama"},
                                       {"eval --checkpoint llama --data text"},
                                       {"explain --checkpoint llama --prompt the"},
                                       {"graph --checkpoint llama"},
                                       tuned()})
      check_refused(folder, arguments, 1, fragments);
  };
  const std::string path = folder / "llama/tokenizer.json", json = read_bytes(path);
  write_bytes(path, json.substr(0, json.size() / 2));
  refused({"llama/tokenizer.json: ", "JSON"});
  Json changed = Json::parse(json);
  changed["model"]["type"] = "Unigram";
  write_bytes(path, changed.dump());
  refused({"llama/tokenizer.json: ", "Unigram"});
  std::string numbers;
  for (int i = 0; i < 500; ++i)
    numbers += std::to_string(i * 7919) + " ";
  lm::write_tokenizer(path, xgrad::lm::BytePairs::learn(numbers, 300));
  refused({"llama: the tokenizer has 300 tokens, and config.json a vocab_size of 288"});
  fs::remove(path);
  refused({"llama: it has no tokenizer.json, which defines"});
  // GPT-2's two files do not define another model's pre-tokenization.
  const Json model = Json::parse(json).at("model");
  write_bytes(folder / "llama/vocab.json", model.at("vocab").dump());
  std::string merges = "#version: 0.2\n";
  for (const std::string merge : model.at("merges"))
    merges += merge + "\n";
  write_bytes(folder / "llama/merges.txt", merges);
  refused({"llama: it has no tokenizer.json, which defines"});

  write_bytes(folder / "llama/config.json", "{");
  refused({"llama/config.json: ", "JSON"});
  write_bytes(folder / "llama/config.json", R"({"model_type": "mamba"})");
  refused(
      {"llama/config.json: model_type is \"mamba\"; supported: gpt2, llama, mistral, qwen2 and "
       "qwen3"});
  fs::remove(folder / "llama/config.json");
  refused({"llama/config.json: "});
}
