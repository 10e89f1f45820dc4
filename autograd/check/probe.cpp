#include "probe.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include "../fail.hpp"
#include "../ops.hpp"
#include "../trace.hpp"

namespace xgrad::detail {

// ---- points and lines ----

Leaf::Leaf(Doubles its_values) : values(std::move(its_values)) {
  const double size = typical_size(values);
  typical = size > 0 ? size : 1;
  for (const double x : values)
    sizes.push_back(std::abs(x) <= std::max(mask_size, 1e5 * typical) ? size_among(x, typical) : 0);
}

void Leaf::even_out() {
  for (double& size : sizes)
    size = size > 0 ? std::max(size, typical) : 0;
}

Direction Probe::axis(std::size_t leaf, std::size_t element) const {
  const Leaf& of = leaves[leaf];
  Direction d{Point(leaves.size()), of.values[element], size_among(of.values[element], of.typical)};
  d.by[leaf].resize(of.values.size());
  d.by[leaf][element] = 1;
  return d;
}

Direction Probe::along(std::size_t leaf, Elements some, std::span<const double> signs_of) const {
  const Leaf& of = leaves[leaf];
  Direction d{Point(leaves.size())};
  Doubles& u = d.by[leaf];
  u.resize(of.values.size());
  for (const std::size_t i : some) {
    std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15U;  // splitmix64
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    // Between 0.1 and 4.7, as unequal as exponentially distributed numbers.
    const double weight = 0.1 - std::log(1 - 0.99 * static_cast<double>(z >> 11U) * 0x1p-53);
    const bool known = !signs_of.empty() && signs_of[i] != 0;
    u[i] = (known ? signs_of[i] > 0 : z % 2 == 0) ? weight : -weight;
    u[i] *= of.sizes[i];
  }
  return d;
}

Point Probe::moved(const Direction& direction, const LinePoint& point) const {
  Point values(leaves.size());
  Generator generator(point.seed);
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Leaf& leaf = leaves[k];
    const Doubles& by = direction.by[k];
    if (point.jitter == 0 && (by.empty() || point.t == 0))
      continue;
    values[k] = leaf.values;
    for (std::size_t i = 0; i < leaf.values.size(); ++i) {
      double& x = values[k][i];
      if (point.jitter > 0)
        x += point.jitter * leaf.sizes[i] * (2 * generator.uniform_double() - 1);
      if (!by.empty() && by[i] != 0)
        x += point.t * by[i];
    }
  }
  return values;
}

Line Probe::line(const Direction& direction) const {
  return {.at =
              [this, direction](const LinePoint& point) {
                return at(moved(direction, point), point.h / direction.size);
              },
          .x = direction.x,
          .size = direction.size,
          .center = center,
          .scales = scales,
          .order = order,
          .noise = noise * direction.size,
          .unit = unit};
}

Probe slope_along(const Probe& probe, Weights weights, const Point& w, double rounds) {
  const auto slope = [&probe, weights, &w](Point values, double step) {
    Point up = std::move(values), down(up.size());
    for (std::size_t k = 0; k < up.size(); ++k) {
      if (up[k].empty())
        up[k] = probe.leaves[k].values;
      down[k] = up[k];
      for (std::size_t i = 0; i < up[k].size(); ++i) {
        up[k][i] += step * w[k][i];
        down[k][i] -= step * w[k][i];
      }
    }
    const Doubles above = probe.at(std::move(up), 0), below = probe.at(std::move(down), 0);
    double sum = 0;
    for (const auto& [j, weight] : weights)
      sum += weight * difference(above.at(j), below.at(j));
    return Doubles{sum / (2 * step)};
  };
  return {.leaves = probe.leaves, .at = slope, .order = 2, .noise = probe.unit * rounds};
}

double dot(std::span<const double> g, const Doubles& u) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    sum += u[i] == 0 ? 0 : g[i] * u[i];
  return sum;
}

void add_sizes(double& sum, std::span<const double> a, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double size = std::abs(a[i] * b[i]); std::isfinite(size))
      sum += size;
}

Doubles or_zeros(const Tensor& gradient, std::size_t n) {
  return gradient.defined() ? elements(gradient) : Doubles(n);
}

// ---- the check ----

double Finding::error() const {
  const double apart = std::abs(analytic - numeric);
  return std::isfinite(apart) ? apart / std::max(1.0, std::abs(numeric)) : INFINITY;
}

void Findings::add(const Finding& found) {
  ++checked;
  if (found.verdict == Verdict::unchecked) {
    infinite =
        infinite || found.reason == GradcheckReason::not_finite || !std::isfinite(found.analytic);
    steep = steep || found.reason == GradcheckReason::truncation ||
            found.reason == GradcheckReason::rounding;
    if (unchecked++ == 0)
      because = found.because();
    return;
  }
  const bool wrong = found.verdict == Verdict::wrong;
  const bool first = wrong ? disagree == 0 : checked - unchecked == 1;
  if (first || (wrong == (disagree > 0) && found.error() > worst.error() * (1 + alike)))
    worst = found;
  worst_error = std::max(worst_error, found.error());
  disagree += wrong ? 1 : 0;
}

Finding check_claims(const Probe& probe, std::size_t leaf, std::span<const Claim> claims,
                     const CheckOptions& options, const std::function<void(const Finding&)>& tell) {
  // The leaf moves once for all claims.
  const auto judge = [&](Elements at, const auto& tell_one) {
    const bool one = at.size() == 1;
    const auto signs = options.by_signs ? claims[0].gradient : std::span<const double>();
    const Direction direction = one ? probe.axis(leaf, at[0]) : probe.along(leaf, at, signs);
    Differences along(probe.line(direction));
    for (std::size_t c = 0; c < claims.size(); ++c) {
      const auto& [weights, gradient] = claims[c];
      const double analytic = one ? gradient[at[0]] : dot(gradient, direction.by[leaf]);
      const auto limits = options.tolerance(c, at, direction);
      tell_one(
          {limits ? along.judge(weights, analytic, *limits) : no_slope, leaf, c, at[0], analytic});
    }
  };
  const Elements among = options.among;
  const std::size_t n = among.empty() ? probe.leaves[leaf].values.size() : among.size();
  const std::size_t most = std::min(n, options.one_by_one);
  std::vector<std::size_t> spread, others;
  for (std::size_t i = 0; i < n; ++i)
    (spread.size() < most && i == spread.size() * n / most ? spread : others)
        .push_back(among.empty() ? i : among[i]);
  for (const std::size_t& i : spread)
    judge({&i, 1}, tell);
  Finding whole;
  // Lines to be judged, the next one at the back.
  std::vector<Elements> next(others.empty() ? 0 : 1, others);
  for (std::size_t suspects = 0; !next.empty() && suspects < options.most_suspects;) {
    const Elements at = next.back();
    next.pop_back();
    Finding found;
    judge(at, [&](const Finding& the_only) { found = the_only; });
    if (at.size() == others.size())
      whole = found;
    if (found.verdict == Verdict::right ||
        (whole.verdict == Verdict::unchecked && !options.halve_unchecked))
      continue;
    if (at.size() == 1) {
      ++suspects;
      tell(found);
    } else {
      next.push_back(at.subspan(at.size() / 2));
      next.push_back(at.first(at.size() / 2));
    }
  }
  return whole;
}

Finding check_recorded(Probe probe, Weights weights, const RecordedGradient& of,
                       CheckOptions options, Findings& found,
                       const std::function<void(const Finding&)>& tell) {
  double rounds = 0, total = 0, all = 0;
  for (const std::size_t i : options.among)
    rounds += std::abs(of.gradient[i] * probe.leaves[0].values[i]);
  for (const auto& [j, w] : weights) {
    total += std::abs(w * probe.center.at(j));
    all += std::abs(w);
  }
  probe.scales.assign(probe.center.size(), all > 0 ? rounds / all : 0);
  const double largest = scale_of(of.gradient);
  const bool wide = probe.unit == Probe().unit;
  bool sharp = of.exact;
  options.tolerance = [&](std::size_t, Elements at, const Direction& direction) {
    const bool one = at.size() == 1;
    const double analytic = std::abs(dot(of.gradient, direction.by[0]));
    const double of_values = total / direction.size;
    double rounding = of.slack;
    for (const std::size_t i : at)
      rounding += std::abs(direction.by[0][i]) * of.rounding[i];
    auto some = wide ? Tolerance{} : Tolerance{.eps = 1e-3, .atol = 1e-5, .rtol = 3e-2};
    some = some.scaled(analytic, total, direction.size);
    if (sharp && !one) {
      some.rtol /= 10 * static_cast<double>(at.size());
      some.atol = std::min(some.atol, some.rtol * analytic);
    }
    some.atol += rounding + (of.exact ? 4e-15 * largest : 1e-6 * of_values);
    if (one && !of.exact)
      some.atol += 1e-5 * largest;
    rounding += (wide ? 1e-9 : 1e-4) * of_values;
    if (!one || rounding > 1e-4 * largest)
      some.rounding = rounding;
    return some;
  };
  const Claim claim{{weights.begin(), weights.end()}, of.gradient};
  const auto ask = [&] {
    return check_claims(probe, 0, {&claim, 1}, options, [&](const Finding& one) {
      found.add(one);
      tell(one);
    });
  };
  Finding line = ask();
  if (sharp && line.verdict != Verdict::right) {
    sharp = false;
    const Findings suspects = std::exchange(found, {});
    line = ask();
    if (line.verdict == Verdict::right)
      found = suspects;
  }
  return line;
}

// ---- gradients ----

std::vector<Tensor> partial_gradients(const std::vector<Tensor>& outputs,
                                      const std::vector<Tensor>& inputs,
                                      const std::vector<Tensor>& cotangents,
                                      const GradOptions& options) {
  GradOptions some = options;
  some.allow_unused = true;
  some.grad_outputs.clear();
  std::vector<Tensor> with_graph;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad()) {
      with_graph.push_back(outputs[i]);
      some.grad_outputs.push_back(cotangents[i]);
    }
  return with_graph.empty() ? std::vector<Tensor>(inputs.size()) : grad(with_graph, inputs, some);
}

namespace {

// Records the node whose formula runs.
struct Running final : PassesOn {
  std::string op;
  const OnGradient& tell;

  explicit Running(const OnGradient& on_gradient) : tell(on_gradient) {}
  void on_gradient(const Node& node, const Tensor& gradient) override {
    op = node.op;
    if (tell)
      tell(node, gradient);
    PassesOn::on_gradient(node, gradient);
  }
};

}  // namespace

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, const GradOptions& options,
                              const OnGradient& on_gradient) {
  Running running(on_gradient);
  const Mode outer = Mode::current();
  const ModeGuard mode({outer.grad_enabled, &running, outer.decompose, outer.autocast});
  try {
    return partial_gradients(outputs, inputs, cotangents, options);
  } catch (const ShapeError& error) {
    throw BackwardError(GradcheckReason::wrong_shape, error.what());
  } catch (const DTypeError& error) {
    throw BackwardError(GradcheckReason::wrong_dtype, error.what());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw BackwardError(GradcheckReason::unknown, fmt::format("{}: {}", running.op, error.what()));
  }
}

Tensor random_signed(const Shape& shape, Generator& generator) {
  auto v = empty_array<double>(shape);
  for (double& e : v) {
    e = 0.5 + generator.uniform_double();
    if (generator.uniform_double() < 0.5)
      e = -e;
  }
  return Tensor(std::move(v));
}

Tensor one_hot(const Tensor& y, std::size_t at) {
  Doubles v(y.numel());
  v[at] = 1;
  return like(y, std::move(v));
}

Tensor like(const Tensor& x, Doubles values) {
  if (x.dtype() == DType::float64)
    return Tensor(std::move(values), Dims(x.shape()));
  return Tensor(std::vector<float>(values.begin(), values.end()), Dims(x.shape()));
}

// ---- functions of Tensors ----

Moved::Moved(const std::vector<CheckedLeaf>& leaves, Point values) {
  std::vector<std::pair<Tensor, Tensor>> to;
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (!values[k].empty()) {
      to.emplace_back(leaves[k].x, like(leaves[k].x, std::move(values[k])));
      before_.emplace_back(leaves[k].x, leaves[k].x.identity().value);
    }
  for (auto& [x, value] : to)
    x.set_value(value.identity().value);
}

Moved::~Moved() {
  for (auto& [x, value] : before_)
    x.set_value(value);
}

std::string CheckedFunction::output_name(std::size_t i) const {
  return i < output_names_.size() ? output_names_[i] : fmt::format("output {}", i);
}

std::vector<Tensor> CheckedFunction::checked(std::vector<Tensor> outputs) const {
  check<ValueError>(!outputs.empty(), "{}: the function returned no Tensor", caller_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined())
      fail<ValueError>("{}: {} is undefined: the function must compute it", caller_,
                       output_name(i));
    if (outputs[i].dtype() != DType::float64)
      fail<DTypeError>(
          "{}: the function returned float32 as {}, from float64 inputs: something in it "
          "converts, or is float32 and not among the inputs",
          caller_, output_name(i));
  }
  return outputs;
}

std::vector<Tensor> CheckedFunction::values() const {
  std::vector<Tensor> outputs = checked(call_(false));
  for (Tensor& y : outputs)
    y = y.detach();  // it may be an input, which will be moved
  return outputs;
}

void CheckedFunction::check_shapes(const std::vector<Tensor>& outputs,
                                   const std::vector<Shape>& shapes) const {
  if (outputs.size() != shapes.size())
    fail<ShapeError>("{}: the function returned {} outputs, and then {}", caller_, shapes.size(),
                     outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].shape() != shapes[i])
      fail<ShapeError>("{}: {} changes its shape: {}, {}", caller_, output_name(i),
                       to_string(shapes[i]), to_string(outputs[i].shape()));
}

Probe CheckedFunction::probe(const std::vector<Shape>& shapes, Doubles scales) const {
  Probe probe{.at = [this, shapes](Point values, double) {
    const Moved moved(leaves_, std::move(values));
    const std::vector<Tensor> outputs = this->values();
    check_shapes(outputs, shapes);
    Doubles all;
    for (const Tensor& y : outputs)
      all.insert(all.end(), y.data<double>(), y.data<double>() + y.numel());
    return all;
  }};
  for (const CheckedLeaf& leaf : leaves_)
    probe.leaves.emplace_back(elements(leaf.x));
  probe.center = probe.at(Point(leaves_.size()), 0);
  probe.scales = std::move(scales);
  return probe;
}

static std::vector<CheckedLeaf> checked_leaves(const char* caller,
                                               const std::vector<Tensor>& inputs,
                                               const GradcheckOptions& options) {
  const auto& names = options.names;
  if (!names.empty() && names.size() != inputs.size())
    fail<ValueError>("{}: {} names for {} inputs", caller, names.size(), inputs.size());
  if (!(options.eps > 0 && std::isfinite(options.eps)))
    fail<ValueError>("{}: eps is {}; it must be positive", caller, options.eps);
  if (!(options.atol >= 0 && options.rtol >= 0))
    fail<ValueError>("{}: atol is {} and rtol is {}; neither may be negative", caller, options.atol,
                     options.rtol);
  std::vector<CheckedLeaf> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    if (!x.defined())
      continue;
    const std::string name = names.empty() ? fmt::format("input {}", i) : names[i];
    if (x.dtype() != DType::float64)
      fail<DTypeError>(
          "{}: {} is {}, too coarse for finite differences: convert it with "
          "x.to(DType::float64), a model with to(model, DType::float64)",
          caller, name, to_string(x.dtype()));
    if (!x.requires_grad())
      continue;
    if (!x.is_leaf())
      fail<GraphError>("{}: {} is the result of '{}': pass x.detach().requires_grad_()", caller,
                       name, x.identity().node->op);
    for (const CheckedLeaf& other : leaves)
      if (other.x.handle() == x.handle())
        fail<ValueError>("{}: {} and {} are one Tensor: pass it once", caller, other.name, name);
    leaves.push_back({i, name, x});
  }
  check<ValueError>(!leaves.empty(),
                    "{}: no input requires a gradient: nothing to check; call requires_grad_() on "
                    "those to be checked",
                    caller);
  return leaves;
}

// Whether f gives the same without recording graphs: not if it takes gradients itself.
static bool works_without_graph(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const auto with = f(inputs);
  try {
    const NoGrad no_grad;
    const auto without = f(inputs);
    return std::ranges::equal(with, without, [](const Tensor& a, const Tensor& b) {
      return a.defined() && b.defined() && same_bits(a, b);
    });
  } catch (const GraphError&) {
    return false;
  }
}

// For each output, the places where it is infinite because of a constant, as an additive mask of
// -inf: there it has no derivative.  None if there are no such places.
static std::vector<std::optional<Mask>> infinite_by_constants(const TensorFunction& f,
                                                              const std::vector<Tensor>& inputs,
                                                              const std::vector<Tensor>& outputs) {
  std::vector<std::optional<Mask>> found(outputs.size());
  if (std::ranges::none_of(outputs,
                           [](const Tensor& y) { return y.defined() && any(infinite(y)); }))
    return found;
  Trace trace;
  const std::vector<Tensor> traced = f(inputs);
  const ModeGuard plain({false, nullptr});
  std::map<const Value*, Tensor> again;  // each result, recomputed from finite numbers
  const auto finite = [&](const Tensor& x) {
    const auto made = x.defined() ? again.find(x.identity().value.get()) : again.end();
    if (made != again.end())
      return made->second;
    return x.defined() && x.requires_grad() ? x.detach() : made_finite(x);
  };
  try {
    for (const Trace::Event& event : trace.events()) {
      std::vector<Tensor> in;
      std::ranges::transform(event.inputs, std::back_inserter(in), finite);
      again.insert_or_assign(event.output.identity().value.get(), event.forward(in));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].defined())
        found[i] = infinite(traced.at(i)) & ~infinite(finite(traced[i]));
  } catch (const Error&) {  // an op rejects such inputs
  }
  return found;
}

CheckedFunction checked_function(const char* caller, const TensorFunction& f,
                                 const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options) {
  auto leaves = checked_leaves(caller, inputs, options);
  // Evaluated on first use, so that a function that changes its inputs is detected before.
  const auto call = [f, inputs, no_grad = std::optional<bool>(),
                     infinite = std::vector<std::optional<Mask>>()](bool with_graph) mutable {
    if (!with_graph && !no_grad.has_value())
      no_grad = works_without_graph(f, inputs);
    const ModeGuard mode(Mode::current().with(&Mode::grad_enabled, with_graph || !*no_grad));
    std::vector<Tensor> outputs = f(inputs);
    if (infinite.empty())
      infinite = infinite_by_constants(f, inputs, outputs);
    for (std::size_t i = 0; i < std::min(outputs.size(), infinite.size()); ++i)
      if (infinite[i])
        outputs[i] = where(*infinite[i], 0, outputs[i]);
    return outputs;
  };
  return {caller, call, std::move(leaves)};
}

CheckedFunction gradient_of(const CheckedFunction& f, std::vector<Tensor>& inputs,
                            GradcheckOptions& options) {
  auto leaves = f.leaves();
  std::vector<std::string> output_names;
  for (const CheckedLeaf& leaf : leaves)
    output_names.push_back("gradient of " + leaf.name);
  std::vector<Tensor> cotangents;
  Generator generator(options.seed);
  const auto outputs = f.with_graph();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor v = random_signed(outputs[i].shape(), generator).requires_grad_();
    const std::string name = outputs.size() == 1 ? "cotangent" : fmt::format("cotangent {}", i);
    leaves.push_back({inputs.size(), name, v});
    cotangents.push_back(v);
    inputs.push_back(v);
    if (!options.names.empty())
      options.names.push_back(name);
  }
  // Differences use the ordinary gradient, so the gradient under create_graph is compared with it
  // where an op has separate formulas.
  const auto call = [f, cotangents](bool with_graph) {
    auto result = gradients(f.with_graph(), f.tensors(), cotangents, {.create_graph = with_graph});
    for (std::size_t k = 0; k < result.size(); ++k)
      if (!result[k].defined())
        result[k] = zeros_like(f.tensors()[k]);
    return result;
  };
  return {"gradgradcheck", call, std::move(leaves), std::move(output_names)};
}

Doubles really_moved(const Tensor& x, const Doubles& u, double h) {
  Doubles moved;
  for (std::size_t a = 0; a < u.size(); ++a) {
    const double at = x.data<double>()[a], by = h * u[a];
    moved.push_back(by == 0 ? 0 : ((at + by) - (at - by)) / (2 * h));
  }
  return moved;
}

}  // namespace xgrad::detail
