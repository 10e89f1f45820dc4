#pragma once
// Running `learn check` on files.

#include <string>

#include "lm/program/run.hpp"

inline const std::string build = XGRAD_BUILD;

/// The output of scripts/learn, and its exit code.
inline Result run_learn(const TemporaryFolder& folder, const Arguments& arguments) {
  Arguments words = {source_dir + "/scripts/learn"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Process(folder, [] { ::setenv("LEARN_BUILD", build.c_str(), 1); }, words).wait();
}
/// `learn check` on a text; it may take minutes on a busy machine.
inline Result check_text(const TemporaryFolder& folder, const std::string& stage,
                         const std::string& text, const std::string& seconds = "300") {
  write_bytes(folder / "mine.cpp", text);
  return run_learn(folder, {"check", stage, "mine.cpp", "--seconds", seconds});
}

/// The exercise `name` as given, and with its solution.
inline std::string exercise_text(const std::string& name) {
  return read_bytes(source_dir + "/course/exercises/" + name + ".cpp");
}
inline std::string solution_text(const TemporaryFolder& folder, const std::string& name) {
  const std::string base = source_dir + "/course/", solved = folder / "solved.cpp";
  const int code =
      Process(folder, [] {},
              {"patch", "--quiet", "--force", "--output=" + solved,
               base + "exercises/" + name + ".cpp", base + "solutions/" + name + ".diff"})
          .wait()
          .code;
  REQUIRE(code == 0);
  return read_bytes(solved);
}

inline void check_answer(const Result& result, bool right, const std::string& says) {
  INFO(result.out << result.err);
  CHECK(result.code == (right ? 0 : 1));
  CHECK(result.err.empty());
  CHECK(result.out.find(right ? ": right\n" : ": not yet\n") != std::string::npos);
  INFO("expected: " << says);
  CHECK(result.out.find(says) != std::string::npos);
}
