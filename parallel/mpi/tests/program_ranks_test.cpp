// Training by several processes.

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "lm/program/run.hpp"

namespace {

namespace fs = std::filesystem;

const std::string mpirun = XGRAD_MPIRUN, program_of_ranks = XGRAD_PROGRAM_MPI;

Arguments before_program() {
  std::istringstream stream(mpirun);
  return {std::istream_iterator<std::string>(stream), {}};
}

Arguments ranks(std::size_t n, const Arguments& arguments) {
  Arguments words = before_program();
  words.insert(words.end(), {"-n", std::to_string(n), program_of_ranks});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}
/// Two command lines of mpirun as one.
Arguments together(Arguments words, const Arguments& others) {
  words.push_back(":");
  words.insert(words.end(), others.begin() + std::ssize(before_program()), others.end());
  return words;
}

Result run_ranks(const TemporaryFolder& folder, const Arguments& words) {
  return Process(folder, [] {}, words).wait();
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    ++n;
  return n;
}

/// Checks that all ranks fail, and that one of them prints this message.
void check_ranks_refused(const TemporaryFolder& folder, const Arguments& words,
                         const std::string& says) {
  const Result result = run_ranks(folder, words);
  INFO(result.out << result.err);
  CHECK(result.code != 0);
  CHECK(count_of(result.err, says) == 1);
  CHECK(count_of("\n" + result.err, "\nxgrad") == 1);
}

Arguments eight_blocks(const Arguments& more) {
  Arguments all = tiny_train({"--batch-size", "8"});
  all = overridden(all, more);
  return all;
}

/// All files of a run, without the times in its metrics.
std::string of_run(const std::string& folder) {
  std::string all = read_bytes(folder + "/checkpoint.safetensors") +
                    read_bytes(folder + "/best.safetensors") + read_bytes(folder + "/config.json");
  for (const Json& row : timeless_metrics_of(folder))
    all += row.dump();
  return all;
}

}  // namespace

TEST_CASE("xgrad: any number of ranks writes the same bytes", "[ranks]") {
  const TinyFolder folder;
  for (const Arguments& kind :
       {Arguments{"--bias", "true"}, Arguments{"--dropout", "0.2", "--threads", "2"},
        Arguments{"--gradient-accumulation-steps", "2"}}) {
    CAPTURE(kind.front());
    const auto arguments = [&](const std::string& out) {
      Arguments all = eight_blocks({"--out", out});
      all = overridden(all, kind);
      return all;
    };
    run_well(folder, overridden(arguments("alone"), {"--threads", "1"}));
    const std::string expected = of_run(folder / "alone");
    for (const std::size_t n : {1, 2, 3, 4}) {
      CAPTURE(n);
      if (n != 3 && kind.front() != "--dropout")
        continue;
      const Result result = run_ranks(folder, ranks(n, arguments("run")));
      INFO(result.out << result.err);
      REQUIRE(result.code == 0);
      CHECK(count_of(result.out, "val_loss") == 1);
      CHECK(of_run(folder / "run") == expected);
      CHECK(Json::parse(read_bytes(folder / "run/environment.json")).at("ranks") == n);
      CHECK(fs::exists(folder / "run/report.html"));
      fs::remove_all(folder / "run");
    }
    fs::remove_all(folder / "alone");
  }
}

TEST_CASE("xgrad: ranks are interrupted and killed, and others go on", "[ranks]") {
  const TinyFolder folder;
  const auto arguments = [](const std::string& out) {
    return eight_blocks(
        {"--max-iters", "800", "--eval-interval", "400", "--save-interval", "5", "--out", out});
  };
  run_well(folder, arguments("alone"));
  const std::string expected = of_run(folder / "alone");
  for (const int signal : {SIGTERM, SIGKILL}) {
    CAPTURE(signal);
    {
      Process process(folder, [] {}, ranks(3, arguments("run")));
      wait_until(
          [&] { return process.ended() || fs::exists(folder / "run/checkpoint.safetensors"); });
      if (signal == SIGKILL) {  // one rank alone is killed
        std::ifstream children("/proc/" + std::to_string(process.id()) + "/task/" +
                               std::to_string(process.id()) + "/children");
        pid_t child = 0, last = 0;
        while (children >> child)
          last = child;
        REQUIRE(last != 0);
        ::kill(last, SIGKILL);
      } else {
        process.signal(signal);
      }
      const Result result = process.wait();
      INFO(result.out << result.err);
      CHECK(result.code != 0);
    }
    const Result result =
        run_ranks(folder, ranks(signal == SIGKILL ? 4 : 2, {"train", "--resume", "run"}));
    INFO(result.out << result.err);
    CHECK(result.code == 0);
    CHECK(of_run(folder / "run") == expected);
    fs::remove_all(folder / "run");
  }
}

TEST_CASE("xgrad: errors of all ranks are reported once", "[ranks]") {
  const TinyFolder folder;
  check_ranks_refused(
      folder, ranks(3, tiny_train({"--batch-size", "2"})),
      "3 ranks, but a batch of 2 blocks is cut into 2 shards: start fewer ranks, no "
      "more than the 4 shards of a large batch");
  check_ranks_refused(folder, ranks(2, tiny_train({"--data", "none"})), "none: ");
  check_ranks_refused(folder, ranks(2, {"train", "--no-such-flag"}), "--no-such-flag");
  check_ranks_refused(folder, ranks(2, {"eval", "run"}),
                      "only the command train works on several processes");
  CHECK_FALSE(fs::exists(folder / "runs"));

  // Ranks that begin differently.
  const Arguments train = tiny_train({"--out", "run"});
  check_ranks_refused(
      folder, together(ranks(1, train), ranks(1, tiny_train({"--out", "run", "--seed", "2"}))),
      "rank 1: the ranks do not begin with the same: the command line here is");
  const std::string other = folder / "other";
  fs::create_directory(other);
  write_bytes(other + "/text", tiny_text() + "!");
  const auto elsewhere = [&](const Arguments& arguments) {
    Arguments words = ranks(1, arguments);
    words.insert(words.begin() + std::ssize(before_program()) + 2, {"-wdir", other});
    return words;
  };
  check_ranks_refused(folder, together(ranks(1, train), elsewhere(train)),
                      "rank 1: the ranks do not begin with the same: the text here is");
  const std::string program = folder / "program";
  fs::copy_file(program_of_ranks, program);
  std::ofstream(program, std::ios::app) << "another version";
  Arguments changed = ranks(1, train);
  std::ranges::replace(changed, program_of_ranks, program);
  check_ranks_refused(folder, together(ranks(1, train), changed),
                      "rank 1: the ranks do not begin with the same: the program here is");
  CHECK_FALSE(fs::exists(folder / "run"));

  // Not all ranks need to see the folder, unless they resume from it.
  write_bytes(other + "/text", tiny_text());
  const Result result = run_ranks(folder, together(ranks(1, train), elsewhere(train)));
  INFO(result.out << result.err);
  CHECK(result.code == 0);
  CHECK_FALSE(fs::exists(other + "/run"));
  const Arguments resume = {"train", "--resume", "run", "--max-iters", "50"};
  check_ranks_refused(folder, together(ranks(1, resume), elsewhere(resume)),
                      "rank 1: run/checkpoint.safetensors: ");
}

TEST_CASE("xgrad: a launcher that MPI does not know", "[ranks]") {
  const TinyFolder folder;
  for (const char* const rank : {"0", "1"}) {
    Arguments words = tiny_train({"--out", "run"});
    words.insert(words.begin(), program_of_ranks);
    const auto before = [&] {
      ::unsetenv("OMPI_COMM_WORLD_SIZE");
      ::setenv("PMI_SIZE", "2", 1);
      ::setenv("PMI_RANK", rank, 1);
    };
    const Result result = Process(folder, before, words).wait();
    INFO(result.out << result.err);
    CHECK(result.code == 1);
    CHECK(count_of(result.err, "this is one of 2 processes, but MPI knows of 1") ==
          (rank == std::string("0") ? 1 : 0));
    CHECK_FALSE(fs::exists(folder / "run"));
  }
}

TEST_CASE("xgrad: ranks with a configuration file", "[ranks][config]") {
  const TinyFolder folder;
  Arguments flags = tiny_train({"--out", folder / "run", "--config", "c.json"});
  flags[2] = folder / "text";
  const auto in = [&](const char* name) {
    Arguments words = ranks(1, flags);
    words.insert(words.end() - std::ssize(flags) - 1, {"-wdir", folder / name});
    return words;
  };
  for (const char* const name : {"a", "b", "c"})
    fs::create_directory(folder / name);
  write_bytes(folder / "a/c.json", R"({"beta1": 0.8})");
  write_bytes(folder / "b/c.json", R"({"beta1": 0.7})");
  check_ranks_refused(folder, together(in("a"), in("b")),
                      R"(the file of --config here is {"beta1": 0.7}, rank 0's is {"beta1": 0.8})");
  check_ranks_refused(folder, together(in("a"), in("c")), "c.json: cannot be opened");
  check_ranks_refused(folder, together(in("c"), in("a")), "c.json: cannot be opened");
  CHECK_FALSE(fs::exists(folder / "run"));
  write_bytes(folder / "b/c.json", R"({"beta1": 0.8})");
  const Result result = run_ranks(folder, together(in("a"), in("b")));
  INFO(result.out << result.err);
  CHECK(result.code == 0);
  CHECK(Json::parse(read_bytes(folder / "run/config.json")).at("beta1") == 0.8);
}
