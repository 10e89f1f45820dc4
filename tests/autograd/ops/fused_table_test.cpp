// Fused ops compared with their compositions, at the sizes of `nano`: xgrad_tests "[.fused_table]".

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <limits>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "autograd/ops/fused_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

struct Orders {
  Tensors first, second;
};

// The gradients of sum(f g), and second gradients, with other numbers.
Orders orders(const FusedCase& op, DType dtype, bool decomposed, bool create_graph) {
  std::optional<Decompose> by_ordinary_ops;
  if (decomposed)
    by_ordinary_ops.emplace();
  Tensors in;
  for (const Dims& sizes : op.nano)
    in.push_back(normal(sizes, in.size() + 1, DType::float32).to(dtype).requires_grad_());
  const Tensor y = op.f(in), g = normal(y.shape(), 9, DType::float32).to(dtype);
  Orders all{grad({y}, in, {.grad_outputs = {g}, .create_graph = create_graph}), {}};
  if (create_graph) {
    Tensors curved, other;  // a bias's gradient is a sum of g and has no graph
    for (const Tensor& dx : all.first)
      if (dx.requires_grad()) {
        other.push_back(normal(dx.shape(), 20 + other.size(), DType::float32).to(dtype));
        curved.push_back(dx);
      }
    all.second = grad(curved, in, {.grad_outputs = other, .allow_unused = true});
  }
  return all;
}

// The largest difference, in float32's epsilon of the largest number.
double error(const Tensors& got, const Tensors& wanted) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!got[i].defined() || !wanted[i].defined())
      continue;
    const Tensor w = wanted[i].detach().to(DType::float64);
    const double most = std::max(abs(w).max().item(), std::numeric_limits<double>::min());
    worst = std::max(worst, abs(got[i].detach().to(DType::float64) - w).max().item() / most);
  }
  return worst / double{std::numeric_limits<float>::epsilon()};
}

// The best of several runs of f and of g in turn, in milliseconds of processor time, because a busy
// machine interrupts the longer one more often.
template <class F, class G>
std::pair<double, double> times(const F& f, const G& g) {
  const auto time = [](const auto& run, double best) {
    const std::clock_t begin = std::clock();
    run();
    return std::min(best, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  };
  std::pair<double, double> best{1e9, 1e9};
  for (int i = 0; i < 30; ++i)
    best = {time(f, best.first), time(g, best.second)};
  return best;
}

}  // namespace

TEST_CASE("the table of fused ops", "[.fused_table]") {
  std::cout << fmt::format("{:<32} {:>12} {:>11} {:>14} {:>9} {:>9} {:>6}\n", "op", "create_graph",
                           "Decompose", "second order", "ms fused", "ms by ops", "ratio");
  for (const FusedCase& op : fused_cases()) {
    if (op.nano.empty())
      continue;
    const auto run = [&](DType dtype, bool decomposed, bool create_graph) {
      return orders(op, dtype, decomposed, create_graph);
    };
    const Orders ordinary = run(DType::float32, false, false),
                 fused = run(DType::float32, false, true),
                 by_ops = run(DType::float32, true, false),
                 wanted = run(DType::float64, true, true);
    const auto first = [&](const Tensors& got) {
      const double e = error(got, ordinary.first);
      return e == 0 ? std::string("equal") : fmt::format("{:.1f} eps", e);
    };
    CHECK(error(fused.first, wanted.first) < 100);
    CHECK(error(fused.second, wanted.second) < 100);
    const auto [ms_fused, ms_by_ops] =
        times([&] { run(DType::float32, false, true); }, [&] { run(DType::float32, true, true); });
    std::cout << fmt::format("{:<32} {:>12} {:>11} {:>10.1f} eps {:>9.3f} {:>9.3f} {:>6.2f}\n",
                             op.name, first(fused.first), first(by_ops.first),
                             error(fused.second, wanted.second), ms_fused, ms_by_ops,
                             ms_fused / ms_by_ops);
  }
}
