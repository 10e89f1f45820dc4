// The main job: a character-level transformer that is trained, evaluated and sampled from.

#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <variant>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/parallel/communicator.hpp>

#include "command_line/command_line.hpp"
#include "command_line/output.hpp"
#include "evaluate.hpp"
#include "exchange.hpp"
#include "explain.hpp"
#include "graph.hpp"
#include "needs.hpp"
#include "options.hpp"
#include "output.hpp"
#include "report.hpp"
#include "sample.hpp"
#include "source.hpp"
#include "start.hpp"
#include "train.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

/// The processors of a machine are for all of its ranks, unless mpirun has given each its own, or
/// somebody has said how many threads there should be.
std::size_t share_of_processors(const xgrad::parallel::Launched& launched) {
  const std::size_t all = xgrad::num_threads();
  if (launched.neighbours <= 1 || std::getenv("OMP_NUM_THREADS") != nullptr ||
      all < std::thread::hardware_concurrency())
    return 0;
  return std::max<std::size_t>(1, all / launched.neighbours);
}

void use_threads(std::size_t threads) {
  if (threads == 0)
    return;
  xgrad::set_num_threads(threads);
  if (const std::size_t n = xgrad::num_threads(); n < threads)
    fmt::print(stderr, "char_transformer: --threads {}: the system does not allow as many; {}\n",
               threads, n == 1 ? "one thread works" : fmt::format("{} threads work", n));
}

struct Run {
  const World& world;

  int operator()(const Help& help) const {
    say(help.text);
    return 0;
  }
  int operator()(const TrainOptions& options) const {
    set_verbosity(options.quiet     ? Verbosity::quiet
                  : options.verbose ? Verbosity::verbose
                                    : Verbosity::usual);
    const auto launched = xgrad::parallel::launched();
    use_threads(options.threads > 0 ? options.threads : share_of_processors(launched));
    return train(options, world);
  }
  int operator()(const EvalOptions& options) const {
    use_threads(options.threads);
    evaluate(options);
    return 0;
  }
  int operator()(const SampleOptions& options) const {
    use_threads(options.threads);
    return sample(options);
  }
  int operator()(const ExplainOptions& options) const {
    use_threads(options.threads);
    explain(options);
    return 0;
  }
  int operator()(const GraphOptions& options) const {
    use_threads(options.threads);
    graph(options);
    return 0;
  }
  int operator()(const ExportOptions& options) const {
    export_model(options);
    return 0;
  }
  int operator()(const ImportOptions& options) const {
    import_model(options);
    return 0;
  }
  int operator()(const ReportOptions& options) const {
    report(options);
    return 0;
  }
  int operator()(const CompareOptions& options) const {
    compare(options);
    return 0;
  }
  int operator()(const CorpusOptions& options) const {
    say(corpus_of(options.preset).text);
    return 0;
  }
};

/// The first of several processes speaks for all, unless it does not know.
int failed(const xgrad::parallel::Launched& launched, const std::string& why) {
  warn(why);
  if (launched.rank > 0 && !xgrad::parallel::ended_together())
    fmt::print(stderr, "char_transformer: rank {}: {}\n", launched.rank, why);
  return 1;
}

/// Each rank has read the file of --config, which may be another on another machine.
void check_same_configuration(const xgrad::parallel::Communicator& world, const Command& command) {
  const auto* const train = std::get_if<TrainOptions>(&command);
  const std::string here = train != nullptr ? train->configuration_file : "";
  const std::string first = xgrad::parallel::text_of(world, 0, here);
  together(world, [&] {
    if (here != first)
      throw xgrad::parallel::RankError(fmt::format(
          "the ranks do not begin with the same: the file of --config is {} here, rank 0's is {}",
          xgrad::printable_name(here), xgrad::printable_name(first)));
  });
}

int run(int argc, char** argv, const World& world) {
  const xgrad::parallel::Launched launched = xgrad::parallel::launched();
  Command command;
  try {
    together(*world, [&] { command = parse_command(argc, argv); });
    if (launched.size > 1)
      check_same_configuration(*world, command);
    if (launched.size > 1 && !std::holds_alternative<TrainOptions>(command) &&
        !std::holds_alternative<Help>(command))
      throw command_line::UsageError(
          "char_transformer: of the commands, only train works on several processes");
    return command_line::exit_code("char_transformer", std::visit(Run{world}, command));
  } catch (const command_line::UsageError& error) {  // on all ranks
    xgrad::parallel::end_together();
    if (launched.rank == 0)
      fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const NotFinite& error) {  // on all ranks
    xgrad::parallel::end_together();
    warn(error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    return failed(launched, "not enough memory" + describe_needs(command));
  } catch (const std::exception& error) {
    return failed(launched, error.what());
  }
}

/// One of several processes.
int run_rank(int argc, char** argv) {
  World world;
  try {
    world = xgrad::parallel::world();
    std::string line;
    for (int i = 1; i < argc; ++i)
      line += fmt::format("{}{}", i > 1 ? " " : "", argv[i]);
    check_same(*world, {{"the command line", line}});
  } catch (const xgrad::parallel::RankError& error) {  // on all ranks
    warn(error.what());
    return 1;
  }
  return run(argc, argv, world);
}

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // Where it starts, and where it stays: glibc would raise it, and then keep what is freed.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_closed_streams();
  const xgrad::parallel::Launched launched = xgrad::parallel::launched();
  if (launched.rank > 0)
    be_silent();
  return launched.size > 1 ? run_rank(argc, argv) : run(argc, argv, xgrad::parallel::alone());
}

}  // namespace
}  // namespace char_transformer

int main(int argc, char** argv) { return char_transformer::main(argc, argv); }
