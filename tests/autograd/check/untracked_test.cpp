// Parts of a function that its graph does not show: lost results, and numbers that are read and
// used again.

#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/xtensor.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

TEST_CASE("a result that no output depends on is named, with the likely intention", "[hidden]") {
  const Tensor h = leaf({{1, 2}, {3, 4}});
  const auto f = [](const Tensor& x) {
    Tensor first = x[0];
    first *= 2.0;
    return exp(x);
  };
  const GradcheckReport report = gradcheck(f, {h});
  CHECK(report);
  check_contains(report.message, {"no output depends on the result of op 2, mul",
                                  "the Tensor of that part did not change", "select_scatter"});
  CHECK(report.notes.size() == 1);
  const GradientExplanation explained = explain_gradient(f, {h});
  CHECK(explained);
  check_contains(explained.message, {"no output depends on the result of op 2, mul"});

  check_contains(compare(f, [](const Tensor& x) { return exp(x); }, {h}).message,
                 {"the results agree", "in yours, no output depends on the result of op 2, mul"});

  const auto mended = [](const Tensor& x) { return exp(x.select_scatter(x[0] * 2.0, 0, 0)); };
  CHECK(gradcheck(mended, {h}).notes.empty());
  CHECK(gradcheck([](const Tensor& x) { return exp(x.chunk(2, 0)[1]); }, {h}).notes.empty());
  const auto masked = [](const Tensor& x) {
    return masked_fill(x, ones({2, 2}).triu(1) == 1, -inf);
  };
  CHECK(gradcheck(masked, {h}).notes.empty());
}
