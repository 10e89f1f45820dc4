#pragma once
// Command lines: flags that say what is wrong with a value.  CLI11 reads them, in command_line.cpp
// alone: including it costs a file ten seconds.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace command_line {

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

/// Adds flags to a command.  Each says what is wrong with a value itself: the name, the value, the
/// rule.  Of a flag that is given twice the last one counts, so that scripts can be overridden.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

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

  /// Whether a flag was given, or the command if these are a command's; known after parse().
  bool given(const std::string& flag) const;
  bool given() const;

 private:
  CLI::Option* add(const std::string& flag, const char* type, const std::string& help,
                   const std::function<void(const std::string&)>& read);

  CLI::App& app_;
  std::string group_ = "Flags";
};

class CommandLine {
 public:
  /// `--version` prints the name and the project's version.
  CommandLine(const std::string& name, const std::string& description,
              const std::string& footer = "");
  ~CommandLine();

  /// The program's own flags.
  Flags flags() { return Flags(*app_); }
  /// The flags of a command, of which one is needed.
  Flags command(const std::string& name, const std::string& description);

  /// Gives the targets their values.  Returns the help or the version if one was asked for.  Throws
  /// UsageError.
  std::optional<std::string> parse(int argc, const char* const* argv);
  /// Throws UsageError with the name of program and command before the message.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace command_line
