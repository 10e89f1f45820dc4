#pragma once
// Runs xgrad as a user does, on a text and a model that take no time.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/text.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

namespace fs = std::filesystem;
namespace io = xgrad::io;
namespace lm = xgrad::lm;
namespace nn = xgrad::nn;

/// The characters of a checkpoint's model.
inline xgrad::lm::Characters characters_in(const xgrad::io::Checkpoint& checkpoint) {
  return xgrad::lm::Characters::from_list(
      xgrad::lm::decode_utf8(*checkpoint.user.find<std::string>("characters"), "characters"));
}

using Json = nlohmann::json;

/// The words of a command line.  A single string is split at blanks: "sample run --prompt 'the
/// cat'".
struct Arguments : std::vector<std::string> {
  using std::vector<std::string>::vector;
  Arguments() = default;
  Arguments(const char* line) : Arguments(std::string(line)) {}
  Arguments(const std::string& line) {
    std::istringstream stream(line);
    for (std::string word; stream >> std::ws && !stream.eof(); push_back(word)) {
      if (stream.peek() != '\'') {
        stream >> word;
        continue;
      }
      stream.get();
      std::getline(stream, word, '\'');
    }
  }
  Arguments(std::initializer_list<std::string> words) {
    if (words.size() == 1)
      *this = Arguments(*words.begin());
    else
      assign(words);
  }
};

struct Result {
  int code;
  std::string out;
  std::string err;
  std::size_t peak;  ///< bytes of memory
};

/// Appends arguments, which replace flags that are given twice.
inline Arguments overridden(Arguments all, const Arguments& more) {
  for (const std::string& word : more) {
    const auto at = std::find(all.begin(), all.end(), word);
    if (word.starts_with("--") && at != all.end())
      all.erase(at, at + 2);
    all.push_back(word);
  }
  return all;
}

/// The program's command line.
inline Arguments command(const Arguments& arguments) {
  Arguments words = {xgrad_program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

inline void sleep_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

/// Waits until something is true, for a minute at most.
inline void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 30000; ++i) {
    if (holds())
      return;
    sleep_ms(2);
  }
  FAIL("a minute has passed");
}

/// A process that runs the program, or another one, in a folder.
class Process {
 public:
  /// `before` is called in the child before the program starts.
  Process(
      const TemporaryFolder& folder, const Arguments& arguments,
      const std::function<void()>& before = [] {})
      : Process(folder, before, command(arguments)) {}
  Process(const TemporaryFolder& folder, const std::function<void()>& before, Arguments words)
      : out_(folder / ".out"), err_(folder / ".err") {
    std::vector<char*> argv;
    for (std::string& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string working_folder = folder / ".";
    write_bytes(out_, "");
    write_bytes(err_, "");
    // A signal before the program starts must not reach the tests' handlers.
    sigset_t all, mask;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &mask);
    id_ = ::fork();
    if (id_ == 0) {
      for (const int number : {SIGINT, SIGTERM, SIGHUP})
        ::signal(number, SIG_DFL);
      ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
      if (::chdir(working_folder.c_str()) != 0 || !std::freopen(out_.c_str(), "w", stdout) ||
          !std::freopen(err_.c_str(), "w", stderr))
        ::_exit(99);
      before();
      ::execvp(argv[0], argv.data());
      ::_exit(98);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (id_ > 0) {  // a test has failed
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
  }

  pid_t id() const { return id_; }
  /// Seconds of processor time, over all its threads.
  double processor_time() const {
    clockid_t clock{};
    std::timespec used{};
    if (::clock_getcpuclockid(id_, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
      return 0;
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
  void signal(int number) const { ::kill(id_, number); }
  /// Whether it has ended; wait() returns how.
  bool ended() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == id_;
  }
  /// Waits until it has written this to standard error, or has ended.
  void wait_for(const std::string& text) const {
    wait_until([&] { return err().find(text) != std::string::npos || ended(); });
  }
  std::string out() const { return read_bytes(out_); }
  std::string err() const { return read_bytes(err_); }
  Result wait() {
    int status = 0;
    rusage usage{};
    ::wait4(id_, &status, 0, &usage);
    id_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), out(), err(),
            static_cast<std::size_t>(usage.ru_maxrss) * 1024};
  }

 private:
  std::string out_, err_;
  pid_t id_;
};

/// Calls setrlimit() in a process that is about to run the program.
inline std::function<void()> limited(int resource, rlim_t most) {
  return [=] {
    const rlimit limit{most, RLIM_INFINITY};
    if (::setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0)
      ::_exit(97);
  };
}

inline Result run(const TemporaryFolder& folder, const Arguments& arguments) {
  return Process(folder, arguments).wait();
}

/// The lines that begin with the program's name: warnings and errors.
inline std::string warnings_in(const std::string& err) {
  std::istringstream stream(err);
  std::string warnings;
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("xgrad"))
      warnings += line + "\n";
  return warnings;
}

/// A run that ends well, whatever it says.
inline Result ran(const TemporaryFolder& folder, const Arguments& arguments) {
  Result result = run(folder, arguments);
  INFO(result.out << result.err);
  REQUIRE(result.code == 0);
  return result;
}

inline Result run_well(const TemporaryFolder& folder, const Arguments& arguments) {
  Result result = ran(folder, arguments);
  // Which checkpoint was used, and nothing else.
  const bool uses_one =
      arguments[0] == "eval" || arguments[0] == "sample" || arguments[0] == "export";
  CHECK_THAT(
      warnings_in(result.err),
      Catch::Matchers::Matches(uses_one ? "xgrad: .*, (after [0-9]+ steps?|weights alone)\n" : ""));
  if (arguments[0] != "train")
    CHECK(result.err == warnings_in(result.err));
  return result;
}

/// Waits for a process; checks its exit code, and parts of its standard error.
inline Result check_ends(Process& process, int code,
                         const std::vector<std::string>& fragments = {}) {
  Result result = process.wait();
  INFO(result.out << result.err);
  CHECK(result.code == code);
  check_contains(result.err, fragments);
  return result;
}

using Names = std::set<std::string>;
using Files = std::map<std::string, std::string>;

/// All in a folder but the output of processes: contents of files, targets of links; names of
/// folders end with a slash.
inline Files files_under(const std::string& folder) {
  Files files;
  const std::string top = folder + "/";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    const std::string path = entry.path().string(), name = path.substr(top.size());
    if (entry.is_symlink())
      files[name] = "-> " + std::filesystem::read_symlink(entry).string();
    else if (entry.is_directory())
      files[name + "/"];
    else if (name != ".out" && name != ".err")
      files[name] = entry.is_regular_file() ? read_bytes(path) : "";
  }
  return files;
}

inline Files files_under(const TemporaryFolder& folder) { return files_under(folder / "."); }

/// The names that are in one of them alone, or with other contents.
inline Names differences(const Files& before, const Files& after) {
  Names names;
  for (const Files* const one : {&before, &after})
    for (const auto& [name, content] : *one)
      for (const Files* const other : {&before, &after})
        if (const auto found = other->find(name); found == other->end() || found->second != content)
          names.insert(name);
  return names;
}

/// Checks that a command fails with this code and message, and changes no file.
inline void check_refused(const TemporaryFolder& folder, const Arguments& arguments, int code,
                          const std::vector<std::string>& fragments) {
  std::string line;
  for (const std::string& word : arguments)
    line += word + " ";
  INFO(line);
  const Files before = files_under(folder);
  Process process(folder, arguments);
  check_ends(process, code, fragments);
  CHECK(differences(before, files_under(folder)) == Names{});
}

/// The number that follows these words in a text.
inline double number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/// The rows of a run that may be in progress: skips an incomplete last row, as all readers of such
/// files must.
inline std::vector<Json> metrics_of(const std::string& folder) {
  std::vector<Json> rows;
  const std::string text = read_bytes(folder + "/metrics.jsonl");
  for (const std::string& line : lines_of(text.substr(0, text.rfind('\n') + 1)))
    rows.push_back(Json::parse(line));
  return rows;
}

/// The config.json of a run in `out`, which is killed once it has written that, and removed.
inline std::string config_written(const TemporaryFolder& folder, const Arguments& arguments) {
  Process process(folder, arguments);
  wait_until(
      [&] { return process.ended() || std::filesystem::exists(folder / "out/config.json"); });
  process.signal(SIGKILL);
  INFO(process.wait().err);
  REQUIRE(std::filesystem::exists(folder / "out/config.json"));
  std::string text = read_bytes(folder / "out/config.json");
  std::filesystem::remove_all(folder / "out");
  return text;
}

/// The same; the arguments override the flags for a small text and small batches.
inline std::string config_of(const TemporaryFolder& folder, const Arguments& more) {
  const Arguments all = "train --data text --block-size 8 --batch-size 1 --eval-iters 1 --out out";
  return config_written(folder, overridden(all, more));
}

/// The rows without their times.
inline std::vector<Json> timeless_metrics_of(const std::string& folder) {
  std::vector<Json> rows = metrics_of(folder);
  for (Json& row : rows)
    row.erase("ms");
  return rows;
}

/// The text n times.
inline std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i)
    all += text;
  return all;
}

inline std::string tiny_text() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "the cat sat on mat " + std::to_string(i % 7) + ",\nthe dog did not.\n";
  return text;
}

/// `train` on the tiny text with a tiny model, and these arguments.
inline Arguments tiny_train(const Arguments& more = {}) {
  Arguments all = {
      "train --data text --block-size 8 --batch-size 4 --n-layer 1 --n-head 2 --n-embd 16 "
      "--max-iters 40 --lr-decay-iters 40 --warmup-iters 2 --learning-rate 0.01 --eval-interval 10 "
      "--eval-iters 2"};
  return overridden(all, more);
}

struct TinyFolder : TemporaryFolder {
  TinyFolder() { write_bytes(*this / "text", tiny_text()); }
};

/// A folder with a trained model in `run`.
struct TrainedFolder : TinyFolder {
  std::string checkpoint = "run/checkpoint.safetensors";
  Result trained = run_well(*this, tiny_train("--out run"));
};
