// compare(), check_causal(), check_batch_independence() and check_dropout_mean(): mistakes in the
// forward, which gradcheck does not see.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/self_attention.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

struct Weights {
  Tensor qkv = normal({24, 8}, 1), out = normal({8, 8}, 2);
};

// What may be wrong with it, and what may only be written in another way.
struct Variant {
  bool no_scale = false, mask_after = false, no_mask = false, mask_leaks = false;
  bool heads_not_merged = false, heads_reversed = false, wrong_weight = false;
  bool scales_q = false, scores_transposed = false;
  bool mask_off_by_one = false, heads_not_transposed = false;
  double scale = 0.5;
  std::int64_t softmax_dim = -1;
};

// x (B, T, 8), two heads
Tensor attention(const Tensor& x, const Weights& w, const Variant& v) {
  const Scope scope("attn");
  const std::size_t B = x.size(0), T = x.size(1);
  const auto parts = chunk(linear(x, w.qkv), 3, -1);
  const auto heads = [&](const Tensor& a) {
    return v.heads_not_transposed ? reshape(a, {B, 2, T, 4})
                                  : permute(reshape(a, {B, T, 2, 4}), {0, 2, 1, 3});
  };
  Tensor q = heads(parts[0]);
  const Tensor k = heads(parts[1]), value = heads(parts[2]);
  if (v.scales_q)
    q = q * v.scale;
  Tensor scores = v.scores_transposed ? transpose(matmul(k, transpose(q, -2, -1)), -2, -1)
                                      : matmul(q, transpose(k, -2, -1));
  if (!v.no_scale && !v.scales_q)
    scores = scores * v.scale;
  Mask hidden = nn::future(T, T);
  if (v.mask_leaks)
    hidden = hidden & tril(hidden | ~hidden, 1);  // of the future only the next position
  if (v.mask_off_by_one)
    hidden = hidden & ~tril(hidden | ~hidden, 1);  // not the next position
  if (!v.mask_after && !v.no_mask)
    scores = masked_fill(scores, hidden, -inf);
  Tensor weights = softmax(scores, v.softmax_dim);
  if (v.mask_after)
    weights = masked_fill(weights, hidden, 0);
  const Tensor y = matmul(weights, value);  // (B, H, T, D)
  Tensor merged;
  if (v.heads_reversed)
    merged = cat({select(y, 1, 1), select(y, 1, 0)}, -1);
  else
    merged = reshape(v.heads_not_merged ? y : permute(y, {0, 2, 1, 3}), {B, T, std::size_t{8}});
  return linear(merged, v.wrong_weight ? w.out * 2.0 : w.out);
}

// The same by fused ops.
Tensor fused(const Tensor& x, const Weights& w) {
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
      compare([&](const Inputs& in) { return attention(in[0], w, v); },
              [&](const Inputs& in) { return reference(in[0], w); }, {normal({2, 4, 8}, 3)});
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
          "what yours gives to masked_fill is 2 times what the reference gives to it");
  differs({.no_scale = true, .scores_transposed = true}, "mul", "masked_fill", "2 times");
  differs({.mask_after = true}, "masked_fill", "softmax",
          "the reference does masked_fill before softmax, yours does it after");
  differs({.heads_not_merged = true}, "permute", "linear",
          "yours holds the same numbers in another order: those of your op 16, matmul in attn, (2, "
          "2, 4, 4), with its dimensions permuted by (0, 2, 1, 3)");
  differs(
      {.heads_reversed = true}, "linear", "select",
      "input 0 of linear in yours, set against the reference's, holds the same numbers in another "
      "order: along dimension 2 they are numbers 4, 5, 6, 7, 0, 1, 2, 3");
  differs({.wrong_weight = true}, "linear", "mul",
          "input 1 of linear in yours, set against the reference's, is 2 times the other");
  differs({.no_mask = true}, "masked_fill", "softmax", "");
}

TEST_CASE("compare looks into fused ops", "[compare]") {
  Reference* const reference = GENERATE(plain, fused, packed);
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
          "what yours gives to masked_fill is 2 times what the reference gives to it");
  differs({.scale = 0.25}, "mul", "mul",
          "input 1 of mul in yours, set against the reference's, is 0.5 (1/2 = 1/√4) times");
  differs(
      {.heads_not_transposed = true}, "matmul", "matmul",
      "input 0 of matmul in yours, set against the reference's, holds the same numbers in another "
      "order");
  differs({.softmax_dim = -2}, "softmax", "softmax",
          "yours sums to 1 along dimension 2, the reference's along 3");
}

TEST_CASE("compare looks into norms, gelu and cross_entropy", "[compare]") {
  const Tensor x = normal({3, 4}, 1);
  const auto differs = [&](const std::function<Tensor(const Tensor&)>& mine,
                           const std::function<Tensor(const Tensor&)>& reference,
                           const std::string& named) {
    const auto found = compare([&](const Inputs& in) { return mine(in[0]); },
                               [&](const Inputs& in) { return reference(in[0]); }, {x});
    CHECK_FALSE(found);
    REQUIRE(found.mine.has_value());
    CHECK(found.mine->op == named);
  };
  differs(
      [](const Tensor& a) { return (a - mean(a, -1, true)) / sqrt(var(a, -1, 1, true) + 1e-5); },
      [](const Tensor& a) { return layer_norm(a, 4); }, "var");
  differs([](const Tensor& a) { return a * rsqrt(sum(a * a, -1, true) + 1e-5); },
          [](const Tensor& a) { return rms_norm(a, 4, {}, 1e-5); }, "sum");
  differs([](const Tensor& a) { return a * 0.5 * (1.0 + erf(a)); },
          [](const Tensor& a) { return gelu(a); }, "erf");
  const Indices ids{0, 1, 2};
  differs(
      [&](const Tensor& a) {
        return -mean(gather(log_softmax(a, 0), 1, Indices{{0}, {1}, {2}}));
      },
      [&](const Tensor& a) { return cross_entropy(a, ids); }, "log_softmax");
}

TEST_CASE("compare: shapes, factors and parameters that differ", "[compare]") {
  const Tensor x = normal({3, 4}, 1), w = normal({4, 4}, 2);
  const auto hint = [&](const std::function<Tensor(const Tensor&)>& mine,
                        const std::function<Tensor(const Tensor&)>& reference) {
    const auto found = compare([&](const Inputs& in) { return mine(in[0]); },
                               [&](const Inputs& in) { return reference(in[0]); }, {x});
    CHECK_FALSE(found);
    return found.message;
  };
  CHECK_THAT(hint([&](const Tensor& a) { return matmul(a, w.t()); },
                  [&](const Tensor& a) { return matmul(a, w); }),
             ContainsSubstring("transpose") || ContainsSubstring("input 1 of matmul"));
  CHECK_THAT(hint([&](const Tensor& a) { return linear(a, w.t().detach()); },
                  [&](const Tensor& a) { return linear(a, w); }),
             ContainsSubstring("input 1 of linear in yours, set against the reference's, is the "
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

TEST_CASE("compare: dropout draws the same on both sides", "[compare]") {
  const std::string before = default_generator().state();
  const auto f = [](const Inputs& in) { return dropout(in[0], 0.5); };
  CHECK(compare(f, f, {normal({5, 5}, 1)}));
  CHECK(default_generator().state() == before);
}

TEST_CASE("compare: float32 within its precision", "[compare]") {
  const Tensor x = normal({8, 64}, 1, DType::float32), w = normal({64, 64}, 2, DType::float32);
  const auto plain = [&](const Inputs& in) { return softmax(matmul(in[0], w), -1); };
  const auto other = [&](const Inputs& in) {
    const Tensor e = exp(linear(in[0], w.t().detach()) * 0.5);
    return e * e / sum(e * e, {-1}, true);
  };
  CHECK(compare(other, plain, {x}));
}

TEST_CASE("compare: of many dimensions not all orders are tried", "[compare]") {
  const Tensor x = normal({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3}, 1);
  CHECK(detail::relation(numbers(transpose(x, -2, -1)), numbers(x), x.shape()) ==
        "is the other transposed");
  const auto mine = [](const Inputs& in) { return transpose(in[0], 0, -1); };
  const auto reference = [](const Inputs& in) { return transpose(in[0], 0, -2); };
  const auto found = compare(mine, reference, {x});
  CHECK_FALSE(found);
  CHECK(found.matched == 0);
}

TEST_CASE("a wrong forward has a right gradient", "[compare]") {
  const Weights w;
  const auto f = [&](const Inputs& in) { return attention(in[0], w, {.no_scale = true}); };
  CHECK(gradcheck(f, {normal({1, 3, 8}, 3).requires_grad_()}));
}

// ---- causality ----

TEST_CASE("check_causal", "[causal]") {
  const Weights w;
  const Tensor x = normal({2, 5, 8}, 3);
  const auto with = [&](const Variant& v) {
    return check_causal([&](const Tensor& a) { return attention(a, w, v); }, x);
  };
  const auto right = with({});
  CHECK(right);
  CHECK_FALSE(right.past_is_missing);
  CHECK(right.message == "check_causal: none of 5 positions sees a later one");

  const auto none = with({.no_mask = true});
  CHECK_FALSE(none);
  CHECK(none.output == 0);
  CHECK(none.input == 1);
  CHECK(none.leak != 0);
  CHECK_THAT(none.message, StartsWith("check_causal: position 0 sees position 1: d out (0, 0, 0) / "
                                      "d in (0, 1, 0) = "));
  // the mask hides the next position only
  const auto leaks = with({.mask_leaks = true});
  CHECK(leaks.output == 0);
  CHECK(leaks.input == 2);
  // softmax has seen what is masked after it
  CHECK_FALSE(with({.mask_after = true}));
  // heads merged in the wrong order mix positions
  CHECK_FALSE(with({.heads_not_merged = true}));

  const nn::SelfAttention layer(8);
  const auto layer_report = [&](bool causal) {
    return check_causal([&](const Tensor& a) { return layer(a, {.is_causal = causal}).output; },
                        x.to(DType::float32));
  };
  CHECK(layer_report(true));
  CHECK_FALSE(layer_report(false));
}

TEST_CASE("check_causal finds leaks that only the value or only the gradient shows", "[causal]") {
  const Tensor x = normal({3, 4}, 1);
  const auto value = check_causal([](const Tensor& a) { return a - mean(a, {0}, true).detach(); },
                                  x, {.seq_dim = 0});
  CHECK_FALSE(value);
  CHECK(value.by_value);
  CHECK_THAT(value.message, ContainsSubstring("other values there change out (0, 0) from "));
  const auto shifted = check_causal(
      [](const Tensor& a) {
        return cat({slice(a, 0, 0, 1), slice(a, 0, 0, -1)}, 0);
      },
      x);
  CHECK(shifted);
  CHECK(shifted.past_is_missing);
  CHECK_THAT(shifted.message, ContainsSubstring("but position 1 does not see position 1 either"));
  CHECK(check_causal([](const Tensor& a) { return cumsum(dropout(a, 0.5), 0); }, x));
  CHECK_THROWS_AS(check_causal([](const Tensor& a) { return slice(a, 0, 0, 2); }, x), ShapeError);
  CHECK_THROWS_AS(check_causal([](const Tensor& a) { return a; }, x, {.seq_dim = 2}), ValueError);
}

// ---- the batch ----

TEST_CASE("check_batch_independence", "[batch]") {
  const Weights w;
  const Tensor x = normal({3, 4, 8}, 3);
  const auto right =
      check_batch_independence([&](const Tensor& a) { return attention(a, w, {}); }, x);
  CHECK(right);
  CHECK(right.message == "check_batch_independence: none of 3 items sees another");

  const auto leak =
      check_batch_independence([](const Tensor& a) { return a - mean(a, {0}, true); }, x);
  CHECK_FALSE(leak);
  CHECK_FALSE(leak.by_value);
  CHECK(leak.output == 0);
  CHECK(leak.input == 1);
  CHECK(leak.leak == Approx(-1 / 3.0));
  CHECK_THAT(leak.message, StartsWith("check_batch_independence: item 0 sees item 1: d out "
                                      "(0, 0, 0) / d in (1, 0, 0) = -0.333333"));
  CHECK(gradcheck([](const Inputs& in) { return in[0] - mean(in[0], {0}, true); },
                  {normal({3, 2}, 1).requires_grad_()}));

  // A later item may be seen no more than an earlier one may: what check_causal allows.
  const auto earlier = check_batch_independence([](const Tensor& a) { return cumsum(a, 0); }, x);
  CHECK(earlier.output == 1);
  CHECK(earlier.input == 0);

  // As batch normalisation with statistics that take no gradient
  const auto value =
      check_batch_independence([](const Tensor& a) { return a / a.std({0}, 1, true).detach(); }, x);
  CHECK_FALSE(value);
  CHECK(value.by_value);
  CHECK_THAT(value.message, ContainsSubstring("other values there change out (0, 0, 0) from "));

  // (B * H, T, D) taken for (H * B, T, D)
  const auto heads = check_batch_independence(
      [](const Tensor& a) {
        const Tensor parts = permute(reshape(a, {3, 4, 2, 4}), {0, 2, 1, 3});
        return reshape(permute(reshape(parts, {2, 3, 4, 4}), {1, 2, 0, 3}), {3, 4, 8});
      },
      x);
  CHECK_FALSE(heads);
  CHECK(heads.output == 0);
  CHECK(heads.input == 1);

  const auto along_1 = [](const Tensor& a) { return softmax(a, 1); };
  CHECK(check_batch_independence(along_1, x, {.dim = 2}));
  CHECK_FALSE(check_batch_independence(along_1, x, {.dim = 1}));
  CHECK_THROWS_AS(check_batch_independence([](const Tensor& a) { return a[0]; }, x), ShapeError);
  CHECK_THROWS_WITH(check_batch_independence(along_1, normal({1, 2}, 1)),
                    ContainsSubstring("1 items; at least 2 are needed"));
}

// ---- dropout ----

TEST_CASE("check_dropout_mean", "[dropout]") {
  const Tensor x = normal({6, 5}, 1);
  const double p = 0.2;
  const auto keep = [&](double probability) {
    return where(rand(Dims(x.shape()), DType::float64) < probability, ones_like(x), 0);
  };
  const std::string before = default_generator().state();
  const auto right = check_dropout_mean([&] { return dropout(x, p); }, x);
  CHECK(right);
  CHECK(right.zeros == Approx(p).margin(0.01));
  CHECK(right.standard_errors < 4);
  CHECK(default_generator().state() == before);

  const auto reason = [&](const std::function<Tensor()>& f, double ratio,
                          const std::string& words) {
    const auto found = check_dropout_mean(f, x);
    INFO(found.message);
    CHECK_FALSE(found);
    CHECK(found.ratio == Approx(ratio).margin(0.02));
    CHECK(found.standard_errors > 5);
    CHECK_THAT(found.message, ContainsSubstring(words));
  };
  reason([&] { return x * keep(1 - p); }, 0.8, "the factor 1 / (1 - p) is missing");
  reason([&] { return x * keep(1 - p) * (1 - p); }, 0.64, "multiplies by 1 - p");
  reason([&] { return x * keep(p) / (1 - p); }, 0.25, "p and 1 - p are exchanged");
  reason([&] { return x / (1 - p); }, 1.25, "nothing is dropped, but it is scaled");
  reason([&] { return dropout(x, p) + 0.3; }, 1 + 0.3 * x.sum().item() / (x * x).sum().item(), "");
  CHECK(check_dropout_mean([&] { return x; }, x));
  CHECK(check_dropout_mean([&] { return dropout(x, 0.001); }, x));
  // the right mean of the whole, but one half is always dropped
  const Tensor both = tensor({1, 1, 1, 1}, DType::float64);
  CHECK_FALSE(check_dropout_mean([&] { return tensor({2, 2, 0, 0}, DType::float64); }, both));
  CHECK_THROWS_AS(check_dropout_mean([&] { return x[0]; }, x), ShapeError);
  CHECK_THROWS_AS(check_dropout_mean([&] { return x * 0.0; }, x * 0.0), ValueError);
}
