#include "command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/json.hpp>

#include "output.hpp"
#include "recipe.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

/// The number of letters to insert, remove or change that make b of a (Levenshtein, 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(
          row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] == b[j] ? 0 : 1)}));
  }
  return row.back();
}

/// "; did you mean NAME?" of a flag or a command, if one is near, or has the word in it.
std::string suggestion(const std::string& written, const CLI::App& app) {
  const std::string letters =
      written.substr(std::min(written.find_first_not_of('-'), written.size()));
  std::string nearest;
  std::size_t least = 3;
  const auto consider = [&](const std::string& name) {
    const bool part = letters.size() > 2 && name.find(letters) != name.npos;
    const std::size_t wrong = part ? 0 : edit_distance(written.substr(0, 100), name);
    if (wrong < least)
      nearest = fmt::format("; did you mean {}?", name);
    least = std::min(least, wrong);
  };
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    consider(command->get_name());
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& name : option->get_lnames())
      consider("--" + name);
  return nearest;
}

/// What CLI11 did not know comes first: the other complaints often follow from it.
[[noreturn]] void refuse_line(const CLI::App& program, const CLI::ParseError& error) {
  const auto chosen = program.get_subcommands();
  const CLI::App& app = chosen.empty() ? program : *chosen.front();
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    const std::string word = unknown[0].substr(0, unknown[0].find('='));
    const bool flag = word.starts_with('-') && word.find_first_not_of('-') != word.npos;
    if (!flag && !chosen.empty())
      fail<UsageError>("unexpected argument '{}'", unknown[0]);
    fail<UsageError>("unknown {} '{}'{}", flag ? "flag" : "command", word, suggestion(word, app));
  }
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)  // "--n-layer: ..."
    throw UsageError(what.substr(0, what.find(':')) + " needs one value, once");
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !chosen.empty())
    throw UsageError("RUN is needed: " + app.get_option("runs")->get_description());
  throw UsageError(chosen.empty() ? "a command is needed" : what);
}

[[noreturn]] void refuse_value(const std::string& flag, const std::string& given,
                               const std::string& rule) {
  throw CLI::ValidationError(flag,
                             fmt::format("'{}' is not {}", xgrad::printable_name(given), rule));
}

/// At most four threads a processor, for more would only take turns; says so.
std::size_t useful_threads(const std::string& asked, std::size_t n) {
  const std::size_t processors = xgrad::num_processors(), most = 4 * processors;
  if (n > most)
    warn(fmt::format("{}: {} are used, four for each of the {} that there are", asked,
                     format_count(most, "thread"), format_count(processors, "processor")));
  return std::min(n, most);
}

/// The file of --config, and where in it a byte is; lines and columns of characters count from 1.
std::string place(std::size_t byte) {
  const std::string_view before = std::string_view(config_file.text).substr(0, byte);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; };
  return fmt::format("{}: line {}, column {}", config_file.path,
                     1 + std::ranges::count(before, '\n'), 1 + std::ranges::count_if(line, begins));
}

/// The same of a key: a text before a colon.  The file alone for one that is written with escapes.
std::string place(const std::string& key) {
  const std::string& text = config_file.text;
  for (std::size_t at = 0; (at = text.find('"' + key + '"', at)) != text.npos; ++at) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + key.size() + 2);
    if (next != text.npos && text[next] == ':' && (at == 0 || text[at - 1] != '\\'))
      return place(at);
  }
  return config_file.path;
}

/// The flags that the command line does not have get their values from the file of --config, in
/// which '_' may stand for '-'.
void apply_config(CLI::App& app) {
  const std::string& path = config_file.path;
  xgrad::io::Json json;
  try {
    config_file.text = runs::read_small_file(path);
    json = xgrad::io::parse_json(config_file.text, 0, 16);
  } catch (const xgrad::io::NotJson& error) {
    throw UsageError(place(error.byte) + ": is not JSON");
  } catch (const FileError& error) {
    throw UsageError(error.what());
  } catch (const ValueError& error) {
    fail<UsageError>("{}: {}", path, error.what());
  }
  const auto* const object = json.as<xgrad::io::JsonObject>();
  check<UsageError>(object != nullptr, "{}: is not a JSON object, as {{\"n_layer\": 4}} is", path);
  // The size of a vocabulary of characters is in a run's config.json, and no flag.
  const CLI::Option* const given = app.get_option_no_throw("--tokens");
  const auto* const tokens = json.find<std::string>("tokens");
  const bool pairs = given != nullptr && given->count() > 0 ? given->as<std::string>() == "bpe"
                                                            : tokens != nullptr && *tokens == "bpe";
  std::set<std::string> seen;
  for (const auto& [key, value] : *object) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    CLI::Option* const option = app.get_option_no_throw(flag);
    if (!seen.insert(flag).second)
      fail<UsageError>("{}: has '{}' twice, with '-' and with '_'", place(key), key);
    if (flag == "--vocab-size" && !pairs)
      continue;
    if (option == nullptr || flag == "--config" || flag == "--help")
      fail<UsageError>("{}: '{}' is no flag of {}{}", place(key), xgrad::printable_name(key),
                       app.get_name(), suggestion(flag, app));
    if (value.as<std::nullptr_t>() != nullptr || option->count() > 0)
      continue;
    const auto* const text = value.as<std::string>();
    try {
      option->add_result(text != nullptr
                             ? *text
                             : xgrad::io::format_json(value, xgrad::io::InvalidUtf8::replaced));
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      fail<UsageError>("{}: {}", place(key), xgrad::printable(error.what()));
    }
  }
}

}  // namespace

const Command* parse(CLI::App& program, const std::vector<Command>& commands, int argc,
                     const char* const* argv) {
  for (const Command& command : commands)
    add_path(*command.app, "--config", config_file.path,
             "a JSON object with values of flags that are not given")
        ->group("Configuration");
  config_file = {};
  program.require_subcommand(1);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const Command& command : commands)
      for (CLI::Option* const option : command.app->get_options({}))
        option->default_str("");  // the texts say what is usual
    say(program.help());
    return nullptr;
  } catch (const CLI::CallForVersion&) {
    say(program.version() + "\n");
    return nullptr;
  } catch (const CLI::ParseError& error) {
    refuse_line(program, error);
  }
  const auto command =
      std::ranges::find(commands, program.get_subcommands().front(), &Command::app);
  if (!config_file.path.empty())
    apply_config(*command->app);
  const CLI::Option* const threads = command->app->get_option_no_throw("--threads");
  if (const char* const text = std::getenv("OMP_NUM_THREADS");
      text != nullptr && threads != nullptr && threads->count() == 0)
    if (const long n = std::strtol(text, nullptr, 10); n > 0)  // the library has them
      useful_threads("OMP_NUM_THREADS " + xgrad::printable_name(text), static_cast<std::size_t>(n));
  return &*command;
}

std::string key_of(std::string_view flag) {
  std::string key(flag.substr(flag.find_first_not_of('-')));
  std::ranges::replace(key, '-', '_');
  return key;
}

void check_output(const std::string& path, bool overwrite, std::vector<std::string> inputs) {
  if (path == standard_input)
    throw UsageError("--out: - is no file that can be replaced in one piece: name one");
  inputs.push_back(config_file.path);
  xgrad::io::check_output(path, true, inputs);  // says of what is read that it is
  check_no_file_of_run(path);
  xgrad::io::check_output(path, overwrite, inputs);
}

double read_number(const std::string& flag, const std::string& given, Range range, bool whole) {
  // Decimal digits only: CLI11's own conversion takes 010 for eight, and "nan".
  const bool digits =
      given.find_first_not_of(whole ? "0123456789" : "0123456789.eE+-") == given.npos;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(given.c_str(), &end);
  if (digits && !given.empty() && end == given.data() + given.size() && range.contains(value) &&
      (errno == 0 || value != 0))  // 1e-400 would be 0
    return value;
  refuse_value(flag, given,
               fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", range.low,
                           range.high));
}

CLI::Option* add_bool(CLI::App& app, const std::string& flag, bool& target,
                      const std::string& help) {
  const auto read = [&target, flag](const std::string& given) {
    target = given == "true" || given == "True";
    if (!target && given != "false" && given != "False")
      refuse_value(flag, given, "true or false");
  };
  return app.add_option_function<std::string>(flag, read, help)
      ->type_name("[BOOL]")
      ->default_str("true")  // of the flag alone
      ->expected(0, 1);
}

CLI::Option* add_path(CLI::App& app, const std::string& names, std::string& target,
                      const std::string& help, const std::string& type) {
  const auto read = [&target, flag = names.substr(names.find('-'))](const std::string& given) {
    if (given.empty() || given.find('\0') != given.npos)
      refuse_value(flag, given, "a path");
    target = given == "-" ? standard_input : given;
  };
  return app.add_option_function<std::string>(names, read, help)->type_name(type);
}

void add_checkpoint(CLI::App& app, std::string& target, const std::string& of_run) {
  add_path(
      app, "run,--checkpoint", target,
      fmt::format("a checkpoint.safetensors, a run's folder: {}, or a pretrained model's (needed)",
                  of_run),
      "FILE|DIR");
}

void add_raw(CLI::App& app, bool& target) {
  add_bool(app, "--raw", target,
           "without what the tokenizer adds around a text, such as <|begin_of_text|>");
}

void add_out(CLI::App& app, std::string& target, bool& overwrite, const std::string& usual) {
  add_path(app, "--out", target, fmt::format("where to [{}]", usual));
  add_bool(app, "--overwrite", overwrite, "replace the file if it is there");
}

void add_seed(CLI::App& app, std::uint64_t& target) {
  add_number(app, "--seed", target, {0, 0xFFFFFFFF},
             fmt::format("of the random numbers [{}]", target));
}

void add_threads(CLI::App& app, std::size_t& target) {
  const auto use = [&target](const std::string& given) {
    const double n = read_number("--threads", given, {1, 1024}, true);
    xgrad::set_num_threads(target =
                               useful_threads("--threads " + given, static_cast<std::size_t>(n)));
  };
  app.add_option_function<std::string>(
         "--threads", use,
         "threads, at most four a core; the numbers do not depend on them [all cores]")
      ->type_name("N");
}

void add_name(CLI::App& app, const std::string& flag, std::string& target,
              const std::vector<std::string>& names, const std::string& help) {
  const auto read = [&target, flag, names](const std::string& given) {
    if (std::ranges::count(names, given) == 0)
      refuse_value(flag, given, fmt::format("one of {}", fmt::join(names, ", ")));
    target = given;
  };
  app.add_option_function<std::string>(flag, read, help)->type_name("NAME");
}

void add_preset(CLI::App& app, std::string& target, const std::string& help) {
  std::vector<std::string> names;
  for (const Preset& preset : presets)
    names.emplace_back(preset.name);
  add_name(app, "--preset", target, names, help);
}

void need(const char* flag, const std::string& value) {
  check<UsageError>(!value.empty(), "{} FILE is needed", flag);
}

}  // namespace char_transformer
