// Jacobians that agree because they are all 0.

#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

TEST_CASE("gradcheck counts the zeros of each input", "[gradcheck][zeros]") {
  const Tensor x = leaf({1, 2, 3}), w = leaf({0, 2, 0});
  const auto report = gradcheck([](const Inputs& in) { return in[0] * in[1]; }, {x, w});
  CHECK(report);
  REQUIRE(report.zeros.size() == 2);
  CHECK(report.zeros[0].input_name == "input 0");
  CHECK(report.zeros[0].zeros == 8);  // 6 off the diagonal, 2 of w
  CHECK(report.zeros[0].elements == 9);
  CHECK(report.zeros[1].zeros == 6);
  CHECK(report.pair(0, 0).zeros == 8);
  CHECK(report.zeros[0].nonzero_at.empty());
  CHECK_THAT(report.message, !ContainsSubstring("little"));
  // wrong elements are not reported as zeros, and a failed check has no note
  const auto absent = gradcheck([](const Inputs& in) { return in[0].detach() * in[1]; }, {x, w});
  CHECK_FALSE(absent);
  CHECK(absent.zeros[0].zeros == 8);
  CHECK_THAT(absent.message, !ContainsSubstring("little"));
}

TEST_CASE("gradcheck offers a better input where all of a Jacobian is 0", "[gradcheck][zeros]") {
  const Tensor x = leaf({{-1, -2}, {-3, -0.5}}), before = x.detach().clone();
  const auto relu_of = [](const Tensor& a) { return relu(a); };
  const auto report = gradcheck(relu_of, {x});
  CHECK(report);
  CHECK(report.zeros.at(0).zeros == 16);
  CHECK(report.zeros[0].nonzero_at == "input 0 = randn(2, 2) from seed 1");
  CHECK(report.message ==
        "gradcheck: all 16 elements agree; largest error 0; but the Jacobian in input 0 (16 of 16 "
        "elements) is 0, which proves little: at input 0 = randn(2, 2) from seed 1 it is not, "
        "check there");
  CHECK(same_bits(x.detach(), before));
  const auto there = gradcheck(relu_of, {normal({2, 2}, 1).requires_grad_()});
  CHECK(there);
  CHECK(there.zeros[0].zeros < 16);
  CHECK_THAT(there.message, !ContainsSubstring("little"));
  CHECK_THAT(gradcheck(relu_of, {x}, {.fast_mode = true}).message,
             ContainsSubstring("but the Jacobian in input 0 is 0, which proves little: at input 0 "
                               "= randn(2, 2) from seed 1"));

  // relu_of is linear in pieces: a second derivative of 0 is expected of it. Its square is not.
  CHECK_THAT(gradgradcheck(relu_of, {x}).message,
             ContainsSubstring("in cotangent (16 of 16 elements) is 0") &&
                 !ContainsSubstring("in input 0"));
  CHECK_THAT(gradgradcheck([](const Tensor& a) { return pow(relu(a), 2); }, {x}).message,
             ContainsSubstring("in input 0 (16 of 16 elements), cotangent (16 of 16 elements)"));
}

TEST_CASE("gradcheck: a Jacobian below the rounding of its terms is 0, here and elsewhere",
          "[gradcheck][zeros]") {
  const auto sum_of = [](double factor) {
    return [factor](const Inputs& in) {
      const Tensor p = record(
          "mine", {in[0]}, [](std::span<const Tensor> v) { return softmax(v[0], -1); },
          [factor, x = Saved(in[0])](Context& ctx) {
            const Tensor y = softmax(x.tensor(), -1), g = ctx.gradient() * factor;
            ctx.add(0, y * (g - sum(g * y, {-1}, true)));
          });
      return sum(p);
    };
  };
  const auto normed = [](const Tensor& a) { return sum(layer_norm(a, {4}) * 1e3); };
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const TensorFunction& f :
         {TensorFunction(sum_of(1)), TensorFunction(sum_of(10)), TensorFunction(normed)})
      for (const bool fast : {false, true}) {
        const auto report =
            gradcheck(f, {normal({3, 4}, seed).requires_grad_()}, {.fast_mode = fast});
        INFO(seed << ": " << report.message);
        CHECK(report.zeros.at(0).zeros == report.zeros[0].elements);
        CHECK(report.pairs.at(0).zeros == report.pairs[0].elements);
        CHECK_THAT(report.message, ContainsSubstring("is 0, which proves little: it stays 0"));
      }
  // Small, but far above the rounding of its terms.
  for (const double scale : {1e-20, 1e-12, 1e12})
    CHECK_THAT(gradcheck([scale](const Tensor& a) { return sum(exp(a) * scale); },
                         {normal({3, 4}, 1).requires_grad_()})
                   .message,
               !ContainsSubstring("little"));
}

TEST_CASE("gradcheck names the expert that got no tokens", "[gradcheck][zeros]") {
  // Tokens whose first number is positive go to the second expert.
  const auto mixture = [](const Inputs& in) {
    const Tensor& x = in[0];
    return where(slice(x, 1, 0, 1) > 0, matmul(x, in[2]), matmul(x, in[1]));
  };
  const Tensor x = leaf({{-1, 2}, {-2, 1}, {-0.5, 3}});
  const Inputs inputs{x, normal({2, 2}, 8).requires_grad_(), normal({2, 2}, 9).requires_grad_()};
  const auto report = gradcheck(mixture, inputs, {.names = {"x", "expert.0", "expert.1"}});
  CHECK(report);
  CHECK(report.zeros.at(1).nonzero_at.empty());
  CHECK(report.zeros.at(2).zeros == 24);
  CHECK_THAT(report.message,
             ContainsSubstring("but the Jacobian in expert.1 (24 of 24 elements) is 0, which "
                               "proves little: at x = randn(3, 2) from seed "));
}

TEST_CASE("gradcheck says where a Jacobian stays 0", "[gradcheck][zeros]") {
  const auto hidden = [](const Inputs& in) {
    const Tensor scores = masked_fill(in[0], in[0] == in[0], -1e9);
    return matmul(softmax(scores, -1), in[1]);
  };
  const auto report =
      gradcheck(hidden, {normal({2, 2}, 1).requires_grad_(), normal({2, 3}, 2).requires_grad_()},
                {.names = {"scores", "value"}});
  CHECK(report);
  CHECK(report.zeros.at(0).zeros == 24);
  CHECK(report.zeros[0].nonzero_at.empty());
  CHECK_THAT(report.message,
             ContainsSubstring("but the Jacobian in scores (24 of 24 elements) is 0") &&
                 ContainsSubstring("it stays 0 with randn in any one input, seeds 1 to 3") &&
                 !ContainsSubstring("value"));

  // If the function throws for such inputs, nothing is thrown and nothing is reported.
  const auto picky = [](const Tensor& a) {
    if (a.detach().max().item() > 0)
      throw ValueError("not for positive numbers");
    return relu(a);
  };
  CHECK_THAT(gradcheck(picky, {leaf({-1, -2, -3, -4, -5, -6})}).message,
             ContainsSubstring("it stays 0"));
}

TEST_CASE("gradcheck: a gradient of 0 is not right because small steps are rounded away",
          "[gradcheck][zeros]") {
  for (const double offset : {3e10, 1e11}) {
    const auto cut = [offset](const Tensor& a) {
      return (square(a.detach()) + 0.0 * a + offset) - offset;
    };
    const auto report = gradcheck(cut, {leaf({0.5})});
    CHECK((!report || report.unchecked > 0));
  }
}
