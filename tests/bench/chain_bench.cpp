// The overhead of an op: a chain of multiply-adds on one element, forward and backward, and a step
// of a tiny model.

#include <benchmark/benchmark.h>

#include <xgrad/xgrad.hpp>

namespace {

void chain_xgrad(benchmark::State& state) {
  using namespace xgrad;
  Tensor x = scalar(1).requires_grad_();
  const Tensor a = scalar(1.00001), b = scalar(1e-7);
  for ([[maybe_unused]] auto _ : state) {
    Tensor y = x;
    for (int i = 0; i < state.range(0); ++i)
      y = y * a + b;
    y.backward();
    x.zero_grad();
  }
  state.counters["per_op"] = benchmark::Counter(
      2.0 * static_cast<double>(state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
// As many ops as in a training step, and so many that the graph exceeds the caches.
BENCHMARK(chain_xgrad)->Arg(500)->Arg(50'000)->Unit(benchmark::kMillisecond);

// A training step of a tiny model: micrograd's example, a multilayer perceptron 2-16-16-1 with ReLU
// and the max-margin loss on two moons of 50 points each, in one batch.
void moons_step(benchmark::State& state) {
  using namespace xgrad;
  const Tensor angle = linspace(0, 3.14159265, 50), c = cos(angle), s = sin(angle),
               x = cat({stack({c, s}, 1), stack({1 - c, 0.5 - s}, 1)}, 0),
               y = cat({full({50, 1}, -1), full({50, 1}, 1)}, 0);
  manual_seed(1337);
  const nn::Sequential net{nn::Linear(2, 16), nn::ReLU{}, nn::Linear(16, 16), nn::ReLU{},
                           nn::Linear(16, 1)};
  optim::SGD optimizer(nn::parameters(net), {.lr = 0.1});
  for ([[maybe_unused]] auto _ : state) {
    optimizer.zero_grad();
    relu(1 - y * net(x)).mean().backward();
    optimizer.step();
  }
}
BENCHMARK(moons_step)->Unit(benchmark::kMicrosecond);

}  // namespace
