#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <new>

#include "build.hpp"
#include "output.hpp"
#include "training.hpp"

namespace char_transformer {

int main(int argc, char** argv, Ranks& ranks) {
#if defined(__GLIBC__)
  // Where it starts, and where it stays: glibc would raise it, and then keep what is freed.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_closed_streams();
  if (ranks.rank() > 0)
    be_silent();
  CLI::App program("Trains a character-level transformer, and lets it write.", "char_transformer");
  program.get_formatter()->column_width(38);
  program.set_version_flag("--version", fmt::format("char_transformer {}", build_version),
                           "Print the version and exit");
  program.footer(
      "\nFor example:\n"
      "  char_transformer train --data shakespeare.txt --preset nano\n"
      "  char_transformer train --resume runs/000\n"
      "  char_transformer eval --checkpoint runs/000/checkpoint.safetensors\n"
      "  char_transformer sample --checkpoint runs/000 --prompt \"To be\"\n\n"
      "'char_transformer train --help' and so on list the flags.");
  const std::vector<Command> commands = {
      add_train(program, ranks), add_eval(program),   add_sample(program), add_explain(program),
      add_graph(program),        add_export(program), add_import(program), add_report(program),
      add_compare(program),      add_plot(program),   add_corpus(program)};
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
