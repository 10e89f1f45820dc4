#include "random_graph/properties.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/optim/sgd.hpp>

namespace xgrad::testing {
namespace {

constexpr double tolerance = 1e-12;  // of the largest magnitude, or of 1

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void demand(bool condition, const std::string& what) {
  if (!condition)
    throw Violation(what);
}

std::string name_of(std::size_t at) { return "r" + std::to_string(at); }

// Weak pointers to all nodes of the graphs behind some Tensors.
class Watch {
 public:
  void graphs_of(const std::vector<Tensor>& ys) {
    std::vector<std::shared_ptr<Node>> found;
    std::set<const Node*> seen{nullptr};
    const auto discover = [&](const std::shared_ptr<Node>& node) {
      if (seen.insert(node.get()).second)
        found.push_back(node);
    };
    for (const Tensor& y : ys)
      if (y.defined()) {
        discover(y.impl().node);
        values_.push_back(y.impl().value);
      }
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::shared_ptr<Node> node = found[i];  // found grows
      std::ranges::for_each(node->inputs, discover);
      nodes_.push_back(node);
    }
  }
  std::size_t nodes() const { return nodes_.size(); }
  std::size_t alive() const {
    const auto is_alive = [](const auto& pointer) { return !pointer.expired(); };
    return static_cast<std::size_t>(std::ranges::count_if(nodes_, is_alive) +
                                    std::ranges::count_if(values_, is_alive));
  }

 private:
  std::vector<std::weak_ptr<Node>> nodes_;
  std::vector<std::weak_ptr<const Value>> values_;
};

}  // namespace

struct Attack {
  const Program& program;
  Random random;
  Watch watch = {};
  double worst_error = 0;

  // A gradient, or none where none should have arrived.
  void compare(const Tensor& x, const Numbers& expected, bool arrives, const std::string& what) {
    demand(x.defined() == arrives, what + (arrives ? " is undefined" : " should be undefined"));
    if (arrives)
      compare(x, expected, what);
  }
  void compare(const Tensor& x, const Numbers& expected, const std::string& what) {
    demand(x.numel() == expected.size(), what + " has shape " + xgrad::to_string(x.shape()));
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
};

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined())
    return a.defined() == b.defined();
  return a.shape() == b.shape() &&
         std::memcmp(a.data<double>(), b.data<double>(), a.numel() * sizeof(double)) == 0;
}

// The gradients of leaves as they are now: copies, which later runs do not touch.
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

Numbers times(double factor, Numbers xs) {
  for (double& x : xs)
    x *= factor;
  return xs;
}

// The roots of a run, and their cotangents.
struct Roots {
  std::vector<Tensor> ys, vs;
  Roots(const Program& program, const std::vector<Tensor>& registers) {
    for (const Root& root : program.roots) {
      ys.push_back(registers[root.at]);
      auto v = empty_array<double>(ys.back().shape());
      std::copy(root.cotangent.begin(), root.cotangent.end(), v.begin());
      vs.push_back(Tensor(std::move(v)));
    }
  }
  void backward(GradOptions options = {}) const {
    options.grad_outputs = vs;
    xgrad::backward(ys, options);
  }
  std::vector<Tensor> grad(const std::vector<Tensor>& inputs, GradOptions options = {}) const {
    options.grad_outputs = vs;
    options.allow_unused = true;
    return xgrad::grad(ys, inputs, options);
  }
};

// The gradient of every input, by plain loops; empty for those that get none.
std::vector<Numbers> expected_gradients(const Program& program) {
  const auto arrives = reached(program);
  std::vector<Numbers> result(program.inputs.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (arrives[i])
      result[i] = reference_gradient(program, i);
  return result;
}

void compare_all(Attack& a, const std::vector<Tensor>& gradients,
                 const std::vector<Numbers>& expected, double factor, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    a.compare(gradients[i], times(factor, expected[i]), !expected[i].empty(),
              what + ": gradient of " + name_of(i));
}

template <class T, class F>
std::vector<T> chosen(const std::vector<T>& from, const F& f) {
  std::vector<T> result;
  std::ranges::copy_if(from, std::back_inserter(result), f);
  return result;
}

// The results of steps that a gradient arrives at; never empty.
std::vector<std::size_t> reached_steps(const Program& program) {
  const auto arrives = reached(program);
  std::vector<std::size_t> result;
  for (std::size_t at = program.inputs.size(); at < arrives.size(); ++at)
    if (arrives[at])
      result.push_back(at);
  return result;
}

// ---- the properties

void right_gradients(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  const auto planes = reference_values(p);
  for (std::size_t at = 0; at < registers.size(); ++at) {
    demand(registers[at].shape() == planes[at].shape, "shape of " + name_of(at));
    a.compare(registers[at], planes[at].values, "value of " + name_of(at));
    demand(registers[at].requires_grad() == differentiable(p)[at],
           "requires_grad of " + name_of(at));
  }
  const auto arrives = reached(p);
  std::vector<std::size_t> kept;
  for (const std::size_t at : reached_steps(p))
    if (a.random.chance(0.3)) {
      Tensor y = registers[at];
      y.retain_grad();
      kept.push_back(at);
    }
  const auto expected = expected_gradients(p);
  const Roots roots(p, registers);
  roots.backward({.retain_graph = true});
  compare_all(a, gradients_of(inputs), expected, 1, "backward()");
  for (const std::size_t at : kept)
    a.compare(registers[at].grad(), reference_gradient(p, at), "grad of " + name_of(at));

  // grad() gives the same, for results of steps too, and fills in nothing
  const auto before = gradients_of(inputs);
  std::vector<std::size_t> wanted;
  std::vector<Tensor> xs;
  for (std::size_t at = 0; at < registers.size(); ++at)
    if (differentiable(p)[at] && a.random.chance(at < inputs.size() ? 0.8 : 0.2)) {
      wanted.push_back(at);
      xs.push_back(registers[at]);
    }
  const auto g = roots.grad(xs);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    a.compare(g[k], arrives[wanted[k]] ? reference_gradient(p, wanted[k]) : Numbers{},
              arrives[wanted[k]], "grad(): " + name_of(wanted[k]));
  demand_same(gradients_of(inputs), before, "grad() changed");
}

void updates_between(Attack& a) {
  const Program& p = a.program;
  auto inputs = tensors(p);
  const auto first = run(p, inputs), second = run(p, inputs);
  a.watch.graphs_of(first);
  a.watch.graphs_of(second);
  const auto expected = expected_gradients(p);
  Roots(p, first).backward();
  compare_all(a, gradients_of(inputs), expected, 1, "before the update");
  optim::SGD optimizer(chosen(inputs, [](const Tensor& x) { return x.requires_grad(); }),
                       {.lr = 0.1, .momentum = 0.9});
  optimizer.step();
  for (Tensor& x : inputs)
    if (!x.requires_grad())
      x.update([](auto& array) { array += 0.3f; });
  for (Tensor& x : inputs)
    x.zero_grad();
  Roots(p, second).backward();
  compare_all(a, gradients_of(inputs), expected, 1, "after the update");

  Program updated = p;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double* const now = inputs[i].data<double>();
    updated.inputs[i].values.assign(now, now + inputs[i].numel());
    inputs[i].zero_grad();
  }
  Roots(p, run(p, inputs)).backward();
  compare_all(a, gradients_of(inputs), expected_gradients(updated), 1, "of the new values");
}

void repeated_backward(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  const auto expected = expected_gradients(p);
  const Roots roots(p, registers);
  const auto retained = 1 + a.random.below(3);
  for (std::size_t k = 1; k <= retained; ++k) {
    roots.backward({.retain_graph = true});
    compare_all(a, gradients_of(inputs), expected, static_cast<double>(k), "retained");
  }
  roots.backward();
  const auto before = gradients_of(inputs);
  compare_all(a, before, expected, static_cast<double>(retained + 1), "the last");
  bool thrown = false;
  try {
    roots.backward({.retain_graph = true});
  } catch (const GraphError&) {
    thrown = true;
  }
  demand(thrown, "backward through a freed graph does not throw");
  demand_same(gradients_of(inputs), before, "a backward that threw changed");
  demand_mode();
}

void constant_parts(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  const auto may = differentiable(p);
  for (std::size_t at = 0; at < registers.size(); ++at)
    demand(registers[at].requires_grad() == may[at], "requires_grad of " + name_of(at));
  Roots(p, registers).backward({.retain_graph = true});
  compare_all(a, gradients_of(inputs), expected_gradients(p), 1, "with constant parts");
  // the same where the constants are given as such, by their values
  auto again = tensors(p);
  const auto values = registers;
  const auto replaced = run(p, again, [&](std::size_t at, const Tensor& y) {
    const Step& step = p.steps[at - p.inputs.size()];
    return step.flow == Flow::differentiable ? y : clone(values[at].detach());
  });
  a.watch.graphs_of(replaced);
  Roots(p, replaced).backward();
  demand_same(gradients_of(again), gradients_of(inputs), "given as values");
}

// An exception from a formula or from a hook, of a result or of a leaf.
void exceptions(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto arrives = reached(p);
  const bool from_hook = a.random.chance(0.4);
  auto places = reached_steps(p);
  for (std::size_t at = 0; from_hook && at < inputs.size(); ++at)
    if (arrives[at])
      places.push_back(at);
  const std::size_t thrower = places[a.random.below(places.size())];
  struct Thrown {};
  bool armed = true;
  const auto registers = run(p, inputs, [&](std::size_t at, const Tensor& y) {
    if (at != thrower || from_hook)
      return y;
    return record(
        "throwing", {y}, [](std::span<const Tensor> in) { return in[0]; },
        [&armed](Sink& sink) {
          sink.add(0, sink.gradient());
          if (armed)
            throw Thrown();
        });
  });
  a.watch.graphs_of(registers);
  std::vector<Tensor> filled = inputs;  // and results that keep their gradients
  for (const std::size_t at : reached_steps(p))
    if (a.random.chance(0.5)) {
      filled.push_back(registers[at]);
      filled.back().retain_grad();
    }
  const Roots roots(p, registers);
  const auto expected = expected_gradients(p);
  const bool has_gradients = a.random.chance(0.5);
  if (has_gradients) {
    armed = false;
    roots.backward({.retain_graph = true});
    armed = true;
  }
  if (Tensor y = registers[thrower]; from_hook)
    y.register_hook([&armed](const Tensor&) {
      if (armed)
        throw Thrown();
      return Tensor();
    });
  const auto demand_thrown = [&](const std::function<void()>& call) {
    const auto before = gradients_of(filled);
    bool thrown = false;
    try {
      call();
    } catch (const Thrown&) {
      thrown = true;
    }
    demand(thrown, "the exception does not arrive");
    demand_same(gradients_of(filled), before, "a backward that threw changed");
    demand_mode();
  };
  demand_thrown([&] { roots.backward({.retain_graph = true}); });
  std::vector<std::size_t> behind = {thrower};
  if (!from_hook)
    behind = p.steps[thrower - p.inputs.size()].in;
  for (const std::size_t at : behind)
    if (arrives[at])
      demand_thrown([&] { roots.grad({registers[at]}, {.retain_graph = true}); });
  armed = false;
  roots.backward({.retain_graph = true});
  compare_all(a, gradients_of(inputs), expected, has_gradients ? 2 : 1, "tried again");

  // without retain_graph a part of the graph is gone: an error, or a right gradient if none of it
  // is needed
  armed = true;
  demand_thrown([&] { roots.backward(); });
  armed = false;
  const auto before = gradients_of(filled);
  bool freed = false;
  try {
    roots.backward();
  } catch (const GraphError&) {
    freed = true;
  }
  if (freed)
    demand_same(gradients_of(filled), before, "a backward through a freed part changed");
  else
    compare_all(a, gradients_of(inputs), expected, has_gradients ? 3 : 2, "tried again");
  demand_mode();
}

void roots_and_unused(Attack& a) {
  const Program& p = a.program;
  auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  const auto arrives = reached(p);
  const auto expected = expected_gradients(p);
  const Roots roots(p, registers);
  // one after the other they add up to all together
  for (std::size_t k = 0; k < roots.ys.size(); ++k)
    xgrad::backward({roots.ys[k]}, {.grad_outputs = {roots.vs[k]}, .retain_graph = true});
  compare_all(a, gradients_of(inputs), expected, 1, "one root after the other");
  // without allow_unused, an input that is not reached is an error
  const auto before = gradients_of(inputs);
  Tensor stranger = ones({2}, DType::float64).requires_grad_();
  inputs.push_back(stranger);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      continue;
    bool thrown = false;
    try {
      xgrad::grad(roots.ys, {inputs[i]}, {.grad_outputs = roots.vs, .retain_graph = true});
    } catch (const GraphError&) {
      thrown = true;
    }
    demand(thrown == (i >= p.inputs.size() || !arrives[i]), "allow_unused for " + name_of(i));
  }
  demand(!roots.grad({stranger}, {.retain_graph = true})[0].defined(), "a gradient from nowhere");
  inputs.pop_back();
  // a root without a graph is an error, wherever it stands
  std::vector<Tensor> ys = roots.ys, vs = roots.vs;
  const auto place = static_cast<std::ptrdiff_t>(a.random.below(ys.size() + 1));
  ys.insert(ys.begin() + place, ones({2}, DType::float64));
  vs.insert(vs.begin() + place, ones({2}, DType::float64));
  bool thrown = false;
  try {
    xgrad::backward(ys, {.grad_outputs = vs});
  } catch (const GraphError&) {
    thrown = true;
  }
  demand(thrown, "a constant root does not throw");
  demand_same(gradients_of(inputs), before, "grad(), or a backward that threw, changed");
}

void second_order(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  const Roots roots(p, registers);
  std::vector<Tensor> leaves, gs, ws;
  std::vector<Numbers> direction;
  for (const Tensor& x : inputs) {
    direction.emplace_back(x.numel());
    if (x.requires_grad())
      leaves.push_back(x);
  }
  std::vector<Tensor> first;
  if (a.random.chance(0.5)) {
    first = roots.grad(leaves, {.create_graph = true});
  } else {
    roots.backward({.create_graph = true});
    for (const Tensor& x : leaves)
      first.push_back(x.grad());
  }
  a.watch.graphs_of(first);
  std::size_t k = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      continue;
    auto w = empty_array<double>(inputs[i].shape());
    for (std::size_t e = 0; e < w.size(); ++e)
      w.data()[e] = direction[i][e] = a.random.uniform(-1, 1);
    if (first[k].defined()) {
      a.compare(first[k], reference_gradient(p, i), "gradient under create_graph");
      if (first[k].requires_grad()) {
        gs.push_back(first[k]);
        ws.push_back(Tensor(std::move(w)));
      }
    }
    ++k;
  }
  std::vector<Tensor> second(leaves.size());
  if (!gs.empty())
    second = xgrad::grad(gs, leaves, {.grad_outputs = ws, .allow_unused = true});
  k = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].requires_grad()) {
      const Tensor& h = second[k++];
      a.compare(h.defined() ? h : zeros_like(inputs[i]), reference_second(p, i, direction),
                "second derivative in " + name_of(i));
    }
}

void threads(Attack& a) {
  const Program& p = a.program;
  const auto inputs = tensors(p);
  const auto expected = expected_gradients(p);
  // every step on a thread of its own choice
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
  const Roots roots(p, registers);
  roots.backward({.retain_graph = true});
  compare_all(a, gradients_of(inputs), expected, 1, "built in turns");

  // two graphs at the same time on the same leaves, joined
  std::vector<Tensor> left, right;
  std::thread thread([&] { left = run(p, inputs); });
  right = run(p, inputs);
  thread.join();
  std::vector<Tensor> ys, vs;
  for (const auto* side : {&left, &right}) {
    a.watch.graphs_of(*side);
    const Roots of_side(p, *side);
    ys.insert(ys.end(), of_side.ys.begin(), of_side.ys.end());
    vs.insert(vs.end(), of_side.vs.begin(), of_side.vs.end());
  }
  Tensor sum_of_all;
  for (std::size_t k = 0; k < ys.size(); ++k) {
    const Tensor term = sum(ys[k] * vs[k]);
    sum_of_all = k == 0 ? term : sum_of_all + term;
  }
  sum_of_all.backward();
  compare_all(a, gradients_of(inputs), expected, 3, "built at the same time");

  // two threads differentiate the same graph
  const auto leaves = chosen(inputs, [](const Tensor& x) { return x.requires_grad(); });
  std::vector<Tensor> here, there;
  std::thread other([&] { there = roots.grad(leaves, {.retain_graph = true}); });
  here = roots.grad(leaves, {.retain_graph = true});
  other.join();
  demand_same(here, there, "two threads");
  roots.backward();  // frees each node after its only turn: a second one would throw
  compare_all(a, gradients_of(inputs), expected, 4, "built in turns, freed");
}

void hooks(Attack& a) {
  Program p = a.program;
  const auto inputs = tensors(p);
  const auto registers = run(p, inputs);
  a.watch.graphs_of(registers);
  struct Call {
    std::size_t times = 0;
    Tensor gradient;
  };
  std::map<std::size_t, Call> calls;
  const auto steps = reached_steps(p);
  for (std::size_t k = 1 + a.random.below(3); k > 0; --k) {
    const std::size_t at = steps[a.random.below(steps.size())];
    Step& step = p.steps[at - p.inputs.size()];
    if (calls.contains(at))
      continue;
    Call& call = calls[at];
    const double scale = a.random.chance(0.3) ? 1 : a.random.uniform(-2, 2);
    step.gradient_scale = scale;
    Tensor y = registers[at];
    y.retain_grad();
    y.remove_hook(y.register_hook([](const Tensor& g) { return g * 1000.0; }));
    y.register_hook([&call, scale](const Tensor& g) {
      ++call.times;
      call.gradient = g;
      return scale == 1 ? Tensor() : g * scale;
    });
  }
  Roots(p, registers).backward();
  compare_all(a, gradients_of(inputs), expected_gradients(p), 1, "with hooks");
  for (const auto& [at, call] : calls) {
    demand(call.times == 1, "hook of " + name_of(at) + " was not called once");
    const Numbers after = reference_gradient(p, at);
    const double scale = p.steps[at - p.inputs.size()].gradient_scale;
    a.compare(call.gradient, times(1 / scale, after), "what the hook of " + name_of(at) + " got");
    a.compare(registers[at].grad(), after, "grad of " + name_of(at));
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

Outcome attempt(const Property& property, std::uint64_t seed, const Program& program) {
  Watch watch;
  try {
    Attack attack{program, Random(seed + 1)};
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
