// The machine's rate of matrix products: the products of a step of `nano` (a shard of 192 rows), on
// each of one or two threads.  It is the roof that a step's rate is held against.

#include <benchmark/benchmark.h>

#include <vector>
#include <xgrad/autograd/kernels/gemm.hpp>

namespace {

void nano_products(benchmark::State& state) {
  constexpr std::size_t rows = 192;
  struct Layer {
    std::size_t in, out;
  };
  constexpr Layer layers[] = {{128, 384}, {128, 128}, {128, 512}, {512, 128}};
  const std::vector<float> x(rows * 512, 1), w(512 * 512, 1);
  std::vector<float> y(512 * 512);
  double flops = 0;
  for ([[maybe_unused]] auto _ : state)
    for (const auto [in, out] : layers) {
      const auto product = [&](bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k) {
        xgrad::kernels::gemm<float>(ta, tb, m, n, k, 1, x.data(), ta ? m : k, w.data(), tb ? k : n,
                                    0, y.data(), n);
      };
      product(false, true, rows, out, in);   // y = x Wᵀ
      product(false, false, rows, in, out);  // dx = dy W
      product(true, false, out, in, rows);   // dW = dyᵀ x
      flops += 6.0 * rows * static_cast<double>(in * out);
    }
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}
BENCHMARK(nano_products)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
