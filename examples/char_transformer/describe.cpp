// What is said of a run before it starts, and of what it runs on.

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <xgrad/autograd/threads.hpp>

#include "build.hpp"
#include "output.hpp"
#include "start.hpp"

namespace char_transformer {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* compiler = "GCC " __VERSION__;
#else
constexpr const char* compiler = "an unknown compiler";
#endif

std::string describe_build() {
  const std::string commit = build_commit;
  return fmt::format("xgrad {}{}, {}", build_version,
                     commit.empty() ? "" : fmt::format(" (commit {})", commit), compiler);
}

}  // namespace

std::string describe(const Start& start, const xgrad::nn::GPT& model) {
  const Recipe& r = start.options.recipe;
  const Source& source = start.source;
  const auto& [train, validation] = source.ids;
  const std::size_t characters = source.characters.size(), batches = r.gradient_accumulation_steps;
  const auto entropy =
      source.entropy(xgrad::text::block_count(validation, r.block_size) * r.block_size);
  std::string text =
      labelled("Build", fmt::format("{}; {}, float32; matrix products by {}.", describe_build(),
                                    xgrad::simd_name(), xgrad::blas_name())) +
      labelled("Text",
               fmt::format(
                   "{}: {} characters, {} different; {} to train on, {} to validate{}.",
                   source.name, format_count(source.all.size()), characters,
                   format_count(train.size()), format_count(validation.size()),
                   train.size() == source.all.size() ? ", from " + source.validation_name : "")) +
      labelled("Loss", fmt::format("a uniform guess has ln {} = {:.4f}{}.", characters,
                                   std::log(static_cast<double>(characters)),
                                   entropy ? fmt::format("; no model can beat {:.4f}, the entropy "
                                                         "of the text itself",
                                                         *entropy)
                                           : "")) +
      labelled("Model",
               fmt::format("n_layer {}, n_head {}, n_embd {}: {} parameters.", r.n_layer, r.n_head,
                           r.n_embd, format_count(xgrad::nn::num_parameters(model)))) +
      labelled("Steps", fmt::format("{} of {} characters ({}{} of {}), on {}, seed {}.",
                                    format_count(r.max_iters),
                                    format_count(r.batch_size * r.block_size * batches),
                                    batches > 1 ? fmt::format("{} batches of ", batches) : "",
                                    format_count(r.batch_size, "block", "blocks"), r.block_size,
                                    format_count(xgrad::num_threads(), "thread", "threads"),
                                    start.options.seed));
  if (r.max_iters > 0 && r.max_iters <= r.warmup_iters)
    text += labelled("Note", fmt::format("the learning rate rises to the end: --warmup-iters {}, "
                                         "--max-iters {}.",
                                         r.warmup_iters, r.max_iters));
  return text;
}

std::string format_environment(std::size_t ranks) {
  utsname system{};
  ::uname(&system);
  const xgrad::io::JsonObject environment{
      {"build", describe_build()},
      {"instructions", xgrad::simd_name()},
      {"threads", std::uint64_t{xgrad::num_threads()}},
      {"ranks", std::uint64_t{ranks}},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
  return xgrad::io::format_json(environment, xgrad::io::InvalidUtf8::replaced, 2);
}

}  // namespace char_transformer
