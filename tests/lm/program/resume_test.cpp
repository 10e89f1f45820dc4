// --resume: the run that it continues, and what else is in its folder.

#include <sys/stat.h>

#include <xgrad/io/safetensors.hpp>

#include "helpers/tensors.hpp"
#include "lm/program/run.hpp"

TEST_CASE("xgrad: the run that --resume continues", "[resume]") {
  const TinyFolder folder;
  const auto tiny = [&](const Arguments& more) { return tiny_train(more); };
  run_well(folder, tiny("--max-iters 10"));
  run_well(folder, tiny("--max-iters 10"));
  // --max-iters extends it.
  const Result longer = run_well(folder, tiny("--resume runs/001 --max-iters 20"));
  CHECK_THAT(longer.err,
             ContainsSubstring("From:  runs/001/checkpoint.safetensors, after 10 steps."));
  CHECK(metrics_of(folder / "runs/001").size() == 20);
  CHECK(Json::parse(read_bytes(folder / "runs/001/config.json")).at("max_iters") == 20);
  // The result equals the whole run's.
  run_well(folder, tiny("--out whole --max-iters 20"));
  const auto whole = xgrad::io::load_checkpoint(folder / "whole/checkpoint.safetensors");
  const auto parts = xgrad::io::load_checkpoint(folder / "runs/001/checkpoint.safetensors");
  CHECK(whole.generators == parts.generators);
  for (std::size_t i = 0; i < whole.model.size(); ++i)
    CHECK(same_bits(whole.model[i].second, parts.model[i].second));

  // The latest that is not finished.
  {
    Process process(folder, tiny("--max-iters 1000000 --eval-interval 50"));
    wait_until([&] { return fs::exists(folder / "runs/002/checkpoint.safetensors"); });
    process.signal(SIGKILL);
    process.wait();
    Process next(folder, "train --resume");
    wait_until([&] { return next.err().find("step ") != std::string::npos; });
    next.signal(SIGTERM);
    CHECK_THAT(next.wait().err, StartsWith("From:  runs/002/checkpoint.safetensors, after "));
  }

  // With --out, that folder alone.
  run_well(folder, tiny("--resume --out named --max-iters 10"));
  CHECK(metrics_of(folder / "named").size() == 10);
  // A finished run is not changed.
  const auto before = fs::last_write_time(folder / "named");
  const std::string checkpoint = read_bytes(folder / "named/checkpoint.safetensors");
  const Result finished = run_well(folder, "train --resume named");
  CHECK_THAT(finished.err, ContainsSubstring("the run is finished, after 10 steps"));
  CHECK((fs::last_write_time(folder / "named") == before));  // libc++'s times cannot be printed
  run_well(folder, "train --resume named --max-iters 30 --eval-interval 10");
  CHECK(metrics_of(folder / "named").size() == 30);
  fs::copy(folder / "named/checkpoint.safetensors", folder / "earlier");
  const auto rows = timeless_metrics_of(folder / "named");

  // A file: resumes from there; later steps are repeated with the same results.
  run_well(folder, "train --resume named --max-iters 60");
  const std::string last = read_bytes(folder / "named/checkpoint.safetensors");
  fs::rename(folder / "earlier", folder / "named/checkpoint.safetensors");
  run_well(folder, "train --resume named/checkpoint.safetensors --max-iters 60");
  CHECK((read_bytes(folder / "named/checkpoint.safetensors") == last));
  check_refused(folder, "train --resume named/none.safetensors", 1, {"cannot be opened"});
  CHECK(metrics_of(folder / "named").size() == 60);
  for (std::size_t i = 0; i + 1 < rows.size(); ++i)
    CHECK(timeless_metrics_of(folder / "named")[i] == rows[i]);

  fs::create_directory(folder / "empty");
  check_refused(folder, "train --resume empty", 1, {"empty: the folder holds no checkpoint"});
  check_refused(folder, "train --resume nowhere", 1, {"nowhere: cannot be opened"});
  check_refused(folder, "train --resume text", 1, {"text: not a safetensors file"});
}

TEST_CASE("xgrad: a run goes on although files are missing, damaged or elsewhere", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --max-iters 10"));
  // A link continues at its target.
  fs::create_symlink("run/checkpoint.safetensors", folder / "latest.safetensors");
  run_well(folder, "train --resume latest.safetensors --max-iters 12");
  CHECK(metrics_of(folder / "run").size() == 12);
  CHECK_FALSE(fs::exists(folder / "config.json"));
  run_well(folder, tiny_train("--out ended"));
  for (const char* const name : {"checkpoint.safetensors", "best.safetensors", "report.html"})
    fs::remove(folder / ("ended/" + std::string(name)));
  // The folder of a run that was killed before its first save: its rows are removed, with a
  // message.
  check_contains(run_well(folder, tiny_train("--out ended --resume")).err,
                 {"40 rows of later steps went from metrics.jsonl"});
  // One bad folder does not stop the search.
  run_well(folder, tiny_train("--max-iters 10"));
  fs::create_directories(folder / "runs/001");
  write_bytes(folder / "runs/001/checkpoint.safetensors", "?");
  const Result next = run(folder, tiny_train("--max-iters 12 --resume"));
  CHECK(next.code == 1);
  check_contains(next.err, {"passed over: runs/001/checkpoint.safetensors: ",
                            "there is nothing to resume, all runs are finished: runs/000"});
  // The first save is the best checkpoint.
  fs::remove(folder / "runs/000/checkpoint.safetensors");
  check_contains(run_well(folder, "train --resume runs/000 --max-iters 14").err,
                 {"From:  runs/000/best.safetensors"});
  // Numbers that the flags reject.
  std::string config = read_bytes(folder / "run/config.json");
  const std::string from = "\"save_interval\": null";
  REQUIRE(config.find(from) != std::string::npos);
  config.replace(config.find(from), from.size(), "\"save_interval\": 0");
  write_bytes(folder / "run/config.json", config);
  run_well(folder, "train --resume run --max-iters 14");
  // Reading a pipe would wait.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const std::size_t data = config.find("\"data\": \"") + 9;
  config.replace(data, config.find('"', data) - data, folder / "pipe");
  write_bytes(folder / "run/config.json", config);
  check_refused(folder, "eval --checkpoint run/checkpoint.safetensors", 1,
                {"pipe: no such file; --data FILE names the text"});
}

TEST_CASE("xgrad: a run is resumed as it was configured", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run --max-iters 10"));
  const auto resume = [](const Arguments& more) {
    return overridden({"train --resume run --max-iters 12"}, more);
  };
  const auto refused = [&](const Arguments& more, const std::vector<std::string>& fragments) {
    check_refused(folder, resume(more), 1, fragments);
  };
  refused(
      "--n-layer 4 --dropout 0.5 --bias --seed 3 --preset baby --batch-size 4 --out elsewhere",
      {"run/checkpoint.safetensors: the flags disagree", "--n-layer 4 is given, but the run has 1",
       "--dropout 0.5 is given, but the run has 0", "--bias true is given, but the run has false",
       "--seed 3 is given, but the run has 1337", "--preset baby is given, but the run has nano",
       "--out elsewhere is given, but the run has run"});
  CHECK(run(folder, resume("--n-layer 4")).err.find("batch") == std::string::npos);
  refused("--max-iters 5", {"--max-iters 5 is given, but the run has made 10 steps"});
  write_bytes(folder / "other", tiny_text() + "!");
  refused("--data other", {"other: ", "'!'"});
  write_bytes(folder / "other", tiny_text().substr(10));
  refused("--data other", {"other: another text than the run in run is trained on"});
  fs::rename(folder / "text", folder / "moved");
  refused({}, {"text: no such file"});
  fs::rename(folder / "run/config.json", folder / "config.json");
  refused({}, {"no config.json beside it", "--data FILE"});
  // The same text at another path is accepted; config.json names that from then on.
  run_well(folder, resume("--data moved"));
  const Json config = Json::parse(read_bytes(folder / "run/config.json"));
  CHECK_THAT(config.at("data").get<std::string>(), EndsWith("/moved"));
  CHECK(metrics_of(folder / "run").size() == 12);
  // A preset's own values are not given.
  run_well(folder, "train --resume run --preset nano --max-iters 14");
  // Weights alone are no run.
  run_well(folder, "export --checkpoint run/checkpoint.safetensors");
  check_refused(folder, "train --resume model.safetensors", 1, {"not a checkpoint"});
}

TEST_CASE("xgrad: a text whose name is not UTF-8", "[resume]") {
  const TinyFolder folder;
  const std::string text = "a\xFF\x1b[2Jb", checkpoint = "run/checkpoint.safetensors";
  write_bytes(folder / text, tiny_text());
  run_well(folder, tiny_train({"--data", text, "--out", "run"}));
  // JSON cannot hold this path, so config.json names no file, with a message.
  const std::string known = read_bytes(folder / "run/config.json");
  CHECK(Json::parse(known).at("data").get<std::string>().ends_with("a\xEF\xBF\xBD\x1b[2Jb"));
  for (const Arguments& arguments :
       {Arguments{"train --resume run --max-iters 44"}, {"eval", "--checkpoint", checkpoint}})
    check_refused(folder, arguments, 1,
                  {"/a\xEF\xBF\xBD\\x1b[2Jb: no such file; --data FILE names the text\n"});
  run_well(folder, {"train", "--resume", "run", "--max-iters", "44", "--data", text});
  CHECK(metrics_of(folder / "run").size() == 44);
  run_well(folder, {"eval", "--checkpoint", checkpoint, "--data", text});
  run_well(folder, "report run --overwrite");
  fs::remove(folder / text);
  check_refused(folder, tiny_train({"--data", text, "--out", "other"}), 1,
                {"a\\xff\\x1b[2Jb: no such file"});
}

TEST_CASE("xgrad: metrics that do not match the checkpoint", "[resume]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out whole --max-iters 30"));
  run_well(folder, tiny_train("--out run --max-iters 20"));
  const auto resume = [&] { run_well(folder, "train --resume run --max-iters 30"); };
  const std::string path = folder / "run/metrics.jsonl";
  const std::string good = read_bytes(path),
                    checkpoint = read_bytes(folder / "run/checkpoint.safetensors");
  const auto rows = timeless_metrics_of(folder / "whole");
  std::vector<Json> expected = rows;
  // The 20th row was the last of its run, so its loss is that of the whole split.
  expected[19] = timeless_metrics_of(folder / "run")[19];
  const auto later = good + read_bytes(folder / "whole/metrics.jsonl");
  for (const std::string& bytes :
       {good + "{\"step\": 20, \"lo",
        good + "{\"step\": 20, \"loss\": 1, \"lr\": 1, \"grad_norm\": 1, \"ms\": 1}\n{",
        good + std::string(100, '\0'), later}) {
    write_bytes(path, bytes);
    write_bytes(folder / "run/checkpoint.safetensors", checkpoint);
    resume();
    CHECK((timeless_metrics_of(folder / "run") == expected));
  }
  // Without earlier rows, only new ones.
  write_bytes(path, "");
  write_bytes(folder / "run/checkpoint.safetensors", checkpoint);
  resume();
  CHECK(metrics_of(folder / "run").size() == 10);
}
