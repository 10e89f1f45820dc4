// Fused ops beside the ops that they fuse, at the sizes of `nano`: xgrad_tests "[.fused_table]".

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Operands = std::vector<Tensor>;

struct FusedOp {
  const char* name;
  std::vector<Dims> sizes;
  std::function<Tensor(const Operands&)> f;
};

std::vector<FusedOp> fused_ops() {
  Generator generator(1);
  const Indices ids = randint(0, 65, {768}, generator);
  const std::vector<Dims> rows{{768, 65}}, heads(3, Dims{12, 4, 64, 32}), wide{{768, 512}};
  const auto attend = [](const Operands& x, const AttentionOptions& options) {
    manual_seed(2);
    return scaled_dot_product_attention(x[0], x[1], x[2], options);
  };
  const auto of_ids = [ids](const CrossEntropyOptions& options) {
    return [ids, options](const Operands& x) { return cross_entropy(x[0], ids, options); };
  };
  return {
      {"softmax", rows, [](const Operands& x) { return softmax(x[0], -1); }},
      {"log_softmax", rows, [](const Operands& x) { return log_softmax(x[0], -1); }},
      {"logsumexp", rows, [](const Operands& x) { return logsumexp(x[0], -1); }},
      {"layer_norm",
       {{768, 128}, {128}, {128}},
       [](const Operands& x) { return layer_norm(x[0], 128, x[1], x[2]); }},
      {"rms_norm",
       {{768, 128}, {128}},
       [](const Operands& x) { return rms_norm(x[0], 128, x[1]); }},
      {"gelu", wide, [](const Operands& x) { return gelu(x[0]); }},
      {"gelu, tanh", wide, [](const Operands& x) { return gelu(x[0], Gelu::tanh); }},
      {"linear",
       {{768, 128}, {512, 128}, {512}},
       [](const Operands& x) { return linear(x[0], x[1], x[2]); }},
      {"cross_entropy", rows, of_ids({})},
      {"cross_entropy, smoothing", rows, of_ids({.label_smoothing = 0.1})},
      {"cross_entropy of probabilities",
       {{768, 65}, {768, 65}},
       [](const Operands& x) { return cross_entropy(x[0], x[1]); }},
      {"nll_loss", rows, [ids](const Operands& x) { return nll_loss(x[0], ids); }},
      {"attention", heads, [=](const Operands& x) { return attend(x, {}); }},
      {"attention, causal", heads,
       [=](const Operands& x) { return attend(x, {.is_causal = true}); }},
      {"attention, dropout", heads,
       [=](const Operands& x) { return attend(x, {.dropout_p = 0.2}); }},
      {"causal_self_attention",
       {{12, 64, 384}},
       [](const Operands& x) { return causal_self_attention(x[0], 4); }},
  };
}

struct Orders {
  Operands first, second;
};

// The gradients of sum(f g), and those of what they give with other numbers.
Orders orders(const FusedOp& op, DType dtype, bool decomposed, bool create_graph) {
  std::optional<Decompose> by_ordinary_ops;
  if (decomposed)
    by_ordinary_ops.emplace();
  Operands in;
  for (const Dims& sizes : op.sizes)
    in.push_back(normal(sizes, in.size() + 1, DType::float32).to(dtype).requires_grad_());
  const Tensor y = op.f(in), g = normal(y.shape(), 9, DType::float32).to(dtype);
  Orders all{grad({y}, in, {.grad_outputs = {g}, .create_graph = create_graph}), {}};
  if (create_graph) {
    Operands curved, other;  // of a bias the gradient is a sum of g: it has no graph
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
double error(const Operands& got, const Operands& wanted) {
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

// The best of several runs of f and of g in turn, in milliseconds.
template <class F, class G>
std::pair<double, double> times(const F& f, const G& g) {
  const auto time = [](const auto& run, double best) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                  .count());
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
  for (const FusedOp& op : fused_ops()) {
    const auto run = [&](DType dtype, bool decomposed, bool create_graph) {
      return orders(op, dtype, decomposed, create_graph);
    };
    const Orders ordinary = run(DType::float32, false, false),
                 fused = run(DType::float32, false, true),
                 by_ops = run(DType::float32, true, false),
                 wanted = run(DType::float64, true, true);
    const auto first = [&](const Operands& got) {
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
