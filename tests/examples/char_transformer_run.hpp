#pragma once
// Running char_transformer as a user does, on a text and a model that take no time.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

/// The characters that a checkpoint's model knows.
inline xgrad::data::Characters characters_in(const xgrad::io::Checkpoint& checkpoint) {
  return xgrad::data::Characters::from_list(
      xgrad::data::decode_utf8(*checkpoint.user.find<std::string>("characters"), "characters"));
}

using Arguments = std::vector<std::string>;

struct Result {
  int code;
  std::string out;
  std::string err;
  std::size_t peak;  ///< bytes of memory
};

/// A process that runs the program in a folder.
class Process {
 public:
  /// With a limit, it may have no more than so many bytes of memory.
  Process(const TemporaryFolder& folder, const Arguments& arguments, rlim_t limit = RLIM_INFINITY)
      : out_(folder / ".out"), err_(folder / ".err") {
    Arguments words = {char_transformer};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string here = folder / ".";
    id_ = ::fork();
    if (id_ == 0) {
      const rlimit memory{limit, limit};
      if (::chdir(here.c_str()) != 0 || ::setrlimit(RLIMIT_AS, &memory) != 0 ||
          !std::freopen(out_.c_str(), "w", stdout) || !std::freopen(err_.c_str(), "w", stderr))
        ::_exit(99);
      ::execv(argv[0], argv.data());
      ::_exit(98);
    }
  }
  void signal(int number) const { ::kill(id_, number); }
  Result wait() const {
    int status = 0;
    rusage usage{};
    ::wait4(id_, &status, 0, &usage);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_bytes(out_),
            read_bytes(err_), static_cast<std::size_t>(usage.ru_maxrss) * 1024};
  }

 private:
  std::string out_, err_;
  pid_t id_;
};

inline Result run(const TemporaryFolder& folder, const Arguments& arguments) {
  return Process(folder, arguments).wait();
}

inline Result run_well(const TemporaryFolder& folder, const Arguments& arguments) {
  Result result = run(folder, arguments);
  INFO(result.out << result.err);
  REQUIRE(result.code == 0);
  CHECK(result.err == "");
  return result;
}

/// A run that fails with this code, and what its error says.
inline void check_refused(const TemporaryFolder& folder, const Arguments& arguments, int code,
                          const std::vector<std::string>& fragments) {
  const Result result = run(folder, arguments);
  std::string line;
  for (const std::string& word : arguments)
    line += word + " ";
  INFO(line << "\n" << result.out << result.err);
  CHECK(result.code == code);
  check_contains(result.err, fragments);
}

inline std::string tiny_text() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "the cat sat on mat " + std::to_string(i % 7) + ",\nthe dog did not.\n";
  return text;
}

/// `train` on the tiny text with a tiny model, and what else is given.
inline Arguments tiny_train(const Arguments& more = {}) {
  Arguments all = {"train", "--data",          "text", "--block-size",     "8",  "--batch-size",
                   "4",     "--n-layer",       "1",    "--n-head",         "2",  "--n-embd",
                   "16",    "--max-iters",     "40",   "--lr-decay-iters", "40", "--warmup-iters",
                   "2",     "--learning-rate", "0.01", "--eval-interval",  "10", "--eval-iters",
                   "2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct TinyFolder : TemporaryFolder {
  TinyFolder() { write_bytes(*this / "text", tiny_text()); }
};

/// A folder with a trained model in `run`.
struct TrainedFolder : TinyFolder {
  std::string checkpoint = "run/checkpoint.safetensors";
  Result trained = run_well(*this, tiny_train({"--out", "run"}));
};
