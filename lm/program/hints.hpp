#pragma once
// Words of other programs (nanoGPT, transformers, llama.cpp), and what to write here instead.

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace program {

struct Hint {
  std::string_view words;   ///< flags or commands, separated by blanks
  std::string_view answer;  ///< a flag, a command and its flag, or "there is none: SENTENCE"
};
std::span<const Hint> hints();

using HasFlag = std::function<bool(const std::string& flag)>;  ///< of the command in question
/// "; did you mean ANSWER?" or "; there is none: ..." for an unknown flag or command, else empty.
std::string word_hint(std::string word, const HasFlag& has);
/// The same for an argument whose flag is missing: a file, a run, or a prompt.
std::string argument_hint(const std::string& argument, const HasFlag& has);
/// ": SENTENCE" for a model's path that does not exist and seems to be a name of HuggingFace's hub.
std::string model_hint(const std::string& path);

}  // namespace program
