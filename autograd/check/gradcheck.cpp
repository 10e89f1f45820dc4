#include <xgrad/autograd/check/gradcheck.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

using namespace detail;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         (a.numel() == 0 ||
          std::memcmp(a.data<double>(), b.data<double>(), a.numel() * sizeof(double)) == 0);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The first element in which two Tensors of one shape differ.
std::optional<std::size_t> first_difference(const Tensor& a, const Tensor& b) {
  for (std::size_t i = 0; i < a.numel(); ++i)
    if (!same(a.data<double>()[i], b.data<double>()[i]))
      return i;
  return {};
}

std::string at(const std::string& name, std::size_t flat, const Shape& shape) {
  return fmt::format("{} at ({})", name, fmt::join(position(flat, shape), ", "));
}

// What ends a check before there is anything to compare.
struct Verdict {
  GradcheckReason reason;
  std::string explanation;
};

// The inputs' values at the beginning, to see whether the function has changed them.
class Snapshot {
 public:
  Snapshot(const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined())
        kept_.push_back({options.names.empty() ? fmt::format("input {}", i) : options.names[i],
                         inputs[i], inputs[i].detach().clone()});
  }

  // Gives the inputs their values back and throws, if they have changed.
  void check_unchanged(const char* when) {
    std::string changed;
    for (auto& [name, x, before] : kept_)
      if (x.shape() != before.shape() || !same_bits(x, before)) {
        if (changed.empty()) {
          changed = name;
          if (const auto i = first_difference(before, x))
            changed = fmt::format("{}, which was {:.9g} and is {:.9g}", at(name, *i, x.shape()),
                                  before.data<double>()[*i], x.data<double>()[*i]);
        }
        x.set_value(before.impl().value);
      }
    if (!changed.empty())
      throw Verdict{GradcheckReason::inputs_modified,
                    fmt::format("{} changes {}: compute new Tensors instead", when, changed)};
  }

 private:
  struct Entry {
    std::string name;
    Tensor x, before;
  };
  std::vector<Entry> kept_;
};

std::vector<Shape> shapes_of(const std::vector<Tensor>& xs) {
  std::vector<Shape> shapes;
  for (const Tensor& x : xs)
    shapes.push_back(x.shape());
  return shapes;
}

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
        throw Verdict{GradcheckReason::nondeterministic,
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
      for (const CheckedLeaf& leaf : leaves)
        jacobian[i].push_back(zeros(std::vector<std::size_t>{m, leaf.x.numel()}));
      for (std::size_t j = 0; j < m; ++j) {
        const Tensor e = unit(shapes_[i], j);
        const auto first = rows(i, e);
        // The same graph again once, to catch a formula that keeps what it should not; a new one
        // for all.
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

  // In fast mode: the same products from the second graph.
  void check_again(const std::vector<Tensor>& v,
                   const std::vector<std::vector<Tensor>>& rows) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      compare(rows[i], gradients({again_[i]}, f_.tensors(), {v[i]}, {.retain_graph = true}), i, {});
  }

  // A zero cotangent must give zero.  What is not finite shows in the Jacobian.
  void check_zero() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto zero = rows(i, zeros_like(outputs_[i]));
      for (std::size_t k = 0; k < zero.size(); ++k)
        for (std::size_t a = 0; zero[k].defined() && a < zero[k].numel(); ++a)
          if (const double g = zero[k].data<double>()[a]; g != 0 && std::isfinite(g))
            throw Verdict{
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
            throw Verdict{
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
  static Array<double> zeros(const std::vector<std::size_t>& sizes) {
    auto a = empty_array<double>(Shape(sizes.begin(), sizes.end()));
    std::fill_n(a.data(), a.size(), 0.0);
    return a;
  }

  static Tensor unit(const Shape& shape, std::size_t j) {
    auto e = zeros({shape.begin(), shape.end()});
    e.data()[j] = 1;
    return Tensor(std::move(e));
  }

  // j: the element of output i that the runs are about, if it is one.
  void compare(const std::vector<Tensor>& first, const std::vector<Tensor>& second, std::size_t i,
               std::optional<std::size_t> j) const {
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (!first[k].defined() || !second[k].defined()) {
        if (first[k].defined() != second[k].defined())
          throw Verdict{GradcheckReason::nondeterministic,
                        fmt::format("the graph leads to {} in one of two calls only: {}",
                                    f_.leaves()[k].name, repeat)};
        continue;
      }
      if (same_bits(first[k], second[k]))
        continue;
      if (const auto a = first_difference(first[k], second[k]))
        throw Verdict{
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

// ---- the numeric Jacobian ----

// Of every output in one leaf.
std::vector<Array<double>> numeric_jacobian(const CheckedFunction& f, const CheckedLeaf& leaf,
                                            const std::vector<Shape>& shapes, double eps) {
  const std::size_t n = leaf.x.numel();
  std::vector<Array<double>> result, columns;  // columns: transposed, written in order
  for (const Shape& shape : shapes) {
    result.push_back(empty_array<double>(Shape{numel(shape), n}));
    columns.push_back(empty_array<double>(Shape{n, numel(shape)}));
  }
  Nudge nudge(leaf.x);
  for (std::size_t a = 0; a < n; ++a) {
    const double x = nudge.before(a), high = x + eps, low = x - eps;
    const double step = std::isfinite(x) ? high - low : 2 * eps;  // a mask's -inf stays
    nudge.set(a, high);
    const std::vector<Tensor> above = f.values();
    nudge.set(a, low);
    const std::vector<Tensor> below = f.values();
    nudge.set(a, x);
    f.check_shapes(above, shapes);
    f.check_shapes(below, shapes);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const double *const p = above[i].data<double>(), *const q = below[i].data<double>();
      double* const column = columns[i].data() + a * above[i].numel();
      for (std::size_t j = 0; j < above[i].numel(); ++j)
        column[j] = difference(p[j], q[j]) / step;
    }
  }
  constexpr std::size_t tile = 16;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t m = numel(shapes[i]);
    for (std::size_t a0 = 0; a0 < n; a0 += tile)
      for (std::size_t j0 = 0; j0 < m; j0 += tile)
        for (std::size_t j = j0; j < std::min(m, j0 + tile); ++j)
          for (std::size_t a = a0; a < std::min(n, a0 + tile); ++a)
            result[i].data()[j * n + a] = columns[i].data()[a * m + j];
  }
  return result;
}

// ---- comparing ----

GradcheckPair pair_of(const CheckedFunction& f, std::size_t output, const Shape& shape,
                      const CheckedLeaf& leaf) {
  GradcheckPair pair;
  pair.output = output;
  pair.input = leaf.position;
  pair.output_name = f.output_name(output);
  pair.input_name = leaf.name;
  pair.output_shape = shape;
  pair.input_shape = leaf.x.shape();
  return pair;
}

double relative(const GradcheckElement& e) {
  return e.error / std::max(1.0, std::isfinite(e.numeric) ? std::abs(e.numeric) : 1.0);
}

void compare(GradcheckPair& pair, const GradcheckOptions& options) {
  const double *const a = pair.analytic.data<double>(), *const n = pair.numeric.data<double>();
  pair.elements = pair.analytic.numel();
  std::size_t worst = 0;
  double largest = -1;
  for (std::size_t i = 0; i < pair.elements; ++i) {
    const double error = std::abs(a[i] - n[i]);
    const bool finite = std::isfinite(error) && std::isfinite(n[i]);
    const bool agrees = finite && error <= options.atol + options.rtol * std::abs(n[i]);
    const double size =
        finite ? error / std::max(1.0, std::abs(n[i])) : std::numeric_limits<double>::infinity();
    pair.worst_error = std::max(pair.worst_error, size);
    // Of those that disagree, if there are any, the worst is told about.
    const bool first_to_disagree = !agrees && pair.disagree == 0;
    if (first_to_disagree || (agrees == (pair.disagree == 0) && size > largest)) {
      worst = i;
      largest = size;
    }
    pair.disagree += agrees ? 0 : 1;
  }
  if (pair.elements == 0)
    return;
  const double error = std::abs(a[worst] - n[worst]);
  pair.worst.analytic = a[worst];
  pair.worst.numeric = n[worst];
  pair.worst.error = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
  if (pair.analytic.size(1) == numel(pair.input_shape) &&
      pair.analytic.size(0) == numel(pair.output_shape)) {
    pair.worst.output_index = position(worst / pair.analytic.size(1), pair.output_shape);
    pair.worst.input_index = position(worst % pair.analytic.size(1), pair.input_shape);
  }
}

void sum_up(GradcheckReport& report, const char* caller) {
  const GradcheckPair* worst = nullptr;
  for (const GradcheckPair& pair : report.pairs) {
    report.checked += pair.elements;
    report.disagree += pair.disagree;
    report.worst_error = std::max(report.worst_error, pair.worst_error);
    if (pair.disagree > 0 && (worst == nullptr || relative(pair.worst) > relative(worst->worst)))
      worst = &pair;
  }
  if (worst != nullptr && report.reason == GradcheckReason::none) {
    report.reason = worst->reason;
    report.explanation = worst->explanation;
  }
  report.ok = report.reason == GradcheckReason::none;
  if (report.ok) {
    report.message =
        fmt::format("{}: all {} {} agree; largest error {:.2g}", caller, report.checked,
                    report.fast_mode ? "products" : "elements", report.worst_error);
    return;
  }
  report.message = fmt::format("{}: ", caller);
  if (worst != nullptr) {
    const GradcheckElement& e = worst->worst;
    report.message += fmt::format(
        "d {} ({}) / d {} ({}): analytic {:.9g}, numeric {:.9g}; {} of {} elements disagree: ",
        worst->output_name, fmt::join(e.output_index, ", "), worst->input_name,
        fmt::join(e.input_index, ", "), e.analytic, e.numeric, report.disagree, report.checked);
  }
  report.message += report.explanation;
}

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
  std::optional<Verdict> not_linear;
  {
    const Analytic analytic(f, snapshot, options);
    shapes = analytic.shapes();
    analytic.fill(jacobian, reached);
    Generator generator(options.seed);
    try {
      analytic.check_zero();
      analytic.check_linear(jacobian, generator);
    } catch (const Verdict& verdict) {
      not_linear = verdict;  // what it does to the Jacobian is worth seeing
    }
  }  // the graphs are gone, so leaves change in place
  snapshot.check_unchanged("the backward");
  std::vector<GradcheckPair> pairs(shapes.size() * f.leaves().size());
  for (std::size_t k = 0; k < f.leaves().size(); ++k) {
    auto numeric = numeric_jacobian(f, f.leaves()[k], shapes, options.eps);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      GradcheckPair& pair = pairs[i * f.leaves().size() + k];
      pair = pair_of(f, i, shapes[i], f.leaves()[k]);
      pair.analytic = Tensor(std::move(jacobian[i][k]));
      pair.numeric = Tensor(std::move(numeric[i]));
      compare(pair, options);
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

// A random vector of length 1; 0 where x is not finite, because that cannot be moved.
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
    sum += u[i] == 0 ? 0 : g.data<double>()[i] * u[i];  // 0 * NaN: was not moved, is not asked
  return sum;
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
      GradcheckPair& pair = pairs[i * f.leaves().size() + k];
      pair = pair_of(f, i, shapes[i], leaf);
      reached[i][k] = rows[i][k].defined();
      pair.analytic = full({1, 1}, reached[i][k] ? dot(rows[i][k], moved) : 0, DType::float64);
      pair.numeric = full({1, 1}, numeric[i], DType::float64);
      compare(pair, options);
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
      snapshot.check_unchanged("the function, or its backward,");  // the cause of the rest, if so
      throw;
    }
  } catch (const Verdict& verdict) {
    report.reason = verdict.reason;
    report.explanation = verdict.explanation;
  } catch (const BackwardError& error) {
    report.reason = error.reason;
    report.explanation = fmt::format("a backward formula failed: {}", error.what());
  }
  sum_up(report, f.caller());
  return report;
}

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  return run(checked_function("gradcheck", f, inputs, options), inputs, options);
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options) {
  const CheckedFunction first = checked_function("gradgradcheck", f, inputs, options);
  auto leaves = first.leaves();
  const std::vector<Tensor> xs = first.tensors();
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
