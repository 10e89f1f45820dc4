#pragma once
// Command lines: flags that say what is wrong with a value.  CLI11 reads them, in command_line.cpp
// alone: including it costs a file ten seconds.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace CLI {
class App;
}  // namespace CLI

namespace command_line {

struct Row;
struct Section;
struct Table;

/// A command line that cannot be followed; the message says why, and what to ask for help.
struct UsageError : xgrad::Error {
  using Error::Error;
};

/// The numbers that a flag takes.
template <class T>
struct Range {
  T low;
  T high;
  bool open_low = false;   ///< low itself is not in it
  bool open_high = false;  ///< high itself is not in it

  bool contains(T value) const {
    const bool above = open_low ? value > low : value >= low;
    const bool below = open_high ? value < high : value <= high;
    return above && below;
  }
};

/// "--block-size" as "block_size", as configuration files have it.
std::string key_of(std::string_view flag);

/// Adds flags to a command.  Each says what is wrong with a value itself: the name, the value, the
/// rule.  Of a flag that is given twice the last one counts, so that scripts can be overridden.
class Flags {
 public:
  Flags(CLI::App& app, Table& table) : app_(app), table_(table) {}

  /// Flags that follow are listed under this heading.
  Flags& group(std::string name);

  void path(const std::string& flag, std::string& target, const char* type,
            const std::string& help);
  /// What stands without a flag; at least one.
  void paths(const std::string& name, std::vector<std::string>& targets, const std::string& help);
  void text(const std::string& flag, std::string& target, const char* type,
            const std::string& help);
  /// `--flag`, `--flag TEXT`; without a text it is empty.
  void optional_text(const std::string& flag, std::optional<std::string>& target, const char* type,
                     const std::string& help);
  void choice(const std::string& flag, std::string& target, const std::vector<std::string>& choices,
              const std::string& help);
  /// `--flag`, `--flag true`, `--flag=false`.
  void boolean(const std::string& flag, bool& target, const std::string& help);
  void number(const std::string& flag, std::size_t& target, Range<std::size_t> range,
              const std::string& help);
  void number(const std::string& flag, double& target, Range<double> range,
              const std::string& help);
  void number(const std::string& flag, std::optional<std::size_t>& target, Range<std::size_t> range,
              const std::string& help);

  /// What stands without a flag; one of a few, and needed.
  void argument(const std::string& name, std::string& target,
                const std::vector<std::string>& choices, const std::string& help);
  /// A key that configuration files may have although it is no flag: it is passed over.
  void passed_over(const std::string& key);

  /// Whether a flag was given, here or in the file of --config, or the command if these are a
  /// command's; known after parse().
  bool given(const std::string& flag) const;
  bool given() const;
  /// The file of --config, if the flag's value is from there; else empty.
  std::string file_of(const std::string& flag) const;

 private:
  void add(Row row);

  CLI::App& app_;
  Table& table_;
  std::string group_ = "Flags";
};

class CommandLine {
 public:
  /// `--version` prints the name and the project's version.
  CommandLine(const std::string& name, const std::string& description,
              const std::string& footer = "");
  ~CommandLine();

  /// The program's own flags.
  Flags flags();
  /// The flags of a command, of which one is needed.  Those that have any take `--config FILE`, a
  /// JSON object with flags' names ('_' or '-') as keys, for flags that are not given, and
  /// `--print-config`.  One file: what a second one overrides would be hard to tell.
  Flags command(const std::string& name, const std::string& description);

  /// Gives the targets their values.  Returns the help or the version if one was asked for.  Throws
  /// UsageError.
  std::optional<std::string> parse(int argc, const char* const* argv);
  /// Whether the command is asked for its configuration only.
  bool prints_configuration() const;
  /// The values of the command's flags, as --config reads them.  UsageError for one that is not
  /// UTF-8.
  std::string configuration() const;

  /// The text of the file of --config; empty if there is none.
  const std::string& configuration_file() const;

  /// A completion script: for bash, zsh or fish.
  std::string completion(const std::string& shell) const;
  /// A man page, in roff, with these sections after those on flags.
  std::string man_page(const std::vector<Section>& sections) const;

  /// Throws UsageError with the name of program and command before the message.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  void add_configuration();
  const Table* chosen() const;
  std::vector<const Table*> commands() const;

  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Table>> tables_;  ///< the program's, then the commands'
};

}  // namespace command_line
