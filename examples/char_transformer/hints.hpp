#pragma once
// Words of other programs (nanoGPT, transformers, llama.cpp, PyTorch's trainers) and their
// counterparts here, for messages about words that this program does not know.

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace char_transformer {

struct Hint {
  std::string_view words;   ///< without dashes before them, separated by blanks
  std::string_view answer;  ///< a flag ("--data"), a command with its flags, or a sentence
};
std::span<const Hint> flag_hints();
std::span<const Hint> command_hints();

/// "; did you mean ANSWER?" or "; SENTENCE" for an unknown flag of a command that `has` some flags,
/// or for an unknown command; empty if the tables do not have it.
std::string flag_hint(std::string_view word, const std::function<bool(const std::string&)>& has);
std::string command_hint(std::string_view word);

/// The same for an argument without a flag, from the file or the run that it names; else it is
/// taken for a prompt.
std::string argument_hint(const std::string& word,
                          const std::function<bool(const std::string&)>& has);

/// ": SENTENCE" for the path of a model that is not there: for a name on HuggingFace's hub, and for
/// nanoGPT's values of init_from.  Else empty.
std::string model_hint(const std::string& path);

}  // namespace char_transformer
