#pragma once
// Flags with a range, on top of CLI11.

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace char_transformer {

/// The numbers that a flag takes.
template <class T>
struct Range {
  T low;
  T high;
  bool open_low = false;   ///< low itself is not in it
  bool open_high = false;  ///< high itself is not in it
};

/// Adds flags to a command.  Each says what is wrong with a value itself: the name, the value, the
/// rule.  Of a flag that is given twice the last one counts, so that scripts can be overridden.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  /// Flags that follow are listed under this heading.
  Flags& group(std::string name);

  CLI::Option* path(const std::string& flag, std::string& target, const char* type,
                    const std::string& help);
  CLI::Option* text(const std::string& flag, std::string& target, const char* type,
                    const std::string& help);
  CLI::Option* choice(const std::string& flag, std::string& target,
                      const std::vector<std::string>& choices, const std::string& help);
  /// `--flag`, `--flag true`, `--flag=false`.
  CLI::Option* boolean(const std::string& flag, bool& target, const std::string& help);
  CLI::Option* number(const std::string& flag, std::size_t& target, Range<std::size_t> range,
                      const std::string& help);
  CLI::Option* number(const std::string& flag, double& target, Range<double> range,
                      const std::string& help);
  CLI::Option* number(const std::string& flag, std::optional<std::size_t>& target,
                      Range<std::size_t> range, const std::string& help);

 private:
  CLI::Option* add(const std::string& flag, const char* type, const std::string& help,
                   std::function<void(const std::string&)> read);

  CLI::App& app_;
  std::string group_;
};

/// The number of letters to insert, remove, change or swap with their neighbour that make b of a.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The name that is nearest to what was written.
std::string nearest(std::string_view written, const std::vector<std::string>& names);

}  // namespace char_transformer
