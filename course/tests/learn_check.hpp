#pragma once
// Running `learn check` on files.

#include <string>
#include <vector>

#include "lm/program/run.hpp"

inline const std::string learn = XGRAD_LEARN;

/// The output of `learn check`, and its exit code.  It may take minutes on a busy machine; a
/// separate test covers the limit of 20 seconds.
inline Result check_file(const TemporaryFolder& folder, const std::string& stage,
                         const std::string& file, const Arguments& more = {"--seconds", "300"}) {
  Arguments words = {learn, "check", stage, file};
  words.insert(words.end(), more.begin(), more.end());
  return Process(
             folder, [] {}, words)
      .wait();
}
inline Result check_text(const TemporaryFolder& folder, const std::string& stage,
                         const std::string& text, const Arguments& more = {"--seconds", "300"}) {
  const std::string file = folder / "mine.cpp";
  write_bytes(file, text);
  return check_file(folder, stage, file, more);
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
