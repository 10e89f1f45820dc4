#include "graph_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include "../autograd/check/probe.hpp"
#include "../autograd/ops.hpp"

namespace xgrad::viz::detail {
namespace {

using xgrad::detail::elements, xgrad::detail::like, xgrad::detail::scale_of;
using xgrad::detail::Finding, xgrad::detail::Findings, xgrad::detail::Doubles, xgrad::detail::Point,
    xgrad::detail::Probe, xgrad::detail::RecordedGradient;
using EngineVerdict = xgrad::detail::Verdict;

// ---- a gradient compared with differences of its function ----

constexpr std::size_t each_up_to = 8;  // elements that are checked one by one
constexpr const char* not_finite_values =
    "there are NaN or infinite values, for which there are no differences";

// A masked score is meant to be ignored.
bool moves(double v) { return std::isfinite(v) && v >= -xgrad::detail::mask_size; }

// How often the function runs for a gradient of n elements, if nothing disagrees.
std::size_t runs_for(std::size_t n) { return 1 + 2 * (n <= each_up_to ? n : 1); }

// The engine's verdict on a gradient of the sum of weights * at(x), in float64 if `wide`.
// Unchecked, too, where rounding may be a tenth of the gradient.  Elements that are infinite or
// below -1e8 (masked scores) stay as they are.
GraphCheck compare(const RecordedGradient& of, const Doubles& x, bool wide,
                   const std::function<Doubles(const Doubles& x)>& at, const Doubles& all_weights) {
  if (x.empty())
    return {.message = "it has no elements"};
  const auto finite = [](double v) { return std::isfinite(v); };
  if (std::ranges::any_of(x, [](double v) { return std::isnan(v); }) ||
      !std::ranges::all_of(of.gradient, finite) || !std::ranges::all_of(all_weights, finite))
    return {.message = not_finite_values};
  const Probe probe{.leaves = {xgrad::detail::Leaf(x)},
                    .at = [&](Point to, double) { return at(to[0].empty() ? x : to[0]); },
                    .center = at(x),
                    .unit = wide ? 0x1p-53 : 0x1p-24};
  std::vector<std::size_t> moving;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (moves(x[i]))
      moving.push_back(i);
  if (moving.empty())
    return {.message = "all its elements are infinite or below -1e8, as masked scores are"};
  const auto weights = xgrad::detail::nonzero(all_weights);
  if (!std::ranges::all_of(weights, [&](auto& one) { return finite(probe.center.at(one.first)); }))
    return {.message = not_finite_values};
  const bool each = x.size() <= each_up_to;
  GraphCheck check{.analytic = of.gradient,
                   .numeric = Doubles(x.size(), std::numeric_limits<double>::quiet_NaN())};
  Findings found;
  const Finding line = check_recorded(probe, weights, of,
                                      {.tolerance = {},
                                       .among = moving,
                                       .one_by_one = each ? moving.size() : 0,
                                       .most_suspects = 16,
                                       .halve_unchecked = false,
                                       .by_signs = true},
                                      found, [&](const Finding& one) {
                                        if (each) {
                                          check.analytic[one.element] += 0.0;  // no -0
                                          check.numeric[one.element] = one.numeric;
                                        }
                                      });
  if (!each) {
    check.analytic = {line.analytic};
    check.numeric = {line.numeric};
  }
  const bool wrong_line = line.verdict == EngineVerdict::wrong;  // or kinks of several elements
  if (found.disagree > 0 || (wrong_line && found.checked == 0)) {
    check.verdict = GraphCheck::Verdict::wrong;
    return check;
  }
  if (line.verdict == EngineVerdict::unchecked)
    return {.message = line.because()};
  if (found.unchecked > 0 && (each || wrong_line))
    return {.message = found.because};
  check.verdict = GraphCheck::Verdict::right;
  if (!weights.empty() && scale_of(check.numeric) == 0 &&
      (each ? found.worst_error : line.error()) == 0)
    check.message = "the function does not change at all within the step";
  else if (moving.size() < x.size())
    check.message = "what is infinite or below -1e8 was left as it is";
  return check;
}

// ---- the ops of a recorded graph, run again with other values ----

constexpr const char* skipped = "skipped: it takes more work than is left for checks";

Tensor in_float64(const Tensor& x) { return x.defined() ? x.detach().to(DType::float64) : x; }

bool exact(const Tensor& x) { return x.dtype() == DType::float64; }

// The processor time of this thread.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A pseudo-random order of the nodes.
std::uint32_t scattered(std::size_t i) { return static_cast<std::uint32_t>(i * 2654435761U); }

class Replay {
 public:
  Replay(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed, double work)
      : graph_(graph), ops_(ops), seed_(elements(seed)), op_of_(graph.nodes.size()) {
    double once = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      op_of_[ops[i].node] = i;
      once += cost_.emplace_back(cost_of(ops[i]));
    }
    affordable_ = once <= work;
    for (const GraphNode& node : graph.nodes)
      base_.push_back(node.value);
    wide_ = affordable_ && run_wide();
  }

  // Compares each op's contribution, also a missing one, with the op's own forward.
  void check_own(double work) {
    std::vector<Own> all;
    std::set<std::pair<std::size_t, std::size_t>> added;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (GraphContribution& part : graph_.nodes[i].contributions)
        if (part.consumer && op_of_[*part.consumer]) {
          all.push_back({*op_of_[*part.consumer], i, part.inputs, part.gradient, &part.own});
          added.emplace(i, *part.consumer);
        }
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      if (!graph_.nodes[ops_[k].node].step)
        continue;
      auto& inputs = graph_.nodes[ops_[k].node].inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].node || inputs[i].constant ||
            !added.emplace(*inputs[i].node, ops_[k].node).second)
          continue;
        Own own{k, *inputs[i].node, {}, Tensor(), &inputs[i].nothing.emplace()};
        for (std::size_t j = i; j < inputs.size(); ++j)
          if (inputs[j].node == inputs[i].node && !inputs[j].constant)
            own.inputs.push_back(j);
        all.push_back(std::move(own));
      }
    }
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, scattered);
    for (const std::size_t i : order) {
      const auto n = static_cast<std::size_t>(graph_.nodes[all[i].to].value.numel());
      const double cost = cost_[all[i].op] * static_cast<double>(runs_for(n));
      *all[i].check = affordable_ && cost <= work ? own(all[i]) : GraphCheck{.message = skipped};
      work -= cost <= work ? cost : 0;
      if (all[i].check->verdict == GraphCheck::Verdict::wrong)
        wrong_.emplace_back(all[i].to, ops_[all[i].op].node);
    }
  }

  // Runs after check_own(), which finds the wrong contributions.
  void check_whole(double work) {
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].gathered.defined() || graph_.nodes[i].value.requires_grad())
        candidates.push_back(i);
      else
        graph_.nodes[i].whole.message = "no gradient reaches it";
    // Leaves first.
    std::ranges::sort(candidates, {}, [this](std::size_t i) {
      return std::pair(graph_.nodes[i].kind != GraphNode::Kind::leaf, scattered(i));
    });
    for (const std::size_t i : candidates)
      graph_.nodes[i].whole =
          affordable_ && work > 0 ? whole(i, work) : GraphCheck{.message = skipped};
  }

 private:
  // The contribution of an op to a node's gradient; none if its backward added nothing.
  struct Own {
    std::size_t op, to;
    std::vector<std::size_t> inputs;
    Tensor gradient;
    GraphCheck* check;
  };

  // In elements read and written; in the time of one, a processor makes sixteen multiplications of
  // a product.
  static double cost_of(const RanOp& op) {
    const auto elements = static_cast<double>(op.event->output.numel());
    const bool attention = op.event->op.ends_with("attention");
    const bool product = attention || op.event->op == "linear" || op.event->op == "matmul";
    double cost = 1000 + elements;
    for (const Tensor& x : op.event->inputs)
      cost += x.defined() ? static_cast<double>(x.numel()) : 0;
    const Tensor& a = op.event->inputs.front();  // attention multiplies twice by its positions
    if (product && a.defined() && a.dim() >= 2)
      cost += elements * static_cast<double>(attention ? 2 * a.size(-2) : a.size(-1)) / 8;
    return cost;
  }

  // The rounding error of an op's contribution.
  double slack_of(std::size_t consumer) const {
    const GraphNode& of = graph_.nodes[consumer];
    const Doubles g = elements(of.gradient);
    return exact(of.value)
               ? 0
               : 4e-6 * std::accumulate(g.begin(), g.end(), 0.0,
                                        [](double s, double v) { return s + std::abs(v); });
  }

  // Computes all values in float64; returns false, and changes nothing, if an op does not support
  // it.
  bool run_wide() {
    std::vector<Tensor> values;
    for (const GraphNode& node : graph_.nodes)
      values.push_back(in_float64(node.value));
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      const RanOp& op = ops_[k];
      const double began = processor_seconds();
      try {
        values[op.node] = forward(op, values, values);
      } catch (const std::exception&) {
        return false;
      }
      // A user's op may do more than its sizes tell.  An element takes about a nanosecond.
      if (const double took = processor_seconds() - began; took > 0.02)
        cost_[k] = std::max(cost_[k], took * 1e9);
      const Tensor& y = values[op.node];
      if (!y.defined() || !exact(y) || y.shape() != op.event->output.shape())
        return false;
    }
    base_ = std::move(values);
    return true;
  }

  // The op's result for these values, and its constants where no gradient flows.
  Tensor forward(const RanOp& op, const std::vector<Tensor>& values,
                 const std::vector<Tensor>& constants) const {
    std::vector<Tensor> inputs;
    for (const GraphInput& in : graph_.nodes[op.node].inputs)
      inputs.push_back(in.node ? (in.constant ? constants : values)[*in.node] : Tensor());
    return op.event->forward(inputs);
  }

  GraphCheck own(const Own& part) const {
    const RanOp& op = ops_[part.op];
    const GraphNode& consumer = graph_.nodes[op.node];
    std::vector<Tensor> inputs;
    for (const Tensor& x : op.event->inputs)
      inputs.push_back(wide_ ? in_float64(x) : x.defined() ? x.detach() : x);
    const Tensor& x = inputs[part.inputs[0]];
    // The engine's sum, of which this is a part, has the node's dtype.
    const Doubles gradient = part.gradient.defined() ? elements(part.gradient) : Doubles(x.numel());
    Doubles rounding(gradient.size());
    for (const GraphContribution& other : graph_.nodes[part.to].contributions) {
      const Doubles g = elements(other.gradient);
      for (std::size_t i = 0; i < g.size(); ++i)
        rounding[i] += (exact(graph_.nodes[part.to].value) ? 2.2e-16 : 1.2e-7) * std::abs(g[i]);
    }
    return compared(
        {gradient, exact(consumer.value), slack_of(op.node), rounding}, x,
        [&](const Doubles& at) {
          auto in = inputs;
          for (const std::size_t i : part.inputs)
            in[i] = like(x, at);
          return elements(op.event->forward(in));
        },
        elements(consumer.gradient));
  }

  GraphCheck whole(std::size_t node, double& work) {
    // The ops that depend on it, in the order in which they ran.
    std::vector<bool> depends(graph_.nodes.size());
    depends[node] = true;
    std::vector<const RanOp*> again;
    double cost = 0;
    for (std::size_t i = op_of_[node] ? *op_of_[node] + 1 : 0; i < ops_.size(); ++i) {
      const auto& inputs = graph_.nodes[ops_[i].node].inputs;
      if (!std::ranges::any_of(inputs, [&](const GraphInput& in) {
            return in.node && !in.constant && depends[*in.node];
          }))
        continue;
      depends[ops_[i].node] = true;
      again.push_back(&ops_[i]);
      cost += cost_[i];
    }
    work -= static_cast<double>(ops_.size());
    const GraphNode& of = graph_.nodes[node];
    double slack = 0;
    for (const GraphContribution& part : of.contributions) {
      if (part.consumer ? !op_of_[*part.consumer] : node != graph_.root)
        return {.message = "ops that ran before the function use it, too"};
      slack = std::max(slack, part.consumer ? slack_of(*part.consumer) : 0);
    }
    if (!depends[graph_.root])
      return {.message = "the result does not depend on it"};
    for (std::size_t i = 0; i < depends.size(); ++i) {
      const GraphNode& on = graph_.nodes[i];
      if (i == node || !depends[i] || !on.gathered.defined() ||
          xgrad::detail::same_bits(on.gathered, on.gradient))
        continue;
      const auto text = [this](const Tensor& x) { return to_text(shown(x, graph_.max_values)); };
      return {.message =
                  fmt::format("a hook on {} {} changed the gradient on its way, from {} to {}",
                              printable_name(on.op), i + 1, text(on.gathered), text(on.gradient))};
    }
    const auto n = static_cast<std::size_t>(of.value.numel());
    cost *= static_cast<double>(runs_for(n));
    if (cost > work)
      return {.message = skipped};
    work -= cost;
    std::vector<Tensor> values = base_;
    const GraphCheck found = compared(
        {of.gathered.defined() ? elements(of.gathered) : Doubles(n), exact(of.value), slack,
         Doubles(n)},
        base_[node],
        [&](const Doubles& at) {
          values[node] = like(base_[node], at);
          for (const RanOp* const op : again)
            values[op->node] = forward(*op, values, base_);
          return elements(values[graph_.root]);
        },
        seed_);
    const bool blamed = std::ranges::any_of(
        wrong_, [&](const auto& way) { return depends[way.first] && depends[way.second]; });
    if (found.verdict == GraphCheck::Verdict::wrong && !blamed)
      return {
          .message = fmt::format(
              "differences give {:.4g}, and no op on the way is wrong: rounding or a kink may do "
              "that",
              fmt::join(found.numeric, ", "))};
    return found;
  }

  GraphCheck compared(const RecordedGradient& of, const Tensor& x,
                      const std::function<Doubles(const Doubles& x)>& at,
                      const Doubles& weights) const {
    try {
      return compare(of, elements(x), wide_, at, weights);
    } catch (const std::exception& error) {
      return {.message = fmt::format("its forward cannot be run again: {}", error.what())};
    }
  }

  Graph& graph_;
  const std::vector<RanOp>& ops_;
  Doubles seed_;
  std::vector<std::optional<std::size_t>> op_of_;           // by node
  std::vector<double> cost_;                                // by op
  std::vector<Tensor> base_;                                // by node
  std::vector<std::pair<std::size_t, std::size_t>> wrong_;  // (to, from) of wrong contributions
  bool affordable_ = false, wide_ = false;
};

}  // namespace

void check_gradients(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed, double work) {
  const ModeGuard unobserved({false, nullptr});
  Replay replay(graph, ops, seed, work);
  replay.check_own(work);
  replay.check_whole(work);
}

}  // namespace xgrad::viz::detail
