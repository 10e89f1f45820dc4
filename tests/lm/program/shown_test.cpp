// The output of training before, during and after a run, and its samples.

#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/text.hpp>

#include <xgrad/autograd/threads.hpp>

#include "lm/program/corpus_nll.hpp"
#include "lm/program/run.hpp"

namespace {

std::vector<Json> samples_of(const std::string& folder) {
  std::vector<Json> rows;
  for (const std::string& line : lines_of(read_bytes(folder + "/samples.jsonl")))
    rows.push_back(Json::parse(line));
  return rows;
}

/// The files under a folder, with their sizes and times.
std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files_in(
    const std::string& folder) {
  std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string().front() != '.')
      files[entry.path().string()] = {entry.file_size(), entry.last_write_time()};
  return files;
}

}  // namespace

TEST_CASE("xgrad: results go to standard output, and all else to standard error", "[shown]") {
  const TinyFolder folder;
  const Result usual = run_well(folder, tiny_train("--out a"));
  CHECK_THAT(usual.out,
             Catch::Matchers::Matches(
                 "val_loss [0-9.]+ \\(perplexity [0-9.]+, [0-9.]+ bits per byte\\)\n"
                 "Over all 29 blocks of the validation split of text, 8 characters each.\n"
                 "\n[^]*"));
  CHECK(usual.out.find("step ") == std::string::npos);
  const std::regex build(
      "Build: xgrad [0-9.]+( \\(commit [0-9a-f]+(-dirty)?\\))?, (GCC|Clang) [0-9.]+[^;]*; "
      "[a-z0-9+]+, "
      "float32; matrix products by " +
      xgrad::blas_name() + ".\n");
  CHECK(std::regex_search(usual.err, build));
  check_contains(
      usual.err,
      {"\nText:  text: 2,340 characters of a vocabulary of 23; 2,106 to train on, 234 to "
       "validate.\n",
       "\nLoss:  a uniform guess has ln 23 = 3.1355.\n",
       "\nModel: n_layer 1, n_head 2, n_embd 16: 3,616 parameters.\n"
       "Steps: 40 of 32 characters (4 blocks of 8), on ",
       "\nbefore the first step: validation loss 3.1", "\nRun:   a\nstep 1/40 2 % | loss 3.",
       "\nafter 10 steps: validation loss ", "\nafter 10 steps it writes:  / ",
       "\nstep 40/40 100 % | loss ", "\nThe run is in a. What the model writes:\n"});

  const Result quiet = run_well(folder, tiny_train("--out b -q"));
  CHECK(quiet.err == "");
  CHECK(quiet.out == usual.out);
  CHECK(timeless_metrics_of(folder / "b") == timeless_metrics_of(folder / "a"));
  // Errors are printed even with --quiet.
  check_refused(folder, tiny_train("--out a -q"), 1, {"a: the folder holds a run already"});
}

TEST_CASE("xgrad: a dry run prints the same as a run, and writes nothing", "[shown]") {
  const TinyFolder folder;
  const Result dry = run_well(folder, tiny_train({"--dry-run"}));
  CHECK(dry.err == "");
  check_contains(dry.out,
                 {"Build: ", "\nText:  ", "\nModel: ", "\nSteps: 40 of ", "\nTime:  about "});
  CHECK(dry.out.find("val_loss") == std::string::npos);
  CHECK_FALSE(fs::exists(folder / "runs"));
  run_well(folder, tiny_train("--out run --max-iters 20"));
  const auto before = files_in(folder / ".");
  const Result more = run_well(folder, "train --resume run --max-iters 40 --dry-run");
  check_contains(more.err, {"From:  run/checkpoint.safetensors, after 20 steps."});
  CHECK(files_in(folder / ".") == before);
  // Evaluations count: one before the first step, one at each interval, one at the end.
  check_contains(dry.out, {": 40 steps of ", ", 5 evaluations of ", ", and the final loss.\n"});
  check_contains(more.out, {": 20 steps of ", ", 2 evaluations of "});
  const std::string slow =
      run_well(folder,
               tiny_train("--dry-run --eval-iters 1000000000 --eval-interval 7 --max-iters 15"))
          .out;
  CHECK_THAT(slow, Catch::Matchers::Matches("[^]*\nTime:  about [0-9]+[dh][0-9]+[hm]: 15 steps of "
                                            "[0-9.]+ ms, 4 evaluations of [0-9]+[dh][^]*"));
  check_contains(slow, {"\nEval:  before the first step and every 7 steps, over 1,000,000,000 "
                        "random batches of 32 characters: 136,752,136 times the text"});
  check_contains(more.out, {"\nEval:  every 10 steps, over 2 random batches of 32 characters.\n"});
  // It rejects the same flags as a run.
  check_refused(folder, tiny_train("--out run --dry-run"), 1, {"holds a run already"});
  check_refused(folder, "train --data none --dry-run", 1, {"none"});
  CHECK(files_in(folder / ".") == before);
}

TEST_CASE("xgrad: its memory is not that of the program that starts it", "[shown]") {
  const TinyFolder folder;
  constexpr std::size_t large = std::size_t{600} << 20;
  Process process(folder, tiny_train("--out run"), [] {
    const std::vector<char> used(large, 1);
    if (used[large / 2] != 1)
      ::_exit(96);
  });
  const Result result = process.wait();
  const std::string line = "\nstep 40/40 100 %";
  const std::string last = result.err.substr(result.err.find(line));
  const std::string megabytes = last.substr(0, last.find(" MB\n"));
  INFO(result.err);
  CHECK(std::stod(megabytes.substr(megabytes.rfind(' '))) < (XGRAD_SANITIZER ? 500 : 200));
}

TEST_CASE("xgrad: one batch is learnt by heart", "[shown]") {
  const TinyFolder folder;
  const auto before = files_in(folder / ".");
  const auto check = [&](const Arguments& more) {
    const Arguments all =
        overridden(tiny_train("--overfit-one-batch --max-iters 600 --dropout 0.5"), more);
    return run(folder, all);
  };
  const Result well = check({});
  INFO(well.out << well.err);
  CHECK(well.code == 0);
  CHECK_THAT(well.out, StartsWith("overfit-one-batch: passed: loss 3."));
  const double lowest = number_after(well.out, " steps, where ");
  CHECK(number_after(well.out, " -> ") < lowest + 0.05);

  // The lowest possible loss of the first batch: blocks with one beginning may continue
  // differently.
  xgrad::manual_seed(1337);
  const auto text = xgrad::lm::decode_utf8(tiny_text(), "text");
  const auto characters = xgrad::lm::Characters::of(text);
  const auto ids = xgrad::lm::split(characters.encode(text));
  const xgrad::lm::GPT model(
      {.block_size = 8, .vocab_size = 23, .n_layer = 1, .n_head = 2, .n_embd = 16, .bias = false});
  const auto [x, y] = xgrad::lm::random_batch(ids.train, 8, 4, xgrad::default_generator());
  double expected = 0;
  for (std::size_t t = 0; t < 8; ++t) {
    std::map<std::string, std::map<std::int64_t, int>> after;
    for (std::size_t b = 0; b < 4; ++b) {
      std::string prefix;
      for (std::size_t i = 0; i <= t; ++i)
        prefix += static_cast<char>(x.data()[b * 8 + i]);
      ++after[prefix][y.data()[b * 8 + t]];
    }
    for (const auto& [prefix, next] : after) {
      int n = 0;
      for (const auto& [id, count] : next)
        n += count;
      for (const auto& [id, count] : next)
        expected -= count * std::log(static_cast<double>(count) / n);
    }
  }
  CHECK(lowest == Approx(expected / 32).margin(1e-4));

  const Result stuck = check("--learning-rate 1e-7");
  CHECK(stuck.code == 1);
  check_contains(stuck.out,
                 {"overfit-one-batch: FAILED: loss 3.", " in 600 steps", "--max-iters 2400",
                  "--learning-rate (it was 1e-07)", "nn::gradcheck"});
  CHECK(check("--max-iters 0").code == 1);
  for (const char* const flag : {"--out", "--resume", "--save-interval"})
    check_refused(folder, {"train", "--overfit-one-batch", flag, "1"}, 2,
                  {"--overfit-one-batch is a check that saves nothing: omit "});
  CHECK(files_in(folder / ".") == before);
}

TEST_CASE("xgrad: samples on the way change nothing of the training", "[shown]") {
  const TinyFolder folder;
  const auto train = [&](const std::string& out, const Arguments& more) {
    const Arguments all = overridden(tiny_train({"--dropout", "0.2", "--out", out}), more);
    return run_well(folder, all);
  };
  const auto steps_in = [&](const std::string& out) {
    std::vector<std::size_t> steps;
    for (const Json& row : samples_of(folder / out))
      steps.push_back(row.at("step").get<std::size_t>());
    return steps;
  };
  train("usual", {});
  CHECK(steps_in("usual") == std::vector<std::size_t>{10, 20, 30, 40});
  CHECK(samples_of(folder / "usual")[0].at("text").get<std::string>().size() == 65);
  train("none", "--sample-interval 0");
  CHECK(steps_in("none").empty());
  const Result often = train("often", "--sample-interval 7 --sample-prompt 'the cat'");
  CHECK(steps_in("often") == std::vector<std::size_t>{7, 14, 21, 28, 35});
  for (const Json& row : samples_of(folder / "often"))
    CHECK_THAT(row.at("text").get<std::string>(), StartsWith("the cat"));
  for (const char* const other : {"usual", "often"}) {
    CHECK((timeless_metrics_of(folder / other) == timeless_metrics_of(folder / "none")));
    for (const char* const name : {"/checkpoint.safetensors", "/best.safetensors"})
      CHECK((read_bytes(folder / (other + std::string(name))) ==
             read_bytes(folder / ("none" + std::string(name)))));
  }

  // A resumed run has the samples of one that was never stopped: later and incomplete ones are
  // removed.  It keeps its flags.
  train("parts", "--sample-interval 7 --sample-prompt 'the cat' --max-iters 16");
  std::ofstream(folder / "parts/samples.jsonl", std::ios::app)
      << R"({"step":21,"text":"of another future"})"
      << "\n"
      << R"({"step":28,"te)";
  run_well(folder, "train --resume parts --max-iters 40");
  CHECK(read_bytes(folder / "parts/samples.jsonl") == read_bytes(folder / "often/samples.jsonl"));

  // An empty prompt counts as given.
  run_well(folder, "train --resume parts --max-iters 43 --sample-prompt ''");
  CHECK_THAT(samples_of(folder / "parts").back().at("text").get<std::string>(), StartsWith("\n"));
  CHECK(samples_of(folder / "parts").back().at("step") == 42);
  run_well(folder,
           {"train", "--resume", "parts", "--max-iters", "50", "--sample-prompt", "cat\r\n"});
  CHECK_THAT(samples_of(folder / "parts").back().at("text").get<std::string>(),
             StartsWith("cat\n"));  // line ends as in texts

  for (const char* const dry : {"false", "true"})
    check_refused(folder,
                  tiny_train({"--out", "bad", "--sample-prompt", "Zebra", "--dry-run", dry}), 1,
                  {"--sample-prompt: ", "'Z'"});
  check_refused(folder, tiny_train("--out bad --sample-interval -1"), 2,
                {"--sample-interval", "'-1'"});
}

TEST_CASE("xgrad: the preset micro learns names that it makes itself", "[shown]") {
  const TemporaryFolder folder;
  const Result trained = run_well(folder, "train --preset micro --out run --max-iters 200");
  check_contains(trained.err,
                 {"Text:  the embedded names: 100,000 characters of a vocabulary of 25; ",
                  "n_layer 1, n_head 4, n_embd 16: ", "(16 blocks of 16)"});
  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK(config.at("preset") == "micro");
  CHECK(config.at("data").is_null());
  const double loss = number_after(trained.out, "val_loss ");
  CHECK(loss < 2.2);  // a uniform guess has 3.2
  // The entropy is that of the names.
  const corpus::Corpus names = corpus::names_corpus();
  const double entropy = mean_nll(names, 90001, 90001 + 9999 / 16 * 16);
  CHECK(number_after(trained.out, "entropy of ") == Approx(entropy).margin(1e-6));
  CHECK(number_after(trained.err, "no model can beat ") == Approx(entropy).margin(1e-4));
  const std::string checkpoint = "run/checkpoint.safetensors";
  CHECK_THAT(run_well(folder, {"eval", "--checkpoint", checkpoint}).out,
             StartsWith(trained.out.substr(0, trained.out.find("\n\n"))));
  CHECK(run_well(folder, {"sample", "--checkpoint", checkpoint, "--tokens", "30"}).out.size() ==
        32);
  run_well(folder, "train --resume run --max-iters 210");
  CHECK(metrics_of(folder / "run").size() == 210);
  // Also if the folder does not name its training text.
  fs::remove(folder / "run/config.json");
  CHECK(run(folder, {"eval", "--checkpoint", checkpoint}).code == 0);
  // A given text takes precedence.
  write_bytes(folder / "text", tiny_text());
  check_contains(run_well(folder, "train --preset micro --data text --dry-run").out,
                 {"Text:  text: "});
}
