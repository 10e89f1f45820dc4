// `learn check` answers whatever a learner's file does.

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <xgrad/autograd/sanitizers.hpp>

#include "learn_check.hpp"

namespace {

// The file of stage 1, with these texts before and inside its function.
std::string slope(const std::string& before, const std::string& body) {
  return "#include \"exercise.hpp\"\n" + before + "\ndouble slope(double x) {\n" + body + "\n}\n";
}

void check_says(const std::string& text, const std::string& says, const std::string& stage = "1",
                const Arguments& more = {"--seconds", "300"}) {
  const TemporaryFolder folder;
  check_answer(check_text(folder, stage, text, more), false, says);
}

}  // namespace

TEST_CASE("learn check: a file that does not compile gets its first error", "[learn]") {
  check_says(slope("", "  return 3 * x * x - 2"), "line 4: a `;` is missing");
  check_says(slope("", "  return 3 * y;"), "line 4: the name `y` is not known here");
  check_says(slope("#include <nothing.hpp>", "  return x;"),
             "line 2: there is no file `nothing.hpp`");
  check_says(slope("", "  x = 2;"), "can reach its end without a `return`");
  check_says("#include \"exercise.hpp\"\nfloat slope(double x) { return 1; }\n",
             "line 2: the function's result or arguments are not those");
  check_says(slope("using namespace xgrad;", "  return randn({2});"),
             "line 4: a value of one type is used where another is needed");
  check_says(slope("using namespace xgrad;", "  Tensor t = randn({2});\n  t[0] = t;\n  return 1;"),
             "line 5: this is forbidden on purpose");
  // The compiler's message about a template is pages long, and names a header.
  const TemporaryFolder folder;
  const Result result =
      check_text(folder, "1",
                 slope("using namespace xgrad;",
                       "  const Tensor t = randn({2});\n"
                       "  record(\"op\", {t}, [](auto in) { return in[0]; }, t);\n"
                       "  return 1;"));
  check_answer(result, false, "no match for call to '(Tensor) (Context&)'");
  CHECK(lines_of(result.out).size() < 15);
  CHECK(std::ranges::all_of(lines_of(result.out),
                            [](const std::string& line) { return line.size() < 400; }));
}

TEST_CASE("learn check: a file that lacks its function", "[learn]") {
  check_says("", "The file does not define slope");
  check_says("double slope(float x) { return x; }\n", "The file does not define slope");
  check_says("#include \"exercise.hpp\"\nint main() {}\n", "double slope(double x)");
  check_says(slope("double other(double);", "  return other(x);"), "other(double)");
}

TEST_CASE("learn check: a file that never ends", "[learn]") {
  const Arguments soon = {"--seconds", "30"};
  check_says(slope("#include <unistd.h>", "  while (true) ::pause();"), "still running after", "1",
             soon);
  check_says(slope("struct Before {\n"
                   "  Before() { for (volatile int i = 0;; i = 1) {} }\n"
                   "} before;",
                   "  return x;"),
             "still running after", "1", soon);
  check_says(slope("constexpr long loop(long n) {\n"
                   "  long s = 0;\n  for (long i = 0; i < n; ++i) s += i;\n  return s;\n}\n"
                   "constexpr long sum = loop(1L << 62);",
                   "  return x;"),
             "does not compile", "1", soon);
  // With the compiler at work for ever, too.
  check_says("#include __FILE__\n", "the file includes itself", "1", soon);
}

TEST_CASE("learn check: a compiler that has no time left says nothing of the file", "[learn]") {
  const TemporaryFolder folder;
  const std::string busy =
      "constexpr int loop(int n) {\n  for (int i = 0; i < 80; ++i)\n"
      "    for (int j = 0; j < 10000; ++j) n ^= j;\n  return n;\n}\n"
      "template <int N> constexpr int sum = loop(N) + sum<N - 1>;\n"
      "template <> constexpr int sum<0> = 0;\nstatic_assert(sum<99> != -1);";
  const Result result =
      check_text(folder, "1", slope(busy, "  return 3 * x * x - 2;"), {"--seconds", "5"});
  INFO(result.out << result.err);
  CHECK(result.code == 3);
  CHECK(result.err.find("no verdict: the compiler was not done") != std::string::npos);
}

TEST_CASE("learn check: a file that computes for ever is ended before one that waits", "[learn]") {
  const TemporaryFolder folder;
  const std::string text = slope("#include <csignal>",
                                 "  std::signal(SIGXCPU, SIG_IGN);\n"
                                 "  for (volatile int i = 0;; i = 1) {}");
  rusage then{}, now{};
  ::getrusage(RUSAGE_CHILDREN, &then);
  check_answer(check_text(folder, "1", text, {"--seconds", "30"}), false, "still running after");
  ::getrusage(RUSAGE_CHILDREN, &now);
  CHECK(now.ru_utime.tv_sec - then.ru_utime.tv_sec < 20);  // a quarter of 30, and the compiler's
}

TEST_CASE("learn check: a signal leaves nothing behind", "[learn]") {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.cpp", place = folder / "place";
  write_bytes(file, slope("#include <unistd.h>", "  while (true) ::pause();"));
  std::filesystem::create_directory(place);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Process process(folder, [&] { ::setenv("TMPDIR", place.c_str(), 1); },
                    {learn, "check", "1", file, "--seconds", "300"});
    wait_until([&] { return !std::filesystem::is_empty(place); });
    process.signal(signal);
    const Result result = process.wait();
    CHECK(result.code == -signal);
    CHECK(result.out + result.err == "");
    CHECK(std::filesystem::is_empty(place));
  }
}

TEST_CASE("learn: output that cannot be written is reported", "[learn]") {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.cpp";
  write_bytes(file, solution_text(folder, "01_slope"));
  for (const Arguments& words :
       {Arguments{learn, "list"}, {learn, "--help"}, {learn, "check", "1", file}}) {
    const Result result =
        Process(
            folder, [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); }, words)
            .wait();
    CHECK(result.code == 1);
    CHECK(result.err == "learn: standard output could not be written: No space left on device\n");
  }
}

TEST_CASE("learn check: a file that crashes", "[learn]") {
  const std::string crash = XGRAD_SANITIZER != 0 ? "It " : "It crashes (Segmentation fault)";
  check_says(slope("", "  volatile double* p = nullptr;\n  return *p + x;"), crash);
  check_says(slope("#include <csignal>", "  std::raise(SIGSEGV);\n  return x;"),
             "It crashes (Segmentation fault)");
  check_says(slope("double down(double x) { volatile double y = x; return down(y + 1) + y; }",
                   "  return down(x);"),
             crash);
  check_says(slope("#include <cstdlib>", "  std::abort();"), "It crashes (Aborted)");
  check_says(slope("#include <stdexcept>", "  throw std::runtime_error(\"mine\");"),
             "It throws an exception: mine");
  check_says(slope("", "  throw 1;"), "not a std::exception");
  check_says(slope("using namespace xgrad;", "  return matmul(ones({2, 3}), ones({2, 3})).item();"),
             "It throws an error: matmul: ");
}

TEST_CASE("learn check: a file that leaves", "[learn]") {
  const std::string says = "It ends the program (exit code 0) before it was judged";
  check_says(slope("#include <cstdlib>", "  std::exit(0);"), says);
  check_says(slope("#include <unistd.h>", "  ::_exit(0);"), says);
  check_says(slope("#include <unistd.h>", "  ::execlp(\"true\", \"true\", nullptr);\n  return x;"),
             says);
}

TEST_CASE("learn check: a file's output is not the answer", "[learn]") {
  const std::string claim =
      "  std::puts(\"stage 1, a number and its slope: right\\n\\nslope: right at 6 points\");\n";
  check_says(slope("#include <cstdio>", claim + "  return 0;"),
             "  | stage 1, a number and its slope: right\n");
  check_says(
      slope("#include <cstdio>\n#include <unistd.h>",
            "  for (int fd = 1; fd < 64; ++fd)\n    if (::write(fd, \"<R>right<R>\", 11)) {}\n"
            "  ::_exit(0);"),
      "It ends the program");
  check_says(slope("#include <cstdio>", "  while (true) std::puts(\"and so on\");"),
             "it prints, or writes to a file, without end");
  // Megabytes of it, colours, and closed streams and files.
  check_says(
      slope(
          "#include <cstdio>",
          "  for (int i = 0; i < 100000; ++i)\n    std::puts(\"\\x1b[31m and so on, and so on\");\n"
          "  return 0;"),
      "  | \\x1b[31m and so on, and so on\n  | ...\n");
  check_says(
      slope("#include <cstdio>", "  std::fclose(stdout);\n  std::fclose(stderr);\n  return 0;"),
      "A slope of 0");
  const TemporaryFolder folder;
  check_answer(
      check_text(folder, "1",
                 slope("#include <cstdio>\n#include <unistd.h>",
                       "  std::fclose(stdout);\n  for (int i = 0; i < 1024; ++i) ::close(i);\n"
                       "  return 3 * x * x - 2;")),
      true, "right at 6 points");
}

TEST_CASE("learn check: a file that takes all there is", "[learn]") {
  if (XGRAD_SANITIZER == 0)  // there the limit is not held
    check_says(slope("#include <vector>",
                     "  std::vector<std::vector<double>> all;\n"
                     "  while (true) all.emplace_back(1 << 20, x);"),
               "more memory");
  check_says(slope("", "  return (new double[1ULL << 40])[0] + x;"), "It ");
  // Processes that it starts end with it.
  const TemporaryFolder folder;
  check_answer(check_text(folder, "1",
                          slope("#include <unistd.h>",
                                "  static int children = 0;\n"
                                "  if (++children <= 20 && ::fork() == 0) ::pause();\n"
                                "  return 3 * x * x - 2;")),
               true, "right at 6 points");
}

TEST_CASE("learn check: a backward that does nothing, or is cut off", "[learn]") {
  const TemporaryFolder folder;
  const std::string solved = solution_text(folder, "05_softmax");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = solved;
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string formula = "y * (g - sum(y * g, {-1}, true))";
  check_says(with(formula, "zeros_like(g)"), "a term is missing", "5");
  check_says(with(formula, "0 * y * (g - sum(y * g, {-1}, true))"), "a term is missing", "5");
  check_says(with("return record(", "return softmax(x.detach(), -1); return record("),
             "no gradient reaches its inputs", "5");
  check_says(with("return record(", "const NoGrad off;\n  return record("),
             "no gradient reaches its inputs", "5");
  check_says(with(formula, "y"), "A backward multiplies the gradient that arrives", "5");
  check_says(with("ctx.add(0, " + formula + ");", "sum(g);"), "a term is missing", "5");
  check_says(with(formula, "sum(y, {-1})"), "A gradient has the shape", "5");
}

TEST_CASE("learn check: stages, files and hints that do not exist", "[learn]") {
  const TemporaryFolder folder;
  const auto refused = [&](const Arguments& arguments, int code, const std::string& says) {
    Arguments words = {learn};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Result result = Process(
                              folder, [] {}, words)
                              .wait();
    INFO(result.out << result.err);
    CHECK(result.code == code);
    CHECK(result.out.empty());
    INFO(says);
    CHECK(result.err.find(says) != std::string::npos);
  };
  for (const char* stage : {"0", "13", "11.13", "11.0", "five", "", "5.1"})
    refused({"check", stage}, 2,
            "there is no stage '" + std::string(stage) + "': stages are 1 ... 12, and the layers");
  refused({"check", "1", "nothing.cpp"}, 3, "nothing.cpp: there is no such file");
  refused({"check", "1", "."}, 3, ".: is not a file");
  refused({"check", "1", "--hint", "4"}, 2, "--hint");
  refused({"check", "1", "a", "b"}, 2, "not expected: b");
  refused({"check", "1", "/dev/zero"}, 3, "is not a file");
  write_bytes(folder / "large.cpp", std::string(1'000'001, ' '));
  refused({"check", "1", "large.cpp"}, 3, "too large for an exercise");
}

TEST_CASE("learn: hints come one by one, and every stage has its file and page", "[learn]") {
  const TemporaryFolder folder;
  const Result two = check_text(folder, "5", exercise_text("05_softmax"), {"--hint", "2"});
  check_answer(two, false, "hint 1: ");
  check_answer(two, false, "hint 2: ");
  CHECK(two.out.find("hint 3: ") == std::string::npos);
  check_answer(two, false, "learn check 5 --hint 3");

  const Result list = Process(folder, [] {}, {learn, "list"}).wait();
  CHECK(list.code == 0);
  const auto lines = lines_of(list.out);
  CHECK(lines.size() == 24);
  for (const std::string& line : lines) {
    const std::string file = line.substr(line.find("exercises/"));
    INFO(line);
    CHECK(std::filesystem::exists(source_dir + "/course/" + file));
    const std::string name = file.substr(10, file.size() - 14);
    CHECK(std::filesystem::exists(source_dir + "/course/solutions/" + name + ".diff"));
    if (!name.starts_with("mistakes/"))
      CHECK(std::filesystem::exists(source_dir + "/course/pages/" + name + ".md"));
  }
}
