#include <xgrad/pages/graph_replay.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/values.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::pages::detail {
namespace {

using xgrad::detail::elements;
using Numbers = std::vector<double>;
using Verdict = GraphCheck::Verdict;

constexpr std::size_t each_up_to = 8;  // elements that are checked one by one
constexpr const char* not_finite =
    "there are NaN or infinite values, of which differences say nothing";

double sum_of_sizes(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double s, double v) { return s + std::abs(v); });
}

bool all_finite(const Numbers& x) {
  return std::ranges::all_of(x, [](double v) { return std::isfinite(v); });
}

double root_mean_square(const Numbers& x) {
  double sum = 0;
  for (const double v : x)
    sum += std::isfinite(v) ? v * v : 0;
  return x.empty() ? 0 : std::sqrt(sum / static_cast<double>(x.size()));
}

// x + h u, in its dtype.
Tensor moved(const Tensor& x, const Numbers& u, double h) {
  Numbers values = elements(x);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] += u[i] == 0 ? 0 : h * u[i];
  return reshape(Tensor(std::move(values)), Dims(x.shape())).to(x.dtype());
}

// How exact the numbers of a check are.
struct Precision {
  bool wide;   // differences in float64
  bool exact;  // the gradient is float64, too
  double unit() const { return wide ? 2.2e-16 : 1.2e-7; }
  double tolerance() const { return !wide ? 3e-2 : exact ? 1e-5 : 1e-3; }
};

// What is differentiated: the sum of weights times values.
struct Measured {
  std::function<Numbers(const Numbers& u, double h)> at;  // the values at x + h u
  Numbers weights;                                        // of the values
  double slack;  // what rounding in float32 may do to a right gradient
};

double weighted(const Numbers& weights, const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (weights[j] != 0)
      sum += weights[j] * xgrad::detail::difference(a.at(j), b.at(j));
  return sum;
}

struct Slopes {
  double step, central, left, right;
};

Slopes slopes_of(const Measured& f, const Numbers& u, double h, const Numbers& here) {
  const Numbers above = f.at(u, h), below = f.at(u, -h);
  return {h, weighted(f.weights, above, below) / (2 * h), weighted(f.weights, here, below) / h,
          weighted(f.weights, above, here) / h};
}

// The steps to try, one after the other: a function of small numbers may bend within the first.
std::vector<double> steps(const Precision& precision, const Numbers& x, double size,
                          double analytic) {
  const double typical = root_mean_square(x);
  if (precision.wide)
    return typical == 0 || typical > 0.1 ? std::vector<double>{1e-6 * std::max(1.0, typical)}
                                         : std::vector<double>{1e-6, 1e-5 * typical};
  // As far as the result changes by a thousandth.
  const double far = std::max(1e-3, typical) * 1e-2;
  return {std::clamp(1e-3 * size / std::max(std::abs(analytic), 1e-30), far * 1e-2, far)};
}

enum class Judgement { agrees, at_kink, disagrees };
Judgement judge(double analytic, const Slopes& slopes, double tolerance) {
  if (std::abs(analytic - slopes.central) <= tolerance)
    return Judgement::agrees;
  // At a kink the slopes to both sides differ: all between them is right.
  const auto [low, high] = std::minmax(slopes.left, slopes.right);
  const bool between = analytic >= low - tolerance && analytic <= high + tolerance;
  return high - low > 10 * tolerance && between ? Judgement::at_kink : Judgement::disagrees;
}

// A gradient, given by its elements, beside differences of f at x.
GraphCheck compare(const Numbers& gradient, const Numbers& x, const Precision& precision,
                   const Measured& f) {
  GraphCheck check;
  const std::size_t n = gradient.size();
  if (n == 0) {
    check.message = "it has no elements";
    return check;
  }
  const bool has_nan = std::ranges::any_of(x, [](double v) { return std::isnan(v); });
  if (has_nan || !all_finite(gradient) || !all_finite(f.weights)) {
    check.message = not_finite;
    return check;
  }
  std::vector<Numbers> directions;
  if (n <= each_up_to)
    for (std::size_t i = 0; i < n; ++i) {
      directions.emplace_back(n, 0.0);
      directions.back()[i] = 1;
    }
  else {
    directions.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i)
      directions[0][i] = gradient[i] > 0 ? 1 : gradient[i] < 0 ? -1 : i % 2 == 0 ? 1 : -1;
  }
  for (Numbers& u : directions)  // what is infinite, a masked score, stays
    for (std::size_t i = 0; i < n; ++i)
      u[i] = std::isfinite(x[i]) ? u[i] : 0;
  const Numbers here = f.at(Numbers(n), 0);
  double size = 0, largest = 0;
  for (std::size_t j = 0; j < here.size(); ++j)
    size += std::isfinite(here[j]) ? std::abs(f.weights[j] * here[j]) : 0;
  for (const double g : gradient)
    largest = std::max(largest, std::abs(g));
  check.verdict = Verdict::right;
  for (const Numbers& u : directions) {
    const double analytic = std::inner_product(u.begin(), u.end(), gradient.begin(), 0.0);
    Slopes found{};
    Judgement judgement = Judgement::disagrees;
    for (const double h : steps(precision, x, size, analytic)) {
      const Slopes slopes = slopes_of(f, u, h, here);
      if (!std::isfinite(slopes.central)) {
        check = {};
        check.message = not_finite;
        return check;
      }
      const double noise = 16 * precision.unit() * size / h;
      const double scale =
          std::max(directions.size() > 1 ? largest : std::abs(analytic), std::abs(slopes.central));
      if (found.step != 0 && noise > 0.1 * scale)
        break;  // so small a step says nothing
      found = slopes;
      judgement = judge(analytic, slopes, precision.tolerance() * scale + noise + f.slack);
      if (judgement != Judgement::disagrees)
        break;
    }
    check.analytic.push_back(analytic);
    check.numeric.push_back(found.central);
    if (judgement == Judgement::at_kink)
      check.message = "at a kink, where any slope between those of both sides is right";
    if (judgement != Judgement::disagrees)
      continue;
    check.verdict = Verdict::wrong;
  }
  return check;
}

class Replay {
 public:
  Replay(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed)
      : graph_(graph), ops_(ops), seed_(elements(seed)), op_of_(graph.nodes.size()) {
    for (std::size_t i = 0; i < ops.size(); ++i)
      op_of_[ops[i].node] = i;
    base_.resize(graph.nodes.size());
    wide_ = run_wide();
    if (!wide_)
      for (std::size_t i = 0; i < base_.size(); ++i)
        base_[i] = graph.nodes[i].value;
  }

  // Each contribution beside the op's own forward.
  void check_own() {
    for (GraphNode& node : graph_.nodes)
      for (GraphContribution& part : node.contributions)
        if (part.consumer && op_of_[*part.consumer])
          part.own = own(part);
  }

  void check_whole(double work) {
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].gathered.defined())
        candidates.push_back(i);
      else
        graph_.nodes[i].whole.message = "no gradient reaches it";
    // Leaves first, then others from all over the graph.
    std::ranges::sort(candidates, {}, [this](std::size_t i) {
      return std::pair(graph_.nodes[i].kind != GraphNode::Kind::leaf,
                       static_cast<std::uint32_t>(i * 2654435761U));
    });
    std::size_t done = 0;
    for (const std::size_t i : candidates) {
      GraphNode& node = graph_.nodes[i];
      if (!consistent_) {
        node.whole.message =
            "the function's ops, run again on the same values, give another result";
        continue;
      }
      if (work <= 0) {
        node.whole.message = fmt::format(
            "left out: the first {} of {} gradients took all the work that is meant for this", done,
            candidates.size());
        continue;
      }
      node.whole = whole(i, work);
      ++done;
    }
  }

 private:
  static Tensor in_float64(const Tensor& x) {
    return x.dtype() == DType::float64 ? x.detach() : x.detach().to(DType::float64);
  }

  // All values in float64; false if an op does not compute in it.
  bool run_wide() {
    for (std::size_t i = 0; i < base_.size(); ++i)
      if (!op_of_[i])
        base_[i] = in_float64(graph_.nodes[i].value);
    for (const RanOp& op : ops_) {
      try {
        base_[op.node] = op.event->forward(inputs_of(op, base_));
      } catch (const std::exception&) {
        return false;
      }
      const Tensor& y = base_[op.node];
      if (!y.defined() || y.dtype() != DType::float64 || y.shape() != op.event->output.shape())
        return false;
      const Numbers mine = elements(y), recorded = elements(op.event->output);
      const double near = 1e-3 * (1e-6 + xgrad::detail::scale_of(recorded));
      // (It may be another one by more than rounding: a leaf that was updated meanwhile.)
      consistent_ = consistent_ && xgrad::detail::close(mine, recorded, near);
      if (!xgrad::detail::close(mine, recorded, near))
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

  GraphCheck own(const GraphContribution& part) const {
    const RanOp& op = ops_[*op_of_[*part.consumer]];
    const GraphNode& consumer = graph_.nodes[op.node];
    const Numbers upstream = elements(consumer.gradient);
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < op.event->inputs.size(); ++i) {
      const Tensor& x = op.event->inputs[i];
      inputs.push_back(x.defined() && wide_ ? in_float64(x) : x.defined() ? x.detach() : x);
    }
    const Tensor& x = inputs[part.inputs[0]];
    const Measured f{[&](const Numbers& u, double h) {
                       auto in = inputs;
                       for (const std::size_t i : part.inputs)
                         in[i] = moved(x, u, h);
                       return elements(op.event->forward(in));
                     },
                     upstream, exact(consumer.value) ? 0 : 4e-6 * sum_of_sizes(upstream)};
    return guarded([&] {
      return compare(elements(part.gradient), elements(x), {wide_, exact(consumer.value)}, f);
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
      cost += 1000 + static_cast<double>(graph_.nodes[ops_[i].node].value.numel());
      for (const GraphInput& in : inputs)
        cost += in.node ? static_cast<double>(graph_.nodes[*in.node].value.numel()) : 0;
    }
    const GraphNode& of = graph_.nodes[node];
    for (const GraphContribution& part : of.contributions)
      if (part.consumer ? !op_of_[*part.consumer] : node != graph_.root)
        return {.message = "ops that ran before the function use it, too"};
    const auto n = static_cast<std::size_t>(of.value.numel());
    const std::size_t calls = 1 + 2 * (n <= each_up_to ? n : 1);
    work -= cost * static_cast<double>(calls) + static_cast<double>(ops_.size());
    if (!depends[graph_.root])
      return {.message = "the result does not depend on it"};
    double slack = 0;
    for (const GraphContribution& part : of.contributions)
      if (part.consumer && !exact(of.value))
        slack =
            std::max(slack, 4e-6 * sum_of_sizes(elements(graph_.nodes[*part.consumer].gradient)));
    std::vector<Tensor> values = base_;
    const Measured f{[&](const Numbers& u, double h) {
                       values[node] = moved(base_[node], u, h);
                       for (const RanOp* op : again)
                         values[op->node] = op->event->forward(with_constants(*op, values));
                       return elements(values[graph_.root]);
                     },
                     seed_, slack};
    return guarded([&] {
      return compare(elements(of.gathered), elements(base_[node]), {wide_, exact(of.value)}, f);
    });
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
  std::vector<Tensor> base_;                       // by node
  bool wide_ = false, consistent_ = true;
};

}  // namespace

void check_gradients(Graph& graph, const std::vector<RanOp>& ops, const Tensor& seed, double work) {
  const ModeGuard unobserved({false, nullptr});
  Replay replay(graph, ops, seed);
  replay.check_own();
  replay.check_whole(work);
}

}  // namespace xgrad::pages::detail
