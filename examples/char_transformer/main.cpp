// The main job: a character-level transformer that is trained, evaluated and sampled from.

#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <variant>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/data/corpus/corpus.hpp>

#include "command_line/command_line.hpp"
#include "evaluate.hpp"
#include "exchange.hpp"
#include "needs.hpp"
#include "options.hpp"
#include "output.hpp"
#include "sample.hpp"
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
  int operator()(const Help& help) const {
    fmt::print("{}", help.text);
    return 0;
  }
  int operator()(const TrainOptions& options) const {
    use_threads(options.threads);
    return train(options);
  }
  int operator()(const EvalOptions& options) const {
    use_threads(options.threads);
    evaluate(options);
    return 0;
  }
  int operator()(const SampleOptions& options) const {
    use_threads(options.threads);
    sample(options);
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
  int operator()(const CorpusOptions&) const {
    say(xgrad::data::embedded_corpus().text);
    return 0;
  }
};

/// What was printed may still fail to arrive.
int flushed(int code) {
  say("");
  const int error = output_error();
  if (error == 0 || code != 0)
    return code;
  if (error == EPIPE)
    return 128 + SIGPIPE;
  warn(fmt::format("standard output could not be written: {}", std::strerror(error)));
  return 1;
}

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // Where it starts, and where it stays: glibc would raise it, and then keep what is freed.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_closed_streams();
  Command command;
  try {
    command = parse_command(argc, argv);
    return flushed(std::visit(Run(), command));
  } catch (const command_line::UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const NotFinite& error) {
    std::fflush(stdout);
    fmt::print(stderr, "char_transformer: {}\n", error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    std::fflush(stdout);
    fmt::print(stderr, "char_transformer: not enough memory{}\n", describe_needs(command));
    return 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "char_transformer: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace char_transformer

int main(int argc, char** argv) { return char_transformer::main(argc, argv); }
