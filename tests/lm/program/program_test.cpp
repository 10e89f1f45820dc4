// The trained program, as a user runs it.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "lm/program/corpus_nll.hpp"
#include "lm/program/run.hpp"

namespace {

std::vector<double> column(const std::vector<Json>& rows, const char* key) {
  std::vector<double> values;
  for (const Json& row : rows)
    values.push_back(row.at(key).get<double>());
  return values;
}

/// The text behind a key, up to the end of the number or line.
std::string digits_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.rfind(key);
  if (at == std::string::npos)
    return "no " + key;
  const std::size_t begin = at + key.size();
  return text.substr(begin, text.find_first_not_of("0123456789.e+-", begin) - begin);
}

/// The model that tiny_train() asks for.
xgrad::lm::GPTConfig tiny_config(xgrad::Size vocab_size, double dropout = 0) {
  return {.block_size = 8,
          .vocab_size = vocab_size,
          .n_layer = 1,
          .n_head = 2,
          .n_embd = 16,
          .dropout = dropout,
          .bias = false};
}

}  // namespace

TEST_CASE("xgrad: a run writes all promised files") {
  const TrainedFolder folder;
  const std::string& out = folder.trained.err;
  CHECK_THAT(out, ContainsSubstring("n_layer 1, n_head 2, n_embd 16: 3,616 parameters"));
  CHECK_THAT(out, ContainsSubstring("text: 2,340 characters"));
  CHECK_THAT(out, ContainsSubstring("40 of 32 characters (4 blocks of 8)"));
  CHECK_THAT(out, ContainsSubstring("step 40/40 100 % | loss "));
  CHECK_THAT(out, ContainsSubstring("after 20 steps: validation loss"));

  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK(config.at("n_embd") == 16);
  CHECK(config.at("max_iters") == 40);
  CHECK(config.at("weight_decay") == 0.1);  // the preset's
  CHECK(config.at("bias") == false);
  const auto characters = xgrad::lm::Characters::of(xgrad::lm::decode_utf8(tiny_text(), "text"));
  CHECK(config.at("vocab_size") == characters.size());
  CHECK(std::filesystem::path(config.at("data").get<std::string>()).is_absolute());

  const std::vector<Json> rows = metrics_of(folder / "run");
  REQUIRE(rows.size() == 40);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("step") == i);
    CHECK(rows[i].at("ms").get<double>() > 0);
    CHECK(rows[i].at("grad_norm").get<double>() > 0);
    CHECK(rows[i].contains("val_loss") == (i % 10 == 9));
  }
  CHECK(rows[0].at("lr").get<double>() == Approx(0.01 / 3));
  CHECK(rows[2].at("lr").get<double>() == Approx(0.01));
  const std::vector<double> losses = column(rows, "loss");
  CHECK(losses[0] == Approx(std::log(config.at("vocab_size").get<double>())).margin(0.2));
  CHECK(losses[39] < losses[0] - 0.5);
  // Nine digits identify a float.
  const std::string logged =
      digits_after(lines_of(read_bytes(folder / "run/metrics.jsonl"))[3], "\"loss\": ");
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.9g", static_cast<double>(std::stof(logged)));
  CHECK(logged == digits);

  const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(folder / folder.checkpoint);
  CHECK(checkpoint.step == 40);
  // The checkpoint's configuration is the same without parts that depend on the machine.
  Json decisive = config;
  CHECK(decisive.at("tokens") == "characters");
  for (const char* const key : {"data", "val_data", "init_from", "save_interval", "sample_interval",
                                "sample_tokens", "sample_prompt", "tokens"})
    CHECK(decisive.erase(key) == 1);
  CHECK(Json::parse(xgrad::io::format_json(*checkpoint.user.find("config"))) == decisive);
  CHECK(characters_in(checkpoint) == characters);
  const xgrad::io::SafetensorsFile file(folder / folder.checkpoint);
  CHECK(file.contains("transformer.wte.weight"));
  CHECK(file.contains("transformer.h.0.attn.c_attn.weight"));
  CHECK(file.contains("optimizer.exp_avg.transformer.wte.weight"));
  CHECK_FALSE(file.contains("lm_head.weight"));
  CHECK_FALSE(file.contains("transformer.ln_f.bias"));
}

TEST_CASE("xgrad: eval prints the loss that training ended with") {
  const TrainedFolder folder;
  const std::string trained = digits_after(folder.trained.out, "val_loss ");
  CHECK(digits_after(read_bytes(folder / "run/metrics.jsonl"), "\"final_val_loss\": ") == trained);
  const Result same = run_well(folder, "eval --checkpoint " + folder.checkpoint);
  CHECK_THAT(same.out, StartsWith("val_loss " + trained + " (perplexity "));
  CHECK(std::stod(digits_after(same.out, "perplexity ")) ==
        Approx(std::exp(std::stod(trained))).epsilon(1e-5));
  const Result named = run_well(folder, {"eval", "--checkpoint", folder.checkpoint, "--data",
                                         "text", "--split", "val", "--threads", "1"});
  CHECK(lines_of(named.out)[0] == lines_of(same.out)[0]);
  // The same block by block.
  const auto checkpoint = xgrad::io::load_checkpoint(folder / folder.checkpoint);
  xgrad::lm::GPT model(tiny_config(characters_in(checkpoint).size()));
  xgrad::io::load_state(model, checkpoint.model, "test");
  const auto text = xgrad::lm::decode_utf8(tiny_text(), "text");
  const auto part = xgrad::lm::split(characters_in(checkpoint).encode(text)).validation;
  const std::size_t blocks = xgrad::lm::block_count(part, 8);
  REQUIRE(blocks == 29);
  double total = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto [x, y] = xgrad::lm::block_batch(part, 8, i, 1);
    total += model.loss(x, y).item();
  }
  CHECK(std::stod(trained) == Approx(total / static_cast<double>(blocks)).epsilon(1e-6));
  // Another text, in the model's ids.
  write_bytes(folder / "other", std::string(300, 't'));
  const Result other = ran(folder, {"eval", "--checkpoint", folder.checkpoint, "--data", "other"});
  CHECK_THAT(other.err, ContainsSubstring("other: another text than the model was trained on"));
  CHECK(std::stod(digits_after(other.out, "loss ")) > std::stod(trained));
}

TEST_CASE("xgrad: the learning rate falls to a tenth, unless told otherwise") {
  const TinyFolder folder;
  const Arguments low = tiny_train("--learning-rate 5e-5 --max-iters 41");
  const auto rates = [&](const Arguments& more) {
    const Arguments all = overridden(low, more);
    run_well(folder, all);
    return column(metrics_of(all.back()), "lr");
  };
  const auto tenth = rates({"--out", folder / "tenth"});
  CHECK(tenth[2] == 5e-5);
  CHECK(std::is_sorted(tenth.rbegin(), tenth.rend() - 2));
  CHECK(tenth.back() == 5e-5 / 10);
  CHECK(rates({"--min-lr", "2e-5", "--out", folder / "told"}).back() == 2e-5);
}

TEST_CASE("xgrad: evaluations leave the training as it is") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out often --dropout 0.2 --eval-interval 1"));
  run_well(folder, tiny_train("--out once --dropout 0.2 --eval-interval 100"));
  CHECK(column(metrics_of(folder / "often"), "loss") ==
        column(metrics_of(folder / "once"), "loss"));
  const auto often = xgrad::io::load_checkpoint(folder / "often/checkpoint.safetensors");
  const auto once = xgrad::io::load_checkpoint(folder / "once/checkpoint.safetensors");
  CHECK(often.generators == once.generators);
}

TEST_CASE("xgrad: the draws are those of the plain loop") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --dropout 0.2 --max-iters 5"));

  xgrad::manual_seed(1337);
  const auto text = xgrad::lm::decode_utf8(tiny_text(), "text");
  const auto characters = xgrad::lm::Characters::of(text);
  const auto ids = xgrad::lm::split(characters.encode(text));
  const xgrad::lm::GPT model(tiny_config(characters.size(), 0.2));
  const auto parameters = xgrad::nn::parameters(model);
  xgrad::optim::AdamW optimizer(
      xgrad::optim::decay_matrices(parameters, {.betas = {0.9, 0.99}, .weight_decay = 0.1}));
  const std::vector<Json> rows = metrics_of(folder / "run");
  REQUIRE(rows.size() == 5);
  for (const Json& row : rows) {
    const auto [x, y] = xgrad::lm::random_batch(ids.train, 8, 4, xgrad::default_generator());
    const xgrad::Tensor loss = model.loss(x, y);
    CHECK(row.at("loss").get<double>() == Approx(loss.item()).epsilon(1e-8));
    optimizer.set_learning_rate(row.at("lr").get<double>());
    optimizer.zero_grad();
    loss.backward();
    CHECK(row.at("grad_norm").get<double>() ==
          Approx(xgrad::optim::clip_grad_norm_(parameters, 1.0)).epsilon(1e-6));
    optimizer.step();
  }
}

TEST_CASE("xgrad: gradient accumulation is a larger batch, drawn in order") {
  const TinyFolder folder;
  const Arguments two = {"--out two --batch-size 2 --gradient-accumulation-steps 2"};
  run_well(folder, tiny_train(two));
  run_well(folder, tiny_train("--out one"));
  const std::vector<Json> a = metrics_of(folder / "two"), b = metrics_of(folder / "one");
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(a[i].at("loss").get<double>() == Approx(b[i].at("loss").get<double>()).epsilon(1e-4));
    CHECK(a[i].at("grad_norm").get<double>() ==
          Approx(b[i].at("grad_norm").get<double>()).epsilon(1e-3));
  }
}

TEST_CASE("xgrad: a model with biases has them") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --max-iters 0 --bias"));
  CHECK(xgrad::io::SafetensorsFile(folder / "run/checkpoint.safetensors")
            .contains("transformer.ln_f.bias"));
}

TEST_CASE("xgrad: without --out, runs are numbered") {
  const TinyFolder folder;
  const Result first = run_well(folder, tiny_train("--max-iters 1"));
  CHECK_THAT(first.err, ContainsSubstring("Run:   runs/000\n"));
  std::filesystem::create_directory(folder / "runs/007");
  run_well(folder, tiny_train("--max-iters 1"));
  CHECK(std::filesystem::exists(folder / "runs/000/checkpoint.safetensors"));
  CHECK(std::filesystem::exists(folder / "runs/008/checkpoint.safetensors"));
}

TEST_CASE("xgrad: the embedded corpus comes with its entropy") {
  const TinyFolder folder;
  Arguments arguments = tiny_train("--out run --max-iters 1");
  arguments.erase(arguments.begin() + 1, arguments.begin() + 3);  // --data text
  const Result result = run_well(folder, arguments);
  CHECK(Json::parse(read_bytes(folder / "run/config.json")).at("data").is_null());

  const corpus::Corpus corpus = corpus::scenes_corpus();
  const std::size_t begin = corpus.text.size() * 9 / 10;
  const std::size_t asked = 2048 * 8;
  const double entropy = std::stod(digits_after(result.out, "entropy of "));
  const double distance = std::stod(digits_after(result.out, "from perfect "));
  CHECK(entropy == Approx(mean_nll(corpus, begin + 1, begin + 1 + asked)).margin(1e-6));
  CHECK(entropy + distance ==
        Approx(std::stod(digits_after(result.out, "val_loss "))).margin(1e-5));
}

TEST_CASE("xgrad: help names every flag of the recipe and its default") {
  const TemporaryFolder folder;
  const std::string help = run_well(folder, "train --help").out;
  std::istringstream flags(
      "--data --out --preset --block-size --batch-size --n-layer --n-head --n-embd --dropout "
      "--bias --learning-rate --min-lr --warmup-iters --lr-decay-iters --max-iters "
      "--gradient-accumulation-steps --weight-decay --beta1 --beta2 --grad-clip --eval-interval "
      "--eval-iters --seed --threads --resume --init-from --save-interval --val-data "
      "--sample-tokens");
  for (std::string flag; flags >> flag;)
    CHECK_THAT(help, ContainsSubstring("  " + flag + " "));
  CHECK_THAT(help, ContainsSubstring("[64, baby: 256, micro: 16]"));
  CHECK_THAT(run_well(folder, {"--help"}).out, ContainsSubstring("sample"));
  // Each help ends with valid command lines.
  for (const char* const name : {"train", "eval", "sample", "explain", "graph", "export", "report",
                                 "compare", "playground"}) {
    const std::string text = run(folder, {name, "--help"}).out;
    const std::size_t at = text.find("\nFor example:\n");
    REQUIRE(at != std::string::npos);
    const std::vector<std::string> lines = lines_of(text.substr(at + 14));
    CHECK(!lines.empty());
    for (const std::string& line : lines) {
      Arguments words(line);
      REQUIRE((words.size() > 1 && words[0] == "xgrad" && words[1] == name));
      words.erase(words.begin());
      CAPTURE(line);
      const int code = run(folder, words).code;
      CHECK((code == 1 || (code == 0 && words[0] == "playground")));  // the file does not exist
    }
  }
}
