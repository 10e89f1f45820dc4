// The course: lists its stages and checks the exercises.
//
//   learn list
//   learn check 5                         # course/exercises/05_softmax.cpp
//   learn check 5 mine.cpp --hint 1

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/threads.hpp>

#include "course/compile.hpp"
#include "course/judge.hpp"
#include "course/sandbox.hpp"
#include "course/stages.hpp"

#if XGRAD_SANITIZER
// Makes a crash a signal, as in other builds.
#define XGRAD_CRASHES \
  "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0:use_sigaltstack=0"
extern "C" const char* __asan_default_options() {  // NOLINT: the sanitizer's name
  return XGRAD_CRASHES
      ":detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0";
}
extern "C" const char* __tsan_default_options() {  // NOLINT: the sanitizer's name
  return XGRAD_CRASHES ":allocator_may_return_null=1";
}
#endif

namespace {

namespace fs = std::filesystem;
using namespace learn;

/// Prints a text, printable for a terminal.
void show(const std::string& text) {
  fmt::print("{}", ::isatty(STDOUT_FILENO) == 1 ? xgrad::printable(text) : text);
}

/// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "xgrad_learn_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw xgrad::FileError(fmt::format("{} cannot be made: {}", name, std::strerror(errno)));
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void refuse_source(const std::string& path) {
  const auto status = fs::status(path);
  if (!fs::exists(status))
    throw xgrad::FileError(path + ": there is no such file");
  if (!fs::is_regular_file(status))
    throw xgrad::FileError(path + ": is not a file");
  if (fs::file_size(path) > 1'000'000)
    throw xgrad::FileError(path + ": is larger than a megabyte, too large for an exercise");
  if (!std::ifstream(path))
    throw xgrad::FileError(path + ": cannot be read");
}

/// Runs in the child: writes R or W, and the verdict's text, to `place`.
int judge(const Stage& stage, const std::string& library, const std::string& place) {
  Answer answer;
  try {
    xgrad::set_num_threads(1);
    const Work work(library);
    answer = judge_of(stage.number)(work);
  } catch (const exercise::NotWritten&) {
    answer.said = "Nothing is written yet: replace todo() by your lines.";
  } catch (const Missing& missing) {
    answer.said =
        fmt::format("The file does not define {}.\n\nIt must be there as it was given:\n\n  {}",
                    missing.name, stage.signature);
  } catch (const std::bad_alloc&) {
    answer.said =
        "It asks for more memory than it is given (1 GiB): look at the sizes, and at what "
        "a loop appends to.";
  } catch (const xgrad::Error& error) {
    answer.said = fmt::format("It throws an error: {}", error.what());
  } catch (const std::exception& error) {
    answer.said = fmt::format("It throws an exception: {}", error.what());
  } catch (...) {
    answer.said = "It throws something that is not a std::exception.";
  }
  std::ofstream(place) << (answer.right ? 'R' : 'W') << answer.said;
  std::fflush(stdout);
  ::_exit(0);  // without running any more of the file's code
}

const char* words_for(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      return "it reads or writes memory that is not its own: an index beyond the end, a pointer "
             "to nothing, or a function that calls itself without end";
    case SIGFPE:
      return "it divides an integer by 0";
    case SIGABRT:
      return "it aborts (an assertion, or an uncaught exception)";
    case SIGXFSZ:
      return "it prints, or writes to a file, without end";
    case SIGILL:
      return "it runs into something that is no instruction: often a function that ends without "
             "a return";
    default:
      return "it was ended from outside, or ends itself";
  }
}

/// The verdict on a child process that ended so, and wrote this.
Answer answer_of(const Ended& ended, const std::string& written) {
  if (!written.empty())
    return {written[0] == 'R', written.substr(1)};
  switch (ended.how) {
    case Ended::How::too_long:
      return {false, fmt::format("It was still running after {:.0f} seconds: is there a loop whose "
                                 "end is never reached, or something that waits?",
                                 ended.seconds)};
    case Ended::How::undecided:
      throw xgrad::Error(fmt::format(
          "no verdict: a busy machine gave the file {:.1f} of {:.0f} seconds: try again later",
          ended.computed, ended.seconds));
    case Ended::How::signalled:
      return {false,
              fmt::format("It crashes ({}): {}.", ::strsignal(ended.code), words_for(ended.code))};
    case Ended::How::exited:
      break;
  }
  return {false, fmt::format("It ends the program (exit code {}) before it was judged: take out "
                             "exit(), abort() and the like.",
                             ended.code)};
}

/// The first lines of its output.
std::string printed(const std::string& all) {
  std::istringstream lines(all);
  std::string text, line;
  for (int i = 0; std::getline(lines, line) && i <= 10; ++i)
    text +=
        (i == 0 ? "\nIt printed:\n  | " : "  | ") + (i < 10 ? shortened(line, 100) : "...") + "\n";
  return text;
}

int check(const Stage& stage, const std::string& file, std::size_t hints, double seconds) {
  refuse_source(file);
  const Signals signals;
  const Folder folder;
  const std::string source = fs::absolute(file).string(), library = folder.path() + "/work.so";
  Answer answer;
  std::string output;
  answer.said = compile(signals, source, library, folder.path(), seconds);
  if (!answer.said.empty()) {
    answer.said = "It does not compile: " + answer.said;
  } else {
    const std::string place = folder.path() + "/answer.txt";
    const Ended ended =
        signals.run([&] { return judge(stage, library, place); }, {.seconds = seconds,
                                                                   .computing = seconds / 4,
                                                                   .memory = std::size_t{1} << 30U,
                                                                   .folder = folder.path()});
    answer = answer_of(ended, read_file(place));
    output = printed(ended.printed);
  }
  std::string said = fmt::format("stage {}, {}: {}\n\n{}\n", stage.number, stage.title,
                                 answer.right ? "right" : "not yet", answer.said);
  said += output;
  for (std::size_t i = 0; i < hints; ++i)
    said += fmt::format("\nhint {}: {}\n", i + 1, stage.hints.at(i));
  if (answer.right)
    said += fmt::format("\nread next: {}\n", stage.next);
  else
    said += fmt::format(
        "\nread: {}{}\n", page_of(stage),
        hints < 3 ? fmt::format("; a hint: learn check {} --hint {}", stage.number, hints + 1)
                  : "");
  show(said);
  return answer.right ? 0 : 1;
}

void list() {
  for (const Stage& stage : stages())
    show(fmt::format("{:<6} {:<50} exercises/{}.cpp\n", stage.number, stage.title, stage.file));
}

int run(int argc, char** argv) {
  CLI::App app("The course: lists and checks exercises.", "learn");
  app.require_subcommand(1);
  const CLI::App* const listing = app.add_subcommand("list", "Lists the stages and their files.");
  CLI::App* const checking =
      app.add_subcommand("check", "Compiles an exercise, judges it, and says where it is wrong.");
  std::string number, file;
  std::size_t hint = 0;
  double seconds = 20;
  checking->add_option("stage", number, "the stage: 1 ... 12, 11.1 ... 11.12")->required();
  checking->add_option("file", file, "its file [that of exercises/]");
  checking->add_option("--hint", hint, "print the hints up to this one [0]")
      ->check(CLI::Range(0, 3));
  checking->add_option("--seconds", seconds, "that a processor may work on it [20]")
      ->check(CLI::Range(5, 600));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (listing->parsed()) {
    list();
    return 0;
  }
  const Stage& asked = stage(number);
  return check(asked, file.empty() ? LEARN_EXERCISES "/" + asked.file + ".cpp" : file, hint,
               seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
      return code;
    std::fprintf(stderr, "learn: standard output could not be written: %s\n", std::strerror(errno));
    return code != 0 ? code : errno == EPIPE ? 128 + SIGPIPE : 1;
  } catch (const Interrupted& interrupted) {  // after everything is removed
    std::signal(interrupted.signal, SIG_DFL);
    ::raise(interrupted.signal);
    return 128 + interrupted.signal;
  } catch (const xgrad::ValueError& error) {
    std::fprintf(stderr, "learn: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "learn: %s\n", xgrad::printable(error.what()).c_str());
    return 3;
  }
}
