#pragma once
// What a program's commands and flags are, for all that is made of them: completion, man pages,
// configuration files.

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/io/json.hpp>

namespace command_line {

/// What completes a value.
enum class Completes { nothing, words, files, folders };

/// A flag, or with a name that has no dashes what stands without one.
struct Row {
  std::string flag = {};  ///< "--n-layer", or "-q,--quiet"
  std::string group = {}, type = {}, help = {};
  std::string rule = {};  ///< what it takes: "a whole number from 1 to 1024"
  bool required = false;
  bool optional_value = false;               ///< --bias, beside --bias true
  Completes completes = Completes::nothing;  ///< its values
  std::vector<std::string> words = {};       ///< which, if these are words
  /// A JSON value as the flag's text; false if it is of another type.
  std::function<bool(const xgrad::io::Json&, std::string&)> text_of = {};
  /// Gives the target a value, or throws BadValue.
  std::function<void(const std::string&)> read = {};
  /// The target's value; null where it has none.  Empty for what is in no configuration.
  std::function<xgrad::io::Json()> write = {};
  std::optional<std::string> given = {};  ///< what the command line says; the last counts
  bool in_file = false;                   ///< a configuration file has it
};

/// "--quiet" of "-q,--quiet", and "-q"; empty if there is none.
std::string long_name(const Row& row);
std::string short_name(const Row& row);

/// A command, or the program itself.
struct Table {
  std::string name, description;
  std::vector<Row> rows = {};
  std::vector<std::string> other_keys = {};  ///< that a file may have, and that are no flags
  std::string configuration = {};            ///< the value of --config
  std::string file_text = {};                ///< what stands there
  bool prints_configuration = false;
};

/// What is wrong with a value, its flag before it.
struct BadValue : std::runtime_error {
  using runtime_error::runtime_error;
};

/// A paragraph of a man page beyond what tables say.
struct Section {
  std::string heading, text;
  bool literal = false;  ///< lines stay as they are
};

/// "; did you mean NAME?" with the name that is nearest to what was written, if it is near: some of
/// the name's letters may be missing, or a third of those written be wrong.
std::string suggestion(std::string_view written, const std::vector<std::string>& names);

/// The values of all flags as JSON, under their names with '_', as read_configuration() takes them.
/// BadValue for one that is not UTF-8.
std::string format_configuration(const Table& table);
/// Gives flags the values in the table's file, except those that the command line gives.  BadValue
/// that names the file, the key and what it takes.
void read_configuration(Table& table);

/// A completion script: for bash, zsh or fish.
std::string completion_script(const std::string& shell, const Table& program,
                              const std::vector<const Table*>& commands);
/// A man page, in roff.
std::string man_page(const Table& program, const std::vector<const Table*>& commands,
                     const std::vector<Section>& sections);

}  // namespace command_line
