// Man pages, made of the tables of flags.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "table.hpp"

namespace command_line {
namespace {

/// A text that roff takes as it is: no escapes, and no line that begins as a request does.
std::string roff(std::string_view text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\''))
      result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '\'')
      result += "\\(aq";
    else
      result += c;
    begins = c == '\n';
  }
  return result;
}

/// As a man page's NAME has it: "trains a transformer".
std::string named(std::string text) {
  if (text.ends_with('.'))
    text.pop_back();
  if (!text.empty())
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return roff(text);
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) {
  return text.empty() ? "" : "\\fI" + roff(text) + "\\fR";
}

std::string flag_item(const Row& row) {
  std::string names = bold(long_name(row));
  if (const std::string name = short_name(row); !name.empty())
    names = bold(name) + ", " + names;
  const bool bare = row.optional_value && !row.type.starts_with('[');
  const std::string type = bare ? "[" + italic(row.type) + "]" : italic(row.type);
  return fmt::format(".TP\n{}{}{}\n{}\n", names, row.type.empty() ? "" : " ", type, roff(row.help));
}

std::string flag_list(const Table& table) {
  std::string text, group;
  for (const Row& row : table.rows) {
    if (row.group != group) {
      group = row.group;
      text += fmt::format(".PP\n{}:\n", roff(group));
    }
    text += flag_item(row);
  }
  return text;
}

}  // namespace

std::string man_page(const Table& program, const std::vector<const Table*>& commands,
                     const std::vector<Section>& sections) {
  std::string title = program.name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"xgrad {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n{}{} [{} ...]\n",
      roff(title), XGRAD_VERSION, roff(program.name), named(program.description),
      bold(program.name), commands.empty() ? "" : " " + italic("COMMAND"), italic("FLAG"));
  text += flag_list(program);
  if (!commands.empty())
    text += ".SH COMMANDS\n";
  for (const Table* const command : commands)
    text += fmt::format(".SS {}\n{}\n{}", roff(command->name), roff(command->description),
                        flag_list(*command));
  for (const Section& section : sections)
    text += fmt::format(".SH {}\n{}{}\n{}", roff(section.heading), section.literal ? ".nf\n" : "",
                        roff(section.text), section.literal ? ".fi\n" : "");
  return text;
}

}  // namespace command_line
