#include <xgrad/pages/graph_replay.hpp>

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <xgrad/autograd/check/values.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/pages/graph_differences.hpp>
#include <xgrad/pages/graph_numbers.hpp>

namespace xgrad::pages::detail {
namespace {

using xgrad::detail::elements;

constexpr double rounding_in_float32 = 1.2e-7, rounding_in_float64 = 2.2e-16;
constexpr const char* left_out = "left out: it takes more work than is left for checks";

double sum_of_sizes(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double s, double v) { return s + std::abs(v); });
}

// These values, as x has them.
Tensor like(const Tensor& x, const Numbers& values) {
  return reshape(Tensor(Numbers(values)), Dims(x.shape())).to(x.dtype());
}

// Of this thread.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// For an order that comes from all over the graph.
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
    base_.resize(graph.nodes.size());
    rounded_.resize(graph.nodes.size());
    wide_ = affordable_ && run_wide();
    if (!wide_)
      for (std::size_t i = 0; i < base_.size(); ++i)
        base_[i] = graph.nodes[i].value;
  }

  // What each op added, and what it did not add, beside the op's own forward.
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
      *all[i].check = affordable_ && cost <= work ? own(all[i]) : GraphCheck{.message = left_out};
      work -= cost <= work ? cost : 0;
    }
  }

  // After check_own(), which finds how exact each op's backward is.
  void check_whole(double work) {
    relative_rounding_.resize(graph_.nodes.size());
    for (const std::size_t i : graph_.order)
      follow_rounding(i);
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
          !affordable_ || work <= 0 ? GraphCheck{.message = left_out}
          : !consistent_
              ? GraphCheck{.message =
                               "the function's ops, run again on the same values, give another "
                               "result"}
              : whole(i, work);
  }

 private:
  // The contribution of an op to a node's gradient; none if its backward added nothing.
  struct Own {
    std::size_t op, to;
    std::vector<std::size_t> inputs;
    Tensor gradient;
    GraphCheck* check;
  };

  // In elements read and written; as long as one of these takes, a processor makes sixteen
  // multiplications of a product.
  static double cost_of(const RanOp& op) {
    std::vector<Shape> shapes;
    const Tensor& y = op.event->output;
    double cost = 1000 + static_cast<double>(y.numel());
    for (const Tensor& x : op.event->inputs) {
      shapes.push_back(x.defined() ? x.shape() : Shape());
      cost += x.defined() ? static_cast<double>(x.numel()) : 0;
    }
    return cost +
           static_cast<double>(xgrad::detail::forward_flops(op.event->op, shapes, y.shape())) / 16;
  }

  // What the sums that the engine makes in its dtype may lose of each element of a gradient: there,
  // and if `inherited`, on the way there, also in the ops' own backwards.
  Numbers rounding(std::size_t node, bool inherited) const {
    const GraphNode& of = graph_.nodes[node];
    Numbers lost(static_cast<std::size_t>(of.value.numel()));
    const double unit = exact(of.value) ? rounding_in_float64 : rounding_in_float32;
    for (const GraphContribution& part : of.contributions) {
      double relative = unit, absolute = 0;
      if (inherited && part.consumer) {
        relative += relative_rounding_[*part.consumer] + 8 * lost_within(part);
        if (part.own.numeric.empty() && part.own.message != left_out)
          absolute = slack_of(*part.consumer) / static_cast<double>(lost.size());
      }
      const Numbers g = elements(part.gradient);
      for (std::size_t i = 0; i < g.size(); ++i)
        lost[i] += std::isinf(relative) ? relative : relative * std::abs(g[i]) + absolute;
    }
    return lost;
  }

  // The share of a contribution by which a right backward in float32 is beside differences.
  double lost_within(const GraphContribution& part) const {
    if (!wide_ || exact(graph_.nodes[*part.consumer].value) || !part.own.message.empty() ||
        part.own.verdict != GraphCheck::Verdict::right)
      return 0;
    double off = 0;
    for (std::size_t i = 0; i < part.own.numeric.size(); ++i)
      off += std::abs(part.own.analytic[i] - part.own.numeric[i]);
    return off == 0 ? 0 : off / sum_of_sizes(part.own.analytic);
  }

  // What rounding may do to what an op adds.
  double slack_of(std::size_t consumer) const {
    const GraphNode& of = graph_.nodes[consumer];
    return exact(of.value) ? 0 : 4e-6 * sum_of_sizes(elements(of.gradient));
  }

  void follow_rounding(std::size_t node) {
    const GraphNode& of = graph_.nodes[node];
    const double lost = sum_of_sizes(rounding(node, true));
    const double share = of.gathered.defined() ? lost / sum_of_sizes(elements(of.gathered)) : 0;
    relative_rounding_[node] = lost == 0              ? 0
                               : std::isfinite(share) ? share
                                                      : std::numeric_limits<double>::infinity();
    if (of.gathered.defined() && !xgrad::detail::same_bits(of.gathered, of.gradient))
      hooked_.insert(node);
  }

  static Tensor in_float64(const Tensor& x) {
    return x.dtype() == DType::float64 ? x.detach() : x.detach().to(DType::float64);
  }

  // All values in float64; false if an op does not compute in it.
  bool run_wide() {
    for (std::size_t i = 0; i < base_.size(); ++i)
      if (!op_of_[i])
        base_[i] = in_float64(graph_.nodes[i].value);
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      const RanOp& op = ops_[k];
      const double began = processor_seconds();
      try {
        base_[op.node] = op.event->forward(inputs_of(op, base_));
      } catch (const std::exception&) {
        return false;
      }
      // Somebody's own op may do more than its sizes tell.  An element takes about a nanosecond.
      if (const double took = processor_seconds() - began; took > 0.02)
        cost_[k] = std::max(cost_[k], took * 1e9);
      const Tensor& y = base_[op.node];
      if (!y.defined() || y.dtype() != DType::float64 || y.shape() != op.event->output.shape())
        return false;
      const Numbers mine = elements(y), recorded = elements(op.event->output);
      // Another result by more than rounding, which is as large as the inputs are: a leaf that was
      // updated meanwhile.
      double near = 1e-3 * (1e-6 + xgrad::detail::scale_of(recorded));
      for (const Tensor& x : op.event->inputs)
        if (x.defined())
          near = std::max(near, 1e-6 * xgrad::detail::scale_of(elements(x)));
      consistent_ = consistent_ && xgrad::detail::close(mine, recorded, near);
      // The backward saw the recorded values, so differences are taken where those are.
      Numbers rounded(mine.size());
      for (std::size_t i = 0; i < mine.size(); ++i)
        rounded[i] = std::isfinite(recorded[i] - mine[i]) ? recorded[i] - mine[i] : 0;
      rounded_[op.node] = like(y, rounded);
      base_[op.node] = in_float64(op.event->output);
    }
    return true;
  }

  std::vector<Tensor> inputs_of(const RanOp& op, const std::vector<Tensor>& values) const {
    std::vector<Tensor> inputs;
    for (const GraphInput& input : graph_.nodes[op.node].inputs)
      inputs.push_back(input.node ? values[*input.node] : Tensor());
    return inputs;
  }

  bool exact(const Tensor& x) const { return x.dtype() == DType::float64; }

  GraphCheck own(const Own& part) const {
    const RanOp& op = ops_[part.op];
    const GraphNode& consumer = graph_.nodes[op.node];
    const Numbers upstream = elements(consumer.gradient);
    std::vector<Tensor> inputs;
    for (const Tensor& x : op.event->inputs)
      inputs.push_back(x.defined() && wide_ ? in_float64(x) : x.defined() ? x.detach() : x);
    const Tensor& x = inputs[part.inputs[0]];
    const Measured f{[&](const Numbers& at) {
                       auto in = inputs;
                       for (const std::size_t i : part.inputs)
                         in[i] = like(x, at);
                       return elements(op.event->forward(in));
                     },
                     upstream, slack_of(op.node), rounding(part.to, false)};
    return guarded([&] {
      return compare(part.gradient.defined() ? elements(part.gradient) : Numbers(x.numel()),
                     elements(x), {wide_, exact(consumer.value)}, f);
    });
  }

  GraphCheck whole(std::size_t node, double& work) {
    // What depends on it, in the order in which it ran.
    std::vector<bool> depends(graph_.nodes.size());
    depends[node] = true;
    std::vector<const RanOp*> again;
    double cost = 0;
    const std::size_t first = op_of_[node] ? *op_of_[node] + 1 : 0;
    for (std::size_t i = first; i < ops_.size(); ++i) {
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
    for (const GraphContribution& part : of.contributions)
      if (part.consumer ? !op_of_[*part.consumer] : node != graph_.root)
        return {.message = "ops that ran before the function use it, too"};
    if (!depends[graph_.root])
      return {.message = "the result does not depend on it"};
    for (const std::size_t i : hooked_)
      if (i != node && depends[i])
        return {.message = hook_message(i)};
    const auto n = static_cast<std::size_t>(of.value.numel());
    cost *= static_cast<double>(runs_for(n));
    if (cost > work)
      return {.message = left_out};
    work -= cost;
    double slack = 0;
    for (const GraphContribution& part : of.contributions)
      if (part.consumer)
        slack = std::max(slack, slack_of(*part.consumer));
    std::vector<Tensor> values = base_;
    const Measured f{[&](const Numbers& at) {
                       values[node] = like(base_[node], at);
                       for (const RanOp* op : again)
                         values[op->node] = again_in(*op, values);
                       return elements(values[graph_.root]);
                     },
                     seed_, slack, rounding(node, true)};
    const GraphCheck found = guarded([&] {
      return compare(of.gathered.defined() ? elements(of.gathered) : Numbers(n),
                     elements(base_[node]), {wide_, exact(of.value)}, f);
    });
    if (found.verdict == GraphCheck::Verdict::wrong && has_kink(depends))
      return {.message =
                  "ops on the way are at kinks, where their slopes need not make one of all"};
    return found;
  }

  // Whether one of these nodes is at a kink as a function of another.
  bool has_kink(const std::vector<bool>& among) const {
    for (std::size_t i = 0; i < among.size(); ++i) {
      if (!among[i])
        continue;
      for (const GraphContribution& part : graph_.nodes[i].contributions)
        if (part.own.at_kink && part.consumer && among[*part.consumer])
          return true;
      for (const GraphInput& input : graph_.nodes[i].inputs)
        if (input.node && among[*input.node] && input.nothing && input.nothing->at_kink)
          return true;
    }
    return false;
  }

  std::string hook_message(std::size_t node) const {
    const GraphNode& of = graph_.nodes[node];
    const auto text = [this](const Tensor& x) { return to_text(shown(x, graph_.max_values)); };
    return fmt::format("a hook on {} {} changed the gradient on its way, from {} to {}",
                       printable_name(of.op), node + 1, text(of.gathered), text(of.gradient));
  }

  // Its value at these, where the one that was recorded is at base_.
  Tensor again_in(const RanOp& op, const std::vector<Tensor>& values) const {
    const Tensor y = op.event->forward(with_constants(op, values));
    return wide_ ? y + rounded_[op.node] : y;
  }

  // The inputs at these values, and where no gradient goes, at those that were there.
  std::vector<Tensor> with_constants(const RanOp& op, const std::vector<Tensor>& values) const {
    std::vector<Tensor> inputs;
    for (const GraphInput& in : graph_.nodes[op.node].inputs)
      inputs.push_back(!in.node ? Tensor() : in.constant ? base_[*in.node] : values[*in.node]);
    return inputs;
  }

  template <class F>
  static GraphCheck guarded(const F& check) {
    try {
      return check();
    } catch (const std::exception& error) {
      return {.message = fmt::format("its forward cannot be run again: {}", error.what())};
    }
  }

  Graph& graph_;
  const std::vector<RanOp>& ops_;
  Numbers seed_;
  std::vector<std::optional<std::size_t>> op_of_;  // by node
  std::vector<double> cost_;                       // by op
  std::vector<Tensor> base_;                       // by node
  std::vector<Tensor> rounded_;                    // by node: what rounding did to an op's value
  std::vector<double> relative_rounding_;          // by node, of its gradient's sum
  std::set<std::size_t> hooked_;                   // nodes with hooks that changed their gradient
  bool affordable_ = false, wide_ = false, consistent_ = true;
};

}  // namespace

void check_gradients(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed, double work) {
  const ModeGuard unobserved({false, nullptr});
  Replay replay(graph, ops, seed, work);
  replay.check_own(work);
  replay.check_whole(work);
}

}  // namespace xgrad::pages::detail
