#pragma once
// Commands and their flags, which CLI11 reads.  A command's flags stand in the file that does its
// work; here is what several share.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {

class Ranks;

/// A command: its flags are on `app`; `run` does it and returns the exit code.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

/// A command that does f(options), and whose exit code is then 0.
template <class Options, class F>
Command command_of(CLI::App& app, const std::shared_ptr<Options>& options, F f) {
  return {&app, [options, f] {
            f(*options);
            return 0;
          }};
}

Command add_train(CLI::App& program, Ranks& ranks);
Command add_eval(CLI::App& program);
Command add_sample(CLI::App& program);
Command add_explain(CLI::App& program);
Command add_graph(CLI::App& program);
Command add_export(CLI::App& program);
Command add_report(CLI::App& program);
Command add_compare(CLI::App& program);

/// A command line, or a file of --config, that cannot be followed.
struct UsageError : xgrad::Error {
  using Error::Error;
};

/// Gives flags their values, those of --config as well.  The command to run; null where the help or
/// the version was asked for, which is printed.  Throws UsageError.
const Command* parse(CLI::App& program, const std::vector<Command>& commands, int argc,
                     const char* const* argv);

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

/// What --data - reads.
inline constexpr const char* standard_input = "/dev/stdin";

/// The numbers that a flag takes.
struct Range {
  double low, high;
  bool contains(double value) const { return value >= low && value <= high; }
};
inline constexpr double many = 1e9;  ///< the largest count
/// From 0 to below 1.
inline constexpr Range probability{0, 0.999999};

/// A decimal number; CLI::ValidationError for what is none, or out of range.
double read_number(const std::string& flag, const std::string& given, Range range, bool whole);

// Each takes one value, and says what is wrong with it: "--n-layer: '0' is not a whole number from
// 1 to 1024".

/// Adds a flag of a whole number, also an optional one, or of a double.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& flag, T& target, Range range,
                        const std::string& help) {
  constexpr bool whole = !std::is_same_v<T, double>;
  const auto read = [&target, flag, range](const std::string& given) {
    const double value = read_number(flag, given, range, whole);
    if constexpr (whole)
      target = static_cast<std::size_t>(value);
    else
      target = value;
  };
  return app.add_option_function<std::string>(flag, read, help)->type_name(whole ? "N" : "X");
}
/// `--flag`, `--flag true`, `--flag=false`.
CLI::Option* add_bool(CLI::App& app, const std::string& flag, bool& target,
                      const std::string& help);
/// A path; "-" is standard input.  `names`: "--data"; with "run,--checkpoint" the flag may be left
/// out.
CLI::Option* add_path(CLI::App& app, const std::string& names, std::string& target,
                      const std::string& help, const std::string& type = "FILE");
void add_raw(CLI::App& app, bool& target);
/// --checkpoint, or the path alone; `of_run`: what is taken of a run's folder.
void add_checkpoint(CLI::App& app, std::string& target,
                    const std::string& of_run = "its last checkpoint");
/// --out and --overwrite.
void add_out(CLI::App& app, std::string& target, bool& overwrite, const std::string& usual);
void add_seed(CLI::App& app, std::uint64_t& target);
/// Sets them, too.
void add_threads(CLI::App& app, std::size_t& target);
/// One of a few names.
void add_name(CLI::App& app, const std::string& flag, std::string& target,
              const std::vector<std::string>& names, const std::string& help);
void add_preset(CLI::App& app, std::string& target, const std::string& help);

/// UsageError unless a flag has a value, be it from --config.
void need(const char* flag, const std::string& value);

}  // namespace char_transformer
