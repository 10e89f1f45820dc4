#pragma once
// The command line.  flags.cpp alone reads it, with CLI11, and fills the plain options of the
// commands (commands.hpp, sample.hpp, recipe.hpp).

#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {

class Ranks;

/// A command line, or a file of --config, that cannot be followed.
struct UsageError : xgrad::Error {
  using Error::Error;
};

/// A command line that was read.
struct CommandLine {
  std::string command = "char_transformer";  ///< "char_transformer train", once that is known
  /// Does it, and returns the exit code.  Empty if the help or the version was asked for, which is
  /// printed.
  std::function<int()> run = {};
};

/// Reads a command line, and the file of --config.  Throws UsageError.
void parse(int argc, const char* const* argv, Ranks& ranks, CommandLine& line);

/// The file of --config, as parse() read it.
struct ConfigFile {
  std::string path, text;  ///< empty without one
};
inline ConfigFile config_file;

/// "--block-size" as "block_size", as configuration files have it.
std::string key_of(std::string_view flag);

/// xgrad::io::check_output(), where the file of --config is read as well, and no file of a run is
/// written, with --overwrite or without.
void check_output(const std::string& path, bool overwrite, std::vector<std::string> inputs);

/// The file that --data - reads.
inline constexpr const char* standard_input = "/dev/stdin";

/// The numbers that a flag takes.
struct Range {
  double low, high;
  bool contains(double value) const { return value >= low && value <= high; }
};
inline constexpr double many = 1e9;  ///< the largest count
/// From 0 to below 1.
inline constexpr Range probability{0, 0.999999};

/// UsageError unless a flag has a value, be it from --config.
void need(const char* flag, const std::string& value);

}  // namespace char_transformer
