#include <xgrad/autograd/check/gradcheck_function.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

std::string input_name(const GradcheckOptions& options, std::size_t i) {
  return options.names.empty() ? fmt::format("input {}", i) : options.names[i];
}

std::vector<CheckedLeaf> checked_leaves(const char* caller, const std::vector<Tensor>& inputs,
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
    const std::string name = input_name(options, i);
    if (x.dtype() != DType::float64)
      fail<DTypeError>(
          "{}: {} is {}, too coarse for finite differences: convert it with "
          "x.to(DType::float64), a model with to(model, DType::float64)",
          caller, name, to_string(x.dtype()));
    if (!x.requires_grad())
      continue;
    if (!x.is_leaf())
      fail<GraphError>("{}: {} is the result of '{}': pass x.detach().requires_grad_()", caller,
                       name, x.impl().node->op);
    for (const CheckedLeaf& other : leaves)
      if (other.x.handle() == x.handle())
        fail<ValueError>("{}: {} and {} are the same Tensor", caller, other.name, name);
    leaves.push_back({i, name, x});
  }
  check<ValueError>(!leaves.empty(),
                    "{}: no input requires a gradient: nothing to check; call requires_grad_() on "
                    "those to be checked",
                    caller);
  return leaves;
}

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

// Remembers whose formula runs.
struct Running final : Observer {
  std::string op;
  const OnGradient& tell;
  Observer* const to = Mode::current().observer;

  explicit Running(const OnGradient& on_gradient) : tell(on_gradient) {}
  void on_forward(std::string_view name, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override {
    if (to != nullptr)
      to->on_forward(name, inputs, output, forward);
  }
  void on_gradient(const Node& node, const Tensor& gradient) override {
    op = node.op;
    if (tell)
      tell(node, gradient);
    if (to != nullptr)
      to->on_gradient(node, gradient);
  }
  void on_backward(const Node& node, std::size_t input, const Tensor& gradient) override {
    if (to != nullptr)
      to->on_backward(node, input, gradient);
  }
};

}  // namespace

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, const GradOptions& options,
                              const OnGradient& on_gradient) {
  Running running(on_gradient);
  const ModeGuard mode({Mode::current().grad_enabled, &running, Mode::current().decompose});
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

Tensor random_direction(const Tensor& x, Generator& generator) {
  auto u = empty_array<double>(x.shape());
  double squares = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    u.data()[i] = std::isfinite(x.data<double>()[i]) ? generator.normal() : 0;
    squares += u.data()[i] * u.data()[i];
  }
  if (squares > 0)
    for (double& e : u)
      e /= std::sqrt(squares);
  return Tensor(std::move(u));
}

double dot(const Tensor& g, const std::vector<double>& u) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    sum += u[i] == 0 ? 0
                     : g.data<double>()[i] * u[i];  // not 0 * NaN: what did not move does not count
  return sum;
}

Tensor one_hot(const Tensor& y, std::size_t at) {
  return dispatch(y.dtype(), [&]<class T>() {
    auto v = empty_array<T>(y.shape());
    std::fill_n(v.data(), v.size(), T(0));
    v.data()[at] = 1;
    return Tensor(std::move(v));
  });
}

std::vector<Shape> shapes_of(const std::vector<Tensor>& xs) {
  std::vector<Shape> shapes;
  for (const Tensor& x : xs)
    shapes.push_back(x.shape());
  return shapes;
}

// ---- moving a leaf ----

Nudge::Nudge(const Tensor& x) : x_(x), before_(x.impl().value) {}

Nudge::~Nudge() { x_.set_value(before_); }

void Nudge::set(std::size_t at, double value) { writable_data<double>(x_)[at] = value; }

void Nudge::move(const Tensor& direction, double scale) {
  const double* const u = direction.data<double>();
  double* const x = writable_data<double>(x_);
  for (Size i = 0; i < x_.numel(); ++i)
    x[i] = before(i) + scale * u[i];
}

std::vector<std::unique_ptr<Nudge>> moved_away(const std::vector<CheckedLeaf>& leaves, double by,
                                               std::uint64_t seed) {
  std::vector<std::unique_ptr<Nudge>> moved;
  Generator generator(seed);
  for (const CheckedLeaf& leaf : leaves) {
    Nudge& nudge = *moved.emplace_back(std::make_unique<Nudge>(leaf.x));
    const double typical = typical_size(elements(leaf.x)), size = typical > 0 ? typical : 1;
    for (Size i = 0; i < leaf.x.numel(); ++i)
      nudge.set(i, nudge.before(i) + by * size * (2 * generator.uniform_double() - 1));
  }
  return moved;
}

// ---- calling the function ----

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
    y = y.detach();  // it may be an input itself, which is going to move
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

std::vector<double> CheckedFunction::moved(const CheckedLeaf& leaf, const LinePoint& point,
                                           const std::vector<Shape>& shapes,
                                           const std::function<void(Nudge&)>& move) const {
  std::vector<std::unique_ptr<Nudge>> away;
  if (point.away > 0)
    away = moved_away(leaves_, point.away, point.seed);
  Nudge nudge(leaf.x);
  move(nudge);
  return in_a_row(shapes);
}

std::vector<double> CheckedFunction::at_half(const std::vector<Shape>& shapes) const {
  std::vector<std::unique_ptr<Nudge>> moved;
  for (const CheckedLeaf& leaf : leaves_) {
    Nudge& nudge = *moved.emplace_back(std::make_unique<Nudge>(leaf.x));
    for (Size i = 0; i < leaf.x.numel(); ++i)
      nudge.set(i, 0.5);
  }
  try {
    return in_a_row(shapes);
  } catch (const Error&) {  // it refuses such inputs
    return {};
  }
}

std::vector<double> CheckedFunction::in_a_row(const std::vector<Shape>& shapes) const {
  const std::vector<Tensor> outputs = values();
  check_shapes(outputs, shapes);
  std::vector<double> all;
  for (const Tensor& y : outputs)
    all.insert(all.end(), y.data<double>(), y.data<double>() + y.numel());
  return all;
}

// Whether f gives the same without recording graphs: it does not if it takes gradients itself.
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

// For each output, where it is infinite because a constant is, as behind a mask of -inf that is
// added: there it has no derivative.  Empty where there is none.
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
  std::map<const Value*, Tensor> again;  // each result, as it is of finite numbers
  const auto finite = [&](const Tensor& x) {
    const auto made = x.defined() ? again.find(x.impl().value.get()) : again.end();
    if (made != again.end())
      return made->second;
    return x.defined() && x.requires_grad() ? x.detach() : made_finite(x);
  };
  try {
    for (const Trace::Event& event : trace.events()) {
      std::vector<Tensor> in;
      std::ranges::transform(event.inputs, std::back_inserter(in), finite);
      again.insert_or_assign(event.output.impl().value.get(), event.forward(in));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].defined())
        found[i] = infinite(traced.at(i)) & ~infinite(finite(traced[i]));
  } catch (const Error&) {  // an op refuses such inputs
  }
  return found;
}

CheckedFunction checked_function(const char* caller, const TensorFunction& f,
                                 const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options) {
  auto leaves = checked_leaves(caller, inputs, options);
  // Asked when first needed: a function that changes its inputs is to be caught before.
  const auto call = [f, inputs, no_grad = std::optional<bool>(),
                     left_out = std::vector<std::optional<Mask>>()](bool with_graph) mutable {
    if (!with_graph && !no_grad.has_value())
      no_grad = works_without_graph(f, inputs);
    const ModeGuard mode(Mode::current().with_grad(with_graph || !*no_grad));
    std::vector<Tensor> outputs = f(inputs);
    if (left_out.empty())
      left_out = infinite_by_constants(f, inputs, outputs);
    for (std::size_t i = 0; i < std::min(outputs.size(), left_out.size()); ++i)
      if (left_out[i])
        outputs[i] = where(*left_out[i], 0, outputs[i]);
    return outputs;
  };
  return {caller, call, std::move(leaves), {}};
}

std::vector<double> really_moved(const Tensor& x, const Tensor& u, double h) {
  std::vector<double> moved;
  for (Size a = 0; a < u.numel(); ++a) {
    const double at = x.data<double>()[a], by = h * u.data<double>()[a];
    moved.push_back(by == 0 ? 0 : ((at + by) - (at - by)) / (2 * h));
  }
  return moved;
}

}  // namespace xgrad::detail
