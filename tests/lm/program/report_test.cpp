// A run's report.html, and the comparison of runs.

#include <algorithm>

#include "lm/program/run.hpp"

TEST_CASE("xgrad: a run leaves its report", "[report]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out run"));
  const std::string page = read_bytes(folder / "run/report.html");
  CHECK_THAT(page, ContainsSubstring("<title>Run run</title>") &&
                       ContainsSubstring("best validation loss") &&
                       ContainsSubstring("<th scope=\"row\">threads</th>"));
  CHECK(Json::parse(read_bytes(folder / "run/environment.json")).at("ranks") == 1);
  // The same from existing files.
  fs::remove(folder / "run/report.html");
  const Result again = run_well(folder, "report run");
  CHECK(again.out == "run/report.html\n");
  CHECK_THAT(read_bytes(folder / "run/report.html"), ContainsSubstring("<title>Run run</title>"));
}

TEST_CASE("xgrad: a report that cannot be written costs nothing else", "[report]") {
  const TinyFolder folder;
  for (const char* const name : {"good", "run"})
    run_well(folder, tiny_train({"--out", name}));
  run_well(folder, "train --resume good --max-iters 50");
  fs::remove(folder / "run/report.html");
  fs::create_directories(folder / "run/report.html/in the way");
  const Result result = ran(folder, "train --resume run --max-iters 50");
  CHECK_THAT(result.err, ContainsSubstring(
                             "no report: run/report.html: cannot be written: not a regular file"));
  CHECK(read_bytes(folder / "run/checkpoint.safetensors") ==
        read_bytes(folder / "good/checkpoint.safetensors"));
  check_refused(folder, "report run --overwrite", 1,
                {"run/report.html: cannot be written: not a regular file"});
}

TEST_CASE("xgrad: runs are compared", "[report]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out a/run"));
  run_well(folder, tiny_train("--out b/run --learning-rate 0.02 --max-iters 20"));
  const Result result = run_well(folder, "compare a/run b/run --out both.html");
  CHECK_THAT(result.out, ContainsSubstring(" a/run             b/run\n") &&
                             ContainsSubstring("learning_rate") && ContainsSubstring("0.02"));
  CHECK_THAT(read_bytes(folder / "both.html"), ContainsSubstring("2 runs compared"));
  check_refused(folder, {"compare"}, 2, {"RUN is needed: "});
  check_refused(folder, {"report"}, 2, {"RUN is needed: "});
  check_refused(folder, "compare a/run none", 1, {"none: cannot be opened"});
  check_refused(folder, "compare a/run --out x.txt", 1, {"x.txt: a page's name ends in .html"});
  check_refused(folder, "report text", 1, {"text: line 1 is not a JSON object"});
  check_refused(folder, "report a", 1, {"a: the folder holds no metrics.jsonl; name a run"});
}

TEST_CASE("xgrad: runs on one text are compared, whatever its path", "[report]") {
  const TinyFolder folder;
  const auto says = [&](const std::string& a, const std::string& b) {
    return run_well(folder, {"compare", a, b}).out.find("trained on different texts") !=
           std::string::npos;
  };
  const auto train = [&](const std::string& out, const std::string& text, const std::string& path) {
    write_bytes(folder / path, text);
    run_well(folder, tiny_train({"--out", out, "--data", path, "--max-iters", "10"}));
  };
  const std::string text = tiny_text();
  train("run", text, "text");
  train("moved", text, "copy");
  train("marked", "\xEF\xBB\xBF" + text, "marked.txt");  // the same characters
  CHECK_FALSE(says("run", "moved"));
  CHECK_FALSE(says("run", "marked"));
  // Other texts under the same path: with the same characters, and with the same ids for other
  // characters.
  train("reversed", {text.rbegin(), text.rend()}, "text");
  CHECK(says("run", "reversed"));
  std::string seven = text;
  std::ranges::replace(seven, '6', '7');
  train("seven", seven, "text");
  CHECK(says("run", "seven"));
  CHECK(says("moved", "seven"));
  // Without a checkpoint, only the configuration can tell.
  fs::remove(folder / "moved/checkpoint.safetensors");
  CHECK_FALSE(says("run", "moved"));  // the best has it as well
  fs::remove(folder / "moved/best.safetensors");
  CHECK(says("run", "moved"));
  fs::remove(folder / "reversed/checkpoint.safetensors");
  fs::remove(folder / "reversed/best.safetensors");
  CHECK_FALSE(says("run", "reversed"));
}

TEST_CASE("xgrad: a bad line of metrics.jsonl is skipped and reported", "[report]") {
  const TrainedFolder folder;
  const std::string path = folder / "run/metrics.jsonl", good = read_bytes(path);
  const std::string columns = run_well(folder, "compare run").out;
  const std::size_t third = good.find("{\"step\": 3,");
  REQUIRE(third != std::string::npos);
  const auto with = [&](const std::string& lines) {
    write_bytes(path, good.substr(0, third) + lines + good.substr(third));
  };
  const std::string is_none = " a JSON object with the numbers \"step\" and \"loss\"";
  const std::string one =
      "xgrad: run/metrics.jsonl: line 4 is not" + is_none + ", and is skipped\n";
  with("{\"step\": 3, \"lo\n");
  for (const Arguments& command : {Arguments{"compare run"}, Arguments{"report run --overwrite"}}) {
    const Result result = ran(folder, command);
    CHECK(result.err == one);
    CHECK((command[0] == "report" || result.out == columns));
  }
  CHECK_THAT(read_bytes(folder / "run/report.html"),
             ContainsSubstring("metrics.jsonl of run: line 4 is not a JSON object"));
  // Longer than any row, and one without a loss.
  with(std::string(3 << 20, 'x') + "\n{\"step\": 3}\n");
  const Result two = ran(folder, "compare run");
  CHECK(two.out == columns);
  CHECK(two.err == one.substr(0, one.size() - 1) + "; so are others, 2 in all\n");
  // A resumed run keeps them.
  with("nonsense\n");
  const Result more = ran(folder, "train --resume run --max-iters 50");
  CHECK(warnings_in(more.err) == one);
  CHECK_THAT(read_bytes(folder / "run/report.html"),
             ContainsSubstring("steps</th><td class=\"number\">50</td>"));
  CHECK(read_bytes(path).starts_with(good.substr(0, third) + "nonsense\n" + good.substr(third)));
}
