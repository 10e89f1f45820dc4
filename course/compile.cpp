#include "course/compile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace learn {
namespace {

struct Meaning {
  const char* pattern;  // matches a compiler's message; names are in quotes
  const char* words;    // $1: the match in the pattern
};
// The first match counts; GCC's messages first, then Clang's.
const std::vector<Meaning> meanings = {
    {"expected '([^']*)' (?:before|at end)|expected '([^']*)'$|expected '([^']*)' after",
     "a `$1` is missing here, or just before: look at the end of the line above, too"},
    {"'([^']*)' was not declared|undeclared identifier '([^']*)'",
     "the name `$1` is not known here: is it misspelt, or declared further down?"},
    {"redefinition of '([^']*)'", "`$1` is defined twice"},
    {"conflicting declaration of|declaration of C function|cannot be overloaded|ambiguating new "
     "declaration|functions that differ only in their return type",
     "the function's result or arguments are not those that exercise.hpp declares: they must stay "
     "as they were"},
    {"too (few|many) arguments", "too $1 arguments are given"},
    {"no matching function for call to '([^'(<]*)",
     "`$1` does not take these arguments: autograd/ops.hpp lists the ops and what they take"},
    {"no member named '([^']*)'|no member named ([^ ]*)", "there is no member of the name `$1`"},
    {"no match for 'operator([^']*)'|invalid operands",
     "these two cannot be combined with this operator: look at their types"},
    {"(?:cannot|could not) convert|no viable conversion|no suitable",
     "a value of one type is used where another is needed"},
    {"use of deleted function|deleted (?:function|operator)|selected deleted",
     "this is forbidden on purpose: an assignment to a part, such as t[0] = x, would change a copy "
     "and not t"},
    {"no return statement|control reaches end|non-void function does not return",
     "the function can reach its end without a `return`"},
    {"static assertion failed:? ?(.*)|static_assert failed.*\"(.*)\"", "$1"},
    {"(?:fatal error: )?([^ ]*): No such file|'([^']*)' file not found",
     "there is no file `$1` to include"},
    {"template instantiation depth|recursive template|constexpr.* limit|constexpr.*exceeded",
     "the compiler was sent into a computation without end"},
    {"missing terminating", "a quotation mark is missing"},
    {"nested depth|nested too deeply",
     "the file includes itself, or a chain of files leads back to it"},
    {"", "the compiler does not understand this line"},
};

std::string plain(std::string said) {
  for (const char* const noise :
       {"xgrad::", "exercise::", "std::__cxx11::", "[-Wreturn-type]", "[-Werror=return-type]"})
    for (std::size_t at; (at = said.find(noise)) != std::string::npos;)
      said.erase(at, std::char_traits<char>::length(noise));
  while (said.ends_with(' '))
    said.pop_back();
  return shortened(said);
}

std::string meaning(const std::string& said) {
  for (const Meaning& m : meanings) {
    std::smatch found;
    if (!std::regex_search(said, found, std::regex(m.pattern)))
      continue;
    std::string name, words = m.words;
    for (std::size_t i = 1; i < found.size() && name.empty(); ++i)
      name = found[i];
    if (const std::size_t at = words.find("$1"); at != std::string::npos)
      words.replace(at, 2, plain(name));
    return words;
  }
  return {};
}

struct Place {
  std::size_t line = 0, column = 0;
  std::string said;
};

// "FILE:12:5: error: ..." of this file.
std::optional<Place> place(const std::string& line, const std::string& file) {
  if (!line.starts_with(file + ":"))
    return {};
  static const std::regex numbers("^([0-9]+):([0-9]+): *(.*)$");
  std::smatch found;
  const std::string rest = line.substr(file.size() + 1);
  if (!std::regex_match(rest, found, numbers))
    return {};
  return Place{std::stoul(found[1]), std::stoul(found[2]), found[3]};
}

// The compiler's first error in the file, in plain words.
std::string explain_errors(const std::string& said, const std::string& source,
                           const std::string& text) {
  std::optional<Place> in_file, way_there;  // an error in the file; the last line of it on the way
  std::string elsewhere;                    // an error in a header that the file is the reason of
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const auto found = place(line, source);
    const std::size_t error = line.find("error: ");
    if (found && error != std::string::npos && found->said.find("error: ") != std::string::npos) {
      in_file = found;
      in_file->said = line.substr(error + 7);
      break;
    }
    if (found && (elsewhere.empty() || !way_there) &&
        (line.find("required from") != std::string::npos ||
         line.find("requested here") != std::string::npos))
      way_there = found;
    if (!found && error != std::string::npos && elsewhere.empty())
      elsewhere = line.substr(error + 7);
  }
  // An error in a header is caused by the file: it counts as the first if it comes first.
  Place first = in_file ? *in_file : way_there ? *way_there : Place{};
  if (!elsewhere.empty() && way_there) {
    first = *way_there;
    first.said = elsewhere;
  } else if (first.line == 0) {
    return fmt::format("the compiler stopped: {}",
                       plain(elsewhere.empty() ? said.substr(0, said.find('\n')) : elsewhere));
  }
  std::istringstream source_lines(text);
  std::string shown;
  for (std::size_t i = 0; i < first.line && std::getline(source_lines, shown); ++i) {
  }
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  std::string answer =
      fmt::format("line {}: {}\n\n  {}\n", first.line, meaning(first.said), shortened(shown, 120));
  if (first.column > 0 && first.column <= 120)
    answer += "  " + std::string(first.column - 1, ' ') + "^\n";
  return answer + fmt::format("\nthe compiler's words: {}", plain(first.said));
}

}  // namespace

std::string shortened(const std::string& text, std::size_t most) {
  std::string line = xgrad::printable(text.substr(0, 2 * most));
  if (line.size() > most) {
    line.resize(most);
    while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0U) == 0x80U)
      line.pop_back();
    line += " ...";
  }
  return line;
}

std::string compile(const Signals& signals, const std::string& source, const std::string& library,
                    const std::string& folder, double seconds) {
  const std::vector<std::string> words = {LEARN_COMPILER, "@" LEARN_FLAGS, "-x", "c++",  source,
                                          "-x",           "none",          "-o", library};
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const Ended ended = signals.run(
      [&] {
        ::setenv("LC_ALL", "C", 1);  // the messages that are known above
        ::setenv("TMPDIR", folder.c_str(), 1);
        ::execvp(argv[0], argv.data());
        return 98;
      },
      {.seconds = 10 * seconds, .computing = seconds, .folder = folder});
  if (ended.how == Ended::How::exited && ended.code == 0)
    return {};
  if (ended.how > Ended::How::signalled || ended.computed > seconds)
    throw xgrad::Error(fmt::format(
        "no verdict: the compiler was not done after {:.0f} seconds of a processor: something may "
        "keep it busy, such as a template without end; --seconds {:.0f} gives it more",
        ended.computed, std::min(600.0, 3 * seconds)));
  if (ended.how == Ended::How::exited && ended.code == 98)
    return fmt::format("the compiler {} cannot be started: build xgrad again", LEARN_COMPILER);
  return explain_errors(ended.printed, source, read_file(source));
}

}  // namespace learn
