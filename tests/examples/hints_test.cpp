// Words of other programs: the message names the counterpart.

#include "char_transformer/hints.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "char_transformer/flags.hpp"
#include "char_transformer/ranks.hpp"
#include "helpers/catch.hpp"

namespace {

constexpr const char* all_commands[] = {"train", "eval",   "sample", "explain",
                                        "graph", "export", "report", "compare"};

/// The message about a command line; empty if it is accepted.
std::string refusal_of(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"char_transformer"};
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  char_transformer::Ranks alone;
  char_transformer::CommandLine line;
  try {
    char_transformer::parse(static_cast<int>(argv.size()), argv.data(), alone, line);
  } catch (const char_transformer::UsageError& error) {
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

TEST_CASE("char_transformer: a flag of another program is answered with its counterpart",
          "[hints]") {
  REQUIRE_FALSE(char_transformer::flag_hints().empty());
  for (const auto& [words, answer] : char_transformer::flag_hints())
    for (const std::string& word : words_of(words)) {
      CAPTURE(word);
      const std::string flag = (word.size() == 1 ? "-" : "--") + word, wanted(answer);
      CHECK(std::ranges::any_of(all_commands, [&](const char* command) {
        return refusal_of({command, flag}).find(wanted) != std::string::npos;
      }));
      // Each command is sent to a flag of its own, or to none.
      for (const char* const command : all_commands) {
        const std::string said = refusal_of({command, flag});
        if (const std::size_t at = said.find("did you mean --"); at != std::string::npos)
          CHECK(has_flag(command, said.substr(at + 13, said.size() - at - 14)));
      }
    }
  for (const auto& [words, answer] : char_transformer::command_hints())
    for (const std::string& word : words_of(words)) {
      CHECK_THAT(refusal_of({word}), ContainsSubstring(std::string(answer)));
      if (answer.starts_with("there is "))
        continue;
      const auto named = words_of(answer);
      CHECK(std::ranges::count(all_commands, named[0]) == 1);
      CHECK((named.size() == 1 || has_flag(named[0].c_str(), named[1])));
    }
  // For a sentence, every flag in it is one of train's.
  for (const auto& [words, answer] : char_transformer::flag_hints())
    for (std::string word : words_of(answer))
      if (word.starts_with("--") && answer.starts_with("there is ")) {
        std::erase_if(word, [](char c) { return c == ',' || c == ':'; });
        CHECK(has_flag("train", word));
      }
  CHECK_THAT(refusal_of({"train", "--lr=1e-3"}), EndsWith("'--lr'; did you mean --learning-rate?"));
  CHECK_THAT(refusal_of({"train", "--Wandb_Log=True"}), ContainsSubstring("; there is none: a run"));
  CHECK_THAT(refusal_of({"sample", "runs/000", "-n", "5"}), EndsWith("did you mean --tokens?"));
  CHECK_THAT(refusal_of({"--seed", "3", "train"}), StartsWith("flag '--seed' stands before"));
  CHECK_THAT(refusal_of({"foo", "train"}), StartsWith("unknown command 'foo'"));
  CHECK_THAT(refusal_of({"help", "nothing"}), StartsWith("unknown command 'nothing'"));
}
