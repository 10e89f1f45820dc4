#pragma once
// What gradcheck compares with: the Jacobian by backward passes, and what ends a check before.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <xgrad/autograd/check/gradcheck_function.hpp>
#include <xgrad/autograd/check/same_draws.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

inline std::string at(const std::string& name, std::size_t flat, const Shape& shape) {
  return fmt::format("{} at {}", name, place(flat, shape));
}

// Thrown: a check ends before there is anything to compare.
struct Refusal {
  GradcheckReason reason;
  std::string explanation;
};

inline void check_unchanged(const Snapshot& snapshot, const char* who) {
  if (const std::string changes = snapshot.changes(who); !changes.empty())
    throw Refusal{GradcheckReason::inputs_modified, changes};
}

inline constexpr const char* repeat =
    "the function must give the same result every time (does it draw random numbers?)";

// ---- the analytic Jacobian ----

class Analytic {
 public:
  Analytic(const CheckedFunction& f, const Snapshot& snapshot, const GradcheckOptions& options)
      : f_(f), options_(options) {
    {
      const Trace trace;
      outputs_ = f.with_graph();
      for (const Trace::Event& event : trace.events())
        if (event.output.requires_grad())
          made_.insert_or_assign(event.output.impl().node.get(), elements(event.output));
      shapes_ = shapes_of(outputs_);
      check_unchanged(snapshot, "the function");
      again_ = f.with_graph();  // traced, too: checkpoint() sums in another order where it is not
    }
    f.check_shapes(again_, shapes_);
    if (const std::string differs = two_results(outputs_, again_); !differs.empty())
      throw Refusal{GradcheckReason::nondeterministic, differs};
    values_ = f.values();
    f.check_shapes(values_, shapes_);
  }

  const std::vector<Shape>& shapes() const { return shapes_; }
  // What rounds in each element of the outputs: the sum of |d element / d value * value| over all
  // values on the way to it.
  const std::vector<double>& scales() const { return scales_; }

  // d outputs[i] / d leaves for a cotangent; undefined where the graph does not lead.
  std::vector<Tensor> rows(std::size_t i, const Tensor& cotangent,
                           const OnGradient& on_gradient = {}) const {
    return gradients({outputs_[i]}, f_.tensors(), {cotangent}, {.retain_graph = true}, on_gradient);
  }

  // The Jacobian of every output in every leaf; computed twice.
  std::vector<std::vector<JudgedPair>> jacobians() {
    const auto& leaves = f_.leaves();
    std::vector<std::vector<JudgedPair>> found(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::size_t m = outputs_[i].numel();
      for (const CheckedLeaf& leaf : leaves) {
        const Shape shape{m, leaf.x.numel()};
        found[i].push_back({empty_array<double>(shape), empty_array<double>(shape)});
        std::fill_n(found[i].back().analytic.data(), found[i].back().analytic.size(), 0.0);
      }
      for (std::size_t j = 0; j < m; ++j) {
        const Tensor e = one_hot(outputs_[i], j);
        double& scale = scales_.emplace_back();
        const auto add = [&scale](const Tensor& gradient, std::span<const double> value) {
          const auto g = elements(gradient);
          for (std::size_t a = 0; a < g.size(); ++a)
            if (const double part = std::abs(g[a] * value[a]); std::isfinite(part))
              scale += part;
        };
        const auto first = rows(i, e, [&](const Node& node, const Tensor& gradient) {
          steepest_ = std::max(steepest_, scale_of(elements(gradient)));
          if (const auto made = made_.find(&node);
              made != made_.end() && std::ssize(made->second) == gradient.numel())
            add(gradient, made->second);
        });
        // Once more through the same graph, to catch a formula that a run changes; and every row
        // through the graph of another call.
        if (j == 0)
          compare(first, rows(i, e), i, j);
        compare(first, gradients({again_[i]}, f_.tensors(), {e}, {.retain_graph = true}), i, j);
        for (std::size_t k = 0; k < leaves.size(); ++k)
          if (first[k].defined()) {
            found[i][k].reached = true;
            add(first[k], elements(leaves[k].x));
            std::copy_n(first[k].data<double>(), first[k].numel(),
                        found[i][k].analytic.data() + j * first[k].numel());
          }
      }
    }
    return found;
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
  void check_linear(const std::vector<std::vector<JudgedPair>>& pairs, Generator& generator) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor v = random_signed(shapes_[i], generator);
      const auto all = rows(i, v);
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!all[k].defined())
          continue;
        const std::size_t m = v.numel(), n = all[k].numel();
        auto limits = Tolerance{.atol = options_.atol, .rtol = options_.rtol}.scaled(
            INFINITY, scale_of(scales_), typical_size(elements(f_.leaves()[k].x)));
        limits.atol = std::max(limits.atol, 1e-14 * steepest_);  // which may cancel
        std::vector<double> sum(n), size(n);
        for (std::size_t j = 0; j < m; ++j)
          for (std::size_t a = 0; a < n; ++a) {
            const double term = v.data<double>()[j] * pairs[i][k].analytic.data()[j * n + a];
            sum[a] += term;
            size[a] += std::abs(term);
          }
        for (std::size_t a = 0; a < n; ++a) {
          const double g = all[k].data<double>()[a];
          if (std::abs(g - sum[a]) > limits.atol + limits.rtol * size[a])
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

  // Outputs that differ without a graph: a gradient that is another one under create_graph.
  std::optional<Refusal> other_reading() const {
    const double rounding = 1e-12 * scale_of(scales_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto a = elements(outputs_[i]), b = elements(values_[i]);
      for (std::size_t j = 0; j < a.size(); ++j)
        if (std::abs(a[j] - b[j]) >
            std::max(rounding, 1e-10 * scale_of(b)) + options_.rtol * std::abs(b[j]))
          return Refusal{GradcheckReason::unknown,
                         fmt::format("{} is {:.9g} under create_graph and {:.9g} without: a "
                                     "backward formula has two readings that differ",
                                     at(f_.output_name(i), j, shapes_[i]), a[j], b[j])};
    }
    return {};
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
  std::vector<Tensor> outputs_, again_, values_;  // of two graphs, and of none
  std::vector<Shape> shapes_;
  std::unordered_map<const Node*, std::vector<double>> made_;  // the outputs of ops
  std::vector<double> scales_;
  double steepest_ = 0;  // the largest gradient of a value
};

}  // namespace xgrad::detail
