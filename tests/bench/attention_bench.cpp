// Attention forward and backward, 4 causal heads of 32, for growing texts: time, and memory kept
// for the backward pass.

#include <benchmark/benchmark.h>

#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

namespace {

void causal_attention(benchmark::State& state) {
  using namespace xgrad;
  const auto T = state.range(0);
  manual_seed(1);
  const Tensor q = randn({1, 4, T, 32}).requires_grad_(), k = randn({1, 4, T, 32}).requires_grad_(),
               v = randn({1, 4, T, 32}).requires_grad_();
  for ([[maybe_unused]] auto _ : state) {
    sum(scaled_dot_product_attention(q, k, v, {.is_causal = true})).backward();
    for (Tensor x : {q, k, v})
      x.zero_grad();
  }
}
BENCHMARK(causal_attention)
    ->ArgsProduct({{64, 512, 1024, 4096, 8192}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
