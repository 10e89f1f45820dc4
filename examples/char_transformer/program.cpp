#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "build.hpp"
#include "output.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

/// Command lines for the end of each command's help; the first four are for that of the program.
constexpr std::string_view examples[] = {
    "train --data book.txt --preset nano",
    "train --resume runs/000 --max-iters 5000",
    "eval runs/000",
    "sample runs/000 --prompt Once --temperature 0.5",
    "train --data book.txt --dry-run",
    "train --init-from runs/000 --data letters.txt --learning-rate 1e-4",
    "explain runs/000 --prompt Once",
    "graph runs/000 --prompt Once --format dot --out once.dot",
    "export runs/000 --out folder/",
    "report runs/000 --overwrite",
    "compare runs/000 runs/001 --out both.html",
    "compare runs/000 runs/001 --out losses.svg"};

std::string for_example(std::span<const std::string_view> some, const std::string& command = "") {
  std::string text = "For example:";
  for (const std::string_view example : some)
    if (example.starts_with(command))
      text += fmt::format("\n  char_transformer {}", example);
  return text;
}

}  // namespace

int main(int argc, char** argv, Ranks& ranks) {
#if defined(__GLIBC__)
  // Where it starts, and where it stays: glibc would raise it, and then keep what is freed.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_closed_streams();
  if (ranks.rank() > 0)
    be_silent();
  CLI::App program("Trains a character-level transformer, and lets it write.", "char_transformer");
  // CLI11 2.5 and newer would wrap lines.
  const auto lay_out = [](auto& formatter) {
    formatter.column_width(38);
    if constexpr (requires { formatter.right_column_width(1000); })
      formatter.right_column_width(1000);
    if constexpr (requires { formatter.enable_footer_formatting(false); })
      formatter.enable_footer_formatting(false);
    if constexpr (requires { formatter.long_option_alignment_ratio(0.16F); })
      formatter.long_option_alignment_ratio(0.16F);
  };
  lay_out(*program.get_formatter());
  program.set_version_flag("--version", fmt::format("char_transformer {}", build_version),
                           "Print the version and exit");
  program.footer(for_example(std::span(examples).first(4)) +
                 "\n\n'char_transformer train --help' and so on list the flags.");
  const std::vector<Command> commands = {
      add_train(program, ranks), add_eval(program),   add_sample(program), add_explain(program),
      add_graph(program),        add_export(program), add_report(program), add_compare(program)};
  for (const Command& command : commands)
    command.app->footer(for_example(examples, command.app->get_name() + " "));
  std::string why;
  try {
    const Command* command = nullptr;
    ranks.together([&] { command = parse(program, commands, argc, argv); });
    if (command == nullptr)
      return exit_code(0);
    if (ranks.size() > 1 && command != commands.data())
      throw UsageError("of the commands, only train works on several processes");
    program.name(argv[0]);  // for what train says of going on
    return exit_code(command->run());
  } catch (const UsageError& error) {  // on all ranks
    const auto chosen = program.get_subcommands();
    const std::string name =
        chosen.empty() ? "char_transformer" : "char_transformer " + chosen.front()->get_name();
    if (ranks.rank() == 0)
      std::fprintf(stderr, "%s: %s\n'%s --help' lists what it takes.\n", name.c_str(),
                   xgrad::printable(error.what()).c_str(), name.c_str());
    return 2;
  } catch (const NotFinite& error) {  // on all ranks
    warn(error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    why = "not enough memory";
  } catch (const std::exception& error) {
    why = error.what();
  }
  warn(why);
  ranks.failed(why);
  return 1;
}

}  // namespace char_transformer
