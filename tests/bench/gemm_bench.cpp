// The machine's rate of matrix products, to compare with a step's rate: the linear layers of a step
// of `nano`, forward and backward, a shard of 192 rows on each of one or two threads.

#include <benchmark/benchmark.h>

#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/threads.hpp>

namespace {

void nano_products(benchmark::State& state) {
  using namespace xgrad;
  constexpr std::int64_t rows = 192;
  struct Layer {
    std::int64_t in, out;
  };
  set_num_threads(1);  // the benchmark has its own
  double flops = 0;
  for ([[maybe_unused]] auto _ : state)
    for (const auto [in, out] :
         {Layer{128, 384}, Layer{128, 128}, Layer{128, 512}, Layer{512, 128}}) {
      const Tensor x = full({rows, in}, 1).requires_grad_(),
                   w = full({out, in}, 1).requires_grad_();
      linear(x, w).backward(full({rows, out}, 1));
      flops += 6.0 * static_cast<double>(rows * in * out);
    }
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}
BENCHMARK(nano_products)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
