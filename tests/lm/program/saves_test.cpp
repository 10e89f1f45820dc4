// A run saves its state, or reports why it cannot.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/version.hpp>
#include <xgrad/io/safetensors.hpp>

#include "lm/program/run.hpp"

namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("xgrad: when a run is saved changes nothing", "[saves]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --save-interval 8"));
  run_well(folder, tiny_train("--out plain"));
  for (const std::string run : {"run", "plain"})
    CHECK(names_in(folder / run) ==
          std::set<std::string>{"config.json", "environment.json", "metrics.jsonl", "samples.jsonl",
                                "report.html", "checkpoint.safetensors", "best.safetensors"});
  for (const std::string name : {"checkpoint", "best"})
    CHECK((read_bytes(folder / ("run/" + name + ".safetensors")) ==
           read_bytes(folder / ("plain/" + name + ".safetensors"))));
}

TEST_CASE("xgrad: --init-from begins with a model's weights", "[saves]") {
  const TrainedFolder folder;
  const auto from = [](const std::string& file, const Arguments& more) {
    return overridden({"train", "--init-from", file, "--data", "text", "--max-iters", "3", "--out",
                       "new", "--eval-interval", "1", "--batch-size", "4", "--warmup-iters", "0"},
                      more);
  };
  const Result result = run_well(folder, from(folder.checkpoint, {}));
  CHECK_THAT(result.err, ContainsSubstring("From:  run/checkpoint.safetensors, after 40 steps."));
  const Json config = Json::parse(read_bytes(folder / "new/config.json"));
  CHECK(config.at("n_embd") == 16);
  CHECK_THAT(config.at("init_from").get<std::string>(), EndsWith("/run/checkpoint.safetensors"));
  CHECK(metrics_of(folder / "new")[0].at("loss").get<double>() < 2.2);  // at random it is 3.1
  CHECK(xgrad::io::load_checkpoint(folder / "new/checkpoint.safetensors").step == 3);
  run_well(folder, "train --resume new --max-iters 5");
  // In a loop that restarts a run, the flag serves the first start.
  const Result again = run_well(folder, from(folder.checkpoint, "--resume --max-iters 7"));
  CHECK_THAT(again.err, StartsWith("From:  new/checkpoint.safetensors, after 5 steps; --init-from "
                                   "is for a new run, and not used.\n"));
  CHECK(read_bytes(folder / "new/config.json").find("run/checkpoint.safetensors") !=
        std::string::npos);
  check_refused(folder, from(folder.checkpoint, "--resume new"), 2,
                {"--init-from begins a new run, and --resume new continues one"});

  // Weights alone, and a text with some of the model's characters.
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  write_bytes(folder / "cats", std::string(50, 't') + std::string(200, 'c'));
  run_well(folder, from("model.safetensors", "--data cats --out cat"));

  const auto refused = [&](const Arguments& more, const std::vector<std::string>& fragments) {
    const Arguments all = overridden(from(folder.checkpoint, "--out no"), more);
    check_refused(folder, all, 1, fragments);
    CHECK_FALSE(fs::exists(folder / "no"));
  };
  refused("--n-layer 3 --n-embd 32 --bias", {"--n-layer 3 is given, but the model has 1",
                                             "--n-embd 32 is given, but the model has 16",
                                             "--bias true is given, but the model has false"});
  write_bytes(folder / "greek", tiny_text() + "αβ");
  refused("--data greek", {"greek: ", "'α'"});
  refused("--init-from none", {"none: cannot be opened"});
}

TEST_CASE("xgrad: weights that are not finite are named", "[saves]") {
  const TrainedFolder folder;
  run_well(folder, "export --checkpoint " + folder.checkpoint);
  for (const std::string& file : {folder.checkpoint, std::string("model.safetensors")}) {
    xgrad::io::TensorFile content = xgrad::io::load_safetensors(folder / file);
    std::vector<float> values(16, 1);
    values[3] = values[7] = std::numeric_limits<float>::quiet_NaN();
    content.tensors["transformer.ln_f.weight"] = xgrad::Tensor(values);
    xgrad::io::save_safetensors(folder / file, content);
  }
  const std::vector<std::string> named = {"2 of the 16 values of transformer.ln_f.weight",
                                          "not finite"};
  check_refused(folder, "eval --checkpoint " + folder.checkpoint, 1, named);
  check_refused(folder, "sample --checkpoint " + folder.checkpoint, 1, named);
  check_refused(folder, {"export", "--checkpoint", folder.checkpoint, "--out", "new"}, 1, named);
  for (const std::string& file : {folder.checkpoint, std::string("model.safetensors")})
    check_refused(folder, tiny_train({"--init-from", file, "--out", "no"}), 1, named);
  CHECK_FALSE(fs::exists(folder / "new"));
}

TEST_CASE("xgrad: --version") {
  const TemporaryFolder folder;
  CHECK_THAT(run_well(folder, {"--version"}).out,
             Catch::Matchers::Matches("xgrad " + xgrad::version() +
                                      "( \\(commit [-0-9a-z]+\\))?, (GCC|Clang) .+\n"
                                      "instructions: .+\nmatrix products: .+\nthreads: [0-9]+\n"));
}

// A limit below a checkpoint's size acts as a full disk.
TEST_CASE("xgrad: a save that fails ends neither the run nor its last checkpoint", "[saves]") {
  const TinyFolder folder;
  const auto full = limited(RLIMIT_FSIZE, 20000);
  const Result fresh = Process(folder, tiny_train("--out none"), full).wait();
  INFO(fresh.out << fresh.err);
  CHECK(fresh.code == 1);
  check_contains(fresh.err,
                 {"none/checkpoint.safetensors: writing failed: File too large; training "
                  "continues",
                  "the model could not be saved and is lost"});
  CHECK_THAT(fresh.err, ContainsSubstring("step 40/40 100 %"));
  CHECK(metrics_of(folder / "none").size() == 40);
  CHECK(names_in(folder / "none") ==
        std::set<std::string>{"config.json", "environment.json", "metrics.jsonl", "samples.jsonl"});

  run_well(folder, tiny_train("--out run"));
  const std::string before = read_bytes(folder / "run/checkpoint.safetensors");
  const Result more = Process(folder, "train --resume run --max-iters 60", full).wait();
  CHECK(more.code == 1);
  check_contains(more.err,
                 {"the last checkpoint, after 40 steps of 60, is run/checkpoint.safetensors"});
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") == before));
  // With space again, nothing is missing.
  run_well(folder, "train --resume run --max-iters 60");
  CHECK(metrics_of(folder / "run").size() == 60);
}

TEST_CASE("xgrad: a best model that cannot be saved ends no run", "[saves]") {
  const TinyFolder folder;
  const std::string best = folder / "run/best.safetensors";
  run_well(folder, tiny_train("--out run --max-iters 10"));
  fs::remove(best);
  fs::create_directories(best + "/in the way");
  const Result blocked = run(folder, "train --resume run --max-iters 20");
  INFO(blocked.out << blocked.err);
  CHECK(blocked.code == 1);
  check_contains(blocked.err, {"run/best.safetensors: ", "training continues"});
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step == 20);
}

TEST_CASE("xgrad: when it can save again, a run saves again", "[saves]") {
  const TinyFolder folder;
  const std::string checkpoint = folder / "run/checkpoint.safetensors";
  Process process(folder, tiny_train("--out run --max-iters 1000000 --eval-interval 100"));
  wait_until([&] { return fs::exists(checkpoint); });
  process.signal(SIGSTOP);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(process.id()), &info, WSTOPPED | WNOWAIT);
  fs::remove(checkpoint);
  fs::create_directories(checkpoint + "/in the way");
  process.signal(SIGCONT);
  wait_until([&] { return process.err().find("; training continues") != std::string::npos; });
  fs::remove_all(checkpoint);
  wait_until([&] {
    return process.err().find("steps: saved in run/checkpoint.safetensors") != std::string::npos;
  });
  process.signal(SIGTERM);
  const Result result = process.wait();
  INFO(result.err);
  CHECK(result.code == 128 + SIGTERM);
  CHECK(metrics_of(folder / "run").size() == xgrad::io::load_checkpoint(checkpoint).step);
}

TEST_CASE("xgrad: a run whose rows find no room ends, and goes on as if it had not", "[saves]") {
  const TinyFolder folder;
  for (const char* const out : {"whole", "run"})
    run_well(folder, tiny_train({"--out", out}));
  run_well(folder, "train --resume whole --max-iters 60");
  const std::string before = read_bytes(folder / "run/checkpoint.safetensors");
  const Result full =
      Process(folder, "train --resume run --max-iters 60",
              limited(RLIMIT_FSIZE, fs::file_size(folder / "run/metrics.jsonl") + 1000))
          .wait();
  INFO(full.err);
  CHECK(full.code == 1);
  check_contains(full.err,
                 {"run/metrics.jsonl: writing failed: File too large; the run ends\n",
                  "The last good checkpoint, after 40 steps, is run/checkpoint.safetensors."});
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") == before));
  CHECK(metrics_of(folder / "run").size() > 41);
  CHECK_THAT(read_bytes(folder / "run/metrics.jsonl"), EndsWith("}\n"));
  run_well(folder, "train --resume run --max-iters 60");
  CHECK((timeless_metrics_of(folder / "run") == timeless_metrics_of(folder / "whole")));
  for (const std::string name : {"checkpoint.safetensors", "best.safetensors", "samples.jsonl"})
    CHECK((read_bytes(folder / ("run/" + name)) == read_bytes(folder / ("whole/" + name))));
}

TEST_CASE("xgrad: a run that is stopped and cannot be saved says so", "[saves]") {
  const TinyFolder folder;
  Process process(folder, tiny_train("--out run --max-iters 1000000 --eval-interval 1000000"),
                  limited(RLIMIT_FSIZE, 40000));
  wait_until([&] { return process.err().find("\nstep ") != std::string::npos; });
  process.signal(SIGINT);
  const Result result = process.wait();
  INFO(result.err);
  CHECK(result.code == 1);
  check_contains(result.err, {"Stopped by SIGINT after ", "; the model could not be saved.",
                              "the model could not be saved and is lost"});
  CHECK(result.err.find("the model is in") == std::string::npos);
}

TEST_CASE("xgrad: a rate that nobody chose may undo what weights have learnt", "[saves]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --min-lr 0.0001"));
  Arguments plain = {"train --init-from run --data text --max-iters 1"};
  const auto note = [&](const Arguments& more) {
    const std::string err = run_well(folder, overridden(plain, more)).err;
    const std::size_t at = err.find("Note:  ");
    return at == std::string::npos ? "" : err.substr(at, err.find('\n', at) - at);
  };
  const std::string last = fmt::format("they were last trained with {:.4g}",
                                       metrics_of(folder / "run").back().at("lr").get<double>());
  CHECK(note("--out a") ==
        "Note:  --learning-rate is 0.001 unless it is given, which may undo what these weights "
        "have learnt: " +
            last + ".");
  CHECK(note("--out c --learning-rate 0.001").empty());
  CHECK(note("--out d --lora-rank 2").empty());
  run_well(folder, "export run --out weights.safetensors");
  CHECK_THAT(note("--out e --init-from weights.safetensors"),
             EndsWith("learnt: fine-tuning usually takes 0.0001."));
}
