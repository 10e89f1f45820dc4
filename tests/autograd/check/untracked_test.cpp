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

TEST_CASE("numbers that are read and used again are found, and the op that uses them", "[hidden]") {
  const Tensor x = leaf({{0.3, -0.2}, {0.1, 0.4}});
  struct Case {
    TensorFunction f;
    const char* op;
  };
  const Case cases[] = {
      {[](const Tensor& in) {
         return in * 2.0 + Tensor(xt::xarray<double>(xt::exp(in.array<double>())));
       },
       "input 1 of op 2, add"},
      {[](const Tensor& in) { return in / in.max().item(); }, "input 1 of op 2, div"},
      {[](const Tensor& in) { return exp(in).pow(1 + in.sum().item()); }, "op 3, pow"},
      {[](const Tensor& in) {
         Tensor scores = in.clone();
         for (int i = 0; i < 2; ++i)
           scores = scores + full({2, 2}, in[i].sum().item(), DType::float64);
         return scores;
       },
       "input 1 of op 4, add"},
  };
  for (const Case& c : cases) {
    INFO(c.op);
    const GradcheckReport report = gradcheck(c.f, {x});
    CHECK_FALSE(report);
    check_contains(report.message, {c.op, "moves with the function's inputs, but no graph leads"});
    const GradientExplanation explained = explain_gradient(c.f, {x});
    CHECK_FALSE(explained);
    CHECK_THAT(explained.message, StartsWith("no op's own backward is wrong, but the whole is: "));
    const std::size_t at = explained.message.find("moves with the function's inputs");
    REQUIRE(at != std::string::npos);
    CHECK(at < 100);
    CHECK(explained.message.find("moves with", at + 1) == std::string::npos);
  }
}

TEST_CASE("a constant that does not move is no copied value", "[hidden]") {
  const Tensor x = leaf({1, 2});
  const Tensor c = tensor({3, 4}, DType::float64);
  const auto wrong = [&](const Tensor& in) { return in.detach() * in + c * 2.0; };
  CHECK(gradcheck(wrong, {x}).message.find("moves with") == std::string::npos);
}
