// compare(): mistakes in the forward, which gradcheck cannot see.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "autograd/check/attention_variants.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

// The same by fused ops.
Tensor by_fused(const Tensor& x, const Weights& w) {
  const std::size_t B = x.size(0), T = x.size(1);
  std::vector<Tensor> heads = chunk(linear(x, w.qkv), 3, -1);
  for (Tensor& a : heads)
    a = transpose(reshape(a, {B, T, 2, 4}), 1, 2);
  const Tensor y = scaled_dot_product_attention(heads[0], heads[1], heads[2],
                                                AttentionOptions{.is_causal = true});
  return linear(reshape(transpose(y, 1, 2), {B, T, 8}), w.out);
}
Tensor packed(const Tensor& x, const Weights& w) {
  return linear(causal_self_attention(linear(x, w.qkv), 2), w.out);
}

using Reference = Tensor(const Tensor&, const Weights&);
Tensor plain(const Tensor& x, const Weights& w) { return attention(x, w, {}); }

Comparison compare_with(const Variant& v, Reference* reference = plain) {
  const Weights w;
  const Comparison found =
      compare([&](const Tensor& x) { return attention(x, w, v); },
              [&](const Tensor& x) { return reference(x, w); }, {normal({2, 4, 8}, 3)});
  UNSCOPED_INFO(found.message);
  return found;
}

}  // namespace

TEST_CASE("compare: two ways to write the same agree", "[compare]") {
  for (const Variant& v :
       {Variant{}, Variant{.scales_q = true}, Variant{.scores_transposed = true}}) {
    const auto found = compare_with(v);
    CHECK(found);
    CHECK_FALSE(found.reference.has_value());
    CHECK_THAT(found.message, StartsWith("the results agree; "));
    CHECK(found.ops == 19);
    CHECK(found.matched >= 18);
  }
}

TEST_CASE("compare names the first intermediate that differs", "[compare]") {
  const auto differs = [](const Variant& v, const std::string& reference, const std::string& mine,
                          const std::string& hint) {
    const auto found = compare_with(v);
    CHECK_FALSE(found);
    REQUIRE(found.reference.has_value());
    REQUIRE(found.mine.has_value());
    CHECK(found.reference->op == reference);
    CHECK(found.reference->scope == "attn");
    CHECK(found.mine->op == mine);
    CHECK_THAT(found.hint, ContainsSubstring(hint));
    CHECK_THAT(found.message, ContainsSubstring("the results differ, most at (") &&
                                  ContainsSubstring(", " + reference + " in attn") &&
                                  ContainsSubstring(hint));
  };
  differs({.no_scale = true}, "mul", "masked_fill",
          "your input of masked_fill is 2 times the reference's");
  differs({.no_scale = true, .scores_transposed = true}, "mul", "masked_fill", "2 times");
  differs({.mask_after = true}, "masked_fill", "softmax",
          "the reference does masked_fill before softmax, yours does it after");
  differs({.heads_not_merged = true}, "permute", "linear",
          "yours holds the same numbers in another order: those of your op 16, matmul in attn, (2, "
          "2, 4, 4), with its dimensions permuted by (0, 2, 1, 3)");
  differs({.heads_reversed = true}, "linear", "select",
          "input 0 of linear in yours, compared with the reference's, holds the same numbers in "
          "another "
          "order: along dimension 2 they are numbers 4, 5, 6, 7, 0, 1, 2, 3");
  differs({.wrong_weight = true}, "linear", "mul",
          "input 1 of linear in yours, compared with the reference's, is 2 times the other");
  differs({.no_mask = true}, "masked_fill", "softmax", "");
}

TEST_CASE("compare looks into fused ops", "[compare]") {
  Reference* const reference = GENERATE(plain, by_fused, packed);
  const auto differs = [&](const Variant& v, const std::string& theirs, const std::string& mine,
                           const std::string& hint) {
    const auto found = compare_with(v, reference);
    CHECK_FALSE(found);
    REQUIRE(found.reference.has_value());
    REQUIRE(found.mine.has_value());
    CHECK(found.reference->op == theirs);
    CHECK(found.mine->op == mine);
    CHECK_THAT(found.message, ContainsSubstring(hint));
    CHECK_THAT(found.table,
               ContainsSubstring(fmt::format("* {}  {}", found.mine->number, mine)) &&
                   ContainsSubstring(fmt::format("* {}  {}", found.reference->number, theirs)));
  };
  CHECK(compare_with({}, reference));
  differs({.mask_off_by_one = true}, "masked_fill", "masked_fill",
          "only the reference's is infinite at (0, 0, 0, 1), the first of 12 such places");
  differs({.no_scale = true}, "mul", "masked_fill",
          "your input of masked_fill is 2 times the reference's");
  differs({.scale = 0.25}, "mul", "mul",
          "input 1 of mul in yours, compared with the reference's, is 0.5 (1/2 = 1/√4) times");
  differs({.heads_not_transposed = true}, "matmul", "matmul",
          "input 0 of matmul in yours, compared with the reference's, holds the same numbers in "
          "another "
          "order");
  differs({.softmax_dim = -2}, "softmax", "softmax",
          "yours sums to 1 along dimension 2, the reference's along 3");
}

TEST_CASE("compare looks into norms, gelu and cross_entropy", "[compare]") {
  const Tensor x = normal({3, 4}, 1);
  const auto differs = [&](const TensorFunction& mine, const TensorFunction& reference,
                           const std::string& named) {
    const auto found = compare(mine, reference, {x});
    CHECK_FALSE(found);
    REQUIRE(found.mine.has_value());
    CHECK(found.mine->op == named);
  };
  differs(
      [](const Tensor& a) { return (a - mean(a, -1, true)) / sqrt(var(a, -1, 1, true) + 1e-5); },
      [](const Tensor& a) { return layer_norm(a, 4); }, "var");
  differs([](const Tensor& a) { return a * rsqrt(sum(a * a, -1, true) + 1e-5); },
          [](const Tensor& a) { return rms_norm(a, 4, {}, 1e-5); }, "sum");
  differs([](const Tensor& a) { return a * (1.0 + erf(a)) * 0.5; },
          [](const Tensor& a) { return gelu(a); }, "erf");
  const Indices ids{0, 1, 2};
  differs(
      [&](const Tensor& a) { return -mean(gather(log_softmax(a, 0), 1, Indices{{0}, {1}, {2}})); },
      [&](const Tensor& a) { return cross_entropy(a, ids); }, "log_softmax");
}

TEST_CASE("compare: shapes, factors and parameters that differ", "[compare]") {
  const Tensor x = normal({3, 4}, 1), w = normal({4, 4}, 2);
  const auto hint = [&](const TensorFunction& mine, const TensorFunction& reference) {
    const auto found = compare(mine, reference, {x});
    CHECK_FALSE(found);
    return found.message;
  };
  CHECK_THAT(hint([&](const Tensor& a) { return matmul(a, w.t()); },
                  [&](const Tensor& a) { return matmul(a, w); }),
             ContainsSubstring("transpose") || ContainsSubstring("input 1 of matmul"));
  CHECK_THAT(hint([&](const Tensor& a) { return linear(a, w.t().detach()); },
                  [&](const Tensor& a) { return linear(a, w); }),
             ContainsSubstring("input 1 of linear in yours, compared with the reference's, is the "
                               "other transposed"));
  CHECK_THAT(hint([&](const Tensor& a) { return exp(a) * std::sqrt(1.0 / 3); },
                  [&](const Tensor& a) { return exp(a) * 1.0; }),
             ContainsSubstring("0.57735 (1/√3) times"));
  CHECK_THAT(hint([&](const Tensor& a) { return a; }, [&](const Tensor& a) { return sum(a, {0}); }),
             ContainsSubstring("the results differ: yours is (3, 4), the reference's (4,)"));
  CHECK_THAT(
      hint([&](const Tensor& a) { return -exp(a); }, [&](const Tensor& a) { return exp(a); }),
      ContainsSubstring("other sign") || ContainsSubstring("-1 times"));
}

TEST_CASE("compare names the order of two ops only if another order mends it", "[compare]") {
  const Tensor angle = normal({3, 4}, 1), x = normal({3, 4}, 2);
  using Function = TensorFunction;
  const auto hint = [&](const Function& mine, const Function& reference) {
    const auto found = compare(mine, reference, {angle});
    CHECK_FALSE(found);
    return found.hint;
  };
  const std::string order = "the order of two ops: the reference does ";
  const Function scaled_angle = [&](const Tensor& a) { return x * cos(a * 2.0); },
                 scaled_cos = [&](const Tensor& a) { return x * (cos(a) * 2.0); };
  CHECK(hint(scaled_angle, scaled_cos) == order + "cos before mul, yours does it after");
  CHECK(hint(scaled_cos, scaled_angle) == order + "mul before cos, yours does it after");
  // The other operand, another shape between the two, and an op between them.
  CHECK(hint([&](const Tensor& a) { return exp(x - a) * x; },
             [&](const Tensor& a) { return (x - exp(a)) * x; }) ==
        order + "exp before sub, yours does it after");
  CHECK(hint([](const Tensor& a) { return exp(sum(a, 0)); },
             [](const Tensor& a) { return sum(exp(a), 0); }) ==
        order + "exp before sum, yours does it after");
  CHECK(hint([](const Tensor& a) { return exp(tanh(a * 2.0)); },
             [](const Tensor& a) { return tanh(exp(a) * 2.0); }) ==
        order + "exp before mul, yours does it after");
  // The same names in another order, where the mistake is a number.
  for (const Function& mine : {Function([&](const Tensor& a) { return x * cos(0.0 * a); }),
                               Function([&](const Tensor& a) { return x * cos(a * 3.0); }),
                               Function([&](const Tensor& a) { return x * cos(a * 2.0) * 1.5; })})
    for (const Function& reference :
         {Function([&](const Tensor& a) { return x * cos(a); }),
          Function([&](const Tensor& a) { return x * (cos(a) * 2.0); })})
      CHECK_THAT(hint(mine, reference), !ContainsSubstring("order"));
}

TEST_CASE("compare does not call a value missing that it counts as found", "[compare]") {
  const Tensor x = normal({3, 4}, 1);
  const auto lines = [&](const TensorFunction& mine, const TensorFunction& reference) {
    const auto found = compare(mine, reference, {x});
    CHECK_FALSE(found);
    return found.message;
  };
  const auto early = [](const Tensor& a) { return exp(a); };
  const auto late = [](const Tensor& a) { return sin(exp(a)); };
  CHECK_THAT(lines(late, early),
             ContainsSubstring("1 of the reference's 1 intermediates are among yours") &&
                 ContainsSubstring("\n  the reference returns its op 1, exp; yours has this value, "
                                   "too, and returns another") &&
                 ContainsSubstring("\n  yours differs first at op 2, sin: ") &&
                 !ContainsSubstring("do not have"));
  CHECK_THAT(
      lines(early, late),
      ContainsSubstring("\n  the reference's op 2, sin, is the first that you do not have") &&
          ContainsSubstring("\n  yours returns its op 1, exp; the reference has this value, "
                            "too, and returns another") &&
          !ContainsSubstring("differs first"));
  // Two results that changed places.
  const auto both = [](bool turned) {
    return [turned](const Inputs& in) {
      const Tensor a = sin(in[0]), b = cos(in[0]), c = tanh(in[0]);
      return turned ? Inputs{b, a, c} : Inputs{a, b, c};
    };
  };
  CHECK_THAT(lines(both(true), both(false)),
             ContainsSubstring("3 of the reference's 3 intermediates are among yours") &&
                 !ContainsSubstring("do not have") && !ContainsSubstring("differs first"));
  // The same numbers in another order of dimensions.
  CHECK_THAT(lines([](const Tensor& a) { return transpose(exp(a), 0, 1) * 1.0; },
                   [](const Tensor& a) { return exp(a) * 1.0; }),
             !ContainsSubstring("do not have"));
}

TEST_CASE("compare and explain_gradient take functions of several outputs", "[compare][explain]") {
  const Tensor x = normal({3, 4}, 1).requires_grad_();
  const auto f = [](double factor) {
    return [factor](const Tensor& a) {
      const Tensor e = exp(a);
      return Inputs{e, e * factor, a};
    };
  };
  CHECK(compare(f(2), f(2), {x}));
  const auto found = compare(f(3), f(2), {x});
  CHECK_FALSE(found);
  CHECK_THAT(found.message, StartsWith("the results differ in output 1, most at (") &&
                                ContainsSubstring("the reference's op 2, mul, is the first"));
  CHECK_THAT(compare([](const Tensor& a) { return exp(a); }, f(2), {x}).message,
             StartsWith("the results differ: yours returns 1 Tensors, the reference 3"));
  CHECK_THROWS_AS(compare([](const Tensor&) { return Inputs(); }, f(2), {x}), ValueError);

  const auto explained = explain_gradient(f(2), {x}, {.second_order = true});
  INFO(explained.message);
  CHECK(explained);
  CHECK(explained.ops.size() == 2);
  const auto cut =
      explain_gradient([](const Tensor& a) { return Inputs{exp(a), sin(a).detach()}; }, {x});
  CHECK_FALSE(cut);
  CHECK_THAT(cut.message, ContainsSubstring("cut at the end: the result holds the result of "
                                            "op 2, sin, but as a constant"));
  double state = 0;
  CHECK_THAT(
      explain_gradient([&](const Tensor& a) { return Inputs{a, a * (state += 1)}; }, {x}).message,
      ContainsSubstring("in output 1 at (0, 0)"));
}

TEST_CASE("compare: dropout draws the same on both sides", "[compare]") {
  const std::string before = default_generator().state();
  const auto f = [](const Tensor& a) { return dropout(a, 0.5); };
  CHECK(compare(f, f, {normal({5, 5}, 1)}));
  CHECK(default_generator().state() == before);
}

TEST_CASE("compare: float32 within its precision", "[compare]") {
  const Tensor x = normal({8, 64}, 1, DType::float32), w = normal({64, 64}, 2, DType::float32);
  const auto plain = [&](const Tensor& a) { return softmax(matmul(a, w), -1); };
  const auto other = [&](const Tensor& a) {
    const Tensor e = exp(linear(a, w.t().detach()) * 0.5);
    return e * e / sum(e * e, {-1}, true);
  };
  CHECK(compare(other, plain, {x}));
}

TEST_CASE("compare: of many dimensions not all orders are tried", "[compare]") {
  const Tensor x = normal({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3}, 1);
  CHECK(detail::relation(numbers(transpose(x, -2, -1)), numbers(x), x.shape()) ==
        "is the other transposed");
  const auto mine = [](const Tensor& a) { return transpose(a, 0, -1); };
  const auto reference = [](const Tensor& a) { return transpose(a, 0, -2); };
  const auto found = compare(mine, reference, {x});
  CHECK_FALSE(found);
  CHECK(found.matched == 1);  // x itself: only a size of 1 moves
}

TEST_CASE("a wrong forward has a right gradient", "[compare]") {
  const Weights w;
  const auto f = [&](const Tensor& a) { return attention(a, w, {.no_scale = true}); };
  CHECK(gradcheck(f, {normal({1, 3, 8}, 3).requires_grad_()}));
}
