#include <xgrad/autograd/check/gradcheck.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/hidden.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

using namespace detail;

namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The first element in which two Tensors of one shape differ.
std::optional<std::size_t> first_difference(const Tensor& a, const Tensor& b) {
  for (Size i = 0; i < a.numel(); ++i)
    if (!same(a.data<double>()[i], b.data<double>()[i]))
      return i;
  return {};
}

std::string at(const std::string& name, std::size_t flat, const Shape& shape) {
  return fmt::format("{} at {}", name, place(flat, shape));
}

// Thrown: a check ends before there is anything to compare.
struct Refusal {
  GradcheckReason reason;
  std::string explanation;
};

// The inputs' values at the beginning, to see whether the function has changed them.
class Snapshot {
 public:
  Snapshot(const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined())
        kept_.push_back({input_name(options, i), inputs[i], inputs[i].detach().clone()});
  }

  // Gives the inputs their values back and throws, if they have changed.
  void check_unchanged(const char* when) {
    std::string changed;
    for (auto& [name, x, before] : kept_)
      if (!same_bits(x, before)) {
        if (changed.empty()) {
          changed = name;
          if (const auto i = first_difference(before, x))
            changed = fmt::format("{}, which was {:.9g} and is {:.9g}", at(name, *i, x.shape()),
                                  before.data<double>()[*i], x.data<double>()[*i]);
        }
        x.set_value(before.impl().value);
      }
    if (!changed.empty())
      throw Refusal{GradcheckReason::inputs_modified,
                    fmt::format("{} changes {}: compute new Tensors instead", when, changed)};
  }

 private:
  struct Entry {
    std::string name;
    Tensor x, before;
  };
  std::vector<Entry> kept_;
};

constexpr const char* repeat =
    "the function must give the same result every time (does it draw random numbers?)";

// ---- the analytic Jacobian ----

class Analytic {
 public:
  Analytic(const CheckedFunction& f, Snapshot& snapshot, const GradcheckOptions& options)
      : f_(f), options_(options), outputs_(f.with_graph()), shapes_(shapes_of(outputs_)) {
    snapshot.check_unchanged("the function");
    again_ = f.with_graph();
    f.check_shapes(again_, shapes_);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (const auto j = first_difference(outputs_[i], again_[i]))
        throw Refusal{GradcheckReason::nondeterministic,
                      fmt::format("two calls gave {:.17g} and {:.17g} for {}: {}",
                                  outputs_[i].data<double>()[*j], again_[i].data<double>()[*j],
                                  at(f.output_name(i), *j, shapes_[i]), repeat)};
    f.check_shapes(f.values(), shapes_);
  }

  const std::vector<Shape>& shapes() const { return shapes_; }

  // d outputs[i] / d leaves for a cotangent; undefined where the graph does not lead.
  std::vector<Tensor> rows(std::size_t i, const Tensor& cotangent) const {
    return gradients({outputs_[i]}, f_.tensors(), {cotangent}, {.retain_graph = true});
  }

  // The Jacobian of every output in every leaf; computed twice.
  void fill(std::vector<std::vector<Array<double>>>& jacobian,
            std::vector<std::vector<bool>>& reached) const {
    const auto& leaves = f_.leaves();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t m = outputs_[i].numel();
      jacobian.emplace_back();
      reached.emplace_back(leaves.size(), false);
      for (const CheckedLeaf& leaf : leaves) {
        jacobian[i].push_back(empty_array<double>(Shape{m, leaf.x.numel()}));
        std::fill_n(jacobian[i].back().data(), jacobian[i].back().size(), 0.0);
      }
      for (std::size_t j = 0; j < m; ++j) {
        const Tensor e = one_hot(outputs_[i], j);
        const auto first = rows(i, e);
        // Once more through the same graph, to catch a formula that a run changes; and every row
        // through the graph of another call.
        if (j == 0)
          compare(first, rows(i, e), i, j);
        compare(first, gradients({again_[i]}, f_.tensors(), {e}, {.retain_graph = true}), i, j);
        for (std::size_t k = 0; k < leaves.size(); ++k)
          if (first[k].defined()) {
            reached[i][k] = true;
            std::copy_n(first[k].data<double>(), first[k].numel(),
                        jacobian[i][k].data() + j * first[k].numel());
          }
      }
    }
  }

  // Fast mode: the second graph must give the same products.
  void check_again(const std::vector<Tensor>& v,
                   const std::vector<std::vector<Tensor>>& rows) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      compare(rows[i], gradients({again_[i]}, f_.tensors(), {v[i]}, {.retain_graph = true}), i, {});
  }

  // A zero cotangent must give zero.  Values that are not finite are found in the Jacobian.
  void check_zero() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto zero = rows(i, zeros_like(outputs_[i]));
      for (std::size_t k = 0; k < zero.size(); ++k)
        for (Size a = 0; zero[k].defined() && a < zero[k].numel(); ++a)
          if (const double g = zero[k].data<double>()[a]; g != 0 && std::isfinite(g))
            throw Refusal{
                GradcheckReason::not_linear,
                fmt::format("a zero cotangent for {} gives {:.6g} for {}: a backward "
                            "formula does not multiply by its cotangent",
                            f_.output_name(i), g, at(f_.leaves()[k].name, a, zero[k].shape()))};
    }
  }

  // The gradient for a random cotangent must be the sum of the Jacobian's rows with these weights:
  // unit vectors alone would not tell g from g * g.
  void check_linear(const std::vector<std::vector<Array<double>>>& jacobian,
                    Generator& generator) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor v = random_signed(shapes_[i], generator);
      const auto all = rows(i, v);
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!all[k].defined())
          continue;
        const std::size_t m = v.numel(), n = all[k].numel();
        std::vector<double> sum(n), size(n);
        for (std::size_t j = 0; j < m; ++j)
          for (std::size_t a = 0; a < n; ++a) {
            const double term = v.data<double>()[j] * jacobian[i][k].data()[j * n + a];
            sum[a] += term;
            size[a] += std::abs(term);
          }
        for (std::size_t a = 0; a < n; ++a) {
          const double g = all[k].data<double>()[a];
          if (std::abs(g - sum[a]) > options_.atol + options_.rtol * size[a])
            throw Refusal{
                GradcheckReason::not_linear,
                fmt::format("the gradient is not linear in the cotangent: a random one for {} "
                            "gives {:.6g} for {}, the same sum of unit vectors gives {:.6g}",
                            f_.output_name(i), g, at(f_.leaves()[k].name, a, all[k].shape()),
                            sum[a])};
        }
      }
    }
  }

 private:
  // Two gradients of output i, or of its element j, must be equal.
  void compare(const std::vector<Tensor>& first, const std::vector<Tensor>& second, std::size_t i,
               std::optional<std::size_t> j) const {
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (!first[k].defined() || !second[k].defined()) {
        if (first[k].defined() != second[k].defined())
          throw Refusal{GradcheckReason::nondeterministic,
                        fmt::format("the graph leads to {} in one of two calls only: {}",
                                    f_.leaves()[k].name, repeat)};
        continue;
      }
      if (const auto a = first_difference(first[k], second[k]))
        throw Refusal{
            GradcheckReason::nondeterministic,
            fmt::format("two runs gave the gradients {:.17g} and {:.17g} of {} for {}: {}",
                        first[k].data<double>()[*a], second[k].data<double>()[*a],
                        j ? at(f_.output_name(i), *j, shapes_[i]) : f_.output_name(i),
                        at(f_.leaves()[k].name, *a, first[k].shape()), repeat)};
    }
  }

  const CheckedFunction& f_;
  const GradcheckOptions& options_;
  std::vector<Tensor> outputs_, again_;
  std::vector<Shape> shapes_;
};

GradcheckReport report_for(const GradcheckOptions& options) {
  GradcheckReport report;
  report.eps = options.eps;
  report.atol = options.atol;
  report.rtol = options.rtol;
  return report;
}

void note_outputs_apart(GradcheckReport& report, const CheckedFunction& f,
                        const std::vector<std::vector<bool>>& reached) {
  for (std::size_t i = 0; i < reached.size(); ++i)
    if (std::ranges::none_of(reached[i], [](bool b) { return b; }))
      report.notes.push_back(fmt::format(
          "no graph leads from {} to any input that requires a gradient", f.output_name(i)));
}

// ---- the two modes ----

void run_full(GradcheckReport& report, const CheckedFunction& f, Snapshot& snapshot,
              const GradcheckOptions& options) {
  std::vector<std::vector<Array<double>>> jacobian;
  std::vector<std::vector<bool>> reached;
  std::vector<Shape> shapes;
  std::optional<Refusal> not_linear;
  {
    const Analytic analytic(f, snapshot, options);
    shapes = analytic.shapes();
    analytic.fill(jacobian, reached);
    Generator generator(options.seed);
    try {
      analytic.check_zero();
      analytic.check_linear(jacobian, generator);
    } catch (const Refusal& refusal) {
      not_linear = refusal;  // reported after the Jacobian, which shows the effect
    }
  }  // the graphs are gone, so leaves change in place
  snapshot.check_unchanged("the backward");
  std::vector<GradcheckPair> pairs(shapes.size() * f.leaves().size());
  for (std::size_t k = 0; k < f.leaves().size(); ++k) {
    const auto numeric = numeric_jacobian(f, f.leaves()[k], shapes, options.eps);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      GradcheckPair& pair = pairs[i * f.leaves().size() + k];
      pair = compared(f, i, shapes[i], f.leaves()[k], Tensor(std::move(jacobian[i][k])), numeric[i],
                      options);
      if (pair.disagree > 0)
        explain(pair, reached[i][k], f, options);
    }
  }
  report.pairs = std::move(pairs);
  note_outputs_apart(report, f, reached);
  if (not_linear) {
    report.reason = not_linear->reason;
    report.explanation = not_linear->explanation;
  }
}

void run_fast(GradcheckReport& report, const CheckedFunction& f, Snapshot& snapshot,
              const GradcheckOptions& options) {
  Generator generator(options.seed);
  std::vector<Tensor> v;
  std::vector<std::vector<Tensor>> rows;
  std::vector<Shape> shapes;
  {
    const Analytic analytic(f, snapshot, options);
    shapes = analytic.shapes();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      v.push_back(random_direction(zeros(shapes[i], DType::float64), generator));
      rows.push_back(analytic.rows(i, v[i]));
    }
    analytic.check_zero();
    analytic.check_again(v, rows);
  }
  snapshot.check_unchanged("the backward");
  std::vector<GradcheckPair> pairs(shapes.size() * f.leaves().size());
  std::vector<std::vector<bool>> reached(shapes.size(), std::vector<bool>(f.leaves().size()));
  std::vector<double> moved;
  for (std::size_t k = 0; k < f.leaves().size(); ++k) {
    const CheckedLeaf& leaf = f.leaves()[k];
    const auto numeric =
        directional(f, leaf, random_direction(leaf.x, generator), v, options.eps, moved);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      reached[i][k] = rows[i][k].defined();
      const double analytic = reached[i][k] ? dot(rows[i][k], moved) : 0;
      pairs[i * f.leaves().size() + k] =
          compared(f, i, shapes[i], leaf, full({1, 1}, analytic, DType::float64),
                   full({1, 1}, numeric[i], DType::float64), options);
    }
  }
  report.pairs = std::move(pairs);
  report.fast_mode = true;
  note_outputs_apart(report, f, reached);
}

void run_modes(GradcheckReport& report, const CheckedFunction& f, Snapshot& snapshot,
               const GradcheckOptions& options) {
  if (options.fast_mode) {
    run_fast(report, f, snapshot, options);
    if (std::ranges::none_of(report.pairs, [](const auto& p) { return p.disagree > 0; }))
      return;
    report = report_for(options);
    report.notes.push_back("fast mode found a disagreement; this is the full mode's report");
  }
  run_full(report, f, snapshot, options);
}

GradcheckReport run(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                    const GradcheckOptions& options) {
  const ModeGuard mode({true, nullptr});
  Snapshot snapshot(inputs, options);
  GradcheckReport report = report_for(options);
  try {
    try {
      run_modes(report, f, snapshot, options);
    } catch (...) {
      snapshot.check_unchanged(
          "the function, or its backward,");  // if it did, that is why the rest failed
      throw;
    }
  } catch (const Refusal& refusal) {
    report.reason = refusal.reason;
    report.explanation = refusal.explanation;
  } catch (const BackwardError& error) {
    report.reason = error.reason;
    report.explanation = fmt::format("a backward formula failed: {}", error.what());
  }
  sum_up(report, f.caller());
  count_zeros(report, f);
  return report;
}

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  GradcheckReport report = run(checked_function("gradcheck", f, inputs, options), inputs, options);
  if (report.ok || report.disagree > 0)
    add_hidden(report, f, inputs);
  return report;
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options) {
  const CheckedFunction first = checked_function("gradgradcheck", f, inputs, options);
  auto leaves = first.leaves();
  const std::vector<Tensor>& xs = first.tensors();
  std::vector<Tensor> cotangents, all = inputs;
  std::vector<std::string> output_names;
  for (const CheckedLeaf& leaf : leaves)
    output_names.push_back("gradient of " + leaf.name);
  GradcheckOptions named = options;
  Generator generator(options.seed);
  {
    const ModeGuard mode({true, nullptr});
    const auto outputs = first.with_graph();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Tensor v = random_signed(outputs[i].shape(), generator);
      v.requires_grad_();
      cotangents.push_back(v);
      all.push_back(v);
      const std::string name = outputs.size() == 1 ? "cotangent" : fmt::format("cotangent {}", i);
      leaves.push_back({all.size() - 1, name, v});
      if (!named.names.empty())
        named.names.push_back(name);
    }
  }
  // Differences are taken of the ordinary gradient: so the gradient under create_graph is checked
  // against it, where an op has one of its own.
  const auto call = [&](bool with_graph) {
    auto result = gradients(f(inputs), xs, cotangents, {.create_graph = with_graph});
    for (std::size_t k = 0; k < xs.size(); ++k)
      if (!result[k].defined())
        result[k] = zeros_like(xs[k]);
    return result;
  };
  return run({"gradgradcheck", call, std::move(leaves), std::move(output_names)}, all, named);
}

}  // namespace xgrad
