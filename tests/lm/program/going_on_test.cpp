// --resume: the runs that it accepts and rejects.

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <xgrad/io/safetensors.hpp>

#include "lm/program/run.hpp"

TEST_CASE("xgrad: --resume begins no unrequested run", "[resume]") {
  const TinyFolder folder;
  const auto nothing = [&](const std::vector<std::string>& fragments) {
    for (const Arguments& resume : {Arguments{"--resume"}, {"--resume auto"}}) {
      check_refused(folder, tiny_train(resume), 1, fragments);
      check_refused(folder, "train --resume --max-iters 90", 1, fragments);
    }
  };
  nothing({"there is nothing to resume", "runs/"});
  run_well(folder, tiny_train("--max-iters 10"));
  run_well(folder, tiny_train("--max-iters 20"));
  nothing({"there is nothing to resume", "finished: runs/000, runs/001", "--max-iters"});
  // A run that was killed between its first two saves has only its best checkpoint.
  {
    Process process(folder, tiny_train("--max-iters 1000000 --out runs/002"));
    wait_until([&] { return fs::exists(folder / "runs/002/best.safetensors"); });
    process.signal(SIGKILL);
    process.wait();
  }
  fs::remove(folder / "runs/002/checkpoint.safetensors");
  const Result next = run_well(folder, "train --resume --dry-run");
  CHECK_THAT(next.err, ContainsSubstring("From:  runs/002/best.safetensors"));
  // In a named folder without a run, a run begins and says so.
  const Result begun = run_well(folder, tiny_train("--resume --out named"));
  check_contains(begun.err, {"a new run: there is nothing to resume in named"});
}

TEST_CASE("xgrad: the schedule of a run that goes on may change", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run"));
  const Arguments other = {
      "train --resume run --max-iters 60 --learning-rate 0.005 --min-lr 0.001 --warmup-iters 3 "
      "--lr-decay-iters 80 --eval-interval 5"};
  const auto with = [&](const Arguments& more) { return overridden(other, more); };
  check_refused(folder, with("--n-layer 2 --eval-iters 9"), 1,
                {"--n-layer 2 is given, but the run has 1", "--eval-iters 9 is given"});
  const Result changed = run_well(folder, other);
  check_contains(changed.err,
                 {"\nFlags: changed from here on: ", "--learning-rate 0.01 -> 0.005",
                  "--warmup-iters 2 -> 3", "--lr-decay-iters 40 -> 80", "--eval-interval 10 -> 5"});
  CHECK(changed.err.find("--min-lr") == std::string::npos);  // it is the same
  const std::vector<Json> rows = metrics_of(folder / "run");
  REQUIRE(rows.size() == 60);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].contains("changes") == (i == 40));
    if (i >= 40) {
      const double progress = static_cast<double>(i - 3) / (80 - 3);
      CHECK(rows[i].at("lr").get<double>() ==
            Approx(0.001 + 0.5 * (1 + std::cos(progress * std::acos(-1.0))) * 0.004));
      CHECK(rows[i].contains("val_loss") == (i % 5 == 4));
    }
  }
  CHECK_THAT(rows[40].at("changes").get<std::string>(),
             ContainsSubstring("--learning-rate 0.01 -> 0.005"));
  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK(config.at("learning_rate") == 0.005);
  // From then on it is the run's own value.
  const Result more = run_well(folder, "train --resume run --max-iters 64");
  CHECK(more.err.find("changed from here on") == std::string::npos);
  // A flag with the run's own value changes nothing; one that contradicts the rest is refused.
  const Result same = run_well(folder, "train --resume run --max-iters 66 --learning-rate 0.005");
  CHECK(same.err.find("changed from here on") == std::string::npos);
  check_refused(folder, "train --resume run --max-iters 70 --learning-rate 0.0001", 2,
                {"--min-lr 0.001 is above --learning-rate 0.0001"});
}

TEST_CASE("xgrad: losses of resuming from an earlier checkpoint", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --max-iters 20"));
  fs::copy(folder / "run/best.safetensors", folder / "earlier");
  run_well(folder, "train --resume run --max-iters 40");
  fs::rename(folder / "earlier", folder / "run/best.safetensors");
  const Result result = run_well(folder, "train --resume run/best.safetensors --max-iters 40");
  check_contains(result.err, {"\nNote:  going on after 20 steps: ",
                              "20 rows of later steps went from metrics.jsonl",
                              "checkpoint.safetensors is of a later step"});
  CHECK(metrics_of(folder / "run").size() == 40);
  CHECK(run_well(folder, tiny_train("--out other")).err.find("Note:") == std::string::npos);
}

TEST_CASE("xgrad: rows that are missing are told", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --max-iters 10"));
  write_bytes(folder / "run/metrics.jsonl", "");
  const Result result = run_well(folder, "train --resume run --max-iters 20");
  check_contains(result.err, {"metrics.jsonl lacks the rows from step 0 on"});
}

TEST_CASE("xgrad: checkpoints of steps that are made again go", "[resume]") {
  const TinyFolder folder;
  const auto steps = [&](const std::string& run) {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder / run))
      if (entry.path().extension() == ".safetensors")
        found.insert(
            fmt::format("{} {}", entry.path().filename().string(),
                        xgrad::io::load_safetensors(entry.path().string()).metadata.at("step")));
    return found;
  };
  run_well(folder, tiny_train("--out run --max-iters 20"));
  fs::copy(folder / "run/checkpoint.safetensors", folder / "earlier");
  run_well(folder, "train --resume run --max-iters 40");
  CHECK(steps("run") == std::set<std::string>{"best.safetensors 40", "checkpoint.safetensors 40"});
  // A worse branch that ends earlier: its best is not of the removed steps.
  fs::rename(folder / "earlier", folder / "run/checkpoint.safetensors");
  run_well(folder, "train --resume run/checkpoint.safetensors --max-iters 30 --learning-rate 10");
  CHECK(steps("run") == std::set<std::string>{"checkpoint.safetensors 30"});
}

TEST_CASE("xgrad: of two texts the one that is another is blamed", "[resume]") {
  const TinyFolder folder;
  write_bytes(folder / "val", tiny_text().substr(0, 300));
  write_bytes(folder / "other", tiny_text().substr(10));
  run_well(folder, tiny_train("--out run --val-data val"));
  run_well(folder, "eval --checkpoint run");
  run_well(folder, "eval --checkpoint run --data text");
  const auto go_on = [](const Arguments& more) {
    return overridden("train --resume run --max-iters 42", more);
  };
  check_refused(folder, go_on("--val-data other"), 1,
                {"other: another text than the run in run validates on; --val-data FILE names it"});
  check_refused(folder, go_on("--data other"), 1,
                {"other: another text than the run in run is trained on; --data FILE names it"});
  run_well(folder, go_on({}));
  write_bytes(folder / "val", tiny_text().substr(0, 299));
  CHECK_THAT(run(folder, "eval --checkpoint run").err,
             ContainsSubstring("val: another text than the model was validated on"));
}

TEST_CASE("xgrad: the error for a damaged checkpoint names the other one", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run"));
  const std::string whole = read_bytes(folder / "run/checkpoint.safetensors");
  write_bytes(folder / "run/checkpoint.safetensors", whole.substr(0, whole.size() - 9));
  for (const Arguments& command : {Arguments{"train --resume run --max-iters 50"},
                                   {"train --init-from run"},
                                   {"sample --checkpoint run"},
                                   {"export --checkpoint run"}})
    check_refused(folder, command, 1,
                  {"run/checkpoint.safetensors", "In the same folder is best.safetensors (after "});
  // It can be resumed.
  run_well(folder, "train --resume run/best.safetensors --max-iters 50");
  // Alone, the message has only the error.
  fs::create_directory(folder / "alone");
  fs::copy(folder / "run/checkpoint.safetensors", folder / "alone/checkpoint.safetensors");
  CHECK(run(folder, "sample --checkpoint alone").err.find("Beside") == std::string::npos);
}
