#include <xgrad/autograd/check/functional.hpp>

#include <algorithm>
#include <xgrad/autograd/check/probe.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

void detail::no_function() { throw ValueError("TensorFunction: there is no function to call"); }

void detail::wrong_number_of_inputs(std::size_t takes, std::size_t given) {
  fail<ValueError>("a function of {} Tensor{} was given {}", takes, takes == 1 ? "" : "s", given);
}

Tensor TensorFunction::single(const char* caller, const Inputs& inputs) const {
  const std::vector<Tensor> results = call_(inputs);
  check<ValueError>(results.size() == 1, "{}: the function has {} results, not one", caller,
                    results.size());
  return results[0];
}
namespace {

using Tensors = std::vector<Tensor>;

// The same value with a node of its own, so that a Tensor that is given twice counts as two inputs.
Tensor view_of(const Tensor& x) {
  return record(
      "view", {x}, [](std::span<const Tensor> in) { return in[0]; },
      [](Context& ctx) { ctx.add(0, ctx.gradient()); });
}

Tensors detached(Tensors xs) {
  for (Tensor& x : xs)
    x = x.detach();
  return xs;
}

// A call of the function whose derivatives are wanted: while it lives, graphs are recorded.
class Call {
 public:
  Call(const char* name, const TensorFunction& func, const Tensors& inputs, bool create_graph)
      : name_(name), create_graph_(create_graph) {
    check<ValueError>(!inputs.empty(), "{}: no inputs", name);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check<ValueError>(inputs[i].defined(), "{}: input {} is undefined", name, i);
      const bool connected = create_graph && inputs[i].requires_grad();
      xs_.push_back(connected ? view_of(inputs[i]) : inputs[i].detach().requires_grad_());
    }
    ys_ = func(xs_);
    check<ValueError>(!ys_.empty(), "{}: the function returned nothing", name);
    for (std::size_t i = 0; i < ys_.size(); ++i)
      check<ValueError>(ys_[i].defined(), "{}: the function's output {} is undefined", name, i);
  }

  const Tensors& inputs() const { return xs_; }
  const Tensors& outputs() const { return ys_; }
  Tensors result() const { return finished(ys_); }
  /// With a graph only under create_graph.
  Tensors finished(Tensors xs) const { return create_graph_ ? xs : detached(std::move(xs)); }

  /// v, after a check that it has the shapes and dtypes of `like`, which errors call `what`.
  Tensors vectors(const Tensors& v, const Tensors& like, const char* what) const {
    if (v.empty() && like.size() == 1 && like[0].numel() == 1)
      return {ones_like(like[0])};
    check<ValueError>(v.size() == like.size(), "{}: v has {} Tensors for {} {}s", name_, v.size(),
                      like.size(), what);
    for (std::size_t i = 0; i < v.size(); ++i) {
      check<ValueError>(v[i].defined(), "{}: v[{}] is undefined", name_, i);
      if (v[i].shape() != like[i].shape())
        fail<ShapeError>("{}: v[{}] has shape {} but {} {} has shape {}", name_, i,
                         to_string(v[i].shape()), what, i, to_string(like[i].shape()));
      if (v[i].dtype() != like[i].dtype())
        fail<DTypeError>("{}: v[{}] is {} but {} {} is {}", name_, i, to_string(v[i].dtype()), what,
                         i, to_string(like[i].dtype()));
    }
    return create_graph_ ? v : detached(v);
  }

  /// The only output.
  const Tensor& single_output() const {
    check<ValueError>(ys_.size() == 1,
                      "{}: the function returned {} Tensors: only one has a Hessian", name_,
                      ys_.size());
    if (ys_[0].numel() != 1)
      fail<ShapeError>(
          "{}: the function returned shape {}: only a Tensor of one element has a Hessian", name_,
          to_string(ys_[0].shape()));
    return ys_[0];
  }

 private:
  const ModeGuard enabled_{Mode::current().with_grad(true)};
  const char* name_;
  bool create_graph_;
  Tensors xs_, ys_;
};

// grad(), with zeros for what does not depend on an input, or on any.
Tensors gradients_or_zeros(const Tensors& outputs, const Tensors& inputs, const Tensors& v,
                           const GradOptions& options) {
  Tensors result = detail::partial_gradients(outputs, inputs, v, options);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!result[i].defined())
      result[i] = zeros_like(inputs[i]);
  return result;
}

Tensors gradient_of_single(const Call& call) {
  const Tensor& y = call.single_output();
  return gradients_or_zeros({y}, call.inputs(), {ones_like(y)}, {.create_graph = true});
}

// d y / d every input.
Tensors rows(const Tensor& y, const Tensors& xs, bool create_graph) {
  std::vector<Tensors> rows_of(xs.size());
  for (Size at = 0; at < y.numel(); ++at) {
    const Tensors row = gradients_or_zeros({y}, xs, {detail::one_hot(y, at)},
                                           {.create_graph = create_graph, .retain_graph = true});
    for (std::size_t j = 0; j < xs.size(); ++j)
      rows_of[j].push_back(row[j]);
  }
  Tensors result;
  for (std::size_t j = 0; j < xs.size(); ++j) {
    Dims sizes = y.shape();
    const Dims more = xs[j].shape();
    sizes.insert(sizes.end(), more.begin(), more.end());
    result.push_back(rows_of[j].empty() ? zeros(sizes, xs[j].dtype())
                                        : reshape(stack(rows_of[j]), sizes));
  }
  return result;
}

TensorFunction of_several(const std::function<Tensor(const Tensor&)>& func) {
  check_function(func, "functional");
  return [&func](const Tensors& in) { return func(in[0]); };
}
Tensors list_of(const Tensor& v) { return v.defined() ? Tensors{v} : Tensors{}; }

}  // namespace

std::pair<Tensors, Tensors> vjp(const TensorFunction& func, const Tensors& inputs, const Tensors& v,
                                bool create_graph) {
  const Call call("vjp", func, inputs, create_graph);
  const Tensors u = call.vectors(v, call.outputs(), "output");
  return {call.result(),
          gradients_or_zeros(call.outputs(), call.inputs(), u, {.create_graph = create_graph})};
}

std::pair<Tensors, Tensors> jvp(const TensorFunction& func, const Tensors& inputs, const Tensors& v,
                                bool create_graph) {
  const Call call("jvp", func, inputs, create_graph);
  const Tensors along = call.vectors(v, call.inputs(), "input");
  Tensors u;
  for (const Tensor& y : call.outputs())
    u.push_back(zeros_like(y).requires_grad_());
  const Tensors g = gradients_or_zeros(call.outputs(), call.inputs(), u, {.create_graph = true});
  return {call.result(), gradients_or_zeros(g, u, along, {.create_graph = create_graph})};
}

std::pair<Tensor, Tensors> hvp(const TensorFunction& func, const Tensors& inputs, const Tensors& v,
                               bool create_graph) {
  const Call call("hvp", func, inputs, create_graph);
  const Tensors along = call.vectors(v, call.inputs(), "input");
  const Tensors g = gradient_of_single(call);
  return {call.result()[0],
          gradients_or_zeros(g, call.inputs(), along, {.create_graph = create_graph})};
}

std::vector<Tensors> jacobian(const TensorFunction& func, const Tensors& inputs,
                              bool create_graph) {
  const Call call("jacobian", func, inputs, create_graph);
  std::vector<Tensors> J;
  for (const Tensor& y : call.outputs())
    J.push_back(call.finished(rows(y, call.inputs(), create_graph)));
  return J;
}

std::vector<Tensors> hessian(const TensorFunction& func, const Tensors& inputs, bool create_graph) {
  const Call call("hessian", func, inputs, create_graph);
  std::vector<Tensors> H;
  for (const Tensor& g : gradient_of_single(call))
    H.push_back(call.finished(rows(g, call.inputs(), create_graph)));
  return H;
}

std::pair<Tensor, Tensor> vjp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v, bool create_graph) {
  const auto [y, product] = vjp(of_several(func), Tensors{input}, list_of(v), create_graph);
  return {y[0], product[0]};
}
std::pair<Tensor, Tensor> jvp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v, bool create_graph) {
  const auto [y, product] = jvp(of_several(func), Tensors{input}, list_of(v), create_graph);
  return {y[0], product[0]};
}
std::pair<Tensor, Tensor> hvp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v, bool create_graph) {
  const auto [y, product] = hvp(of_several(func), Tensors{input}, list_of(v), create_graph);
  return {y, product[0]};
}
Tensor jacobian(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                bool create_graph) {
  return jacobian(of_several(func), Tensors{input}, create_graph)[0][0];
}
Tensor hessian(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
               bool create_graph) {
  return hessian(of_several(func), Tensors{input}, create_graph)[0][0];
}

}  // namespace xgrad
