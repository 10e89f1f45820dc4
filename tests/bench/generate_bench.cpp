// Generation of one stream by the nano model: from one token to the end of the block, with the
// key/value cache, and beyond the block, where the whole window is computed again, on one thread
// and on two.  generate_vs_pytorch.py compares with PyTorch.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/lm/gpt.hpp>

namespace {

using namespace xgrad;

constexpr std::size_t block_size = 64;

void generate(benchmark::State& state, std::size_t from) {
  static const lm::GPT nano = [] {
    manual_seed(1337);
    return lm::GPT({.block_size = block_size,
                    .vocab_size = 65,
                    .n_layer = 4,
                    .n_head = 4,
                    .n_embd = 128,
                    .bias = false});
  }();
  set_num_threads(static_cast<std::size_t>(state.range(0)));
  Generator generator(1);
  auto start = empty_array<std::int64_t>(Shape{1, from});
  std::fill_n(start.data(), from, 0);
  const Indices idx(std::move(start));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(nano.generate(idx, block_size, generator));
  state.counters["tokens_per_second"] = benchmark::Counter(
      static_cast<double>(block_size), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(generate, in_block, 1)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(generate, beyond_block, block_size + 1)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
