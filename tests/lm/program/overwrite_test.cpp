// No program overwrites a file without --overwrite, and never one that it reads.

#include <map>

#include "lm/program/run.hpp"

namespace {

namespace fs = std::filesystem;

Arguments and_also(Arguments arguments, const Arguments& more) {
  return overridden(arguments, more);
}

}  // namespace

TEST_CASE("xgrad: a file that is there is not replaced without --overwrite", "[files]") {
  const TrainedFolder folder;
  const std::vector<std::pair<Arguments, std::string>> commands = {
      {{"export --checkpoint " + folder.checkpoint}, "model.safetensors"},
      {{"export", "--checkpoint", folder.checkpoint, "--out", "mine.safetensors"},
       "mine.safetensors"},
      {{"explain --checkpoint " + folder.checkpoint}, "explain.html"},
      {{"graph --checkpoint " + folder.checkpoint}, "graph.html"},
      {{"graph", "--checkpoint", folder.checkpoint, "--format", "dot", "--out", "a.dot"}, "a.dot"},
      {{"graph", "--checkpoint", folder.checkpoint, "--format", "text", "--out", "a.txt"}, "a.txt"},
      {{"compare run --out a.html"}, "a.html"},
      {{"report run"}, "run/report.html"}};
  for (const auto& [command, file] : commands) {
    CAPTURE(command);
    write_bytes(folder / file, "somebody's own");
    check_refused(folder, command, 1, {file + ": exists already; --overwrite replaces it"});
    CHECK(read_bytes(folder / file) == "somebody's own");
  }
  // A link to it counts as the file, and so does a link to a file that does not exist yet.
  fs::create_symlink("mine.safetensors", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  for (const char* const link : {"link", "dangling"})
    check_refused(folder, {"export", "--checkpoint", "state", "--out", link}, 1,
                  {std::string(link) + ": exists already"});
  fs::remove_all(folder / "run");
  run_well(folder, tiny_train("--out run"));
  for (const auto& [command, file] : commands) {
    CAPTURE(command);
    CHECK(run(folder, and_also(command, {"--overwrite"})).code == 0);
    CHECK(read_bytes(folder / file) != "somebody's own");
  }
  // A command that fails has not replaced any file.
  const std::string before = read_bytes(folder / "a.html");
  check_refused(folder, "compare none --out a.html --overwrite", 1, {"none"});
  CHECK((read_bytes(folder / "a.html") == before));
}

TEST_CASE("xgrad: inputs are not overwritten under any name", "[files]") {
  const TrainedFolder folder;
  fs::remove(folder / "run/best.safetensors");
  const auto refused = [&](const Arguments& command, const std::string& input,
                           const std::string& out) {
    const std::string before = read_bytes(folder / input);
    fs::remove(folder / out);
    fs::create_hard_link(folder / input, folder / out);
    check_refused(folder, and_also(command, {"--overwrite"}), 1,
                  {out + ": is the same file as the input " + input});
    CHECK((read_bytes(folder / input) == before));
  };
  // (tests of export, compare, adapters and --config check theirs)
  const Arguments page = {"explain --checkpoint run --data text --out a.html"};
  refused(page, "run/checkpoint.safetensors", "a.html");
  refused(page, "text", "a.html");
  refused("graph --checkpoint run --out a.html", "run/checkpoint.safetensors", "a.html");
  refused("report run", "run/metrics.jsonl", "run/report.html");
}

TEST_CASE("xgrad: no command but train writes a file of a run", "[files]") {
  const TrainedFolder folder;
  fs::create_symlink("run/metrics.jsonl", folder / "link");
  const Arguments exported = {"export", "--checkpoint", folder.checkpoint, "--out"};
  const std::vector<std::pair<Arguments, std::string>> commands = {
      {exported, "run/config.json"},
      {exported, "run/metrics.jsonl"},
      {exported, "run/samples.jsonl"},
      {exported, "run/environment.json"},
      {exported, "link"},
      {exported, "run/best.safetensors"},
  };
  for (const auto& [command, out] : commands)
    for (const bool overwrite : {false, true}) {
      CAPTURE(command, out, overwrite);
      const bool there = fs::exists(folder / out);
      const std::string before = there ? read_bytes(folder / out) : "";
      Arguments all = and_also(command, {out});
      if (overwrite)
        all.push_back("--overwrite");
      check_refused(folder, all, 1, {out + ": is a file of the run in "});
      CHECK(fs::exists(folder / out) == there);
      CHECK((!there || read_bytes(folder / out) == before));
    }
  // Outside of a run's folder these names are free.
  run_well(folder, {"export", "--checkpoint", folder.checkpoint, "--out", "best.safetensors"});
}

TEST_CASE("xgrad: standard output's file is not overwritten", "[files]") {
  const TrainedFolder folder;
  fs::create_symlink("/dev/stdout", folder / "link");  // here a file
  check_refused(folder,
                {"export", "--checkpoint", folder.checkpoint, "--out", "link", "--overwrite"}, 1,
                {"link: cannot be written: this program's output goes there"});
  CHECK(fs::is_symlink(folder / "link"));
  for (const Arguments& command : {Arguments{"export"}, {"explain"}, {"graph"}})
    check_refused(
        folder,
        overridden(command, {"--checkpoint", folder.checkpoint, "--out", "-", "--overwrite"}), 2,
        {"--out: - is no file"});
}

TEST_CASE("xgrad: a run writes into its own folder only", "[files]") {
  const TinyFolder folder;
  const std::vector<std::string> names = {
      "checkpoint.safetensors", "best.safetensors", "config.json", "environment.json",
      "metrics.jsonl",          "samples.jsonl",    "report.html", "trace.json"};
  run_well(folder, tiny_train("--out run"));
  write_bytes(folder / "elsewhere", "somebody's own");
  for (const std::string& name : names) {
    CAPTURE(name);
    fs::copy(folder / "run", folder / "other", fs::copy_options::recursive);
    fs::remove(folder / ("other/" + name));
    fs::create_symlink("../elsewhere", folder / ("other/" + name));
    check_refused(folder, "train --resume other/best.safetensors --max-iters 50", 1,
                  name == "best.safetensors"
                      ? std::vector<std::string>{"elsewhere"}
                      : std::vector<std::string>{"other/" + name + ": is a link"});
    CHECK(read_bytes(folder / "elsewhere") == "somebody's own");
    CHECK(fs::is_symlink(folder / ("other/" + name)));
    fs::remove_all(folder / "other");
  }
}

TEST_CASE("xgrad: a file with the name of a run's file is not overwritten", "[files]") {
  const TinyFolder folder;
  const std::string text = read_bytes(folder / "text");
  const auto refused_and_kept = [&](const std::string& file, const Arguments& arguments,
                                    const std::string& says) {
    CAPTURE(file);
    check_refused(folder, arguments, 1, {says});
    CHECK((read_bytes(folder / file) == text));
  };
  // Files that a run reads.
  fs::create_directory(folder / "read");
  write_bytes(folder / "read/samples.jsonl", text);
  write_bytes(folder / "read/config.json", "{}");
  for (const char* const flag : {"--data", "--val-data"})
    refused_and_kept("read/samples.jsonl",
                     tiny_train({"--out", "read", "--resume", flag, "read/samples.jsonl"}),
                     "read/samples.jsonl: is an input, and a run in read would overwrite it");
  // Rows are appended in place.
  run_well(folder, tiny_train("--out run"));
  fs::remove(folder / "run/samples.jsonl");
  write_bytes(folder / "other", text);
  fs::create_hard_link(folder / "other", folder / "run/samples.jsonl");
  refused_and_kept("other", "train --resume run --max-iters 50",
                   "run/samples.jsonl: has another name as well (a hard link)");
}

TEST_CASE("xgrad: an unreadable file does not count as empty or missing", "[files]") {
  const TrainedFolder folder;
  const auto contents = [&](const std::string& run) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder / run))
      all[entry.path().filename().string()] = read_bytes(entry.path().string());
    return all;
  };
  const auto before = contents("run");
  const std::vector<Arguments> commands = {{"train --resume copy --max-iters 50"},
                                           tiny_train("--out copy --resume --max-iters 50"),
                                           tiny_train("--out copy"),
                                           {"report copy --overwrite"},
                                           {"compare copy"},
                                           {"eval --checkpoint copy"}};
  for (const Arguments& command : commands) {
    int refused = 0;
    for (rlim_t files = 4; files < 10; ++files) {  // three are the standard streams
      fs::remove_all(folder / "copy");
      fs::copy(folder / "run", folder / "copy");
      const Result result = Process(folder, command, limited(RLIMIT_NOFILE, files)).wait();
      CAPTURE(command, files, result.err);
      const auto after = contents("copy");
      for (const char* const rows : {"metrics.jsonl", "samples.jsonl"})
        CHECK(after.at(rows).starts_with(before.at(rows)));
      CHECK(result.err.find("no lines") == std::string::npos);
      if (result.code == 0)
        continue;
      ++refused;
      CHECK((after == before));
    }
    CHECK((refused > 0 || command[0] != "train"));
  }
  fs::remove_all(folder / "copy");
  fs::copy(folder / "run", folder / "copy");
  fs::remove(folder / "copy/samples.jsonl");
  fs::create_symlink("samples.jsonl", folder / "copy/samples.jsonl");
  check_refused(folder, "report copy --overwrite", 1, {"samples.jsonl: cannot be opened"});
  fs::create_symlink("loop", folder / "loop");
  check_refused(folder, "train --data loop", 1, {"loop: cannot be opened: Too many"});
}
