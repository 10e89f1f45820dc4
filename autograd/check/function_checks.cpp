#include "function_checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include "../engine.hpp"
#include "../fail.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "describe.hpp"
#include "probe.hpp"
#include "same_draws.hpp"

namespace xgrad {

namespace {

using detail::elements;

// ---- dependence of positions ----

// A rule for dependences along a dimension, and the words of its messages.
struct Rule {
  const char *caller, *position, *forbidden;
  bool (*may_see)(std::size_t t, std::size_t s);
};
constexpr Rule causal{"check_causal", "position", "a later one",
                      [](std::size_t t, std::size_t s) { return s <= t; }};
constexpr Rule batch{"check_batch_independence", "item", "another",
                     [](std::size_t t, std::size_t s) { return s == t; }};

// Finds the position of an element along a dimension.
struct Along {
  std::size_t steps, stride;
  Along(const Shape& shape, std::size_t dim)
      : steps(shape[dim]), stride(row_major_strides(shape)[dim]) {}
  std::size_t of(std::size_t flat) const { return stride == 0 ? 0 : flat / stride % steps; }
};

double normal_away_from_zero(Generator& generator) {
  const double v = generator.normal();
  return v + (v < 0 ? -0.5 : 0.5);
}

Tensor with(const Tensor& x, const std::function<double(std::size_t, double)>& change) {
  Tensor y = x.detach();
  dispatch(y.dtype(), [&]<class T>() {
    T* const data = detail::writable_data<T>(y);
    for (Size i = 0; i < y.numel(); ++i)
      data[i] = static_cast<T>(change(i, static_cast<double>(data[i])));
  });
  return y;
}

class Dependence {
 public:
  Dependence(const Rule& rule, const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
             std::int64_t dim, std::uint64_t seed, double atol)
      : rule_(rule),
        atol_(atol),
        f_(f),
        x_(x.detach().requires_grad_()),
        generator_(seed),
        y_(call(x_)),
        changes_(before_.changes()),
        in_(x.shape(), normalize_dim(dim, x.dim(), rule.caller)),
        out_(y_.shape(), normalize_dim(dim, y_.dim(), rule.caller)) {
    if (in_.steps != out_.steps)
      fail<ShapeError>("{}: x {} has {} {}s but the result {} has {}", rule.caller,
                       to_string(x.shape()), in_.steps, rule.position, to_string(y_.shape()),
                       out_.steps);
  }

  CausalReport run() {
    std::string why = changes_;
    if (why.empty())
      why = detail::two_results({y_}, {call(x_)});
    CausalReport report;
    if (!why.empty()) {
      report.ok = false;
      report.message = fmt::format("{}: {}", rule_.caller, why);
      return report;
    }
    std::optional<Leak> leak = gradient_leak();
    if (const auto value = value_leak(); value && (!leak || value->is_before(*leak)))
      leak = value;
    report.past_is_missing = missing_.has_value();
    if (!leak) {
      report.message = fmt::format(
          "{}: none of {} {}s sees {}{}", rule_.caller, in_.steps, rule_.position, rule_.forbidden,
          missing_ ? fmt::format("; but {} {} does not see {} {} either", rule_.position,
                                 missing_->first, rule_.position, missing_->second)
                   : "");
      return report;
    }
    report.ok = false;
    report.by_value = leak->by_value;
    report.output = leak->t;
    report.input = leak->s;
    report.leak = leak->size;
    report.message = fmt::format("{}: {} {} sees {} {}: {}", rule_.caller, rule_.position, leak->t,
                                 rule_.position, leak->s, leak->words);
    return report;
  }

 private:
  struct Leak {
    std::size_t t, s;
    bool by_value;
    double size;
    std::string words;
    bool is_before(const Leak& other) const { return t < other.t || (t == other.t && s < other.s); }
  };

  Tensor call(const Tensor& x) const {
    draws_.again();
    return f_(x);
  }

  std::vector<double> gradient(const std::vector<double>& cotangent) const {
    const Tensor v = with(y_, [&](std::size_t i, double) { return cotangent[i]; });
    const Tensor g =
        grad({y_}, {x_}, {.grad_outputs = {v}, .retain_graph = true, .allow_unused = true})[0];
    return g.defined() ? elements(g) : std::vector<double>(x_.numel());
  }

  std::optional<Leak> gradient_leak() {
    if (!y_.requires_grad())
      return std::nullopt;
    for (std::size_t t = 0; t < out_.steps; ++t) {
      std::vector<double> v(y_.numel());
      for (std::size_t i = 0; i < v.size(); ++i)
        if (out_.of(i) == t)
          v[i] = normal_away_from_zero(generator_);
      const auto g = gradient(v);
      std::vector<bool> sees(in_.steps);
      for (std::size_t i = 0; i < g.size(); ++i)
        if (!(std::abs(g[i]) <= atol_))
          sees[in_.of(i)] = true;
      for (std::size_t s = 0; s < in_.steps; ++s)
        if (sees[s] && !rule_.may_see(t, s))
          return described(t, s);
        else if (!sees[s] && rule_.may_see(t, s) && !missing_)
          missing_ = {t, s};
    }
    return std::nullopt;
  }

  // The first element of the Jacobian in this block that is not zero.
  Leak described(std::size_t t, std::size_t s) const {
    for (Size o = 0; o < y_.numel(); ++o) {
      if (out_.of(o) != t)
        continue;
      std::vector<double> v(y_.numel());
      v[o] = 1;
      const auto g = gradient(v);
      for (std::size_t i = 0; i < g.size(); ++i)
        if (in_.of(i) == s && !(std::abs(g[i]) <= atol_))
          return {t, s, false, g[i],
                  fmt::format("d out {} / d in {} = {:.6g}; it must be 0",
                              detail::place(o, y_.shape()), detail::place(i, x_.shape()), g[i])};
    }
    return {t, s, false, 0, "the gradient of some outputs together is not 0"};
  }

  std::optional<Leak> value_leak() {
    std::optional<Leak> first;
    const auto before = elements(y_);
    for (std::size_t s = 0; s < in_.steps; ++s) {
      const Tensor x = with(x_, [&](std::size_t i, double old) {
        return in_.of(i) == s ? old + normal_away_from_zero(generator_) : old;
      });
      const auto after = elements(call(x));
      check<ShapeError>(after.size() == before.size(),
                        "{}: the function's result changes its shape", rule_.caller);
      for (std::size_t o = 0; o < after.size(); ++o) {
        const std::size_t t = out_.of(o);
        if (rule_.may_see(t, s) || after[o] == before[o] ||
            std::abs(after[o] - before[o]) <= atol_ ||
            (std::isnan(after[o]) && std::isnan(before[o])))
          continue;
        const Leak leak{t, s, true, after[o] - before[o],
                        fmt::format("other values there change out {} from {:.6g} to {:.6g}",
                                    detail::place(o, y_.shape()), before[o], after[o])};
        if (!first || leak.is_before(*first))
          first = leak;
      }
    }
    return first;
  }

  const Rule& rule_;
  double atol_;
  const std::function<Tensor(const Tensor&)>& f_;
  detail::SameDraws draws_;
  Tensor x_;
  detail::Snapshot before_{{x_}};
  Generator generator_;
  Tensor y_;
  std::string changes_;  // a sentence, if a call changes its input
  Along in_, out_;
  std::optional<std::pair<std::size_t, std::size_t>> missing_;
};

// ---- dropout ----

// Mean and standard error of samples that arrive one by one.
struct Samples {
  double n = 0, mean = 0, squares = 0;
  void add(double v) {
    const double d = v - mean;
    mean += d / ++n;
    squares += d * (v - mean);
  }
  double error() const { return std::sqrt(squares / (n - 1) / n); }
};

// The error of the mean in standard errors.  Without any spread, rounding is tolerated.
double off(const Samples& samples, double expected, double scale) {
  const double distance = std::abs(samples.mean - expected);
  const double rounding = 1e-5 * scale;
  return distance <= rounding ? 0 : distance / std::max(samples.error(), 1e-300);
}

std::string reason(const DropoutReport& r) {
  const double p = r.zeros;
  const auto near = [&](double ratio) {
    return std::abs(r.ratio - ratio) <= std::max(5 * r.standard_error, 0.02 * ratio);
  };
  if (p == 0)
    return near(1) ? "" : "; nothing is dropped, but it is scaled";
  if (near(1 - p))
    return "; the factor 1 / (1 - p) is missing";
  if (near((1 - p) * (1 - p)))
    return "; it multiplies by 1 - p where it should divide";
  if (p < 1 && near((1 - p) / p))
    return "; p and 1 - p are exchanged";
  return "";
}

using Tensors = std::vector<Tensor>;

// The same value with a node of its own, so that a Tensor given twice counts as two inputs.
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

// A call of a function to be differentiated: while it lives, graphs are recorded.
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
  /// Keeps graphs only under create_graph.
  Tensors finished(Tensors xs) const { return create_graph_ ? xs : detached(std::move(xs)); }

  /// Returns v.  Throws unless it has the shapes and dtypes of `like`; messages call a Tensor of
  /// `like` `what`.
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
  const ModeGuard enabled_{Mode::current().with(&Mode::grad_enabled, true)};
  const char* name_;
  bool create_graph_;
  Tensors xs_, ys_;
};

// grad(), with zeros for outputs without a graph and for unused inputs.
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

CausalReport check_causal(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                          const CausalOptions& options) {
  check_function(f, "check_causal");
  return Dependence(causal, f, x, options.seq_dim, options.seed, options.atol).run();
}

LeakReport check_batch_independence(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                                    const BatchOptions& options) {
  check_function(f, "check_batch_independence");
  check<ValueError>(x.size(options.dim) >= 2,
                    "check_batch_independence: {} items; at least 2 are needed",
                    x.size(options.dim));
  return Dependence(batch, f, x, options.dim, options.seed, options.atol).run();
}

DropoutReport check_dropout_mean(const std::function<Tensor()>& dropped, const Tensor& expected,
                                 const DropoutOptions& options) {
  check_function(dropped, "check_dropout_mean");
  check<ValueError>(options.samples >= 2, "check_dropout_mean: {} samples; at least 2 are needed",
                    options.samples);
  const auto e = elements(expected);
  const double square = detail::dot(e, e);
  check<ValueError>(std::isfinite(square), "check_dropout_mean: the expected value is not finite");
  check<ValueError>(square > 0, "check_dropout_mean: the expected value is zero everywhere");

  const detail::SameDraws restore;
  manual_seed(options.seed);
  Generator generator(options.seed + 1);
  std::array<std::vector<double>, 3> directions{e, std::vector<double>(e.size(), 1),
                                                std::vector<double>(e.size())};
  for (double& w : directions[2])
    w = normal_away_from_zero(generator);
  std::array<Samples, 3> samples;
  double zeros = 0, could_be = 0;
  for (std::size_t n = 0; n < options.samples; ++n) {
    const Tensor y = dropped();
    if (y.shape() != expected.shape())
      fail<ShapeError>("check_dropout_mean: the function gives {} but {} is expected",
                       to_string(y.shape()), to_string(expected.shape()));
    const auto values = elements(y);
    for (std::size_t k = 0; k < samples.size(); ++k) {
      double along = 0;
      for (std::size_t i = 0; i < e.size(); ++i)
        along += directions[k][i] * (values[i] - e[i]);
      samples[k].add(along);
    }
    for (std::size_t i = 0; i < e.size(); ++i)
      if (e[i] != 0) {
        could_be += 1;
        zeros += values[i] == 0 ? 1 : 0;
      }
  }
  DropoutReport report;
  report.ratio = 1 + samples[0].mean / square;
  report.standard_error = samples[0].error() / square;
  report.zeros = zeros / could_be;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    double scale = 0;
    detail::add_sizes(scale, directions[k], e);
    const double by = off(samples[k], 0, scale);
    report.standard_errors = std::isnan(by) ? INFINITY : std::max(report.standard_errors, by);
  }
  report.ok = report.standard_errors <= options.limit;
  report.message = fmt::format(
      "check_dropout_mean: the mean of {} samples is {:.4g} +- {:.2g} times the expected value, {} "
      "standard errors off at most; {:.3g} of the elements are zero{}",
      options.samples, report.ratio, report.standard_error,
      report.standard_errors > 1e6 ? "very many" : fmt::format("{:.1f}", report.standard_errors),
      report.zeros, report.ok ? "" : reason(report));
  return report;
}

void detail::no_function() { throw ValueError("TensorFunction: the function is empty"); }

void detail::wrong_number_of_inputs(std::size_t takes, std::size_t given) {
  fail<ValueError>("a function of {} Tensor{} was given {}", takes, takes == 1 ? "" : "s", given);
}

Tensor TensorFunction::single(const char* caller, const Inputs& inputs) const {
  const std::vector<Tensor> results = call_(inputs);
  check<ValueError>(results.size() == 1, "{}: the function has {} results, not one", caller,
                    results.size());
  return results[0];
}

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
