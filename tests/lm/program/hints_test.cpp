// Words of other programs: the message names the counterpart.

#include <xgrad/lm/program/hints.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <xgrad/lm/program/flags.hpp>
#include <xgrad/lm/program/ranks.hpp>
#include "helpers/catch.hpp"

namespace {

constexpr const char* all_commands[] = {"train", "eval",   "sample", "explain",
                                        "graph", "export", "report", "compare"};

/// The message about a command line; empty if it is accepted.
std::string refusal_of(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"xgrad"};
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  program::Ranks alone;
  program::CommandLine line;
  try {
    program::parse(static_cast<int>(argv.size()), argv.data(), alone, line);
  } catch (const program::UsageError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

/// Whether a command has a flag: then a value that it cannot take is what is wrong.
bool has_flag(const char* command, const std::string& flag) {
  return refusal_of({command, flag}).find("unknown") == std::string::npos;
}

}  // namespace

TEST_CASE("xgrad: a flag of another program is answered with its counterpart", "[hints]") {
  REQUIRE_FALSE(program::hints().empty());
  for (const auto& [words, text] : program::hints()) {
    const std::string answer(text);
    for (const std::string& word : words_of(words)) {
      CAPTURE(word);
      if (word.starts_with('-'))  // in the command that has the answer's flag
        CHECK(std::ranges::any_of(all_commands, [&](const char* command) {
          return refusal_of({command, word}).find(answer) != std::string::npos &&
                 (!answer.starts_with("--") || has_flag(command, answer));
        }));
      else
        CHECK_THAT(refusal_of({word}), ContainsSubstring(answer));
    }
    // Every flag that it names is there.
    const auto named = words_of(answer);
    const bool command = std::ranges::count(all_commands, named[0]) == 1;
    CHECK((command || answer.starts_with("--") || answer.starts_with("there is none: ")));
    for (std::string word : named) {
      std::erase_if(word, [](char c) { return c == ',' || c == ':'; });
      if (word.starts_with("--") && word != "--local-dir")
        CHECK(std::ranges::any_of(all_commands,
                                  [&](const char* with) { return has_flag(with, word); }));
    }
  }
  CHECK_THAT(refusal_of({"train", "--lr=1e-3"}), EndsWith("'--lr'; did you mean --learning-rate?"));
  CHECK_THAT(refusal_of({"train", "--wandb_log=True"}),
             ContainsSubstring("; there is none: a run"));
  CHECK_THAT(refusal_of({"sample", "runs/000", "-n", "5"}), EndsWith("did you mean --tokens?"));
  CHECK_THAT(refusal_of({"foo", "train"}), StartsWith("unknown command 'foo'"));
  CHECK_THAT(refusal_of({"help", "nothing"}), StartsWith("unknown command 'nothing'"));
}
