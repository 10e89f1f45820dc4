// What a run leaves: report.html, and runs beside each other.

#include <sys/stat.h>

#include "examples/char_transformer_run.hpp"

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("char_transformer: a run leaves its report, and one that is stopped", "[report]") {
  const TinyFolder folder;
  run_well(folder, tiny_train({"--out", "run"}));
  const std::string page = read_bytes(folder / "run/report.html");
  CHECK_THAT(page, ContainsSubstring("<title>Run run</title>") &&
                       ContainsSubstring("Best validation loss") &&
                       ContainsSubstring("train --resume run") &&
                       ContainsSubstring("sample --checkpoint run/best.safetensors") &&
                       ContainsSubstring("<th scope=\"row\">threads</th>"));
  CHECK(Json::parse(read_bytes(folder / "run/environment.json")).at("ranks") == 1);
  // Again, of what is there.
  fs::remove(folder / "run/report.html");
  const Result again = run_well(folder, {"report", "run"});
  CHECK(again.out == "run/report.html\n");
  CHECK_THAT(read_bytes(folder / "run/report.html"),
             ContainsSubstring("char_transformer train --resume run"));

  Process process(folder, tiny_train({"--out", "stopped", "--max-iters", "1000000"}));
  wait_until([&] {
    return fs::exists(folder / "stopped/metrics.jsonl") && !metrics_of(folder / "stopped").empty();
  });
  process.signal(SIGINT);
  const Result result = process.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 128 + SIGINT);
  CHECK_THAT(read_bytes(folder / "stopped/report.html"), ContainsSubstring("of 1,000,000"));
}

TEST_CASE("char_transformer: a report that cannot be written costs nothing else", "[report]") {
  const TinyFolder folder;
  for (const char* const name : {"good", "run"})
    run_well(folder, tiny_train({"--out", name}));
  run_well(folder, {"train", "--resume", "good", "--max-iters", "50"});
  fs::remove(folder / "run/report.html");
  fs::create_directories(folder / "run/report.html/in the way");
  const Result result = run(folder, {"train", "--resume", "run", "--max-iters", "50"});
  CHECK(result.code == 0);
  CHECK_THAT(result.err, ContainsSubstring("no report: run/report.html: renaming failed"));
  CHECK(read_bytes(folder / "run/checkpoint.safetensors") ==
        read_bytes(folder / "good/checkpoint.safetensors"));
  check_refused(folder, {"report", "run"}, 1, {"run/report.html: renaming failed"});
}

TEST_CASE("char_transformer: runs are compared", "[report]") {
  const TinyFolder folder;
  run_well(folder, tiny_train({"--out", "a/run"}));
  run_well(folder, tiny_train({"--out", "b/run", "--learning-rate", "0.02", "--max-iters", "20"}));
  const Result result = run_well(folder, {"compare", "a/run", "b/run", "--out", "both.html"});
  CHECK_THAT(result.out, StartsWith("a  a/run\nb  b/run\n") && ContainsSubstring("learning_rate") &&
                             ContainsSubstring("0.02") && EndsWith("The page is both.html.\n"));
  CHECK_THAT(read_bytes(folder / "both.html"), ContainsSubstring("2 runs beside each other"));
  CHECK(run_well(folder, {"compare", "a/run"}).out.find("page") == std::string::npos);
  check_refused(folder, {"compare"}, 2, {"runs is required"});
  check_refused(folder, {"report"}, 2, {"runs is required"});
  check_refused(folder, {"compare", "a/run", "none"}, 1, {"none: cannot be opened"});
  check_refused(folder, {"compare", "a/run", "--out", "x.svg"}, 1,
                {"x.svg: a page's name ends in .html"});
  check_refused(folder, {"report", "text"}, 1, {"text: line 1 is not a JSON object"});
  check_refused(folder, {"report", "a"}, 1, {"a/metrics.jsonl: cannot be opened"});
}
