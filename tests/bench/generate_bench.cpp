// Generation of one stream by the nano model: from one token to the end of the block, with the
// key/value cache and without, and beyond the block, where the whole window is computed again.
// generate_vs_pytorch.py compares with PyTorch.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/lm/gpt.hpp>

namespace {

using namespace xgrad;

constexpr std::size_t block_size = 64;

const lm::GPT& nano() {
  static const lm::GPT model = [] {
    manual_seed(1337);
    return lm::GPT({.block_size = block_size,
                    .vocab_size = 65,
                    .n_layer = 4,
                    .n_head = 4,
                    .n_embd = 128,
                    .bias = false});
  }();
  return model;
}

// Times one thread, and two.
void with_threads(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
}

void use_threads(const benchmark::State& state) {
  set_num_threads(static_cast<std::size_t>(state.range(0)));
}

void per_token(benchmark::State& state, std::size_t tokens) {
  state.counters["tokens_per_second"] = benchmark::Counter(
      static_cast<double>(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

void generate(benchmark::State& state, std::size_t from, std::size_t tokens) {
  use_threads(state);
  Generator generator(1);
  auto start = empty_array<std::int64_t>(Shape{1, from});
  std::fill_n(start.data(), from, 0);
  const Indices idx(std::move(start));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(nano().generate(idx, tokens, generator));
  per_token(state, tokens);
}
void generate_in_block(benchmark::State& state) { generate(state, 1, block_size); }
void generate_beyond_block(benchmark::State& state) { generate(state, block_size + 1, 64); }
BENCHMARK(generate_in_block)->Apply(with_threads);
BENCHMARK(generate_beyond_block)->Apply(with_threads);

// The same tokens without a cache: all positions go through the model for each.
void generate_in_block_uncached(benchmark::State& state) {
  const NoGrad no_grad;
  use_threads(state);
  Generator generator(1);
  for ([[maybe_unused]] auto _ : state) {
    std::vector<std::int64_t> tokens{0};
    while (tokens.size() <= block_size) {
      auto idx = empty_array<std::int64_t>(Shape{1, tokens.size()});
      std::copy(tokens.begin(), tokens.end(), idx.data());
      const Tensor p = softmax(nano().last_logits(std::move(idx)), -1);
      const std::span row(p.data<float>(), static_cast<std::size_t>(p.numel()));
      tokens.push_back(static_cast<std::int64_t>(multinomial(row, generator)));
    }
  }
  per_token(state, block_size);
}
BENCHMARK(generate_in_block_uncached)->Apply(with_threads);

}  // namespace
