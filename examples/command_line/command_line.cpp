#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "table.hpp"

namespace command_line {
namespace {

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

void Flags::add(Row row) {
  row.group = group_;
  table_.rows.push_back(std::move(row));
  const Row& added = table_.rows.back();
  app_.add_option_function<std::string>(
          added.flag,
          [&table = table_, i = table_.rows.size() - 1](const std::string& given) {
            table.rows[i].read(given);
            table.rows[i].given = given;
          },
          added.help)
      ->type_name(added.type)
      ->group(group_)
      ->expected(added.optional_value ? 0 : 1, 1)
      ->take_last()
      ->required(added.required);
}

void Flags::paths(const std::string& name, std::vector<std::string>& targets,
                  const std::string& help) {
  table_.rows.push_back(
      {.flag = name, .type = "FILE", .help = help, .completes = Completes::files});
  app_.add_option(name, targets, help)->required()->type_name("FILE");
}

void Flags::passed_over(const std::string& key) { table_.other_keys.push_back(key); }

bool Flags::given(const std::string& flag) const {
  const auto row = std::ranges::find(table_.rows, flag, long_name);
  return row != table_.rows.end() && (row->given || row->in_file);
}
bool Flags::given() const { return app_.parsed(); }

std::string Flags::file_of(const std::string& flag) const {
  const auto row = std::ranges::find(table_.rows, flag, long_name);
  return row != table_.rows.end() && row->in_file && !row->given ? table_.configuration : "";
}

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->get_formatter()->column_width(38);
  app_->footer(footer);
  app_->set_version_flag("--version", name + " " XGRAD_VERSION, "Print the version and exit");
  tables_.push_back(std::make_unique<Table>(Table{.name = name, .description = description}));
}

CommandLine::~CommandLine() = default;

Flags CommandLine::flags() { return {*app_, *tables_.front()}; }

Flags CommandLine::command(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  tables_.push_back(std::make_unique<Table>(Table{.name = name, .description = description}));
  return {*app_->add_subcommand(name, description), *tables_.back()};
}

const Table* CommandLine::chosen() const {
  for (const auto& table : tables_)
    for (const CLI::App* const command : app_->get_subcommands())
      if (command->get_name() == table->name)
        return table.get();
  return tables_.front().get();
}

std::optional<std::string> CommandLine::parse(int argc, const char* const* argv) {
  add_configuration();
  try {
    app_->parse(argc, argv);
    for (const auto& table : tables_) {
      if (table->configuration.empty())
        continue;
      if (app_->get_subcommand(table->name)->count("--config") > 1)
        throw BadValue("--config is given more than once: all values must be in one file");
      read_configuration(*table);
    }
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::CallForVersion&) {
    return app_->version() + "\n";
  } catch (const CLI::RequiredError& error) {
    std::vector<std::string> commands = commands_of(*app_);
    if (commands.empty() || !app_->get_subcommands().empty())
      refuse(error.what());
    const std::string last = commands.back();
    commands.pop_back();
    refuse(fmt::format("a command is needed: {} or {}", fmt::join(commands, ", "), last));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // begins with the flag's name
    refuse(message.substr(0, message.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  } catch (const BadValue& error) {
    refuse(error.what());
  }
}

void CommandLine::add_configuration() {
  for (std::size_t i = 1; i < tables_.size(); ++i) {
    Table& table = *tables_[i];
    if (std::ranges::none_of(table.rows, [](const Row& row) { return bool(row.write); }))
      continue;
    Flags flags(*app_->get_subcommand(table.name), table);
    flags.group("Configuration");
    flags.path("--config", table.configuration, "FILE",
               "a JSON object with values of flags that are not given");
    flags.boolean("--print-config", table.prints_configuration,
                  "print the values of all flags, as --config reads them, and exit");
    for (std::size_t row = table.rows.size() - 2; row < table.rows.size(); ++row)
      table.rows[row].write = {};
  }
}

bool CommandLine::prints_configuration() const { return chosen()->prints_configuration; }

std::string CommandLine::configuration() const {
  try {
    return format_configuration(*chosen());
  } catch (const BadValue& error) {
    refuse(error.what());
  }
}

const std::string& CommandLine::configuration_file() const { return chosen()->file_text; }

std::string CommandLine::completion(const std::string& shell) const {
  return completion_script(shell, *tables_.front(), commands());
}

std::string CommandLine::man_page(const std::vector<Section>& sections) const {
  return command_line::man_page(*tables_.front(), commands(), sections);
}

std::vector<const Table*> CommandLine::commands() const {
  std::vector<const Table*> commands;
  for (std::size_t i = 1; i < tables_.size(); ++i)
    commands.push_back(tables_[i].get());
  return commands;
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
