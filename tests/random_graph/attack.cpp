#include "random_graph/attack.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {
constexpr double tolerance = 1e-12;  // of the largest magnitude, or of 1
}

void demand(bool condition, const std::string& what) {
  if (!condition)
    throw std::runtime_error(what);
}

std::string name_of(std::size_t at) { return "r" + std::to_string(at); }

std::vector<Tensor> gradients_of(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> result;
  for (const Tensor& x : leaves)
    result.push_back(x.grad().defined() ? clone(x.grad().detach()) : Tensor());
  return result;
}

void demand_same(const std::vector<Tensor>& now, const std::vector<Tensor>& before,
                 const std::string& what) {
  for (std::size_t i = 0; i < now.size(); ++i)
    demand(same_bits(now[i], before[i]), what + ": gradient of " + name_of(i));
}

void demand_mode() {
  demand(Mode::current().grad_enabled && Mode::current().observer == nullptr,
         "the mode is not what it was");
}

Doubles times(double factor, Doubles xs) {
  for (double& x : xs)
    x *= factor;
  return xs;
}

// ---- a graph ----

Graph::Graph(const Program& program, const std::vector<Tensor>& ins, const std::vector<Tensor>& all)
    : inputs(ins), registers(all) {
  for (const Root& root : program.roots) {
    roots.push_back(registers[root.at]);
    cotangents.push_back(tensor_of(roots.back().shape(), root.cotangent));
  }
}

void Graph::backward(GradOptions options) const {
  options.grad_outputs = cotangents;
  xgrad::backward(roots, options);
}

std::vector<Tensor> Graph::grad(const std::vector<Tensor>& of, GradOptions options) const {
  options.grad_outputs = cotangents;
  options.allow_unused = true;
  return xgrad::grad(roots, of, options);
}

void Watch::graphs_of(const std::vector<Tensor>& ys) {
  std::vector<std::shared_ptr<Node>> found;
  std::set<const Node*> seen{nullptr};
  const auto discover = [&](const std::shared_ptr<Node>& node) {
    if (seen.insert(node.get()).second)
      found.push_back(node);
  };
  for (const Tensor& y : ys)
    if (y.defined()) {
      discover(y.identity().node);
      values_.push_back(y.identity().value);
    }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::shared_ptr<Node> node = found[i];  // found grows
    std::ranges::for_each(node->inputs, discover);
    nodes_.push_back(node);
  }
}

std::size_t Watch::alive() const {
  const auto is_alive = [](const auto& pointer) { return !pointer.expired(); };
  return static_cast<std::size_t>(std::ranges::count_if(nodes_, is_alive) +
                                  std::ranges::count_if(values_, is_alive));
}

// ---- an attack ----

Graph Attack::run(const std::vector<Tensor>& inputs, const After& after) {
  Graph graph(program, inputs, testing::run(program, inputs, after));
  watch.graphs_of(graph.registers);
  return graph;
}

std::vector<Doubles> Attack::expected_gradients() const {
  const auto arrives = reached(program);
  std::vector<Doubles> result(program.inputs.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (arrives[i])
      result[i] = reference_gradient(program, i);
  return result;
}

std::vector<std::size_t> Attack::reached_steps() const {
  const auto arrives = reached(program);
  std::vector<std::size_t> result;
  for (std::size_t at = program.inputs.size(); at < arrives.size(); ++at)
    if (arrives[at])
      result.push_back(at);
  return result;
}

void Attack::compare(const Tensor& x, const Doubles& expected, const std::string& what) {
  demand(std::cmp_equal(x.numel(), expected.size()),
         what + " has shape " + xgrad::to_string(x.shape()));
  double scale = 1, error = 0;
  for (const double e : expected)
    scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(x.data<double>()[i] - expected[i]);
    error = std::isfinite(off) ? std::max(error, off / scale) : INFINITY;
  }
  std::ostringstream text;
  text << what << " is off by " << error;
  demand(error <= tolerance, text.str());
  worst_error = std::max(worst_error, error);
}

void Attack::compare(const Tensor& x, const Doubles& expected, bool arrives,
                     const std::string& what) {
  demand(x.defined() == arrives, what + (arrives ? " is undefined" : " should be undefined"));
  if (arrives)
    compare(x, expected, what);
}

void Attack::compare_all(const std::vector<Tensor>& inputs, const std::vector<Doubles>& expected,
                         double factor, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    compare(inputs[i].grad(), times(factor, expected[i]), !expected[i].empty(),
            what + ": gradient of " + name_of(i));
}

}  // namespace xgrad::testing
