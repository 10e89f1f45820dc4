#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace command_line {
namespace {

[[noreturn]] void refuse(const std::string& flag, const std::string& rule,
                         const std::string& given) {
  throw CLI::ValidationError(flag, fmt::format("'{}' is not {}", given, rule));
}

template <class T>
std::string to_string(const Range<T>& range) {
  const char* const kind = std::integral<T> ? "a whole number" : "a number";
  if (!range.open_low && !range.open_high)
    return fmt::format("{} from {} to {}", kind, range.low, range.high);
  return fmt::format("{} {} {} and {} {}", kind, range.open_low ? "above" : "at least", range.low,
                     range.open_high ? "below" : "at most", range.high);
}

// Reads a number from the start of a text; returns where it ends.
template <class T>
const char* parse(const char* from, const char* end, T& value) {
#ifndef __cpp_lib_to_chars  // libc++'s reads no floating-point numbers; strtod() takes more
  if constexpr (std::is_floating_point_v<T>) {
    const std::string_view text(from, end);
    if (text.find_first_not_of("0123456789.eE+-") != text.npos || text.starts_with('+'))
      return from;
    char* stop = nullptr;
    value = std::strtod(from, &stop);
    return stop;
  } else
#endif
  {
    const auto [stop, error] = std::from_chars(from, end, value);
    return error == std::errc() ? stop : from;
  }
}

// CLI11's own conversion would take 010 for eight and 0x10 for sixteen.
template <class T>
T read_number(const std::string& flag, const Range<T>& range, const std::string& given) {
  T value{};
  const char* const end = given.data() + given.size();
  const char* const stop = parse(given.data(), end, value);
  if (given.empty() || stop != end || !range.contains(value))
    refuse(flag, to_string(range), given);
  return value;
}

/// The number of letters to insert, remove, change or swap with their neighbour that make b of a.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distance[i][j] is that of the first i letters of a and the first j of b.
  std::vector<std::vector<std::size_t>> distance(a.size() + 1,
                                                 std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      const std::size_t change = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({change, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

/// No name is as long as half of this, so nothing longer is near one.
constexpr std::size_t longest_near = 100;

/// "; did you mean NAME?" with the name that is nearest to what was written, if it is near: some of
/// the name's letters may be missing, or a third of those written be wrong.
std::string suggestion(std::string_view written, const std::vector<std::string>& names) {
  if (written.size() > longest_near)
    return "";
  const std::string_view letters =
      written.substr(std::min(written.find_first_not_of('-'), written.size()));
  const auto wrong = [&](const std::string& name) {
    const bool part = letters.size() > 2 && name.find(letters) != std::string::npos;
    return part ? 0 : edit_distance(written, name);
  };
  const std::string& name = *std::ranges::min_element(names, {}, wrong);
  return wrong(name) <= std::max<std::size_t>(1, letters.size() / 3)
             ? fmt::format("; did you mean {}?", name)
             : "";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// The flags and commands that can stand where something unknown stood.
std::vector<std::string> names_in(const CLI::App& app) {
  std::vector<std::string> names = commands_of(app);
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

}  // namespace

Flags& Flags::group(std::string name) {
  group_ = std::move(name);
  return *this;
}

CLI::Option* Flags::add(const std::string& flag, const char* type, const std::string& help,
                        const std::function<void(const std::string&)>& read) {
  return app_.add_option_function<std::string>(flag, read, help)
      ->type_name(type)
      ->group(group_)
      ->take_last();
}

void Flags::path(const std::string& flag, std::string& target, const char* type,
                 const std::string& help) {
  add(flag, type, help, [&target, flag](const std::string& given) {
    if (given.empty())
      refuse(flag, "a path", given);
    target = given;
  });
}

void Flags::text(const std::string& flag, std::string& target, const char* type,
                 const std::string& help) {
  add(flag, type, help, [&target](const std::string& given) { target = given; });
}

void Flags::optional_text(const std::string& flag, std::optional<std::string>& target,
                          const char* type, const std::string& help) {
  add(flag, type, help, [&target](const std::string& given) { target = given; })->expected(0, 1);
}

void Flags::choice(const std::string& flag, std::string& target,
                   const std::vector<std::string>& choices, const std::string& help) {
  add(flag, "NAME", help, [&target, flag, choices](const std::string& given) {
    if (std::find(choices.begin(), choices.end(), given) == choices.end())
      refuse(flag, fmt::format("one of {}", fmt::join(choices, ", ")), given);
    target = given;
  });
}

void Flags::boolean(const std::string& flag, bool& target, const std::string& help) {
  add(flag, "BOOL", help, [&target, flag](const std::string& given) {
    const bool yes = given.empty() || given == "true" || given == "True";
    if (!yes && given != "false" && given != "False")
      refuse(flag, "true or false", given);
    target = yes;
  })->expected(0, 1);
}

void Flags::number(const std::string& flag, std::size_t& target, Range<std::size_t> range,
                   const std::string& help) {
  add(flag, "N", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

void Flags::number(const std::string& flag, double& target, Range<double> range,
                   const std::string& help) {
  add(flag, "X", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

void Flags::number(const std::string& flag, std::optional<std::size_t>& target,
                   Range<std::size_t> range, const std::string& help) {
  add(flag, "N", help, [&target, flag, range](const std::string& given) {
    target = read_number(flag, range, given);
  });
}

void Flags::paths(const std::string& name, std::vector<std::string>& targets,
                  const std::string& help) {
  app_.add_option(name, targets, help)->required()->type_name("FILE");
}

bool Flags::given(const std::string& flag) const { return app_.count(flag) > 0; }
bool Flags::given() const { return app_.parsed(); }

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->get_formatter()->column_width(38);
  app_->footer(footer);
  app_->set_version_flag("--version", name + " " XGRAD_VERSION, "Print the version and exit");
}

CommandLine::~CommandLine() = default;

Flags CommandLine::command(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return Flags(*app_->add_subcommand(name, description));
}

std::optional<std::string> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::CallForVersion&) {
    return app_->version() + "\n";
  } catch (const CLI::RequiredError& error) {
    std::vector<std::string> commands = commands_of(*app_);
    if (commands.empty())
      refuse(error.what());
    const std::string last = commands.back();
    commands.pop_back();
    refuse(fmt::format("a command is needed: {} or {}", fmt::join(commands, ", "), last));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // begins with the flag's name
    refuse(message.substr(0, message.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
}

// What CLI11 did not know comes first: the other complaints often follow from it.
void CommandLine::refuse(const std::string& message) const {
  const CLI::App& top = *app_;
  const auto chosen = top.get_subcommands();
  const CLI::App& app = chosen.empty() ? top : *chosen.front();
  const std::string name = chosen.empty() ? top.get_name() : top.get_name() + " " + app.get_name();
  const std::string more = fmt::format("\n'{} --help' lists what it takes.", name);
  const std::vector<std::string> unknown = app.remaining();
  for (const std::string& word : unknown) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("-"))
      throw UsageError(fmt::format("{}: unknown flag {}{}{}", name, flag,
                                   suggestion(flag, names_in(app)), more));
  }
  if (!unknown.empty() && !commands_of(app).empty())
    throw UsageError(fmt::format("{}: unknown command '{}'{}{}", name, unknown[0],
                                 suggestion(unknown[0], names_in(app)), more));
  if (!unknown.empty())
    throw UsageError(fmt::format("{}: unexpected argument '{}'{}", name, unknown[0], more));
  throw UsageError(fmt::format("{}: {}{}", name, message, more));
}

}  // namespace command_line
