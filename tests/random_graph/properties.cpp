#include "random_graph/properties.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "helpers/tensors.hpp"
#include "random_graph/attack.hpp"

namespace xgrad::testing {
namespace {

template <class T, class F>
std::vector<T> chosen(const std::vector<T>& from, const F& f) {
  std::vector<T> result;
  std::ranges::copy_if(from, std::back_inserter(result), f);
  return result;
}

std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs) {
  return chosen(inputs, [](const Tensor& x) { return x.requires_grad(); });
}

void right_gradients(Attack& a) {
  const Program& p = a.program;
  const Graph graph = a.run(tensors(p));
  const auto &inputs = graph.inputs, &registers = graph.registers;
  const auto planes = reference_values(p);
  for (std::size_t at = 0; at < registers.size(); ++at) {
    demand(registers[at].shape() == planes[at].shape, "shape of " + name_of(at));
    a.compare(registers[at], planes[at].values, "value of " + name_of(at));
    demand(registers[at].requires_grad() == differentiable(p)[at],
           "requires_grad of " + name_of(at));
  }
  const auto arrives = reached(p);
  std::vector<std::size_t> kept;
  for (const std::size_t at : a.reached_steps())
    if (a.random.chance(0.3)) {
      Tensor y = registers[at];
      y.retain_grad();
      kept.push_back(at);
    }
  graph.backward({.retain_graph = true});
  a.compare_all(inputs, a.expected_gradients(), 1, "backward()");
  for (const std::size_t at : kept)
    a.compare(registers[at].grad(), reference_gradient(p, at), "grad of " + name_of(at));

  // grad() gives the same, also for results of steps, and fills no grad()
  const auto before = gradients_of(inputs);
  std::vector<std::size_t> wanted;
  std::vector<Tensor> xs;
  for (std::size_t at = 0; at < registers.size(); ++at)
    if (differentiable(p)[at] && a.random.chance(at < inputs.size() ? 0.8 : 0.2)) {
      wanted.push_back(at);
      xs.push_back(registers[at]);
    }
  const auto g = graph.grad(xs);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    a.compare(g[k], arrives[wanted[k]] ? reference_gradient(p, wanted[k]) : Doubles{},
              arrives[wanted[k]], "grad(): " + name_of(wanted[k]));
  demand_same(gradients_of(inputs), before, "grad() changed");
}

void updates_between(Attack& a) {
  const Program& p = a.program;
  auto inputs = tensors(p);
  const Graph first = a.run(inputs), second = a.run(inputs);
  const auto expected = a.expected_gradients();
  first.backward();
  a.compare_all(inputs, expected, 1, "before the update");
  optim::SGD optimizer(leaves_of(inputs), {.lr = 0.1, .momentum = 0.9});
  optimizer.step();
  for (Tensor& x : inputs)
    if (!x.requires_grad())
      x.copy_(x + 0.3);
  for (Tensor& x : inputs)
    x.zero_grad();
  second.backward();
  a.compare_all(inputs, expected, 1, "after the update");

  Program updated = p;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    updated.inputs[i].values = numbers(inputs[i]);
    inputs[i].zero_grad();
  }
  a.run(inputs).backward();
  a.compare_all(inputs, Attack{updated, a.random}.expected_gradients(), 1, "of the new values");
}

void repeated_backward(Attack& a) {
  const Graph graph = a.run(tensors(a.program));
  const auto expected = a.expected_gradients();
  const auto retained = 1 + a.random.below(3);
  for (std::size_t k = 1; k <= retained; ++k) {
    graph.backward({.retain_graph = true});
    a.compare_all(graph.inputs, expected, static_cast<double>(k), "retained");
  }
  graph.backward();
  const auto before = gradients_of(graph.inputs);
  a.compare_all(graph.inputs, expected, static_cast<double>(retained + 1), "the last");
  demand(throws<GraphError>([&] { graph.backward({.retain_graph = true}); }),
         "backward through a freed graph does not throw");
  demand_same(gradients_of(graph.inputs), before, "a backward that threw changed");
  demand_mode();
}

void constant_parts(Attack& a) {
  const Program& p = a.program;
  const Graph graph = a.run(tensors(p));
  const auto may = differentiable(p);
  for (std::size_t at = 0; at < may.size(); ++at)
    demand(graph.registers[at].requires_grad() == may[at], "requires_grad of " + name_of(at));
  graph.backward({.retain_graph = true});
  a.compare_all(graph.inputs, a.expected_gradients(), 1, "with constant parts");
  // The same program, with its constant steps replaced by their values.
  const Graph replaced = a.run(tensors(p), [&](std::size_t at, const Tensor& y) {
    const Step& step = p.steps[at - p.inputs.size()];
    return step.flow == Flow::differentiable ? y : clone(graph.registers[at].detach());
  });
  replaced.backward();
  demand_same(gradients_of(replaced.inputs), gradients_of(graph.inputs), "given as values");
}

// An exception from a formula or from a hook, of a result or of a leaf.
void exceptions(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto arrives = reached(p);
  const bool from_hook = a.random.chance(0.4);
  auto places = a.reached_steps();
  for (std::size_t at = 0; from_hook && at < inputs.size(); ++at)
    if (arrives[at])
      places.push_back(at);
  const std::size_t thrower = places[a.random.below(places.size())];
  struct Thrown {};
  bool armed = true;
  const Graph graph = a.run(inputs, [&](std::size_t at, const Tensor& y) {
    if (at != thrower || from_hook)
      return y;
    return record(
        "throwing", {y}, [](std::span<const Tensor> in) { return in[0]; },
        [&armed](Context& ctx) {
          ctx.add(0, ctx.gradient());
          if (armed)
            throw Thrown();
        });
  });
  std::vector<Tensor> filled = inputs;  // and results that keep their gradients
  for (const std::size_t at : a.reached_steps())
    if (a.random.chance(0.5)) {
      filled.push_back(graph.registers[at]);
      filled.back().retain_grad();
    }
  const auto expected = a.expected_gradients();
  const bool has_gradients = a.random.chance(0.5);
  if (has_gradients) {
    armed = false;
    graph.backward({.retain_graph = true});
    armed = true;
  }
  if (Tensor y = graph.registers[thrower]; from_hook)
    y.register_hook([&armed](const Tensor&) {
      if (armed)
        throw Thrown();
      return Tensor();
    });
  const auto demand_thrown = [&](const std::function<void()>& call) {
    const auto before = gradients_of(filled);
    demand(throws<Thrown>(call), "the exception does not arrive");
    demand_same(gradients_of(filled), before, "a backward that threw changed");
    demand_mode();
  };
  demand_thrown([&] { graph.backward({.retain_graph = true}); });
  std::vector<std::size_t> behind = {thrower};
  if (!from_hook)
    behind = p.steps[thrower - p.inputs.size()].in;
  for (const std::size_t at : behind)
    if (arrives[at])
      demand_thrown([&] { graph.grad({graph.registers[at]}, {.retain_graph = true}); });
  armed = false;
  graph.backward({.retain_graph = true});
  a.compare_all(inputs, expected, has_gradients ? 2 : 1, "tried again");

  // without retain_graph a part of the graph is freed: an error, or a right gradient if none of it
  // is needed
  armed = true;
  demand_thrown([&] { graph.backward(); });
  armed = false;
  const auto before = gradients_of(filled);
  if (throws<GraphError>([&] { graph.backward(); }))
    demand_same(gradients_of(filled), before, "a backward through a freed part changed");
  else
    a.compare_all(inputs, expected, has_gradients ? 3 : 2, "tried again");
  demand_mode();
}

void roots_and_unused(Attack& a) {
  const Program& p = a.program;
  auto inputs = tensors(p);
  const Graph graph = a.run(inputs);
  const auto arrives = reached(p);
  std::vector<Tensor> ys = graph.roots, vs = graph.cotangents;
  // one after the other they add up to all together
  for (std::size_t k = 0; k < ys.size(); ++k)
    xgrad::backward({ys[k]}, {.grad_outputs = {vs[k]}, .retain_graph = true});
  a.compare_all(inputs, a.expected_gradients(), 1, "one root after the other");
  // without allow_unused, an unreached input is an error
  const auto before = gradients_of(inputs);
  Tensor stranger = ones({2}, DType::float64).requires_grad_();
  inputs.push_back(stranger);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      continue;
    const bool thrown = throws<GraphError>(
        [&] { xgrad::grad(ys, {inputs[i]}, {.grad_outputs = vs, .retain_graph = true}); });
    demand(thrown == (i >= p.inputs.size() || !arrives[i]), "allow_unused for " + name_of(i));
  }
  demand(!graph.grad({stranger}, {.retain_graph = true})[0].defined(), "a gradient from nowhere");
  inputs.pop_back();
  // a root without a graph is an error in any position
  const auto place = static_cast<std::ptrdiff_t>(a.random.below(ys.size() + 1));
  ys.insert(ys.begin() + place, ones({2}, DType::float64));
  vs.insert(vs.begin() + place, ones({2}, DType::float64));
  demand(throws<GraphError>([&] { xgrad::backward(ys, {.grad_outputs = vs}); }),
         "a constant root does not throw");
  demand_same(gradients_of(inputs), before, "grad(), or a backward that threw, changed");
}

void second_order(Attack& a) {
  const Program& p = a.program;
  const Graph graph = a.run(tensors(p));
  const auto leaves = leaves_of(graph.inputs);
  std::vector<Tensor> first;
  if (a.random.chance(0.5)) {
    first = graph.grad(leaves, {.create_graph = true});
  } else {
    graph.backward({.create_graph = true});
    for (const Tensor& x : leaves)
      first.push_back(x.grad());
  }
  a.watch.graphs_of(first);
  std::vector<Doubles> direction;
  std::vector<std::size_t> at;  // of each leaf
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    direction.emplace_back(graph.inputs[i].numel());
    if (!p.inputs[i].requires_grad)
      continue;
    at.push_back(i);
    for (double& d : direction[i])
      d = a.random.uniform(-1, 1);
  }
  std::vector<Tensor> gs, ws;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    if (!first[k].defined())
      continue;
    a.compare(first[k], reference_gradient(p, at[k]), "gradient under create_graph");
    if (first[k].requires_grad()) {
      gs.push_back(first[k]);
      ws.push_back(tensor_of(first[k].shape(), direction[at[k]]));
    }
  }
  std::vector<Tensor> second(leaves.size());
  if (!gs.empty())
    second = xgrad::grad(gs, leaves, {.grad_outputs = ws, .allow_unused = true});
  for (std::size_t k = 0; k < leaves.size(); ++k)
    a.compare(second[k].defined() ? second[k] : zeros_like(leaves[k]),
              reference_second(p, at[k], direction), "second derivative in " + name_of(at[k]));
}

void threads(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto expected = a.expected_gradients();
  // A few steps here, a few on another thread.
  std::vector<Tensor> registers = inputs;
  for (std::size_t at = 0; at < p.steps.size();) {
    const std::size_t end = std::min(p.steps.size(), at + 1 + a.random.below(6));
    const auto work = [&] {
      for (; at < end; ++at)
        registers.push_back(run_step(p.steps[at], registers));
    };
    if (a.random.chance(0.5))
      std::thread(work).join();
    else
      work();
  }
  a.watch.graphs_of(registers);
  const Graph graph(p, inputs, registers);
  graph.backward({.retain_graph = true});
  a.compare_all(inputs, expected, 1, "built in turns");

  // two graphs at the same time on the same leaves, joined
  std::vector<Tensor> left, right;
  std::thread thread([&] { left = run(p, inputs); });
  right = run(p, inputs);
  thread.join();
  Tensor sum_of_all = zeros({}, DType::float64);
  for (const auto* side : {&left, &right}) {
    a.watch.graphs_of(*side);
    const Graph of_side(p, inputs, *side);
    for (std::size_t k = 0; k < of_side.roots.size(); ++k)
      sum_of_all += sum(of_side.roots[k] * of_side.cotangents[k]);
  }
  sum_of_all.backward();
  a.compare_all(inputs, expected, 3, "built at the same time");

  // two threads differentiate the same graph
  const auto leaves = leaves_of(inputs);
  std::vector<Tensor> here, there;
  std::thread other([&] { there = graph.grad(leaves, {.retain_graph = true}); });
  here = graph.grad(leaves, {.retain_graph = true});
  other.join();
  demand_same(here, there, "two threads");
  graph.backward();  // frees each node after its only turn: a second one would throw
  a.compare_all(inputs, expected, 4, "built in turns, freed");
}

void hooks(Attack& a) {
  Program p = a.program;
  const Graph graph = a.run(tensors(p));
  struct Call {
    std::size_t times = 0;
    Tensor gradient;
  };
  std::map<std::size_t, Call> calls;
  const auto steps = a.reached_steps();
  for (std::size_t k = 1 + a.random.below(3); k > 0; --k) {
    const std::size_t at = steps[a.random.below(steps.size())];
    Step& step = p.steps[at - p.inputs.size()];
    if (calls.contains(at))
      continue;
    Call& call = calls[at];
    const double scale = a.random.chance(0.3) ? 1 : a.random.uniform(-2, 2);
    step.gradient_scale = scale;
    Tensor y = graph.registers[at];
    y.retain_grad();
    y.remove_hook(y.register_hook([](const Tensor& g) { return g * 1000.0; }));
    y.register_hook([&call, scale](const Tensor& g) {
      ++call.times;
      call.gradient = g;
      return scale == 1 ? Tensor() : g * scale;
    });
  }
  graph.backward();
  a.compare_all(graph.inputs, Attack{p, a.random}.expected_gradients(), 1, "with hooks");
  for (const auto& [at, call] : calls) {
    demand(call.times == 1, "hook of " + name_of(at) + " was not called once");
    const Doubles after = reference_gradient(p, at);
    const double scale = p.steps[at - p.inputs.size()].gradient_scale;
    a.compare(call.gradient, times(1 / scale, after), "what the hook of " + name_of(at) + " got");
    a.compare(graph.registers[at].grad(), after, "grad of " + name_of(at));
  }
}

}  // namespace

const std::vector<Property>& properties() {
  static const std::vector<Property> all = {
      {"gradients", right_gradients, 0.03},
      {"updates between forward and backward", updates_between, 0.03},
      {"retain_graph and repeated backward", repeated_backward, 0},
      {"NoGrad and detach", constant_parts, 0.3},
      {"exceptions from a backward", exceptions, 0.03},
      {"several roots, unused inputs", roots_and_unused, 0.1},
      {"second order", second_order, 0.05},
      {"threads", threads, 0.03},
      {"hooks", hooks, 0.03},
  };
  return all;
}

Outcome attempt(const Property& property, const Random& random, const Program& program) {
  Watch watch;
  try {
    Attack attack{program, random};
    property.holds(attack);
    watch = attack.watch;
    Outcome outcome{{}, attack.worst_error, watch.nodes()};
    if (watch.alive() > 0)
      outcome.violation = std::to_string(watch.alive()) + " nodes and values are never freed";
    return outcome;
  } catch (const std::exception& error) {
    return {error.what(), 0, 0};
  }
}

}  // namespace xgrad::testing
