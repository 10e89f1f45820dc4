#include <xgrad/autograd/check/gradcheck_function.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad::detail {

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

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, const GradOptions& options) {
  GradOptions some = options;
  some.allow_unused = true;
  some.grad_outputs.clear();
  std::vector<Tensor> with_graph;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad()) {
      with_graph.push_back(outputs[i]);
      some.grad_outputs.push_back(cotangents[i]);
    }
  if (with_graph.empty())
    return std::vector<Tensor>(inputs.size());
  try {
    return grad(with_graph, inputs, some);
  } catch (const ShapeError& error) {
    throw BackwardError(GradcheckReason::wrong_shape, error.what());
  } catch (const DTypeError& error) {
    throw BackwardError(GradcheckReason::wrong_dtype, error.what());
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

// ---- moving a leaf ----

Nudge::Nudge(const Tensor& x) : x_(x), before_(x.impl().value) {}

Nudge::~Nudge() { x_.set_value(before_); }

void Nudge::set(std::size_t at, double value) { writable_data<double>(x_)[at] = value; }

void Nudge::move(const Tensor& direction, double scale) {
  const double* const u = direction.data<double>();
  double* const x = writable_data<double>(x_);
  for (std::size_t i = 0; i < x_.numel(); ++i)
    x[i] = before(i) + scale * u[i];
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

Differences CheckedFunction::differences(const CheckedLeaf& leaf, std::size_t at,
                                         std::size_t output, std::size_t j, double h) const {
  Nudge nudge(leaf.x);
  const double x = nudge.before(at), high = x + h, low = x - h;
  const auto value = [&](double moved) {
    nudge.set(at, moved);
    return values().at(output).data<double>()[j];
  };
  const double y = value(x), above = value(high), below = value(low);
  return {difference(above, below) / (high - low), difference(above, y) / (high - x),
          difference(y, below) / (x - low)};
}

// Whether f gives the same without recording graphs: it does not if it takes gradients itself.
static bool works_without_graph(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const auto with = f(inputs);
  try {
    const NoGrad no_grad;
    const auto without = f(inputs);
    return std::ranges::equal(with, without, [](const Tensor& a, const Tensor& b) {
      return a.defined() && b.defined() && a.shape() == b.shape() && a.dtype() == b.dtype() &&
             a.dtype() == DType::float64 &&
             (a.numel() == 0 ||
              std::memcmp(a.data<double>(), b.data<double>(), a.numel() * sizeof(double)) == 0);
    });
  } catch (const GraphError&) {
    return false;
  }
}

CheckedFunction checked_function(const char* caller, const TensorFunction& f,
                                 const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options) {
  auto leaves = checked_leaves(caller, inputs, options);
  // Asked when first needed: a function that changes its inputs is to be caught before.
  const auto call = [f, inputs, no_grad = std::optional<bool>()](bool with_graph) mutable {
    if (with_graph)
      return f(inputs);
    if (!no_grad.has_value())
      no_grad = works_without_graph(f, inputs);
    const ModeGuard mode({!*no_grad, Mode::current().observer});
    return f(inputs);
  };
  return {caller, call, std::move(leaves), {}};
}

std::vector<double> directional(const CheckedFunction& f, const CheckedLeaf& leaf, const Tensor& u,
                                const std::vector<Tensor>& v, double h,
                                std::vector<double>& moved) {
  Nudge nudge(leaf.x);
  const std::size_t n = leaf.x.numel();
  nudge.move(u, h);
  moved.assign(leaf.x.data<double>(), leaf.x.data<double>() + n);
  const std::vector<Tensor> above = f.values();
  nudge.move(u, -h);
  for (std::size_t i = 0; i < n; ++i)
    moved[i] = difference(moved[i], leaf.x.data<double>()[i]) / (2 * h);
  const std::vector<Tensor> below = f.values();
  std::vector<Shape> shapes;
  for (const Tensor& cotangent : v)
    shapes.push_back(cotangent.shape());
  f.check_shapes(above, shapes);
  f.check_shapes(below, shapes);
  std::vector<double> result;
  for (std::size_t k = 0; k < v.size(); ++k) {
    double sum = 0;  // outputs are subtracted before they are summed: the sum's rounding errors
                     // would drown a difference this small
    for (std::size_t j = 0; j < v[k].numel(); ++j)
      sum += v[k].data<double>()[j] *
             difference(above[k].data<double>()[j], below[k].data<double>()[j]);
    result.push_back(sum / (2 * h));
  }
  return result;
}

}  // namespace xgrad::detail
