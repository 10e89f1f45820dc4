#include <xgrad/autograd/gradcheck.hpp>

#include <cmath>
#include <type_traits>
#include <xgrad/autograd/check.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {
namespace {

// An input that is checked, and its position among the inputs.
struct Leaf {
  std::size_t position;
  Tensor x;
};

// The function under check: computes its outputs from the inputs' present values, with graphs if
// asked to.  Where an output's graph does not reach an input, the gradient counts as zero.
using Call = std::function<std::vector<Tensor>(bool with_graph)>;

// Sets one element of a leaf, and sets it back in the end, whatever happens.
class Nudge {
 public:
  Nudge(const Tensor& x, std::size_t at) : x_(x), at_(at), before_(x.data<double>()[at]) {}
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;
  ~Nudge() { set(before_); }
  double before() const { return before_; }
  void set(double value) {
    x_.update([&](auto& a) {
      using T = typename std::remove_reference_t<decltype(a)>::value_type;
      a.data()[at_] = static_cast<T>(value);
    });
  }

 private:
  Tensor x_;
  std::size_t at_;
  double before_;
};

std::vector<Leaf> leaves_of(const char* name, const std::vector<Tensor>& inputs) {
  std::vector<Leaf> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    if (!x.defined())
      continue;
    if (x.dtype() != DType::float64)
      fail<DTypeError>(
          "{}: input {} is {}, too coarse for finite differences: convert it with "
          "to(x, DType::float64), a model with to(model, DType::float64)",
          name, i, to_string(x.dtype()));
    if (!x.requires_grad())
      continue;
    if (!x.is_leaf())
      fail<GraphError>("{}: input {} is the result of '{}': pass x.detach().requires_grad_()", name,
                       i, x.impl().node->op);
    leaves.push_back({i, x});
  }
  check<ValueError>(!leaves.empty(), "{}: no input requires a gradient: nothing to check", name);
  return leaves;
}

Tensor checked_output(const char* name, Tensor y) {
  if (y.dtype() != DType::float64)
    fail<DTypeError>("{}: the function returned float32: something in it is not float64", name);
  return y;
}

// Magnitudes in [0.5, 1.5), so that no output is weighted away, with random signs.
Tensor random_cotangent(const Shape& shape, Generator& generator) {
  auto v = empty_array<double>(shape);
  for (double& e : v) {
    e = 0.5 + generator.uniform_double();
    if (generator.uniform_double() < 0.5)
      e = -e;
  }
  return Tensor(std::move(v));
}

std::vector<Tensor> tensors(const std::vector<Leaf>& leaves) {
  std::vector<Tensor> xs;
  for (const Leaf& leaf : leaves)
    xs.push_back(leaf.x);
  return xs;
}

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& cotangents, bool create_graph) {
  GradOptions options{.create_graph = create_graph, .allow_unused = true};
  std::vector<Tensor> with_graph;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad()) {
      with_graph.push_back(outputs[i]);
      options.grad_outputs.push_back(cotangents[i]);
    }
  std::vector<Tensor> result(inputs.size());
  if (!with_graph.empty())
    result = grad(with_graph, inputs, options);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!result[i].defined())
      result[i] = zeros_like(inputs[i]);
  return result;
}

std::vector<Tensor> values(const Call& call) {
  std::vector<Tensor> outputs = call(false);
  for (Tensor& y : outputs)
    y = y.detach();
  return outputs;
}

// d sum(outputs * cotangents) / d one element of a leaf.  Outputs are subtracted before they are
// summed: the sum's rounding errors would drown a difference this small.
double numeric_derivative(const char* name, const Call& call, const std::vector<Tensor>& cotangents,
                          const Leaf& leaf, std::size_t at, double eps) {
  Nudge nudge(leaf.x, at);
  const double high = nudge.before() + eps, low = nudge.before() - eps;
  const double step = std::isfinite(nudge.before()) ? high - low : 2 * eps;  // a mask's -inf stays
  nudge.set(high);
  const std::vector<Tensor> above = values(call);
  nudge.set(low);
  const std::vector<Tensor> below = values(call);
  double sum = 0;
  for (std::size_t k = 0; k < cotangents.size(); ++k) {
    const Tensor &v = cotangents[k], &a = above.at(k), &b = below.at(k);
    if (a.shape() != v.shape() || b.shape() != v.shape())
      fail<ShapeError>("{}: the function's output changes its shape: {}, {}, {}", name,
                       to_string(v.shape()), to_string(a.shape()), to_string(b.shape()));
    for (std::size_t j = 0; j < v.numel(); ++j)
      sum += v.data<double>()[j] * (a.data<double>()[j] - b.data<double>()[j]);
  }
  return sum / step;
}

std::vector<std::size_t> position(std::size_t flat, const Shape& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d])
    index[d] = flat % shape[d];
  return index;
}

std::string place(const GradcheckReport& r) {
  return fmt::format("input {} at ({})", r.input, fmt::join(r.index, ", "));
}

class Comparison {
 public:
  Comparison(const char* name, const GradcheckOptions& options) : name_(name), options_(options) {}

  void add(const Leaf& leaf, std::size_t at, double analytic, double numeric) {
    const double error = std::abs(analytic - numeric);
    const bool finite = std::isfinite(analytic) && std::isfinite(numeric);
    const bool agrees = finite && error <= options_.atol + options_.rtol * std::abs(numeric);
    const double size = finite ? error / std::max(1.0, std::abs(numeric)) : INFINITY;
    // Of those that disagree, if there are any, the worst is told about.
    const bool first = report_.checked == 0 || (report_.ok && !agrees);
    if (first || (agrees == report_.ok && size > worst_)) {
      worst_ = size;
      report_.input = leaf.position;
      report_.index = position(at, leaf.x.shape());
      report_.analytic = analytic;
      report_.numeric = numeric;
    }
    report_.worst_error = std::max(report_.worst_error, size);
    report_.ok = report_.ok && agrees;
    disagree_ += agrees ? 0 : 1;
    ++report_.checked;
  }

  // The gradient must be a function of the inputs, or a difference means nothing.
  void not_repeatable(const Leaf& leaf, std::size_t at, double first, double second) {
    report_.ok = false;
    report_.worst_error = std::abs(first - second);
    report_.input = leaf.position;
    report_.index = position(at, leaf.x.shape());
    report_.analytic = first;
    report_.numeric = second;
    report_.message = fmt::format(
        "{}: {}: two calls gave the gradients {:.17g} and {:.17g}: the function must give the same "
        "result every time (does it draw random numbers?)",
        name_, place(report_), first, second);
  }

  GradcheckReport finish() {
    if (!report_.message.empty())
      return report_;
    const GradcheckReport& r = report_;
    if (r.ok)
      report_.message = fmt::format("{}: all {} elements agree; largest error {:.2g}", name_,
                                    r.checked, r.worst_error);
    else
      report_.message = fmt::format(
          "{}: {}: analytic {:.9g}, numeric {:.9g}; {} of {} elements disagree, this one most",
          name_, place(r), r.analytic, r.numeric, disagree_, r.checked);
    return report_;
  }

 private:
  const char* name_;
  const GradcheckOptions& options_;
  GradcheckReport report_;
  double worst_ = 0;
  std::size_t disagree_ = 0;
};

GradcheckReport compare(const char* name, const Call& call, const std::vector<Leaf>& leaves,
                        Generator& generator, const GradcheckOptions& options) {
  const std::vector<Tensor> xs = tensors(leaves);
  std::vector<Tensor> cotangents;
  for (const Tensor& y : values(call))
    cotangents.push_back(random_cotangent(y.shape(), generator));
  const auto analytic = gradients(call(true), xs, cotangents, false);
  const auto again = gradients(call(true), xs, cotangents, false);
  Comparison comparison(name, options);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    for (std::size_t at = 0; at < xs[i].numel(); ++at) {
      const double a = analytic[i].data<double>()[at], b = again[i].data<double>()[at];
      if (a != b && !(std::isnan(a) && std::isnan(b))) {
        comparison.not_repeatable(leaves[i], at, a, b);
        return comparison.finish();
      }
      comparison.add(leaves[i], at, a,
                     numeric_derivative(name, call, cotangents, leaves[i], at, options.eps));
    }
  return comparison.finish();
}

}  // namespace

GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const auto leaves = leaves_of("gradcheck", inputs);
  Generator generator(options.seed);
  const Call call = [&](bool) { return std::vector{checked_output("gradcheck", f(inputs))}; };
  return compare("gradcheck", call, leaves, generator, options);
}

GradcheckReport gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                              const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  auto leaves = leaves_of("gradgradcheck", inputs);
  const auto xs = tensors(leaves);
  Generator generator(options.seed);
  Tensor v = random_cotangent(checked_output("gradgradcheck", f(inputs)).shape(), generator);
  v.requires_grad_();
  leaves.push_back({inputs.size(), v});
  // Differences are taken of the ordinary gradient: so the gradient under create_graph is checked
  // against it, where an op has one of its own.
  const Call call = [&](bool with_graph) { return gradients({f(inputs)}, xs, {v}, with_graph); };
  return compare("gradgradcheck", call, leaves, generator, options);
}

}  // namespace xgrad
