// The corners of the program: a locked folder, signals, kills, lost output, full disks, files that
// are there already.  A test takes one corner through all rows of one table, which lists every
// command; those of a terminal are in terminal_test.cpp.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <xgrad/autograd/sanitizers.hpp>

#include "lm/program/corners.hpp"

namespace {

namespace fs = std::filesystem;

std::size_t rows_in(const std::string& run) {
  const std::string text = read_bytes(run + "/metrics.jsonl");
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void wait_for_rows(const std::string& run, std::size_t rows) {
  wait_until([&] { return rows_in(run) >= rows; });
}

/// A use that trains until it is stopped.
Arguments endless(const Use& use, const Arguments& more = {}) {
  return overridden(overridden(use.words, "--max-iters 1000000 --eval-interval 1000000"), more);
}

/// Checks that the last checkpoint of a run has all its rows; returns their number.
std::size_t check_saved(const std::string& run) {
  const std::size_t steps = xgrad::io::load_checkpoint(run + "/checkpoint.safetensors").step;
  CHECK(steps == metrics_of(run).size());
  return steps;
}

/// Two folders hold the same run: the same files, the same bytes, the same rows but for the time.
void check_same_run(const std::string& a, const std::string& b) {
  Files files[2] = {files_under(a), files_under(b)};
  for (Files& one : files)
    for (auto& [name, content] : one)
      if (name == "metrics.jsonl" || name.ends_with(".json"))  // compared below, or of a machine
        content.clear();
  Names others = differences(files[0], files[1]);
  std::erase_if(others, [](const std::string& name) {
    return name.starts_with("report.html");  // made after the last save: a kill may come between
  });
  CHECK(others == Names{});
  CHECK((timeless_metrics_of(a) == timeless_metrics_of(b)));
}

/// Replaces a stream by a device that rejects writes.
auto to_full(int stream) {
  return [stream] { ::dup2(::open("/dev/full", O_WRONLY), stream); };
}

/// Files cannot grow beyond this size, as on a full disk; the system does not end the program.
std::function<void()> full_disk(rlim_t most) {
  return [=] {
    ::signal(SIGXFSZ, SIG_IGN);
    limited(RLIMIT_FSIZE, most)();
  };
}

}  // namespace

TEST_CASE("corners: every command has a row, and writes the files of its row alone", "[corners]") {
  const CornersFolder folder;
  Names rows, writing_rows, commands, writing_commands;
  for (const Use& use : uses()) {
    CAPTURE(use.words);
    rows.insert(use.words[0]);
    if (!use.writes.empty())
      writing_rows.insert(use.words[0]);
    folder.tidy();
    const Result result = run(folder, use.words);
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK((result.out + result.err).find_first_of("\r\x1b") == std::string::npos);
    // A command that reads a model says which: of a run it is the last checkpoint.
    if (use.words[1] == "run" && use.words[0] != "report" && use.words[0] != "compare")
      CHECK_THAT(result.err, EndsWith("xgrad: run/checkpoint.safetensors, after 40 steps\n"));
    const Files after = files_under(folder);
    for (const std::string& name : differences(folder.usual, after))
      CHECK((name.ends_with('/') || use.writes.count(name) != 0));
    for (const std::string& name : use.writes)
      CHECK(after.count(name) != 0);
  }
  bool listed = false;
  for (const std::string& line : lines_of(run_well(folder, {"--help"}).out)) {
    listed = listed ? line.starts_with("  ") : line.starts_with("S") && line.ends_with(":");
    if (!line.starts_with("  ") || !listed)
      continue;
    const std::string name = Arguments(line)[0], flags = run(folder, {name, "--help"}).out;
    commands.insert(name);
    if (flags.find("--out ") != flags.npos || flags.find("--overwrite") != flags.npos)
      writing_commands.insert(name);
  }
  if (!has_playground()) {
    check_refused(folder, "playground", 1, {"built without this page: run scripts/web"});
    rows.insert("playground");
    writing_rows.insert("playground");
  }
  CHECK(rows == commands);
  CHECK(writing_rows == writing_commands);
}

TEST_CASE("corners: one run at a time in a folder, which others may read", "[corners]") {
  const CornersFolder folder;
  const TemporaryFolder elsewhere;  // the output of the run that goes on
  Process first(elsewhere, {"train", "--resume", folder / "run", "--max-iters", "1000000000",
                            "--eval-interval", "1000000"});
  first.wait_for("step ");
  fs::create_directory(folder / "new");  // locked by this process
  const int held = ::open((folder / "new").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  for (const Use& use : uses()) {
    CAPTURE(use.words);
    Process second(folder, use.words);
    if (use.run.empty())
      check_ends(second, 0);
    else
      check_ends(second, 1, {use.run + ": another process is training in this folder"});
  }
  ::close(held);
  first.signal(SIGKILL);
  first.wait();
  // A lock dies with its process.  Temporary files of a killed process are removed.
  write_bytes(folder / "run/checkpoint.safetensors.123.4.tmp", "half");
  write_bytes(folder / "run/best.safetensors.123.5.tmp", "half");
  write_bytes(folder / "run/mine.safetensors.123.4.tmp", "not its own");
  Process next(elsewhere, {"train", "--resume", folder / "run", "--max-iters", "1000000000"});
  next.wait_for("step ");
  next.signal(SIGTERM);
  check_ends(next, 128 + SIGTERM);
  CHECK_FALSE(fs::exists(folder / "run/checkpoint.safetensors.123.4.tmp"));
  CHECK_FALSE(fs::exists(folder / "run/best.safetensors.123.5.tmp"));
  CHECK(fs::exists(folder / "run/mine.safetensors.123.4.tmp"));
}

// ---- signals ----

TEST_CASE("corners: a signal ends a run with its model saved", "[corners]") {
  const CornersFolder folder;
  for (const Use& use : uses())
    for (const auto& [number, name] :
         {std::pair{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}) {
      if (use.run.empty())
        continue;
      CAPTURE(use.words, name);
      folder.tidy();
      const std::string path = folder / use.run;
      const std::size_t before = rows_in(path);
      Process process(folder, endless(use, "--threads 1"));
      wait_for_rows(path, before + 5);
      process.signal(number);
      const Result result = check_ends(process, 128 + number, {std::string("Stopped by ") + name});
      CHECK(result.out == "");
      CHECK(warnings_in(result.err) == "");
      // The last line is the command that resumes.
      CHECK_THAT(result.err, EndsWith(fmt::format("\n  {} train --resume {} --threads 1\n",
                                                  xgrad_program, use.run)));
      CHECK(check_saved(path) >= before + 5);
      CHECK_THAT(read_bytes(path + "/report.html"), ContainsSubstring("of 1,000,000"));
      CHECK(run(folder, {"eval", use.run}).code == 0);
    }
  for (const std::string name : {"auto", "-x"}) {  // a folder, and neither a word nor a flag
    Process process(folder, tiny_train({"--out=" + name, "--max-iters", "1000000"}));
    wait_until([&] { return fs::exists(folder / (name + "/metrics.jsonl")); });
    process.signal(SIGINT);
    check_ends(process, 128 + SIGINT, {" train --resume ./" + name});
  }
}

TEST_CASE("corners: an evaluation that is interrupted is made again", "[corners]") {
  const TinyFolder folder;
  const auto train = [](const std::string& out, const Arguments& more = {}) {
    const char* const batches = XGRAD_SANITIZER ? "2500" : "10000";  // longer than 40 ms
    return overridden(tiny_train({"--max-iters", "14", "--eval-iters", batches, "--out", out}),
                      more);
  };
  run_well(folder, train("whole"));
  for (int i = 0; i < 2; ++i) {
    Process process(folder, train("run", {"--resume"}));
    if (i == 0)
      wait_for_rows(folder / "run", 9);  // the tenth comes after its evaluation
    else
      process.wait_for("Run: ");
    sleep_ms(40);
    process.signal(SIGINT);
    check_ends(process, 128 + SIGINT);
    REQUIRE(check_saved(folder / "run") == 10);
    CHECK_FALSE(metrics_of(folder / "run").back().contains("val_loss"));
  }
  run_well(folder, "train --resume run");
  check_same_run(folder / "whole", folder / "run");
}

TEST_CASE("corners: stopped before its first step, a run leaves nothing", "[corners]") {
  const TinyFolder folder;
  const Files before = files_under(folder);
  {
    Process process(folder,
                    "train --data text --block-size 64 --n-embd 512 --n-head 8 "
                    "--n-layer 8 --batch-size 64");
    process.wait_for("Steps: ");
    process.signal(SIGINT);
    const int code = process.wait().code;
    // The signal may arrive before its handler is set: then it ends the program.
    CHECK((code == 128 + SIGINT || code == -SIGINT));
  }
  {
    // A batch of an evaluation takes half a minute, as of --preset baby.
    Process process(folder, tiny_train("--batch-size 1024 --block-size 200 --n-embd 384 "
                                       "--n-head 6 --n-layer 6"));
    process.wait_for("Eval: ");
    const double begun = process.processor_time();
    wait_until([&] { return process.processor_time() > begun + 1; });
    process.signal(SIGINT);
    double last = process.processor_time();
    const double asked = last;
    wait_until([&] {
      last = std::max(last, process.processor_time());
      return process.ended();
    });
    CHECK(last - asked < (XGRAD_SANITIZER ? 20 : 6));
    CHECK_THAT(check_ends(process, 128 + SIGINT).err,
               EndsWith("before the first step; nothing was written.\n"));
  }
  {
    // A step takes minutes, and a second signal ends it at once.
    Process process(folder, tiny_train("--gradient-accumulation-steps 65536 --batch-size 512"));
    process.wait_for("before the first step");
    // A signal between the two would end it without a step.
    const double evaluated = process.processor_time();
    wait_until([&] { return process.processor_time() > evaluated + 0.2; });
    process.signal(SIGINT);
    sleep_ms(600);
    process.signal(SIGTERM);
    check_ends(process, -SIGTERM);
  }
  CHECK(differences(before, files_under(folder)) == Names{});
}

TEST_CASE("corners: signals that come twice, and a hangup that is ignored", "[corners]") {
  const TinyFolder folder;
  // Two at once count as one: `timeout` sends a signal to the process and to its group.
  Process twice(folder, endless(uses()[0]));
  wait_for_rows(folder / "new", 4);
  for (const int signal : {SIGTERM, SIGTERM, SIGINT}) {
    twice.signal(signal);
    sleep_ms(1);
  }
  const int code = twice.wait().code;
  // Signals that wait for a process that does not run come in the order of their numbers.
  CHECK((code == 128 + SIGTERM || code == 128 + SIGINT));
  CHECK(check_saved(folder / "new") >= 4);

  Process deaf(folder, endless(uses()[0], "--out deaf"), [] { ::signal(SIGHUP, SIG_IGN); });
  wait_for_rows(folder / "deaf", 5);
  deaf.signal(SIGHUP);
  wait_for_rows(folder / "deaf", rows_in(folder / "deaf") + 50);
  deaf.signal(SIGTERM);
  check_ends(deaf, 128 + SIGTERM);
}

TEST_CASE("corners: lost output is told, and what is around a command changes no file",
          "[corners]") {
  const CornersFolder folder;
  for (const Use& use : uses()) {
    CAPTURE(use.words);
    folder.tidy();
    const Result usual = run(folder, use.words);
    CHECK(usual.code == 0);
    const Files written = files_under(folder);
    const std::string path = folder / use.run;
    const std::vector<Json> rows =
        use.run.empty() ? std::vector<Json>{} : timeless_metrics_of(path);
    const auto same = [&](const std::function<void()>& before, int code,
                          const std::vector<std::string>& fragments = {}) {
      folder.tidy();
      Process process(folder, use.words, before);
      const Result result = check_ends(process, code, fragments);
      if (!use.run.empty())
        CHECK(timeless_metrics_of(path) == rows);
      Names others = differences(written, files_under(folder));
      for (const char* const timed : {"/metrics.jsonl", "/report.html", "/environment.json"})
        if (!use.run.empty())
          others.erase(use.run + timed);
      CHECK(others == Names{});
      return result;
    };
    same(to_full(STDOUT_FILENO), 1, {"standard output could not be written: No space left"});
    same(to_full(STDERR_FILENO), 0);
    // Closed streams get nothing else's place; nothing could be printed.
    same(
        [] {
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            ::close(stream);
        },
        1);
    // Another place, another language, and another number of threads.
    for (const auto& [zone, language, threads] :
         {std::array{"Pacific/Kiritimati", "de_DE.UTF-8", "1"}, {"XYZ+11:30", "C.UTF-8", "3"}}) {
      const auto there = [zone = zone, language = language, threads = threads] {
        ::setenv("TZ", zone, 1);
        ::setenv("LC_ALL", language, 1);
        ::setenv("OMP_NUM_THREADS", threads, 1);
      };
      CHECK(same(there, 0).out == usual.out);
    }
  }
  // A warning that cannot be written changes no exit code.
  CHECK(Process(folder, {"frob"}, to_full(STDERR_FILENO)).wait().code == 2);
  CHECK(Process(folder, "eval --checkpoint none", to_full(STDERR_FILENO)).wait().code == 1);

  // A closed pipe, as after `2>&1 | head`, ends a run quietly.
  folder.tidy();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Process process(folder, endless(uses()[0], "--max-iters 100000"),
                  [&] { ::dup2(ends[1], STDERR_FILENO); });
  ::close(ends[1]);
  std::string read;
  char byte = 0;
  while (read.find("\nstep ") == std::string::npos && ::read(ends[0], &byte, 1) == 1)
    read += byte;
  ::close(ends[0]);
  INFO(read);
  CHECK(check_ends(process, 128 + SIGPIPE).out == "");
  const std::size_t steps = check_saved(folder / "new");
  Process again(folder, "train --resume new");
  wait_for_rows(folder / "new", steps + 5);
  again.signal(SIGTERM);
  check_ends(again, 128 + SIGTERM);
}

// ---- kills ----

namespace {

/// A run that is ended again and again.
struct Ended {
  Arguments words;
  std::vector<int> signals;
  std::vector<const char*> threads;
  std::size_t times;  ///< at least; the run may have to begin again
};

/// Waits for a random moment of a process: from its start, from its first step, which a busy
/// machine may delay, or until it saves its first model.  Under a sanitizer everything takes ten
/// times as long.
void wait_for_any_moment(const Process& process, std::size_t time, const std::string& out,
                         std::mt19937& random) {
  const auto has_model = [&] {
    for (const char* const name : {"checkpoint.safetensors", "adapter_config.json"})
      if (fs::exists(out + "/" + name))
        return true;
    return false;
  };
  if (time % 3 == 2 && !has_model()) {
    while (!has_model() && !process.ended()) {
    }
    return;
  }
  if (time % 3 != 0)
    process.wait_for("\nstep ");
  sleep_ms(std::uniform_real_distribution<double>(0, XGRAD_SANITIZER ? 600 : 60)(random));
}

/// Ends a run and resumes it until it is complete, and checks that it is one that never ended.
void check_resumed(const CornersFolder& folder, const Ended& ended) {
  CAPTURE(ended.words, ended.signals, ended.threads);
  folder.tidy();
  run_well(folder, overridden(ended.words, "--out whole --threads 1"));
  std::mt19937 random(7);
  std::size_t ends = 0, starts = 0;
  for (int i = 0; ends < ended.times; ++i) {
    const std::string out = "run" + std::to_string(i);
    const auto go_on = [&] {
      const std::string n = ended.threads[starts++ / 2 % ended.threads.size()];
      if (starts % 2 == 0 && fs::exists(folder / (out + "/checkpoint.safetensors")))
        return Arguments{"train", "--resume", out, "--threads", n};
      return overridden(ended.words, {"--out", out, "--resume", "--threads", n});
    };
    for (bool complete = false; !complete && ends < ended.times;) {
      Process process(folder, go_on());
      wait_for_any_moment(process, starts / 2, folder / out, random);
      const int signal = ended.signals[starts % ended.signals.size()];
      process.signal(signal);
      const Result result = process.wait();
      INFO(result.out << result.err);
      // A signal before the first step ends it as it ends any program.
      REQUIRE((result.code == 0 || result.code == -signal || result.code == 128 + signal));
      CHECK(warnings_in(result.err) == "");
      complete = result.code == 0;
      ends += signal == SIGKILL ? !complete : result.code > 0;
    }
    run_well(folder, go_on());
    check_same_run(folder / "whole", folder / out);
  }
  if (std::getenv("XGRAD_TEST_KILLS") != nullptr)
    std::cout << ends << " ends, " << starts << " starts, all the same bytes\n";
}

}  // namespace

TEST_CASE("corners: ended at any moment and resumed, a run is the same to the byte", "[corners]") {
  const CornersFolder folder;
  const std::vector<int> stops = {SIGINT, SIGTERM, SIGHUP};
  const char* const given = std::getenv("XGRAD_TEST_KILLS");
  const std::size_t kills = given == nullptr ? 12 : std::stoul(given);
  for (const Use& use : uses()) {
    if (use.run != "new")  // it is resumed by all
      continue;
    // Dropout, and evaluations and saves that do not coincide.
    const Arguments words = overridden(use.words,
                                       "--dropout 0.2 --max-iters 400 --lr-decay-iters 400 "
                                       "--eval-interval 20 --eval-iters 20");
    check_resumed(folder, {overridden(words, "--save-interval 7"), {SIGKILL}, {"1", "2"}, kills});
    if (use.words != uses()[0].words)
      continue;
    check_resumed(folder, {words, stops, {"2"}, 5});
    // A kill between the run's first files: rows without a configuration.
    for (const Names& left : {Names{"metrics.jsonl"}, {"metrics.jsonl", "samples.jsonl"}}) {
      for (const std::string& name : left)
        folder.write(fmt::format("left{}/{}", left.size(), name), "");
      run_well(folder, overridden(words, fmt::format("--resume --out left{}", left.size())));
      check_same_run(folder / "whole", folder / fmt::format("left{}", left.size()));
    }
    check_resumed(folder, {overridden(words, "--dtype bfloat16"), stops, {"1", "2"}, 5});
  }
}

// ---- full disks ----

TEST_CASE("corners: on a full disk the files that were there stay", "[corners]") {
  const CornersFolder folder;
  for (const Use& use : uses()) {
    if (use.writes.empty())
      continue;
    CAPTURE(use.words);
    folder.tidy();
    CHECK(run(folder, use.words).code == 0);
    const TemporaryFolder whole;
    if (!use.run.empty())
      fs::copy(folder / use.run, whole / "run");
    std::size_t largest = 0;
    for (const auto& [name, content] : files_under(folder))
      if (use.writes.count(name) != 0 && (use.run.empty() || !name.ends_with("report.html")))
        largest = std::max(largest, content.size());
    folder.tidy();
    if (use.run.empty()) {
      for (const std::string& name : use.writes)
        folder.write(name, "somebody's own");
      const Files before = files_under(folder);
      Process process(folder, overridden(use.words, {"--overwrite"}), full_disk(largest / 2));
      check_ends(process, 1, {": writing failed: File too large"});
      CHECK(differences(before, files_under(folder)) == Names{});
      continue;
    }
    const Names rows =
        in(use.run, {"", "config.json", "metrics.jsonl", "samples.jsonl", "environment.json"});
    const bool resumed = use.run == "run";
    Process process(folder, use.words, limited(RLIMIT_FSIZE, largest / 2));
    check_ends(process, 1,
               {use.run + "/checkpoint.safetensors: writing failed: File too large; training "
                          "continues",
                resumed ? "the last checkpoint, after 40 steps of 60, is run/checkpoint.safetensors"
                        : "the model could not be saved and is lost",
                resumed ? "step 60/60 100 %" : "step 20/20 100 %"});
    CHECK(metrics_of(folder / use.run).size() == (resumed ? 60 : 20));
    const Names left = differences(folder.usual, files_under(folder));
    CHECK(std::ranges::includes(rows, left));
    CHECK((resumed || left == rows));
    // With space again, nothing is missing.
    run_well(folder, resumed ? use.words : overridden(use.words, "--resume"));
    check_same_run(whole / "run", folder / use.run);
  }
}

TEST_CASE("corners: a run that has no room for a part of its files", "[corners]") {
  const CornersFolder folder;
  const std::string path = folder / "run", checkpoint = path + "/checkpoint.safetensors",
                    best = path + "/best.safetensors";
  const Arguments more = "train --resume run --max-iters 60";
  {
    // No row: the run ends, and goes on as if it had not.
    const TemporaryFolder whole;
    run_well(folder, more);
    fs::copy(path, whole / "run");
    folder.tidy();
    Process process(folder, more,
                    limited(RLIMIT_FSIZE, fs::file_size(path + "/metrics.jsonl") + 1000));
    check_ends(process, 1,
               {"run/metrics.jsonl: writing failed: File too large; the run ends\n",
                "The last good checkpoint, after 40 steps, is run/checkpoint.safetensors."});
    CHECK((read_bytes(checkpoint) == folder.usual.at("run/checkpoint.safetensors")));
    CHECK(metrics_of(path).size() > 41);
    CHECK_THAT(read_bytes(path + "/metrics.jsonl"), EndsWith("}\n"));
    run_well(folder, more);
    check_same_run(whole / "run", path);
  }
  {
    // No best model: the run does not end.
    folder.tidy();
    fs::remove(best);
    fs::create_directories(best + "/in the way");
    Process process(folder, more);
    check_ends(process, 1, {"run/best.safetensors: ", "training continues"});
    CHECK(check_saved(path) == 60);
  }
  {
    // No checkpoint, until there is room for it again.
    folder.tidy();
    Process process(folder, overridden(endless(uses()[1]), "--eval-interval 100"));
    wait_for_rows(path, 101);
    process.signal(SIGSTOP);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(process.id()), &info, WSTOPPED | WNOWAIT);
    fs::remove(checkpoint);
    fs::create_directories(checkpoint + "/in the way");
    process.signal(SIGCONT);
    process.wait_for("; training continues");
    fs::remove_all(checkpoint);
    process.wait_for("steps: saved in run/checkpoint.safetensors");
    process.signal(SIGTERM);
    check_ends(process, 128 + SIGTERM, {"steps: saved in run/checkpoint.safetensors"});
    check_saved(path);
  }
  {
    // None when it is stopped.
    Process process(folder, endless(uses()[0]), limited(RLIMIT_FSIZE, 40000));
    process.wait_for("\nstep ");
    process.signal(SIGINT);
    const Result result = check_ends(process, 1,
                                     {"Stopped by SIGINT after ", "; the model could not be saved.",
                                      "the model could not be saved and is lost"});
    CHECK(result.err.find("the model is in") == std::string::npos);
  }
  {
    // No configuration: a run that fails during its set-up leaves the folder as it was.
    folder.tidy();
    Process process(folder, overridden(uses()[0].words, "--out deep/er/run --quiet true"),
                    limited(RLIMIT_FSIZE, 400));
    check_ends(process, 1, {"deep/er/run/config.json"});
    CHECK(differences(folder.usual, files_under(folder)) == Names{});
  }
}

// ---- files that are there already ----

TEST_CASE("corners: no command replaces a file that it was not told to", "[corners]") {
  const CornersFolder folder;
  for (const Use& use : uses()) {
    if (use.writes.empty() || !use.run.empty())
      continue;
    CAPTURE(use.words);
    folder.tidy();
    write_bytes(folder / "mine", "somebody's own");
    const bool reports = use.words[0] == "report";
    const Arguments over = overridden(use.words, {"--overwrite"});
    for (const std::string& file : use.writes) {
      const auto refused = [&](const Arguments& words, const std::vector<std::string>& says) {
        check_refused(folder, words, 1, says);
        fs::remove(folder / file);
      };
      folder.write(file, "somebody's own");
      refused(use.words, {file + ": exists already; --overwrite replaces it"});
      // A link to it counts as the file, and so does a link to a file that does not exist yet.
      for (const char* const target : {"mine", "nowhere"}) {
        fs::create_symlink(folder / target, folder / file);
        refused(use.words, {file + (reports ? ": is a symbolic link" : ": exists already")});
      }
      // No input is replaced under any name.
      for (const std::string& input : use.reads) {
        fs::create_hard_link(folder / input, folder / file);
        refused(over, {file + ": is the same file as the input ", input});
      }
      folder.write(file, "{}");
      refused(overridden(over, {"--config", file}), {file + ": is the same file as the input"});
    }
    for (const std::string& file : use.writes)
      folder.write(file, "somebody's own");
    // A command that fails has not replaced any file.
    if (Arguments fails = over; !use.reads.empty()) {
      fails[1] = "none";
      check_refused(folder, fails, 1, {"none"});
    }
    CHECK(run(folder, over).code == 0);
    for (const std::string& file : use.writes)
      CHECK(read_bytes(folder / file) != "somebody's own");
    if (reports || use.writes.size() > 1)
      continue;

    const auto to = [&](const std::string& out) {
      return overridden(use.words, {"--out", out, "--overwrite"});
    };
    // Only training writes a run's files, whether they exist or not.
    fs::create_symlink("ad/metrics.jsonl", folder / "link");
    for (const std::string out : {"ad/config.json", "ad/metrics.jsonl", "ad/samples.jsonl", "link",
                                  "ad/environment.json", "ad/best.safetensors", "ad/trace.json"})
      check_refused(folder, to(out), 1, {out + ": is a file of the run in "});
    check_refused(folder, overridden(use.words, "--out ad/config.json"), 1,
                  {"ad/config.json: is a file of the run in "});
    fs::remove(folder / "link");
    fs::create_symlink("/dev/stdout", folder / "link");  // here a file
    check_refused(folder, to("link"), 1,
                  {"link: cannot be written: this program's output goes there"});
    check_refused(folder, to("-"), 2, {"--out: - is no file"});
  }
  // Outside of a run's folder its names are free.
  run_well(folder, "export run --out best.safetensors");
}

TEST_CASE("corners: a run writes into its own folder only", "[corners]") {
  const CornersFolder folder;
  write_bytes(folder / "elsewhere", "somebody's own");
  for (const std::string& name :
       in("run", {"checkpoint.safetensors", "best.safetensors", "config.json", "environment.json",
                  "metrics.jsonl", "samples.jsonl", "report.html", "trace.json"})) {
    CAPTURE(name);
    fs::remove(folder / name);
    fs::create_symlink("../elsewhere", folder / name);
    const bool from = name == "run/best.safetensors";
    check_refused(folder, "train --resume run/best.safetensors --max-iters 50", 1,
                  {from ? "elsewhere" : name + ": is a link"});
    fs::remove(folder / name);
    if (const auto before = folder.usual.find(name); before != folder.usual.end())
      write_bytes(folder / name, before->second);
  }
  // Rows are appended in place.
  fs::create_hard_link(folder / "run/samples.jsonl", folder / "other");
  check_refused(folder, "train --resume run --max-iters 50", 1,
                {"run/samples.jsonl: has another name as well (a hard link)"});
  // Its inputs have the names of its files.
  fs::create_directory(folder / "read");
  write_bytes(folder / "read/samples.jsonl", tiny_text());
  write_bytes(folder / "read/config.json", "{}");
  for (const char* const flag : {"--data", "--val-data"})
    check_refused(folder, tiny_train({"--out", "read", "--resume", flag, "read/samples.jsonl"}), 1,
                  {"read/samples.jsonl: is an input, and a run in read would overwrite it"});
  write_bytes(folder / "read/config.json", R"({"data": "text", "out": "read", "resume": "auto"})");
  check_refused(folder, "train --config read/config.json", 1,
                {"read/config.json: is an input, and a run in read would overwrite it"});

  // Files of other programs, and of other runs.
  const auto refused = [&](const std::string& file, const std::string& content,
                           const Arguments& more, const std::vector<std::string>& says) {
    CAPTURE(file);
    folder.tidy();
    folder.write(file, content);
    check_refused(folder, overridden(tiny_train("--out kept"), more), 1, says);
  };
  const std::string holds = "kept: the folder holds a run already (";
  refused("kept/metrics.jsonl", "precious", {}, {holds + "metrics.jsonl"});
  refused("kept/best.safetensors", "precious", {}, {holds + "best.safetensors)"});
  refused("kept/best.safetensors", "precious", {"--resume"},
          {"kept/best.safetensors: not a safetensors file"});
  for (const char* const name : {"report.html", "environment.json", "trace.json", "samples.jsonl"})
    for (const char* const flag : {"--profile", "--resume"})
      refused(std::string("kept/") + name, "precious", {flag}, {holds, "); name another"});
  refused("kept/config.json", R"({"name": "mine"})", {"--resume"},
          {"kept/config.json: is no run's configuration, and a run would overwrite it"});
  refused("kept", "a file", {}, {"kept: kept is a file, not a folder"});
  refused("kept", "a file", {"--out", "kept/run"}, {"kept/run: kept is a file, not a folder"});
  check_refused(folder, tiny_train("--out run"), 1,
                {"run: the folder holds a run already", "--resume run continues it"});
  // A checkpoint among other files.
  folder.write("other/config.json", "mine");
  fs::copy(folder / "run/checkpoint.safetensors", folder / "other/model.safetensors");
  check_refused(folder, "train --resume other/model.safetensors --max-iters 42", 1,
                {"other/model.safetensors: not a file of a run's folder", "--init-from"});
  // A finished run, and adapters, whose checkpoints somebody removed.
  for (const char* const name :
       {"run/checkpoint.safetensors", "run/best.safetensors", "ad/checkpoint.safetensors",
        "ad/best.safetensors", "ad/report.html"})
    fs::remove(folder / name);
  write_bytes(folder / "run/report.html", "");
  check_refused(folder, tiny_train("--out run --resume"), 1,
                {"run: the folder holds a run already (report.html); name another"});
  check_refused(folder, tiny_train("--init-from base.safetensors --lora-rank 2 --out ad --resume"),
                1,
                {"ad: the folder holds a run already (",
                 "; its adapters are there, but no checkpoint to resume: --init-from ad trains "
                 "them further; name another"});
}

TEST_CASE("corners: an unreadable file does not count as empty or missing", "[corners]") {
  const CornersFolder folder;
  std::vector<Use> all = uses();
  all.push_back({tiny_train("--out run"), {}, {}, "run"});
  all.push_back({tiny_train("--out run --resume --max-iters 60"), {}, {}, "run"});
  for (const Use& use : all) {
    std::size_t refusals = 0;
    for (rlim_t files = 4; files < 10; ++files) {  // three are the standard streams
      CAPTURE(use.words, files);
      folder.tidy();
      const Result result = Process(folder, use.words, limited(RLIMIT_NOFILE, files)).wait();
      INFO(result.err);
      const Files after = files_under(folder);
      for (const char* const rows : {"run/metrics.jsonl", "run/samples.jsonl"})
        CHECK(after.at(rows).starts_with(folder.usual.at(rows)));
      CHECK(result.err.find("no lines") == std::string::npos);
      if (result.code == 0)
        continue;
      ++refusals;
      for (const std::string& name : differences(folder.usual, after))
        CHECK((use.run.empty() && name.ends_with('/')));  // a folder for an export
    }
    CHECK((refusals > 0 || use.run.empty()));
  }
  folder.tidy();
  fs::remove(folder / "run/samples.jsonl");
  fs::create_symlink("samples.jsonl", folder / "run/samples.jsonl");
  check_refused(folder, "report run --overwrite", 1, {"samples.jsonl: cannot be opened"});
  fs::create_symlink("loop", folder / "loop");
  check_refused(folder, "train --data loop", 1, {"loop: cannot be opened: Too many"});
}
