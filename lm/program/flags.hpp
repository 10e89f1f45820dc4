#pragma once
// The command line.  flags.cpp alone reads it, with CLI11, and fills the plain options of the
// commands (commands.hpp, sample.hpp, recipe.hpp).

#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace program {

class Ranks;

/// An invalid command line or --config file.
struct UsageError : xgrad::Error {
  using Error::Error;
};

struct CommandLine {
  std::string command = "xgrad";  ///< "xgrad train", once known
  /// Executes it and returns the exit code.  Empty after --help or --version, whose text is
  /// printed.
  std::function<int()> run = {};
};

/// Reads a command line and --config's file.  Throws UsageError.
void parse(int argc, const char* const* argv, Ranks& ranks, CommandLine& line);

/// --config's file, as parse() read it.
struct ConfigFile {
  std::string path, text;  ///< empty without one
};
inline ConfigFile config_file;

/// "--block-size" as "block_size", the form of configuration files.
std::string key_of(std::string_view flag);

/// xgrad::io::check_output() with --config's file as an input; also rejects files of a run, with
/// --overwrite or without.
void check_output(const std::string& path, bool overwrite, std::vector<std::string> inputs);

/// The file that --data - reads.
inline constexpr const char* standard_input = "/dev/stdin";

/// The numbers that a flag accepts.
struct Range {
  double low, high;
  bool contains(double value) const { return value >= low && value <= high; }
};
inline constexpr double many = 1e9;  ///< the largest count
/// From 0 to below 1.
inline constexpr Range probability{0, 0.999999};

/// UsageError unless a model is named, in the command line or --config.
void need_run(const std::string& checkpoint);

}  // namespace program
