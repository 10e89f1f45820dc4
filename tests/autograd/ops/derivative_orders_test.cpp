// Third derivatives of the ops.  First and second derivatives of every op: samples_test.cpp.

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
