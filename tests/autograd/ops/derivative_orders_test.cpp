// Third derivatives of the ops, and a summary of all orders.  First and second
// derivatives of every op: samples_test.cpp.

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <map>
#include <xgrad/autograd/engine.hpp>

#include "autograd/ops/derivative_orders.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;

namespace {

void check_third(const OpGroup& group, bool fast) {
  std::map<std::string, std::size_t> checked;  // by op
  for (const OpSample& sample : op_samples(group)) {
    if (sample.differences)
      checked[sample.op] += 0;
    if (const auto d = differentiated(sample)) {
      INFO(sample.op << ", " << sample.name);
      const auto report = check_order(3, *d, fast);
      CHECK((report.ok ? "" : report.message) == "");
      checked[sample.op] += report.checked;
    }
  }
  CHECK(checked.size() >= 10);
  for (const auto& [op, elements] : checked) {
    INFO(op);
    CHECK(elements > 0);
  }
}

}  // namespace

TEST_CASE("third derivatives of the elementwise ops", "[ops]") {
  check_third(op_groups().front(), false);
}

TEST_CASE("third derivatives of the other ops, along random directions", "[ops]") {
  for (std::size_t i = 1; i < op_groups().size(); ++i)
    check_third(op_groups()[i], true);
}

TEST_CASE("third derivatives against closed forms", "[ops]") {
  // d³ tanh = -2 (1 - t²) (1 - 3 t²), with t = tanh x
  const Tensor x = normal({5}, 1), t = tanh(x);
  const auto third = -2.0 * (1.0 - t * t) * (1.0 - 3.0 * t * t);
  Tensor leaf = clone(x).requires_grad_(), y = sum(tanh(leaf));
  for (int order = 1; order <= 3; ++order)
    y = sum(grad({y}, {leaf}, {.create_graph = true})[0] * ones({5}, DType::float64));
  CHECK(y.item() == Approx(sum(third).item()).epsilon(1e-12));
}

// x^2 and x^3 with right first and second derivatives: in that of x^2, x counts as constant.
static Tensor square_as_constant(const Tensor& x) {
  return record(
      "square_as_constant", {x}, [](std::span<const Tensor> in) { return in[0] * in[0]; },
      [x = Saved(x.detach())](Context& ctx) { ctx.add(0, ctx.gradient() * x.tensor() * 2.0); });
}
static Tensor cube_twice(const Tensor& x) {
  return record(
      "cube_twice", {x}, [](std::span<const Tensor> in) { return in[0] * in[0] * in[0]; },
      [x = Saved(x)](Context& ctx) {
        ctx.add(0, ctx.gradient() * square_as_constant(x.tensor()) * 3.0);
      });
}

TEST_CASE("a wrong third derivative is found", "[ops]") {
  const Differentiated d{{normal({3}, 1).requires_grad_()},
                         [](const Inputs& in) { return cube_twice(in[0]); }};
  CHECK(check_order(1, d));
  CHECK(check_order(2, d));
  const auto report = check_order(3, d);
  CHECK_FALSE(report);
  CHECK(report.worst_error > 0.5);
}

namespace {

struct Line {
  std::size_t samples = 0;
  std::array<std::size_t, 3> elements{};
  std::array<double, 3> worst{};
  std::size_t failed = 0;

  void add(const Differentiated& d, bool fast = false) {
    ++samples;
    for (int order = 1; order <= 3; ++order) {
      const auto k = static_cast<std::size_t>(order - 1);
      const auto report = check_order(order, d, fast);
      elements[k] += report.checked;
      worst[k] = std::max(worst[k], report.worst_error);
      failed += report.ok ? 0 : 1;
      if (!report.ok)
        std::cout << "order " << order << ": " << report.message << '\n';
    }
  }
  void add(const Line& other) {
    samples += other.samples;
    failed += other.failed;
    for (std::size_t k = 0; k < 3; ++k) {
      elements[k] += other.elements[k];
      worst[k] = std::max(worst[k], other.worst[k]);
    }
  }
  void print(const std::string& name) const {
    std::cout << std::left << std::setw(36) << name << std::right << std::setw(8) << samples
              << std::scientific << std::setprecision(1);
    for (std::size_t k = 0; k < 3; ++k) {
      std::cout << std::setw(9) << elements[k];
      std::cout << std::setw(9) << worst[k];
    }
    std::cout << '\n';
  }
};

}  // namespace

TEST_CASE("derivatives: the checks of each order, and the largest errors",
          "[.derivative-summary]") {
  std::cout << "                                     samples    first    worst   second    worst"
               "    third    worst\n";
  std::map<std::string, Line> ops;
  Line elementwise, all_ops, all_layers;
  for (const OpGroup& group : op_groups())
    for (const OpSample& sample : op_samples(group))
      if (const auto d = differentiated(sample)) {
        Line line;
        line.add(*d);
        ops[sample.op].add(line);
        all_ops.add(line);
        if (&group == &op_groups().front())
          elementwise.add(line);
      }
  for (const auto& [op, line] : ops)
    line.print(op);
  std::map<std::string, Line> layers;
  for (const LayerSample& sample : layer_samples())
    layers[sample.layer].add(sample.d, sample.large);
  for (const auto& [name, line] : layers) {
    line.print("nn::" + name);
    all_layers.add(line);
  }
  elementwise.print("elementwise ops");
  all_ops.print(std::to_string(ops.size()) + " ops");
  all_layers.print(std::to_string(layers.size()) + " layers");
  CHECK(all_ops.failed + all_layers.failed == 0);
}
