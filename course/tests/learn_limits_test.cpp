// `learn check` answers whatever a learner's file does.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "learn_check.hpp"

namespace {

// Files of stage 1, with these texts before and inside its function, and what is said of them.
struct Case {
  std::string before, body, says;
};

void check_slopes(const std::vector<Case>& cases, const std::string& seconds = "300") {
  for (const Case& c : cases) {
    const TemporaryFolder folder;
    const std::string text = "#include \"exercise.hpp\"\n" + c.before +
                             "\ndouble slope(double x) {\n" + c.body + "\n}\n";
    INFO(text);
    check_answer(check_text(folder, "1", text, seconds), false, c.says);
  }
}

}  // namespace

TEST_CASE("learn check: a file that does not compile gets its first error", "[learn]") {
  check_slopes(
      {{"", "  return 3 * x * x - 2", "mine.cpp:4:23: error: expected ';'"},
       {"", "  return 3 * y;", "mine.cpp:4:14: error: "},
       {"", "  return 3 * y;\n  return z;", "    4 |   return 3 * y;"},
       {"#include <nothing.hpp>", "  return x;", "mine.cpp:2:10: fatal error: "},
       {"", "  x = 2;", "-Werror=return-type"},
       {"float slope(double);", "  return 1;", "mine.cpp:2:7: error: "},
       {"double other(double);", "  return other(x);", "The file does not define other(double)"}});
  const TemporaryFolder folder;
  check_answer(check_text(folder, "1", ""), false, "The file does not define slope(double)");
  // The compiler's message about a template is pages long, and names a header.
  const Result result =
      check_text(folder, "1",
                 "#include \"exercise.hpp\"\ndouble slope(double) {\n"
                 "  const xgrad::Tensor t = xgrad::randn({2});\n"
                 "  record(\"op\", {t}, [](auto in) { return in[0]; }, t);\n  return 1;\n}\n");
  check_answer(result, false, "no match for call to");
  CHECK(lines_of(result.out).size() < 20);
  CHECK(std::ranges::all_of(lines_of(result.out),
                            [](const std::string& line) { return line.size() < 300; }));
}

TEST_CASE("learn check: a file that never ends", "[learn]") {
  check_slopes({{"#include <unistd.h>", "  while (true) ::pause();", "It was still running"},
                {"", "  for (volatile int i = 0;; i = 1) {}", "It was still running"},
                {"struct Before {\n  Before() { for (volatile int i = 0;; i = 1) {} }\n} before;",
                 "  return x;", "It was still running"}},
               "20");
}

TEST_CASE("learn check: a compiler that has no time left says nothing of the file", "[learn]") {
  const TemporaryFolder folder;
  const Result result = check_text(
      folder, "1",
      "#include \"exercise.hpp\"\nconstexpr int loop(int n) {\n  for (int i = 0; i < 80; ++i)\n"
      "    for (int j = 0; j < 10000; ++j) n ^= j;\n  return n;\n}\n"
      "template <int N> constexpr int sum = loop(N) + sum<N - 1>;\n"
      "template <> constexpr int sum<0> = 0;\nstatic_assert(sum<99> != -1);\n"
      "double slope(double x) { return 3 * x * x - 2; }\n",
      "5");
  INFO(result.out << result.err);
  CHECK(result.code == 3);
  CHECK(result.err.find("no verdict: the compiler was not done") != std::string::npos);
}

TEST_CASE("learn check: a file that crashes, throws or leaves", "[learn]") {
  check_slopes(
      {{"", "  volatile double* p = nullptr;\n  return *p + x;", "It crashes (segmentation fault)"},
       {"double down(double x) { volatile double y = x; return down(y + 1) + y; }",
        "  return down(x);", "It crashes (segmentation fault)"},
       {"", "  volatile int zero = 0;\n  return 7 / zero;",
        "It crashes (floating-point exception)"},
       {"#include <cstdlib>", "  std::abort();", "It crashes (aborted)"},
       {"#include <stdexcept>", "  throw std::runtime_error(\"mine\");",
        "It throws an exception: mine"},
       {"", "  throw 1;", "It throws something that is not a std::exception."},
       {"", "  return matmul(xgrad::ones({2, 3}), xgrad::ones({2, 3})).item();",
        "It throws an error: matmul: "},
       {"#include <cstdlib>", "  std::exit(0);", "It ends the program (exit code 0)"},
       {"#include <unistd.h>", "  ::_exit(1);", "It ends the program (exit code 1)"},
       {"#include <unistd.h>", "  ::execlp(\"true\", \"true\", nullptr);\n  return x;",
        "It ends the program (exit code 0)"},
       {"#include <vector>",
        "  std::vector<std::vector<double>> all;\n  while (true) all.emplace_back(1 << 20, x);",
        "more memory than it is given"}});
}

TEST_CASE("learn check: a file's output is not the answer", "[learn]") {
  check_slopes(
      {{"#include <cstdio>", "  std::puts(\"All tests passed: right\");\n  std::exit(0);",
        "It ends the program (exit code 0) before it was judged: take out exit(), abort() and the "
        "like.\n\nIt printed:\n  | All tests passed: right\n"},
       {"#include <cstdio>", "  while (true) std::puts(\"and so on\");", "without end"},
       {"#include <cstdio>",
        "  for (int i = 0; i < 99; ++i) std::puts(\"\\x1b[31m and so on\");\n  return 0;",
        "  | ?[31m and so on\n  | ...\n"},
       {"#include <cstdio>", "  std::fclose(stdout);\n  std::fclose(stderr);\n  return 0;",
        "A slope of 0"}});
}

TEST_CASE("learn check: stages, files and hints that do not exist", "[learn]") {
  const TemporaryFolder folder;
  const auto refused = [&](const Arguments& arguments, int code, const std::string& says) {
    const Result result = run_learn(folder, arguments);
    INFO(result.out << result.err);
    CHECK(result.code == code);
    CHECK(result.out.empty());
    CHECK(result.err.find(says) != std::string::npos);
  };
  for (const char* stage : {"0", "13", "11.13", "11.0", "five", "", "5.1", "1 2"})
    refused({"check", stage}, 2, "there is no stage '" + std::string(stage) + "': stages are");
  refused({"chekc"}, 2, "there is no command 'chekc'");
  refused({"check", "1", "nothing.cpp"}, 3, "nothing.cpp: there is no such file");
  refused({"check", "1", "."}, 3, "there is no such file");
  refused({"check", "1", "/dev/zero"}, 3, "there is no such file");
  refused({"check", "1", "--hint", "4"}, 2, "--hint 4");
  refused({"check", "1", "--seconds", "x"}, 2, "--seconds x");
  refused({"check", "1", "a", "b"}, 2, "b: one file");
}

TEST_CASE("learn: hints come one by one, and every stage has its files and page", "[learn]") {
  const TemporaryFolder folder;
  const Result two = run_learn(folder, {"check", "5", "--seconds", "300", "--hint", "2"});
  check_answer(two, false, "hint 1: Every y_i depends on every x_j");
  check_answer(two, false, "hint 2: ");
  CHECK(two.out.find("hint 3: ") == std::string::npos);
  check_answer(two, false, "learn check 5 --hint 3");

  const auto lines = lines_of(run_learn(folder, {}).out);
  CHECK(lines.size() == 24);
  for (const std::string& line : lines) {
    INFO(line);
    const std::string name = line.substr(line.find("exercises/") + 10);
    for (const std::string& file : {"exercises/" + name, "checks/" + name})
      CHECK(std::filesystem::exists(source_dir + "/course/" + file));
    const std::string check = read_bytes(source_dir + "/course/checks/" + name);
    for (const char* part :
         {"// Stage ", "\n// Hint 1: ", "\n// Hint 2: ", "\n// Hint 3: ", "\n// Next: "})
      CHECK(check.find(part) != std::string::npos);
  }
}
