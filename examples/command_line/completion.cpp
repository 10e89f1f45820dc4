// Completion scripts, made of the tables of flags.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "table.hpp"

namespace command_line {
namespace {

using Tables = std::vector<const Table*>;

bool is_flag(const Row& row) { return row.flag.starts_with('-'); }

/// "--quiet", or "-q" and "--quiet".
std::vector<std::string> names_of(const Row& row) {
  std::vector<std::string> names = {long_name(row)};
  if (const std::string name = short_name(row); !name.empty())
    names.push_back(name);
  return names;
}

/// A name that a shell's function can have.
std::string function_of(const Table& program) {
  std::string name = "_" + program.name;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

/// In single quotes, for bash and zsh.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos)
      result += '\\';
    result += c;
  }
  return result;
}

// ---- bash ----

/// How bash completes the value of a row.
std::string bash_values(const std::string& function, const Row& row) {
  switch (row.completes) {
    case Completes::words:
      return fmt::format("{}_reply -W {}", function,
                         shell_quoted(fmt::format("{}", fmt::join(row.words, " "))));
    case Completes::files:
      return function + "_reply -f; compopt -o filenames 2>/dev/null";
    case Completes::folders:
      return function + "_reply -d; compopt -o filenames 2>/dev/null";
    case Completes::nothing:
      break;
  }
  return ":";
}

std::string bash_command(const std::string& function, const Table& command) {
  std::vector<std::string> flags = {"--help"};
  std::string others;
  std::vector<std::pair<std::string, std::string>> cases;  // what is done, and after which flags
  for (const Row& row : command.rows) {
    if (!is_flag(row)) {
      others += fmt::format("      {}\n", bash_values(function, row));
      continue;
    }
    flags.push_back(long_name(row));
    // Where the value may be left out, another flag may follow.
    const std::string values = bash_values(function, row) + "; return";
    const std::string action =
        row.optional_value ? "[[ $cur == -* ]] || { " + values + "; }" : values;
    auto found = std::ranges::find(cases, action, &std::pair<std::string, std::string>::first);
    if (found == cases.end())
      found = cases.insert(cases.end(), {action, ""});
    for (const std::string& name : names_of(row))
      found->second += (found->second.empty() ? "" : "|") + name;
  }
  std::string text = fmt::format("    {})\n      case $prev in\n", command.name);
  for (const auto& [action, names] : cases)
    text += fmt::format("        {}) {} ;;\n", names, action);
  return text + fmt::format("      esac\n{}      {}_reply -W {}\n      ;;\n", others, function,
                            shell_quoted(fmt::format("{}", fmt::join(flags, " "))));
}

std::string bash(const Table& program, const Tables& commands) {
  const std::string function = function_of(program);
  std::string names, cases;
  for (const Table* const command : commands) {
    names += command->name + " ";
    cases += bash_command(function, *command);
  }
  return fmt::format(
      "# bash completion for {0}.  To use it:  source <({0} completion bash)\n"
      "\n"
      "# Adds what compgen makes of the word that is being written.\n"
      "{1}_reply() {{\n"
      "  local word\n"
      "  while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen \"$@\" -- \"$cur\")\n"
      "}}\n"
      "\n"
      "{1}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  COMPREPLY=()\n"
      "  # --flag=value comes as three words.\n"
      "  if [[ $cur == = ]]; then cur=\n"
      "  elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    {1}_reply -W '{2}--help --version'\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{3}"
      "  esac\n"
      "}}\n"
      "complete -F {1} {0}\n",
      program.name, function, names, cases);
}

// ---- zsh ----

std::string zsh_action(const Row& row) {
  switch (row.completes) {
    case Completes::words:
      return fmt::format("({})", fmt::join(row.words, " "));
    case Completes::files:
      return "_files";
    case Completes::folders:
      return "_files -/";
    case Completes::nothing:
      break;
  }
  return " ";
}

std::string zsh_argument(const Row& row, const std::string& name) {
  const std::string type = escaped(row.type.empty() ? row.flag : row.type, ":\\");
  if (!is_flag(row))
    return fmt::format("*:{}:{}", type, zsh_action(row));
  return fmt::format("{}{}[{}]:{}{}:{}", name, name.starts_with("--") ? "=" : "",
                     escaped(row.help, "[]\\"), row.optional_value ? ":" : "", type,
                     zsh_action(row));
}

std::string zsh(const Table& program, const Tables& commands) {
  const std::string function = function_of(program);
  std::string described, cases;
  for (const Table* const command : commands) {
    described += fmt::format(
        "      {}\n",
        shell_quoted(fmt::format("{}:{}", command->name, escaped(command->description, ":\\"))));
    cases +=
        fmt::format("    {})\n      _arguments '--help[Print the help and exit]'", command->name);
    for (const Row& row : command->rows)
      for (const std::string& name : names_of(row))
        cases += fmt::format(" \\\n        {}", shell_quoted(zsh_argument(row, name)));
    cases += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}.  To use it:  source <({0} completion zsh)\n"
      "{1}() {{\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands=(\n"
      "{2}"
      "    )\n"
      "    _describe -t commands command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n"
      "{3}"
      "  esac\n"
      "}}\n"
      "# In a file of $fpath it is called; when it is sourced, it says what it is for.\n"
      "if [[ $funcstack[1] == {1} ]]; then {1} \"$@\"; else compdef {1} {0}; fi\n",
      program.name, function, described, cases);
}

// ---- fish ----

std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "'\\") + "'"; }

std::string fish_values(const Row& row) {
  switch (row.completes) {
    case Completes::words:
      return fmt::format(" -a {}", fish_quoted(fmt::format("{}", fmt::join(row.words, " "))));
    case Completes::files:
      return " -F";
    case Completes::folders:
      return " -a '(__fish_complete_directories)'";
    case Completes::nothing:
      break;
  }
  return "";
}

std::string fish(const Table& program, const Tables& commands) {
  std::string text = fmt::format(
      "# fish completion for {0}.  To use it:  {0} completion fish | source\n"
      "complete -c {0} -f\n"
      "complete -c {0} -l help -d 'Print the help and exit'\n"
      "complete -c {0} -n __fish_use_subcommand -l version -d 'Print the version and exit'\n",
      program.name);
  for (const Table* const command : commands) {
    text += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", program.name,
                        command->name, fish_quoted(command->description));
    for (const Row& row : command->rows) {
      text += fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name,
                          command->name);
      if (is_flag(row)) {
        text += " -l " + long_name(row).substr(2);
        if (const std::string name = short_name(row); !name.empty())
          text += " -s " + name.substr(1);
        text += row.optional_value ? "" : row.completes == Completes::files ? " -r" : " -x";
        text += " -d " + fish_quoted(row.help);
      }
      text += fish_values(row) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const Table& program,
                              const Tables& commands) {
  if (shell == "bash")
    return bash(program, commands);
  return shell == "zsh" ? zsh(program, commands) : fish(program, commands);
}

}  // namespace command_line
