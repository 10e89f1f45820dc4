// What one op costs when the arithmetic is nothing: a chain of multiply-adds on one element,
// forward and backward. The peer is the smallest autograd there is, a scalar with a list of parents
// and a closure, as in micrograd.

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

namespace {

// As many ops as a training step has, and so many that the graph does not fit into a cache.
void lengths(benchmark::internal::Benchmark* bench) {
  bench->Arg(500)->Arg(50'000)->Unit(benchmark::kMillisecond);
}

void per_op(benchmark::State& state) {
  state.counters["per_op"] = benchmark::Counter(
      2.0 * static_cast<double>(state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

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
  per_op(state);
}
BENCHMARK(chain_xgrad)->Apply(lengths);

// The peer.
struct Scalar {
  double value, grad = 0;
  std::vector<std::shared_ptr<Scalar>> parents;
  std::function<void(Scalar&)> backward;
};
using Handle = std::shared_ptr<Scalar>;

Handle mul(const Handle& a, const Handle& b) {
  return std::make_shared<Scalar>(Scalar{a->value * b->value, 0, {a, b}, [](Scalar& y) {
                                           y.parents[0]->grad += y.grad * y.parents[1]->value;
                                           y.parents[1]->grad += y.grad * y.parents[0]->value;
                                         }});
}
Handle add(const Handle& a, const Handle& b) {
  return std::make_shared<Scalar>(Scalar{a->value + b->value, 0, {a, b}, [](Scalar& y) {
                                           y.parents[0]->grad += y.grad;
                                           y.parents[1]->grad += y.grad;
                                         }});
}

void chain_minimal(benchmark::State& state) {
  const auto x = std::make_shared<Scalar>(Scalar{1, 0, {}, {}});
  const auto a = std::make_shared<Scalar>(Scalar{1.00001, 0, {}, {}});
  const auto b = std::make_shared<Scalar>(Scalar{1e-7, 0, {}, {}});
  for ([[maybe_unused]] auto _ : state) {
    Handle y = x;
    for (int i = 0; i < state.range(0); ++i)
      y = add(mul(y, a), b);
    // Topological order by depth first search, without recursion.
    std::vector<Handle> order;
    std::unordered_set<Scalar*> seen;
    std::vector<std::pair<Handle, std::size_t>> stack{{y, 0}};
    seen.insert(y.get());
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->parents.size()) {
        const Handle parent = node->parents[next++];
        if (seen.insert(parent.get()).second)
          stack.emplace_back(parent, 0);
      } else {
        order.push_back(node);
        stack.pop_back();
      }
    }
    y->grad = 1;
    for (std::size_t i = order.size(); i-- > 0;)
      if (order[i]->backward)
        order[i]->backward(*order[i]);
    benchmark::DoNotOptimize(x->grad);
    y.reset();
    for (std::size_t i = order.size(); i-- > 0;)  // newest first: destruction does not recurse
      order[i].reset();
  }
  per_op(state);
}
BENCHMARK(chain_minimal)->Apply(lengths);

}  // namespace
