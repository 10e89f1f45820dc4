// The main job: a character-level transformer that is trained, evaluated and sampled from.

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <tuple>
#include <variant>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/data/corpus/corpus.hpp>
#include <xgrad/data/text.hpp>

#include "command_line/command_line.hpp"
#include "evaluate.hpp"
#include "exchange.hpp"
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
    const std::string text = xgrad::data::encode_utf8(xgrad::data::embedded_corpus().text);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
};

/// What takes the memory, for when there is not enough.
struct Needs {
  std::string operator()(const TrainOptions& options) const {
    const Recipe& r = options.recipe;
    const auto [C, L, T] = std::tuple{static_cast<double>(r.n_embd), static_cast<double>(r.n_layer),
                                      static_cast<double>(r.block_size)};
    // Floats: a weight, its gradient and AdamW's two moments; the activations that a block keeps.
    const double weights = 4.0 * sizeof(float) * C * (12 * L * C + T);
    const double batch = sizeof(float) * static_cast<double>(r.batch_size) * T * C * L * 17;
    return fmt::format(
        ": the weights and what AdamW keeps of them need about {:.1f} GB (--n-layer {}, --n-embd "
        "{}), "
        "a batch about {:.1f} GB (--batch-size {}, --block-size {})",
        weights / 1e9, r.n_layer, r.n_embd, batch / 1e9, r.batch_size, r.block_size);
  }
  std::string operator()(const EvalOptions& options) const { return model(options.checkpoint); }
  std::string operator()(const SampleOptions& options) const { return model(options.checkpoint); }
  std::string operator()(const ExportOptions& options) const { return model(options.checkpoint); }
  std::string operator()(const ImportOptions& options) const {
    return file("--state", options.state);
  }
  std::string operator()(const auto&) const { return ""; }

 private:
  static std::string model(const std::string& path) { return file("--checkpoint", path); }
  static std::string file(const char* flag, const std::string& path) {
    std::error_code error;
    const auto bytes = static_cast<double>(std::filesystem::file_size(path, error));
    return fmt::format(" for {} {}{}", flag, path,
                       error ? "" : fmt::format(", which has {:.1f} GB", bytes / 1e9));
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
    fmt::print(stderr, "char_transformer: not enough memory{}\n", std::visit(Needs(), command));
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
