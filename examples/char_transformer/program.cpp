#include "program.hpp"

#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <variant>
#include <xgrad/autograd/threads.hpp>

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
#include "train.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

void use_threads(std::size_t threads) {
  if (threads == 0)
    return;
  xgrad::set_num_threads(threads);
  if (const std::size_t n = xgrad::num_threads(); n < threads)
    fmt::print(stderr, "char_transformer: --threads {}: the system does not allow as many; {}\n",
               threads, n == 1 ? "one thread works" : fmt::format("{} threads work", n));
}

struct Run {
  Ranks& ranks;

  int operator()(const Help& help) const {
    say(help.text);
    return 0;
  }
  int operator()(const TrainOptions& options) const {
    set_verbosity(options.quiet     ? Verbosity::quiet
                  : options.verbose ? Verbosity::verbose
                                    : Verbosity::usual);
    use_threads(options.threads);
    return train(options, ranks);
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

int failed(const Ranks& ranks, const std::string& why) {
  warn(why);
  ranks.failed(why);
  return 1;
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
  Command command;
  try {
    ranks.together([&] { command = parse_command(argc, argv); });
    auto* const train = std::get_if<TrainOptions>(&command);
    if (train != nullptr)
      train->launcher = ranks.launcher();
    else if (ranks.size() > 1 && !std::holds_alternative<Help>(command))
      throw command_line::UsageError(
          "char_transformer: of the commands, only train works on several processes");
    return command_line::exit_code("char_transformer", std::visit(Run{ranks}, command));
  } catch (const command_line::UsageError& error) {  // on all ranks
    if (ranks.rank() == 0)
      fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const NotFinite& error) {  // on all ranks
    warn(error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    return failed(ranks, "not enough memory" + describe_needs(command));
  } catch (const std::exception& error) {
    return failed(ranks, error.what());
  }
}

}  // namespace char_transformer
